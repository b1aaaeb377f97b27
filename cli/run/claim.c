/* Asks for the key, and waits for another's attempt if it is to. */
#include "crash.h"
#include "run/io.h"
#include "run/keeper.h"

#include <stdlib.h>
#include <sys/random.h>

#define PAUSE_FIRST_MS 10
#define PAUSE_LONGEST_MS 250

static int draw(void *ctx, void *buf, size_t len)
{
    struct run_nonce *nonce = ctx;

    if (nonce->is_due && len == sizeof(nonce->bytes)) {
        nonce->is_due = false;
        memcpy(buf, nonce->bytes, len);
        return 0;
    }
    return getrandom(buf, len, 0) == (ssize_t)len ? 0 : -1;
}

struct idem_host run_nonce_host(struct run_nonce *nonce)
{
    struct idem_host host = {.ctx = nonce, .random = draw};

    return host;
}

static int ask(struct run *run)
{
    struct idem_error error = {0};
    struct idem_attempt *attempt;

    if (!run->asks) {
        keeper_ask(run->keeper, run);
        CLI_CRASH_POINT("run/claim/announced");
        run->asks = true;
    }
    run->nonce.is_due = true;
    error.code = idem_begin(run->store, &run->asked.request, &attempt, &error);
    if (error.code != 0) {
        story_set_error(&run->story, error.text);
        return cli_fail_before("nothing was run", &error);
    }
    CLI_CRASH_POINT("run/claim/answered");
    idem_attempt_destroy(run->attempt);
    run->attempt = attempt;
    story_set_attempt(&run->story, attempt);
    return 0;
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

/* Somewhere in the upper half of @ms, so that waiters do not march in step. */
static int64_t with_jitter(int64_t ms)
{
    uint32_t random = 0;

    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
    return ms - (int64_t)(random % (uint64_t)(ms / 2 + 1));
}

/* 0 after @ms, or 128+N at once when signal N tells us to end. */
static int sleep_for(struct run *run, int64_t ms)
{
    int64_t until_ms = io_now_ms() + ms;

    while ((ms = until_ms - io_now_ms()) > 0) {
        int signo = signals_wait(&run->signals, (int)ms);

        if (signals_is_fatal(signo)) {
            run_say(run, RUN_REMARK, "stopped waiting; nothing was run");
            story_set_error(&run->story, "stopped while waiting");
            return 128 + signo;
        }
        if (signo == SIGTSTP) {
            signals_stop_self();
        }
    }
    return 0;
}

/* What is to be run again has ended: nobody at work will end it. */
static bool is_at_work(const struct idem_attempt *attempt)
{
    return attempt->verdict == IDEM_BUSY && !attempt->record->retry;
}

/* The library could wait for us, but not for a signal too. A waiter is tied to
 * the attempt that it saw: it starts nothing, unless that was asked for. */
static int wait_for_end(struct run *run)
{
    const struct cli_claim *claim = &run->options->claim;
    int64_t deadline_ms = io_now_ms() + claim->wait_ms;
    int64_t pause_ms = PAUSE_FIRST_MS;
    int status = 0;

    while (status == 0 && is_at_work(run->attempt)) {
        int64_t left_ms = deadline_ms - io_now_ms();

        if (left_ms <= 0) {
            return 0;
        }
        if (claim->wait_then_run) {
            run->asked.request.flags = IDEM_WAIT_THEN_RUN;
        } else {
            run->asked.request.join_fence = run->attempt->record->fence;
        }
        status = sleep_for(run, with_jitter(pause_ms < left_ms ? pause_ms
                                                               : left_ms));
        if (status == 0) {
            status = ask(run);
        }
        pause_ms =
            pause_ms * 2 < PAUSE_LONGEST_MS ? pause_ms * 2 : PAUSE_LONGEST_MS;
    }
    return status;
}

/* What waits on this host for the record comes first: who claimed the key over
 * an outcome that is known might do the work again. */
static int settle_journal(struct run *run)
{
    const struct idem_request *asked = &run->asked.request;
    struct idem_error error = {0};

    if (cli_journal_settle(run->store, asked->scope, asked->key,
                           run_says(run, RUN_REMARK),
                           &error) != CLI_JOURNAL_WAITS) {
        return 0;
    }
    story_set_error(&run->story, error.text);
    return cli_journal_refuse(&error);
}

int run_claim(struct run *run)
{
    int64_t wait_ms = run->options->claim.wait_ms;
    int status = settle_journal(run);

    if (status != 0) {
        return status;
    }
    run->asked.request.wait_ms = 0;
    run->asked.request.flags = 0;
    status = ask(run);
    if (status != 0 || run->attempt->verdict != IDEM_BUSY || wait_ms == 0) {
        return status;
    }
    if (is_own_work(run)) {
        run_say(
            run, RUN_NOTICE,
            "this command runs inside the attempt that it would wait for: leave out --wait");
        return 0;
    }
    run_say(run, RUN_REMARK, "waiting for the attempt in flight");
    return wait_for_end(run);
}
