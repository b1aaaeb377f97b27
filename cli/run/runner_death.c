/* Records the end of the attempt after the death of the runner. The supervisor writes
 * under the fence of the attempt, so a successor is never disturbed. */
#include "base/crash.h"
#include "base/pace.h"
#include "process/descriptors.h"
#include "process/host.h"
#include "run/child.h"
#include "run/run.h"
#include "run/supervisor.h"
#include "run/work.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/exit_status.h"

#include <poll.h>

#define PAUSE_FIRST_MS 100
#define AGAIN_FOR_MS 60000

static const char not_run[] = "the runner died before it started the command";

enum end {
    END_RELEASED,
    END_EXPIRED,
    END_UNKNOWN,
    END_RETRY,
};

/* This attempt ran nothing. But if it was a takeover, an earlier attempt may have done
 * the work, and a release would hide that: the next attempt must be a takeover, too. */
static enum end end_of_claim(bool takeover)
{
    return takeover ? END_EXPIRED : END_RELEASED;
}

static struct idem__pace pace_from_now(void)
{
    return (struct idem__pace){.since_ms = io_now_ms(),
                               .pause_ms = PAUSE_FIRST_MS};
}

/* Pauses before another try. False: the store has been away for too long. */
static bool is_patient(struct idem__pace *pace)
{
    int64_t now_ms = io_now_ms();
    uint16_t random = 0;

    /* From now on the lease decides, as if the supervisor had died, too. */
    if (now_ms - pace->since_ms >= AGAIN_FOR_MS) {
        return false;
    }
    (void)cli_random(&random, sizeof(random));
    (void)poll(NULL, 0, (int)idem__pace_next(pace, now_ms, random));
    return true;
}

static int record_end(const struct run *run, struct idem_attempt *attempt,
                      enum end end, const char *note)
{
    struct idem_outcome retry = {
        .status = IDEM_STATUS_RETRY,
        .text = idem_str(note),
        .failures_max = (uint32_t)run->options->failures_max,
        .retry_after_ms = run->options->retry_after_ms,
    };

    switch (end) {
    case END_RELEASED:
        return idem_release(attempt, idem_str(note), NULL);
    case END_EXPIRED:
        /* The lease ends now, and the policies decide what the next caller may do. */
        return idem_expire(attempt, NULL);
    case END_RETRY:
        return idem_end(attempt, &retry, NULL);
    case END_UNKNOWN:
        break;
    }
    return idem_unknown(attempt, idem_str(note), NULL);
}

static void record_end_patiently(const struct run *run,
                                 struct idem_attempt *attempt, enum end end,
                                 const char *note)
{
    struct idem__pace pace = pace_from_now();
    int rc;

    /* Ask again while another try may help. Any other code is final, LOST among them:
     * another attempt has started, or a person has decided. */
    do {
        rc = record_end(run, attempt, end, note);
    } while (idem_error_kind(rc) == IDEM_KIND_RETRY && is_patient(&pace));
}

/* The output died with the runner, so success cannot be recorded. But the exit status is
 * known, and if it means retry, that can. */
static bool is_retry(const struct run *run,
                     const struct supervisor_order *start,
                     const struct child_end *end)
{
    return ending_status(run->options, start->policy, end) == IDEM_STATUS_RETRY;
}

static enum end end_of_work(const struct run *run,
                            const struct supervisor_order *start,
                            const struct child_end *end)
{
    if (end == NULL) {
        return end_of_claim(start->task.takeover);
    }
    if (is_retry(run, start, end)) {
        return END_RETRY;
    }
    /* The work may be done. If it may run twice, the next runner takes over at once; if
     * not, a person decides. */
    return start->policy == IDEM_RERUN ? END_EXPIRED : END_UNKNOWN;
}

/* 0, or -1 if the store stays away too long or cannot be opened at all. */
static int open_patiently(const struct run *run, const struct idem_host *host,
                          struct idem_store **ret_store)
{
    struct idem__pace pace = pace_from_now();
    int status;

    do {
        /* A store that is gone is not created: an empty one would know of no attempt. */
        status = cli_open_store_as(run->options->store, IDEM_OPEN_NO_CREATE,
                                   host, ret_store);
    } while (status == CLI_UNAVAILABLE && is_patient(&pace));
    return status == 0 ? 0 : -1;
}

/* A runner that died while its store was away may have left the outcome in the journal.
 * Record that, or leave it there: if "unknown" were recorded first, it would be lost. */
static bool has_left_its_outcome(struct idem_store *store,
                                 const struct idem_attempt *attempt)
{
    struct idem_error error = {0};

    return cli_journal_settle(store, attempt->record->scope,
                              attempt->record->key, /* remarks= */ false,
                              &error) != CLI_JOURNAL_CLEAR;
}

void runner_death_of_work(const struct run *run,
                          const struct supervisor_order *start,
                          const struct child_end *end, const char *note)
{
    struct idem_attempt *attempt;
    struct idem_store *store;

    if (open_patiently(run, /* host= */ NULL, &store) != 0) {
        return;
    }
    if (idem_attempt_from_token(store, start->task.token, &attempt, NULL) ==
        0) {
        if (!has_left_its_outcome(store, attempt)) {
            IDEM__CRASH_POINT("supervisor/runner_death/says");
            record_end_patiently(run, attempt, end_of_work(run, start, end),
                                 end != NULL ? note : not_run);
            IDEM__CRASH_POINT("supervisor/runner_death/said");
        }
        idem_attempt_destroy(attempt);
    }
    idem_close(store);
}

/* Claims again with the runner's nonce, which returns the attempt that the runner
 * began. Reading is not enough: a write that the runner had in flight may sit unseen in
 * the store's log, and appear when the log is recovered. Only a write of our own
 * settles it. */
static void settle_claim(const struct run *run, struct run_nonce *nonce,
                         struct idem_store *store)
{
    struct idem_request request = run->asked.request;
    struct idem__pace pace = pace_from_now();
    struct idem_attempt *attempt;
    int rc;

    request.wait_ms = 0;
    request.flags = 0;
    do {
        /* Each begin draws a nonce, and has to get that of the runner. */
        nonce->is_due = true;
        rc = idem_begin(store, &request, &attempt, NULL);
    } while (idem_error_kind(rc) == IDEM_KIND_RETRY && is_patient(&pace));
    if (rc != 0) {
        return;
    }
    /* This is the runner's claim or, if that never came to the store, one that was made
     * just now. Nothing was run under either. With any other verdict the key is not ours. */
    if (attempt->verdict == IDEM_STARTED) {
        IDEM__CRASH_POINT("supervisor/runner_death/settles");
        record_end_patiently(run, attempt, end_of_claim(attempt->takeover),
                             not_run);
        IDEM__CRASH_POINT("supervisor/runner_death/settled");
    }
    idem_attempt_destroy(attempt);
}

void runner_death_of_claim(const struct run *run)
{
    struct run_nonce nonce = run->nonce;
    struct idem_host host = run_nonce_host(&nonce);
    struct idem_store *store;

    if (open_patiently(run, &host, &store) == 0) {
        settle_claim(run, &nonce, store);
        idem_close(store);
    }
}
