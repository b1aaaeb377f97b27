/* Charges a thousand orders, each once, with all of them in flight from one
 * thread:
 *
 *     queue sqlite:/tmp/shop.db
 */
#include <idem.h>
#include <idem/queue.h>
#include <stdio.h>

enum {
    ORDERS = 1000,
    TRIES = 3
};

/* The program's data of an order; its ops carry a pointer to it. */
struct order {
    char name[32];
    unsigned tries;
    bool charged;
};

static struct order orders[ORDERS];
static unsigned charged;
static unsigned replayed;
static unsigned failed;

/* Gives up on one order, not on the others. */
static void give_up(const struct order *order, const struct idem_error *error)
{
    fprintf(stderr, "queue: %s: %s\n", order->name, error->text);
    failed++;
}

/* Hands @op over to the store, or drops it. */
static void submit(struct idem_queue *queue, struct order *order,
                   struct idem_op *op)
{
    struct idem_error error;

    idem_op_set_user(op, order);
    if (idem_queue_submit(queue, op, &error) != 0) {
        give_up(order, &error);
        idem_op_destroy(op);
    }
}

static void submit_begin(struct idem_queue *queue, struct order *order)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_error error;
    struct idem_op *op;

    request.key = idem_str(order->name);
    request.on_expired_lease = IDEM_HOLD; /* Never charge twice. */
    if (idem_op_begin(&request, &op, &error) != 0) {
        give_up(order, &error);
    } else {
        submit(queue, order, op);
    }
}

/* The key is ours: does the work, and submits its outcome. */
static void charge(struct idem_queue *queue, struct order *order,
                   struct idem_op *begun)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
    struct idem_attempt *attempt;
    struct idem_error error = {0, "out of memory"};
    struct idem_op *op;
    char receipt[64];

    if (idem_op_take_attempt(begun, &attempt) != 0) {
        give_up(order, &error);
        return;
    }
    (void)snprintf(receipt, sizeof(receipt), "receipt %llu",
                   (unsigned long long)attempt->fence);
    order->charged = true;
    outcome.result.bytes = idem_str(receipt);
    if (idem_op_end(attempt, &outcome, &op, &error) != 0) {
        give_up(order, &error);
    } else {
        submit(queue, order, op);
    }
    idem_attempt_destroy(attempt);
}

static void begun(struct idem_queue *queue, struct order *order,
                  struct idem_op *op)
{
    switch (idem_op_verdict(op)) {
    case IDEM_STARTED:
        charge(queue, order, op);
        break;
    case IDEM_REPLAY:
        replayed++;
        break;
    default: /* In progress, failed, unknown: there is no receipt. */
        printf("%s: %s\n", order->name, idem_verdict_name(idem_op_verdict(op)));
        failed++;
    }
}

static void answered(struct idem_queue *queue, struct idem_op *op)
{
    struct order *order = idem_op_user(op);

    if (idem_error_kind(idem_op_code(op)) == IDEM_KIND_RETRY &&
        ++order->tries < TRIES) {
        submit(queue, order, op); /* Submitting an op again is always safe. */
        return;
    }
    if (idem_op_code(op) != 0) {
        give_up(order, idem_op_error(op));
    } else if (order->charged) {
        charged++;
    } else {
        begun(queue, order, op);
    }
    idem_op_destroy(op);
}

static void charge_all(struct idem_queue *queue)
{
    struct idem_op *op;
    unsigned i;

    for (i = 0; i < ORDERS; i++) {
        (void)snprintf(orders[i].name, sizeof(orders[i].name), "order-%u", i);
        submit_begin(queue, &orders[i]);
    }
    printf("%zu in flight\n", idem_queue_len(queue));
    while ((op = idem_queue_reap(queue, /* timeout_ms= */ -1)) != NULL) {
        answered(queue, op);
    }
    printf("%u charged, %u replayed, %u failed\n", charged, replayed, failed);
}

int main(int argc, char **argv)
{
    struct idem_store *store;
    struct idem_queue *queue;
    struct idem_error error;

    if (argc != 2) {
        fprintf(stderr, "usage: queue STORE\n");
        return 64;
    }
    if (idem_open(argv[1], NULL, &store, &error) != 0) {
        fprintf(stderr, "queue: %s\n", error.text);
        return 69;
    }
    if (idem_queue_create(store, &queue, &error) != 0) {
        fprintf(stderr, "queue: %s\n", error.text);
        idem_close(store);
        return 69;
    }
    charge_all(queue);
    idem_queue_destroy(queue);
    idem_close(store);
    return failed == 0 ? 0 : 69;
}
