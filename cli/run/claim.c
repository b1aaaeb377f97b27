/* Claims the key, and with --wait waits for the attempt of another owner. */
#include "base/crash.h"
#include "base/pace.h"
#include "options/command.h"
#include "options/commands.h"
#include "process/descriptors.h"
#include "process/host.h"
#include "run/run.h"
#include "run/signals.h"
#include "run/status_report.h"
#include "run/supervisor.h"
#include "store/journal.h"
#include "text/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- --every ----
 *
 * Each calendar window has its own key. Work of the window before that is not done is
 * not forgotten: its key is known, so one read finds its record. Then the usual rules
 * apply to that key: work in flight is waited for or refused, work that may run again
 * runs first, and work that needs a person stops the run. */

int windows_take(const struct windows *windows, struct run *run,
                 const struct cli_window *window)
{
    struct cli_key_text *key = &run->asked.key;
    size_t len = strlen(window->name);

    if (windows->key_len + 1 + len > IDEM_KEY_MAX) {
        return cli_usage(
            &cli_run, "--every: with \"@%s\" the key is longer than %d bytes",
            window->name, IDEM_KEY_MAX);
    }
    key->len = windows->key_len + 1 + len;
    key->bytes[windows->key_len] = '@';
    memcpy(key->bytes + windows->key_len + 1, window->name, len + 1);
    run->asked.request.key = idem_bytes(key->bytes, key->len);
    return 0;
}

/* It follows the last "@" of the key, for a name has none. */
struct idem_slice windows_name_of(const struct run *run)
{
    struct idem_slice key = run->asked.request.key;
    const char *end = (const char *)key.base + key.len;
    const char *at;

    if (run->options->every == NULL) {
        return idem_str(NULL);
    }
    at = memrchr(key.base, '@', key.len);
    assert(at != NULL);
    return idem_bytes(at + 1, (size_t)(end - (at + 1)));
}

/* The next window must still find the record when it looks back, and so must `idem
 * watch`, which waits a little longer than a window for the next success. So keep it
 * until the window after next begins. */
static int64_t keep_until(const struct cli_period *period,
                          const struct cli_window *window)
{
    struct cli_window next;

    cli_window_at(period, window->end_ms, &next);
    cli_window_at(period, next.end_ms, &next);
    return next.end_ms;
}

int windows_choose(struct windows *ret_windows, struct run *run,
                   const struct cli_command *command)
{
    struct windows *w = ret_windows;
    struct idem_request *request = &run->asked.request;
    int64_t now_ms = cli_now_ms();
    struct cli_period period;
    int64_t keep_ms;
    int status = cli_period_init(&period, command, "every", run->options->every,
                                 run->options->zone);

    if (status != 0) {
        return status;
    }
    memset(w, 0, sizeof(*w));
    w->key_len = request->key.len;
    cli_window_at(&period, now_ms, &w->current);
    cli_window_at(&period, w->current.start_ms - 1, &w->before);
    keep_ms = keep_until(&period, &w->current) - now_ms;
    if (request->retention_ms < keep_ms) {
        request->retention_ms = keep_ms;
    }
    return windows_take(w, run, &w->current);
}

static bool is_left(const struct idem_record *record)
{
    switch (idem_record_status(record)) {
    case IDEM_STATUS_IN_PROGRESS:
    case IDEM_STATUS_RETRY:
    case IDEM_STATUS_UNKNOWN:
        return true;
    case IDEM_STATUS_COMPLETED:
    case IDEM_STATUS_FAILED:
    case IDEM_STATUS_RELEASED:
        break;
    }
    return false;
}

int windows_look_back(const struct windows *windows, struct run *run,
                      bool *ret_left)
{
    const struct idem_request *asked = &run->asked.request;
    struct idem_error error = {0};
    struct idem_answer *answer;
    int status = windows_take(windows, run, &windows->before);

    *ret_left = false;
    if (status != 0) {
        return status;
    }
    error.code =
        idem_get(run->store, asked->scope, asked->key, &answer, &error);
    if (error.code == 0) {
        *ret_left = is_left(idem_answer_record(answer));
        idem_answer_destroy(answer);
    } else if (error.code != IDEM_ENOTFOUND) {
        status_report_set_error(&run->report, error.text);
        return cli_fail_before("nothing was run", &error);
    }
    return *ret_left ? 0 : windows_take(windows, run, &windows->current);
}

/* ---- The claim ---- */

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

/* 0, or the exit status for @rc after an error message. A claim whose answer was
 * lost may be recorded: then the key is in use although nobody works on it. */
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

/* True if this process is part of the attempt that it would wait for: a deadlock. */
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

/* False for an attempt that is to be retried or whose lease is over: nobody will end
 * it, so waiting is pointless. */
static bool is_at_work(const struct idem_attempt *attempt)
{
    return attempt->verdict == IDEM_BUSY && attempt->lease_left_ms > 0;
}

/* A wait for the attempt of another owner, or for our turn at a busy store. */
struct patience {
    struct idem__pace pace;
    int64_t until_ms;
    bool was_busy; /* The attempt of another was seen. */
};

/* A remote store that does not answer the first request may be away for good: do not
 * wait for it. */
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

/* The library could wait for us, but not for signals as well. A waiter is tied to
 * the attempt that it saw and starts nothing, unless --wait-then-run was given. */
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
    if (rc == 0) {
        if (is_own_work(run)) {
            run_say(
                run, RUN_NOTICE,
                "this command runs inside the attempt that it would wait for: leave out --wait");
            return 0;
        }
        run_say(run, RUN_REMARK, "waiting for the attempt in flight");
    }
    return wait_for_end(run, wait_ms, rc, &error);
}
