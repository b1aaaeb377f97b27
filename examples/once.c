/* Charges an order once, however often and from wherever it is started:
 *
 *     once sqlite:/tmp/shop.db order-42
 */
#include <idem.h>
#include <stdio.h>

/* One order, and room for its receipt: the result must stay until idem_once()
 * returns. */
struct order {
    const char *name;
    char receipt[64];
};

/* The work. It runs at most once, unless a person decides that it may run again. */
static void charge(void *ctx, struct idem_attempt *attempt,
                   struct idem_outcome *ret_outcome)
{
    struct order *order = ctx;

    printf("charging %s\n", order->name);
    /* If the payment service checks fences, pass it this one too. */
    (void)snprintf(order->receipt, sizeof(order->receipt), "receipt %llu",
                   (unsigned long long)attempt->fence);
    ret_outcome->status = IDEM_STATUS_COMPLETED;
    ret_outcome->result.bytes = idem_str(order->receipt);
    ret_outcome->result.content_type = idem_str("text/plain");
}

/* Shows what is on record. Returns an exit status. */
static int report(const struct idem_attempt *attempt)
{
    const struct idem_record *record = attempt->record;

    switch (attempt->verdict) {
    case IDEM_STARTED:
    case IDEM_REPLAY:
        printf("%s: %.*s\n", idem_verdict_name(attempt->verdict),
               (int)record->result.bytes.len,
               (const char *)record->result.bytes.base);
        return 0;
    case IDEM_BUSY:
        printf("BUSY: %.*s is at work, and its lease has %lld ms left\n",
               (int)record->owner.len, (const char *)record->owner.base,
               (long long)attempt->lease_left_ms);
        return 75; /* EX_TEMPFAIL: try later. */
    default:
        printf("%s: a person must decide\n",
               idem_verdict_name(attempt->verdict));
        return 76;
    }
}

int main(int argc, char **argv)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt = NULL;
    struct idem_store *store;
    struct idem_error error;
    struct order order;
    int status;

    if (argc != 3) {
        fprintf(stderr, "usage: once STORE ORDER\n");
        return 64;
    }
    if (idem_open(argv[1], NULL, &store, &error) != 0) {
        fprintf(stderr, "once: %s\n", error.text);
        return 69;
    }
    order.name = argv[2];
    request.key = idem_str(order.name);
    request.owner = idem_str("examples/once");
    request.on_expired_lease = IDEM_HOLD; /* Never charge twice. */

    if (idem_once(store, &request, charge, &order, &attempt, &error) == 0) {
        status = report(attempt);
    } else if (attempt == NULL) {
        fprintf(stderr, "once: nothing was charged: %s\n", error.text);
        status = 69;
    } else {
        fprintf(stderr, "once: charged, but not recorded: %s\n", error.text);
        status = 80;
    }
    idem_attempt_destroy(attempt);
    idem_close(store);
    return status;
}
