/* Keys all at once, through a queue: begun together, ended together. */
#include "ledger.h"
#include "product.h"
#include "worker.h"

#include <idem/operator.h>
#include <idem/queue.h>
#include <stdlib.h>
#include <unistd.h>

/* One key on its way. */
struct ride {
    const char *key;
    struct idem_attempt *attempt;
    char *product;
    char id[PRODUCT_ID];
};

static void submit(struct idem_queue *queue, struct idem_op *op,
                   struct ride *ride)
{
    struct idem_error error = {0};

    idem_op_set_user(op, ride);
    if (idem_queue_submit(queue, op, &error) != 0) {
        worker_complain(ride->key, "submit", &error);
        abort();
    }
}

static void begin_all(struct idem_queue *queue, struct ride *rides, size_t len,
                      int64_t retention_ms)
{
    size_t i;

    for (i = 0; i < len; i++) {
        struct idem_request request;
        struct idem_op *op;

        worker_request(rides[i].key, &request);
        request.retention_ms = retention_ms;
        if (idem_op_begin(&request, &op, NULL) != 0) {
            abort();
        }
        submit(queue, op, &rides[i]);
    }
}

static void take_begun(struct idem_op *op)
{
    struct ride *ride = idem_op_user(op);

    if (idem_op_code(op) != 0) {
        worker_complain(ride->key, "begin", idem_op_error(op));
    } else if (idem_op_take_attempt(op, &ride->attempt) != 0) {
        abort();
    } else if (ride->attempt->verdict == IDEM_STARTED) {
        worker_started(ride->key, ride->attempt);
    } else {
        worker_note(ride->key, ride->attempt);
    }
}

static void complete_all(struct idem_queue *queue, struct ride *rides,
                         size_t len, size_t product_len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        struct ride *ride = &rides[i];
        struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
        struct idem_op *op;

        if (ride->attempt == NULL || ride->attempt->verdict != IDEM_STARTED) {
            continue;
        }
        worker_effect(ride->key, ride->attempt);
        ride->product = malloc(product_len + 256);
        if (ride->product == NULL) {
            abort();
        }
        product_id(ride->attempt->fence, ride->id);
        outcome.result.bytes =
            idem_bytes(ride->product,
                       product_make(ride->id, product_len, ride->product,
                                    product_len + 256));
        if (idem_op_end(ride->attempt, &outcome, &op, NULL) != 0) {
            abort();
        }
        submit(queue, op, ride);
    }
}

static void take_ended(struct idem_op *op)
{
    struct ride *ride = idem_op_user(op);
    bool lost = idem_op_code(op) == IDEM_ELOST;

    if (idem_op_code(op) != 0 && !lost) {
        worker_complain(ride->key, "complete", idem_op_error(op));
        return;
    }
    ledger_note(/* durable= */ true, "%s %s %llu %ld %s", lost ? "T" : "A",
                ride->key, (unsigned long long)ride->attempt->fence,
                (long)getpid(), ride->id);
}

static void reap_all(struct idem_queue *queue, void (*take)(struct idem_op *op))
{
    struct idem_op *op;

    while ((op = idem_queue_reap(queue, -1)) != NULL) {
        take(op);
        idem_op_destroy(op);
    }
}

static void ride_all(struct worker *w, int64_t retention_ms, bool to_the_end)
{
    struct ride *rides = calloc(w->keys_len, sizeof(*rides));
    struct idem_queue *queue;
    size_t i;

    if (rides == NULL || idem_queue_create(w->store, &queue, NULL) != 0) {
        abort();
    }
    for (i = 0; i < w->keys_len; i++) {
        rides[i].key = w->keys[i];
    }
    begin_all(queue, rides, w->keys_len, retention_ms);
    reap_all(queue, take_begun);
    if (to_the_end) {
        complete_all(queue, rides, w->keys_len, w->len);
        reap_all(queue, take_ended);
    }
    for (i = 0; i < w->keys_len; i++) {
        idem_attempt_destroy(rides[i].attempt);
        free(rides[i].product);
    }
    idem_queue_destroy(queue);
    free(rides);
}

int role_batch(struct worker *w)
{
    if (worker_open(w, /* flags= */ 0) != 0) {
        return 1;
    }
    ride_all(w, IDEM_NEVER, /* to_the_end= */ true);
    idem_close(w->store);
    return 0;
}

int role_leave(struct worker *w)
{
    if (worker_open(w, /* flags= */ 0) != 0) {
        return 1;
    }
    ride_all(w, IDEM_NEVER, /* to_the_end= */ false);
    idem_close(w->store);
    return 0;
}

/* What was completed two seconds ago is past its retention: it is purged, and
 * its keys begin another life. */
int role_purge(struct worker *w)
{
    struct idem_error error = {0};
    uint64_t purged;
    int rc;

    if (worker_open(w, /* flags= */ 0) != 0) {
        return 1;
    }
    rc = idem_purge(w->store, /* max= */ 0, &purged, &error);
    if (rc != 0) {
        worker_complain(w->path, "purge", &error);
    }
    ride_all(w, IDEM_LEASE_MIN_MS, /* to_the_end= */ true);
    idem_close(w->store);
    return rc != 0;
}

/* Nobody waits for the answers: what is under way by then is given back by the
 * store's own thread. */
int role_abandon(struct worker *w)
{
    struct idem_queue *queue;
    size_t i;

    if (worker_open(w, IDEM_OPEN_THREAD) != 0) {
        return 1;
    }
    for (i = 0; i < w->keys_len; i++) {
        struct ride ride = {.key = w->keys[i]};

        if (idem_queue_create(w->store, &queue, NULL) != 0) {
            abort();
        }
        begin_all(queue, &ride, 1, IDEM_NEVER);
        (void)usleep((useconds_t)worker_random(w, 600));
        idem_queue_destroy(queue);
    }
    idem_close(w->store);
    return 0;
}

int role_open(struct worker *w)
{
    if (worker_open(w, /* flags= */ 0) != 0) {
        return 1;
    }
    idem_close(w->store);
    return 0;
}
