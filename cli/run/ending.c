/* What the end of the command means for the record, and the recording of it. */
#include "run/ending.h"

#include "run/io.h"
#include "run/own_word.h"

#include <poll.h>

#define AGAIN_MS 100       /* Between two attempts to record. */
#define AGAIN_FOR_MS 60000 /* A lease without end is no reason for more. */

static enum idem_status status_of_failure(enum run_on_failure rule)
{
    switch (rule) {
    case RUN_KEEP:
        break;
    case RUN_FAIL:
        return IDEM_STATUS_FAILED;
    case RUN_UNKNOWN:
        return IDEM_STATUS_UNKNOWN;
    case RUN_RELEASE:
        return IDEM_STATUS_RELEASED;
    }
    return IDEM_STATUS_COMPLETED;
}

/* Whoever dies of a signal did not choose where, and neither did who fails
 * because we told it to stop: only the policy of the record says whether it may
 * run again. Where it may, the lease ends now, and the record stays in progress:
 * a release would say that nothing happened, and the next owner would not be
 * told that it takes over. */
static enum idem_status status_of(const struct run_options *options,
                                  enum idem_on_expired_lease policy,
                                  const struct child_end *end)
{
    bool failed =
        end->exit_status != 0 && !options->release_on.has[end->exit_status];

    if (end->signal != 0 || (end->cut_short && failed)) {
        return policy == IDEM_RERUN ? IDEM_STATUS_IN_PROGRESS
                                    : IDEM_STATUS_UNKNOWN;
    }
    if (end->exit_status == 0) {
        return IDEM_STATUS_COMPLETED;
    }
    if (options->release_on.has[end->exit_status]) {
        return IDEM_STATUS_RELEASED;
    }
    return status_of_failure((enum run_on_failure)options->on_failure);
}

void ending_decide(const struct run_options *options,
                   enum idem_on_expired_lease policy,
                   const struct child_end *end, struct ending *ret_ending)
{
    struct ending *e = ret_ending;
    bool died = end->signal != 0;
    int number = died ? end->signal : end->exit_status;

    memset(e, 0, sizeof(*e));
    e->status = status_of(options, policy, end);
    e->exit_status = died ? 128 + number : number;
    (void)snprintf(e->meta, sizeof(e->meta), "%s %d\n",
                   died ? "signal" : "exit", number);
    (void)snprintf(e->text, sizeof(e->text),
                   died ? "the command died of signal %d"
                        : "the command ended with status %d",
                   number);
    e->result.meta = idem_str(e->meta);
}

static int record_once(struct idem_attempt *attempt, const struct ending *e,
                       struct idem_error *error)
{
    switch (e->status) {
    case IDEM_STATUS_COMPLETED:
        return idem_complete(attempt, &e->result, error);
    case IDEM_STATUS_FAILED:
        return idem_fail(attempt, idem_str(e->text), &e->result, error);
    case IDEM_STATUS_RELEASED:
        return idem_release(attempt, idem_str(e->text), error);
    case IDEM_STATUS_IN_PROGRESS:
        return idem_expire(attempt, error);
    case IDEM_STATUS_UNKNOWN:
        break;
    }
    return idem_unknown(attempt, idem_str(e->text), error);
}

/* At least once, also when the lease is over: the store takes it as long as
 * nobody followed us. */
static int record_patiently(struct idem_attempt *attempt,
                            const struct ending *e, struct idem_error *error)
{
    int64_t until_ms = io_now_ms() + AGAIN_FOR_MS;
    int rc;

    for (;;) {
        rc = record_once(attempt, e, error);
        if (idem_error_kind(rc) != IDEM_KIND_RETRY ||
            idem_attempt_lease_left_ms(attempt) == 0 ||
            io_now_ms() >= until_ms) {
            return rc;
        }
        (void)poll(NULL, 0, AGAIN_MS);
    }
}

int ending_record(struct run *run, const struct ending *ending,
                  struct idem_error *ret_error)
{
    enum idem_status status = ending->status;
    int rc;

    rc = record_patiently(run->attempt, ending, ret_error);
    if (rc == IDEM_ELOST) {
        status = own_word(run->store, run->attempt);
        rc = status != 0 ? 0 : rc;
    }
    if (rc == 0) {
        run->story.recorded = true;
        run->story.status = idem_status_name(status);
        run->story.not_kept = run->attempt->record->result.not_kept;
    }
    return rc;
}

int ending_release(struct run *run, const char *text)
{
    struct ending ending = {.status = IDEM_STATUS_RELEASED};
    struct idem_error error = {0};
    int rc;

    (void)snprintf(ending.text, sizeof(ending.text), "%s", text);
    rc = ending_record(run, &ending, &error);
    if (rc == IDEM_ELOST) {
        run_say(run, RUN_ERROR, "nothing was run, and the lease was lost: %s",
                error.text);
    } else if (rc != 0) {
        run_say(run, RUN_ERROR,
                "nothing was run, but the key stays claimed until its lease "
                "ends: %s",
                error.text);
    }
    return rc;
}
