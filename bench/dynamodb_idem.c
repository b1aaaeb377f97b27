/* Operations by idem, through its public functions. */
#include "dynamodb.h"

#include <err.h>
#include <idem.h>
#include <idem/queue.h>
#include <pthread.h>
#include <string.h>

static struct idem_store *store;
static struct idem_queue *queue;
static struct idem_slice result;

static void check(int rc, const struct idem_error *error)
{
    if (rc != 0) {
        errx(1, "idem: %s: %s", idem_error_name(rc), error->text);
    }
}

static void open_idem(const char *where, const char *text)
{
    struct idem_error error;

    result = idem_str(text);
    check(idem_open(where, /* options= */ NULL, &store, &error), &error);
    check(idem_queue_create(store, &queue, &error), &error);
}

static void close_idem(void)
{
    idem_queue_destroy(queue);
    idem_close(store);
}

static struct idem_request request_for(const char *name)
{
    struct idem_request request = IDEM_REQUEST_INIT;

    request.key = idem_str(name);
    request.owner = idem_str("bench");
    request.on_expired_lease = IDEM_RERUN; /* As Powertools does. */
    request.lease_ms = 60 * 1000;
    request.retention_ms = 3600 * 1000;
    return request;
}

static void check_replay(const struct idem_record *record)
{
    struct idem_slice bytes = record->result.bytes;

    if (bytes.len != result.len ||
        memcmp(bytes.base, result.base, bytes.len) != 0) {
        errx(1, "idem: another result");
    }
}

static void check_verdict(enum idem_verdict verdict, bool fresh)
{
    enum idem_verdict want = fresh ? IDEM_STARTED : IDEM_REPLAY;

    if (verdict != want) {
        errx(1, "idem: %s, not %s", idem_verdict_name(verdict),
             idem_verdict_name(want));
    }
}

/* ---- One that waits ---- */

static void operate(const struct work *work, uint64_t i)
{
    struct idem_result done = {.bytes = result};
    struct idem_request request;
    struct idem_attempt *attempt;
    struct idem_error error;
    char name[NAME_MAX_LEN];

    name_of(work->from + i % work->keys, name);
    request = request_for(name);
    check(idem_begin(store, &request, &attempt, &error), &error);
    check_verdict(attempt->verdict, work->fresh);
    if (work->fresh) {
        check(idem_complete(attempt, &done, &error), &error);
    } else {
        check_replay(attempt->record);
    }
    idem_attempt_destroy(attempt);
}

/* ---- Many in a queue ---- */

static void submit(struct idem_op *op)
{
    struct idem_error error;

    check(idem_queue_submit(queue, op, &error), &error);
}

static void submit_begin(const struct work *work, uint64_t i)
{
    struct idem_request request;
    struct idem_error error;
    struct idem_op *op;
    char name[NAME_MAX_LEN];

    name_of(work->from + i % work->keys, name);
    request = request_for(name);
    check(idem_op_begin(&request, &op, &error), &error);
    idem_op_set_user(op, &queue); /* Any mark: a begin. */
    submit(op);
}

/* True: it is under way to its end. */
static bool submit_end(struct idem_op *begin)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED,
                                   .result = {.bytes = result}};
    struct idem_attempt *attempt;
    struct idem_error error;
    struct idem_op *op;
    int rc = idem_op_take_attempt(begin, &attempt);

    if (rc != 0) {
        errx(1, "idem: %s", idem_error_name(rc));
    }
    check(idem_op_end(attempt, &outcome, &op, &error), &error);
    idem_attempt_destroy(attempt);
    submit(op);
    return true;
}

/* True: @op was all of an operation that there is to do. */
static bool took(const struct work *work, struct idem_op *op)
{
    bool begun = idem_op_user(op) != NULL;

    check(idem_op_code(op), idem_op_error(op));
    if (!begun) {
        return true;
    }
    check_verdict(idem_op_verdict(op), work->fresh);
    if (work->fresh) {
        return !submit_end(op);
    }
    check_replay(idem_op_record(op));
    return true;
}

static void run_queue(const struct work *work)
{
    uint64_t begun = 0;
    uint64_t done = 0;

    while (begun < work->ops && begun < work->in_flight) {
        submit_begin(work, begun++);
    }
    while (done < work->ops) {
        struct idem_op *op = idem_queue_reap(queue, -1);

        if (took(work, op)) {
            done++;
            if (begun < work->ops) {
                submit_begin(work, begun++);
            }
        }
        idem_op_destroy(op);
    }
}

static void run_idem(const struct work *work)
{
    uint64_t i;

    if (work->in_flight > 1) {
        run_queue(work);
        return;
    }
    for (i = 0; i < work->ops; i++) {
        operate(work, i);
    }
}

/* ---- A thread for each ---- */

struct shared {
    const struct work *work;
    uint64_t begun;
};

static void *call(void *arg)
{
    struct shared *shared = arg;

    for (;;) {
        uint64_t i = __atomic_fetch_add(&shared->begun, 1, __ATOMIC_RELAXED);

        if (i >= shared->work->ops) {
            return NULL;
        }
        operate(shared->work, i);
    }
}

static void run_threads(const struct work *work)
{
    struct shared shared = {.work = work};
    pthread_t threads[IN_FLIGHT_MAX];
    unsigned i;

    for (i = 0; i < work->in_flight; i++) {
        if (pthread_create(&threads[i], NULL, call, &shared) != 0) {
            errx(1, "cannot start a thread");
        }
    }
    for (i = 0; i < work->in_flight; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

const struct client client_idem = {
    .name = "idem",
    .open = open_idem,
    .run = run_idem,
    .close = close_idem,
};

const struct client client_idem_threads = {
    .name = "idem-threads",
    .open = open_idem,
    .run = run_threads,
    .close = close_idem,
};
