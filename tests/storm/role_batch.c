/* Keys all at once, through a queue: begun together, ended together. */
#include "worker.h"

#include <idem/operator.h>
#include <idem/queue.h>
#include <stdlib.h>
#include <unistd.h>

/* One key on its way. */
struct ride {
    const char *key;
    struct idem_attempt *attempt;
    struct product product;
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

static void complete_all(const struct worker *w, struct idem_queue *queue,
                         struct ride *rides)
{
    size_t i;

    for (i = 0; i < w->keys_len; i++) {
        struct ride *ride = &rides[i];
        struct idem_op *op;

        if (ride->attempt == NULL || ride->attempt->verdict != IDEM_STARTED) {
            continue;
        }
        worker_effect(ride->key, ride->attempt);
        worker_product(w, ride->attempt, &ride->product);
        if (idem_op_end(ride->attempt, &ride->product.outcome, &op, NULL) !=
            0) {
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
    worker_ended(ride->key, ride->attempt, lost ? "T" : "A", ride->product.id);
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
        complete_all(w, queue, rides);
        reap_all(queue, take_ended);
    }
    for (i = 0; i < w->keys_len; i++) {
        idem_attempt_destroy(rides[i].attempt);
        worker_product_free(&rides[i].product);
    }
    idem_queue_destroy(queue);
    free(rides);
}

int role_batch(struct worker *w)
{
    ride_all(w, IDEM_NEVER, /* to_the_end= */ true);
    return 0;
}

int role_leave(struct worker *w)
{
    ride_all(w, IDEM_NEVER, /* to_the_end= */ false);
    return 0;
}

/* What was completed two seconds ago is past its retention: it is purged, and
 * its keys begin another life. */
int role_purge(struct worker *w)
{
    struct idem_error error = {0};
    uint64_t purged;
    int rc;

    rc = idem_purge(w->store, /* max= */ 0, &purged, &error);
    if (rc != 0) {
        worker_complain(w->path, "purge", &error);
    }
    ride_all(w, IDEM_LEASE_MIN_MS, /* to_the_end= */ true);
    return rc != 0;
}

/* Nobody waits for the answers: what is under way by then is given back by the
 * store's own thread. */
int role_abandon(struct worker *w)
{
    struct idem_queue *queue;
    size_t i;

    for (i = 0; i < w->keys_len; i++) {
        struct ride ride = {.key = w->keys[i]};

        if (idem_queue_create(w->store, &queue, NULL) != 0) {
            abort();
        }
        begin_all(queue, &ride, 1, IDEM_NEVER);
        (void)usleep((useconds_t)worker_random(w, 600));
        idem_queue_destroy(queue);
    }
    return 0;
}

int role_open(struct worker *w)
{
    (void)w;
    return 0;
}
