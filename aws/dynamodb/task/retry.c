/* Asking again, and failing. */
#include "aws/dynamodb/task/task.h"
#include "base/pace.h"
#include "core/error.h"
#include "store/remote/own.h"

enum {
    KEEP_BYTES = 16 * 1024, /* Memory that a request keeps for the next one. */
    /* In vain, in a row. The pauses between them are 13 s at most, and half of that
     * on average: what is left of the caller's time usually ends the op before. */
    TRIES_MAX = 12,
    AWAY_TRIES_MAX = 4, /* Not even a connection. */
    PAUSE_BASE_MS = 25,
    PAUSE_CAP_MS = 2000,
};

struct idem__buffer *idem__task_out(struct idem__task *task)
{
    idem__buffer_reset(&task->out, KEEP_BYTES);
    return &task->out;
}

/* ---- Failing ---- */

enum idem__state idem__task_fail(struct idem__task *task,
                                 const struct idem_error *error)
{
    struct idem_op *op = task->op;

    if (task->settled) {
        memset(&op->error, 0, sizeof(op->error));
        return IDEM__STATE_DONE;
    }
    op->error = *error;
    op->error.code = idem__own_code(error->code, task->ambiguous);
    return IDEM__STATE_DONE;
}

enum idem__state idem__task_fail_with(struct idem__task *task, int code,
                                      const char *text)
{
    struct idem_error error;

    (void)idem__error(&error, code, "%s", text);
    return idem__task_fail(task, &error);
}

/* ---- Asking again ---- */

static enum idem__state pause_before(struct idem__task *task,
                                     enum idem__state again)
{
    const struct idem_host *host = &task->env->host;
    uint64_t random = 0;

    (void)host->random(host->ctx, &random, sizeof(random));
    task->pause_ms =
        idem__backoff(task->tries, PAUSE_BASE_MS, PAUSE_CAP_MS, random);
    task->after_pause = again;
    return IDEM__STATE_PAUSE;
}

enum idem__state idem__task_retry(struct idem__task *task,
                                  const struct idem__answer *answer,
                                  enum idem__state again)
{
    unsigned most = answer->sent ? TRIES_MAX : AWAY_TRIES_MAX;

    if (task->settled) {
        return IDEM__STATE_DONE; /* A purge finds what is left. */
    }
    /* The obstacle, should the time be up. */
    task->op->error = answer->error;
    task->tries++;
    if (answer->said == IDEM__SAID_NEVER || task->tries >= most ||
        answer->error.code == IDEM_ENOMEM) {
        return idem__task_fail(task, &answer->error);
    }
    return pause_before(task, again);
}

enum idem__state idem__task_busy(struct idem__task *task, bool progress,
                                 const char *what, enum idem__state again)
{
    struct idem__answer answer = {.said = IDEM__SAID_NOT_APPLIED, .sent = true};

    /* The service answered, which set tries to 0; only progress is a reason for
     * that. */
    task->tries = progress ? 0 : task->tries_before;
    if (task->settled && progress) {
        return pause_before(task, again);
    }
    (void)idem__error(&answer.error, IDEM_EUNAVAILABLE,
                      "DynamoDB is too busy to %s", what);
    return idem__task_retry(task, &answer, again);
}
