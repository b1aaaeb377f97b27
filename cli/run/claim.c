/* Asks for the key, and waits for another's attempt if it is to. */
#include "base/crash.h"
#include "base/pace.h"
#include "process/descriptors.h"
#include "process/host.h"
#include "run/run.h"
#include "run/signals.h"
#include "run/status_report.h"
#include "run/supervisor.h"
#include "store/journal.h"
#include "text/error.h"

#include <stdlib.h>

#define PAUSE_FIRST_MS 10

/* 0 with run->attempt, or an error. */
static int ask(struct run *run, struct idem_error *error)
{
    struct idem_attempt *attempt;
    int rc;

    if (!run->asks) {
        supervisor_ask(run->supervisor, run);
        IDEM__CRASH_POINT("run/claim/announced");
        run->asks = true;
    }
    run->nonce.is_due = true;
    rc = idem_begin(run->store, &run->asked.request, &attempt, error);
    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("run/claim/answered");
    idem_attempt_destroy(run->attempt);
    run->attempt = attempt;
    status_report_set_attempt(&run->report, attempt);
    return 0;
}

/* 0, or the exit status for @rc after saying why nothing was run. A claim whose answer
 * was lost may be on record: the key is in use then, and nobody works on it. */
static int refused(struct run *run, int rc, struct idem_error *error)
{
    if (rc == 0) {
        return 0;
    }
    error->code = rc;
    status_report_set_error(&run->report, error->text);
    return cli_fail_before(
        rc == IDEM_EUNKNOWN
            ? "nothing was run, but the key may be claimed until the lease ends"
            : "nothing was run",
        error);
}

static bool is_env(const char *name, struct idem_slice value)
{
    const char *text = getenv(name);

    return text != NULL && strlen(text) == value.len &&
           (value.len == 0 || memcmp(text, value.base, value.len) == 0);
}

/* True if we are part of the very work that we would wait for. */
static bool is_own_work(const struct run *run)
{
    const struct idem_record *record = run->attempt->record;
    char fence[24];

    (void)snprintf(fence, sizeof(fence), "%llu",
                   (unsigned long long)record->fence);
    return getenv("IDEM_TOKEN") != NULL && is_env("IDEM_KEY", record->key) &&
           is_env("IDEM_SCOPE", record->scope) &&
           is_env("IDEM_FENCE", idem_str(fence));
}

/* 0 after @ms, or 128+N at once when signal N tells us to end. */
static int sleep_for(struct run *run, int64_t ms)
{
    int64_t until_ms = io_now_ms() + ms;

    while ((ms = until_ms - io_now_ms()) > 0) {
        int signo = signals_wait(&run->signals, (int)ms);

        if (signals_is_fatal(signo)) {
            run_say(run, RUN_REMARK, "stopped waiting; nothing was run");
            status_report_set_error(&run->report, "stopped while waiting");
            return 128 + signo;
        }
        if (signo == SIGTSTP) {
            signals_stop_self();
        }
    }
    return 0;
}

/* An attempt that is to be run again, or whose lease is over, has nobody at work who
 * will end it. */
static bool is_at_work(const struct idem_attempt *attempt)
{
    return attempt->verdict == IDEM_BUSY && attempt->lease_left_ms > 0;
}

/* A wait for another's attempt, or, where others keep the store busy, for our turn. */
struct patience {
    struct idem__pace pace;
    int64_t until_ms;
    bool was_busy; /* The attempt of another was seen. */
};

/* A store across a network that does not answer at the first look may be away for
 * good, and is not waited for. */
static bool goes_on(const struct run *run, const struct patience *patience,
                    int rc)
{
    if (rc != 0) {
        return rc == IDEM_EUNAVAILABLE &&
               (patience->was_busy || !idem_store_is_remote(run->store));
    }
    return is_at_work(run->attempt);
}

/* The next pause, which ends with the wait at the latest. */
static int64_t next_pause(struct patience *patience, int64_t now_ms)
{
    int64_t left_ms = patience->until_ms - now_ms;
    uint16_t random = 0;
    int64_t ms;

    (void)cli_random(&random, sizeof(random));
    ms = idem__pace_next(&patience->pace, now_ms, random);
    return ms < left_ms ? ms : left_ms;
}

/* The library could wait for us, but not for a signal too. A waiter is tied to
 * the attempt that it saw: it starts nothing, unless that was asked for. */
static int wait_for_end(struct run *run, int64_t wait_ms, int rc,
                        struct idem_error *error)
{
    struct patience patience = {
        .pace = {.since_ms = io_now_ms(), .pause_ms = PAUSE_FIRST_MS},
    };
    int status = 0;

    patience.until_ms = patience.pace.since_ms + wait_ms;
    while (status == 0 && goes_on(run, &patience, rc)) {
        int64_t now_ms = io_now_ms();

        if (now_ms >= patience.until_ms) {
            break;
        }
        if (rc == 0) {
            patience.was_busy = true;
            if (run->options->claim.wait_then_run) {
                run->asked.request.flags = IDEM_WAIT_THEN_RUN;
            } else {
                run->asked.request.join_fence = run->attempt->record->fence;
            }
        }
        status = sleep_for(run, next_pause(&patience, now_ms));
        if (status == 0) {
            rc = ask(run, error);
        }
    }
    return status != 0 ? status : refused(run, rc, error);
}

int run_settle_journal(struct run *run)
{
    const struct idem_request *asked = &run->asked.request;
    struct idem_error error = {0};

    if (cli_journal_settle(run->store, asked->scope, asked->key,
                           run_says(run, RUN_REMARK),
                           &error) != CLI_JOURNAL_WAITS) {
        return 0;
    }
    status_report_set_error(&run->report, error.text);
    return cli_journal_refuse(&error);
}

int run_claim(struct run *run)
{
    int64_t wait_ms = run->asked.request.wait_ms;
    struct idem_error error = {0};
    int rc;

    run->asked.request.wait_ms = 0;
    run->asked.request.flags = 0;
    rc = ask(run, &error);
    if (wait_ms == 0 || (rc == 0 && run->attempt->verdict != IDEM_BUSY)) {
        return refused(run, rc, &error);
    }
    if (rc == 0 && is_own_work(run)) {
        run_say(
            run, RUN_NOTICE,
            "this command runs inside the attempt that it would wait for: leave out --wait");
        return 0;
    }
    if (rc == 0) {
        run_say(run, RUN_REMARK, "waiting for the attempt in flight");
    }
    return wait_for_end(run, wait_ms, rc, &error);
}
