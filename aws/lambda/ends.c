/* Sends the ends of attempts to the store, within a bounded time, and again later. */
#include "aws/lambda/ends.h"

#include "aws/lambda/lambda.h"
#include "base/heap.h"
#include "base/host.h"
#include "base/list.h"

#include <idem/queue.h>
#include <stdio.h>
#include <time.h>

/* The limit for ends that are left for later. Beyond it, only the log has them. */
#define LEFT_BYTES_MAX ((size_t)16 << 20)

enum state {
    SENT = 1, /* The queue has the op. */
    AGAIN,    /* It returned with an error that may pass. */
    RECORDED,
    REFUSED, /* For good. */
};

struct idem__lambda_ending {
    struct idem__lambda_ending *next;
    struct idem__lambda_ending *prev;
    struct idem_op *op; /* NULL: settled. */
    enum state state;
    struct idem_error error;
    size_t len; /* Bytes of its outcome. */
    size_t key_len;
    char key[IDEM_KEY_MAX];
    bool left; /* An earlier delivery has left it; nobody waits for it. */
};

/* ---- Life -------------------------------------------------------------- */

static void drop(struct idem__lambda_ends *ends,
                 struct idem__lambda_ending *ending)
{
    if (ending->left) {
        ends->left_bytes -= ending->len;
    }
    IDEM__LIST_REMOVE(ends, ending);
    idem_op_destroy(ending->op);
    idem__free(ending);
}

void idem__lambda_ends_finish(struct idem_lambda *lambda)
{
    struct idem__lambda_ends *ends = &lambda->ends;
    struct idem__lambda_ending *ending;

    idem_queue_destroy(ends->queue);
    ends->queue = NULL;
    while ((ending = ends->first) != NULL) {
        if (ending->state == SENT) {
            ending->op = NULL; /* The queue has destroyed it. */
        }
        drop(ends, ending);
    }
}

/* ---- Sending ----------------------------------------------------------- */

/* Submits the end. The store gets @for_ms, but not more than an answer may wait. */
static void submit(struct idem_lambda *lambda,
                   struct idem__lambda_ending *ending, int64_t for_ms)
{
    int64_t bound_ms = idem__lambda_ends_bound_ms(lambda);
    int rc;

    idem__lambda_allow(lambda, for_ms < bound_ms ? for_ms : bound_ms);
    rc = idem_queue_submit(lambda->ends.queue, ending->op, &ending->error);
    ending->error.code = rc;
    ending->state = rc == 0                                  ? SENT
                    : idem_error_kind(rc) == IDEM_KIND_RETRY ? AGAIN
                                                             : REFUSED;
}

static int make(struct idem_lambda *lambda, const struct idem_attempt *attempt,
                const struct idem_outcome *outcome,
                struct idem__lambda_ending **ret_ending,
                struct idem_error *error)
{
    struct idem__lambda_ends *ends = &lambda->ends;
    struct idem__lambda_ending *ending;
    int rc = 0;

    if (ends->queue == NULL) {
        rc = idem_queue_create(lambda->store, &ends->queue, error);
    }
    if (rc != 0) {
        return rc;
    }
    ending = idem__zalloc(sizeof(*ending));
    if (ending == NULL) {
        return IDEM_ENOMEM;
    }
    rc = idem_op_end(attempt, outcome, &ending->op, error);
    if (rc != 0) {
        idem__free(ending);
        return rc;
    }
    ending->key_len = attempt->record->key.len;
    memcpy(ending->key, attempt->record->key.base, ending->key_len);
    ending->len = outcome->result.bytes.len + outcome->text.len;
    idem_op_set_user(ending->op, ending);
    *ret_ending = ending;
    return 0;
}

struct idem__lambda_ending *idem__lambda_ends_send(
    struct idem_lambda *lambda, const struct idem_attempt *attempt,
    const struct idem_outcome *outcome)
{
    struct idem__lambda_ending *ending;
    struct idem_error error = {0};

    error.code = make(lambda, attempt, outcome, &ending, &error);
    if (error.code != 0) {
        idem__lambda_not_recorded(lambda, attempt->record->key, &error);
        return NULL;
    }
    IDEM__LIST_APPEND(&lambda->ends, ending);
    submit(lambda, ending, /* for_ms= */ IDEM_NEVER);
    return ending;
}

/* ---- Working ----------------------------------------------------------- */

/* Logs the result of an end that an earlier delivery has left, and drops it. */
static void tell_late(struct idem_lambda *lambda,
                      struct idem__lambda_ending *ending)
{
    struct idem__lambda_field fields[] = {
        {"key", idem_bytes(ending->key, ending->key_len), 0},
        {NULL, {NULL, 0}, 0},
    };

    if (ending->state == RECORDED) {
        idem__lambda_log(lambda->now, "INFO", fields,
                         "the outcome of an earlier delivery is on record now");
    } else {
        idem__lambda_not_recorded(lambda, fields[0].text, &ending->error);
    }
    drop(&lambda->ends, ending);
}

static void settle(struct idem_lambda *lambda, struct idem_op *op)
{
    struct idem__lambda_ending *ending = idem_op_user(op);
    int rc = idem_op_code(op);

    ending->error = *idem_op_error(op);
    ending->error.code = rc;
    if (rc != 0 && idem_error_kind(rc) == IDEM_KIND_RETRY) {
        ending->state = AGAIN;
        return;
    }
    ending->state = rc == 0 ? RECORDED : REFUSED;
    idem_op_destroy(op);
    ending->op = NULL;
    if (ending->left) {
        tell_late(lambda, ending);
    }
}

/* True if another try cannot change the result. An end that could not be sent (NULL) is in
 * the log, and will not be tried again. */
static bool is_settled(const struct idem__lambda_ending *ending)
{
    return ending == NULL || ending->state == RECORDED ||
           ending->state == REFUSED;
}

/* Takes answers until @ending is settled or, if it is NULL, until all ends that were sent
 * are answered. */
static void reap(struct idem_lambda *lambda,
                 const struct idem__lambda_ending *ending, int64_t until_ms)
{
    struct idem_op *op;

    do {
        int64_t left_ms = until_ms - idem__mono_ms();

        op = idem_queue_reap(lambda->ends.queue, left_ms < 0 ? 0 : left_ms);
        if (op != NULL) {
            settle(lambda, op);
        }
    } while (op != NULL && (ending == NULL || !is_settled(ending)));
}

static bool send_again(struct idem_lambda *lambda, int64_t for_ms)
{
    struct idem__lambda_ending *ending = lambda->ends.first;
    bool any = false;

    while (ending != NULL) {
        struct idem__lambda_ending *next = ending->next;

        if (ending->state == AGAIN) {
            any = true;
            submit(lambda, ending, for_ms);
            if (ending->state == REFUSED && ending->left) {
                tell_late(lambda, ending);
            }
        }
        ending = next;
    }
    return any;
}

void idem__lambda_pause(int64_t ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

/* Sends ends until they are settled or the time is up. An unreachable store refuses at
 * once, so each round waits longer. */
static void work_on(struct idem_lambda *lambda,
                    const struct idem__lambda_ending *ending, int64_t for_ms)
{
    int64_t until_ms = idem__mono_ms() + (for_ms < 0 ? 0 : for_ms);
    int64_t pause_ms = IDEM__LAMBDA_PAUSE_FIRST_MS;
    int64_t left_ms;

    if (lambda->ends.queue == NULL) {
        return;
    }
    reap(lambda, ending, until_ms);
    while ((ending == NULL || !is_settled(ending)) &&
           send_again(lambda,
                      for_ms > 0 ? until_ms - idem__mono_ms() : IDEM_NEVER)) {
        reap(lambda, ending, until_ms);
        left_ms = until_ms - idem__mono_ms();
        if (left_ms <= 0) {
            return;
        }
        idem__lambda_pause(pause_ms < left_ms ? pause_ms : left_ms);
        pause_ms = idem__lambda_pause_after(pause_ms);
    }
}

void idem__lambda_ends_work(struct idem_lambda *lambda, int64_t for_ms)
{
    work_on(lambda, /* ending= */ NULL, for_ms);
}

bool idem__lambda_ends_settle(struct idem_lambda *lambda,
                              const struct idem__lambda_ending *ending,
                              int64_t for_ms)
{
    if (!is_settled(ending)) {
        work_on(lambda, ending, for_ms);
    }
    return is_settled(ending);
}

int64_t idem__lambda_ends_bound_ms(const struct idem_lambda *lambda)
{
    const struct idem_lambda_options *options = lambda->options;
    int64_t left_ms = idem__lambda_left_ms(lambda->now);
    int64_t half_ms = (left_ms - IDEM__LAMBDA_STOP_MS) / 2;

    /* If only the margin is left, use half of it: the margin is meant for this. */
    if (half_ms < IDEM__LAMBDA_STOP_MS / 2) {
        half_ms = left_ms < IDEM__LAMBDA_STOP_MS ? left_ms / 2
                                                 : IDEM__LAMBDA_STOP_MS / 2;
    }
    half_ms = half_ms < 0 ? 0 : half_ms;
    return half_ms < options->store_timeout_ms ? half_ms
                                               : options->store_timeout_ms;
}

/* ---- Taking ------------------------------------------------------------ */

static void leave(struct idem__lambda_ends *ends,
                  struct idem__lambda_ending *ending)
{
    bool full = ends->left_bytes + ending->len > LEFT_BYTES_MAX;

    /* An end that was sent stays even beyond the limit, because the queue has its op. */
    if (ending->state == REFUSED || (ending->state == AGAIN && full)) {
        drop(ends, ending);
        return;
    }
    ending->left = true;
    ends->left_bytes += ending->len;
}

bool idem__lambda_ends_take(struct idem_lambda *lambda,
                            struct idem__lambda_ending *ending)
{
    if (ending == NULL) {
        return false;
    }
    if (ending->state == RECORDED) {
        drop(&lambda->ends, ending);
        return true;
    }
    if (ending->state == SENT) {
        ending->error.code = IDEM_EUNAVAILABLE;
        (void)snprintf(ending->error.text, sizeof(ending->error.text),
                       "the store has not answered");
    }
    idem__lambda_not_recorded(lambda, idem_bytes(ending->key, ending->key_len),
                              &ending->error);
    leave(&lambda->ends, ending);
    return false;
}

void idem__lambda_ends_retell(struct idem_lambda *lambda)
{
    if (lambda->ends.first != NULL) {
        idem__lambda_ends_work(lambda, idem__lambda_ends_bound_ms(lambda));
    }
}
