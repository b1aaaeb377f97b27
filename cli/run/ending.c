/* Turns the end of the command into an outcome, and records it. */
#include "run/work.h"

#include "process/descriptors.h"
#include "process/host.h"
#include "run/status_report.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "text/text.h"

#include <poll.h>

/* ---- A command that ended its own attempt ---- */

/* Each attempt has its own nonce, and a decision by a person clears it. */
static bool is_same_attempt(const struct idem_record *a,
                            const struct idem_record *b)
{
    return a->fence == b->fence &&
           memcmp(a->nonce, b->nonce, sizeof(a->nonce)) == 0;
}

enum idem_status self_report(struct idem_store *store,
                             const struct idem_attempt *attempt)
{
    const struct idem_record *ours = attempt->record;
    const struct idem_record *now;
    struct idem_answer *answer;
    enum idem_status status = 0;

    if (idem_get(store, ours->scope, ours->key, &answer, NULL) != 0) {
        return 0;
    }
    now = idem_answer_record(answer);
    if (is_same_attempt(ours, now) &&
        idem_record_status(now) != IDEM_STATUS_IN_PROGRESS) {
        status = idem_record_status(now);
    }
    idem_answer_destroy(answer);
    return status;
}

/* ---- The end ---- */

#define AGAIN_MS 100 /* Between two attempts to record. */

/* A command killed by a signal, or failing because we stopped it, did not choose
 * where to stop: that is an ending without a status. If the outcome table does not
 * name it and the policy allows a rerun, end the lease now and leave the record in
 * progress, as after any crash. So it counts as an attempt, and a command that
 * always crashes exhausts its attempts. */
static enum idem_status status_of_none(const struct run_options *options,
                                       enum idem_on_expired_lease policy)
{
    if (options->outcomes.none == 0 && policy == IDEM_RERUN) {
        return IDEM_STATUS_IN_PROGRESS;
    }
    return idem_outcome_of_none(&options->outcomes, policy);
}

enum idem_status ending_status(const struct run_options *options,
                               enum idem_on_expired_lease policy,
                               const struct child_end *end)
{
    enum idem_status status =
        idem_outcome_of_status(&options->outcomes, end->exit_status, NULL);
    bool failed = end->exit_status != 0 && status != IDEM_STATUS_RELEASED;

    if (options->lock) {
        return IDEM_STATUS_RELEASED;
    }
    if (end->signal != 0 || (end->cut_short && failed)) {
        return status_of_none(options, policy);
    }
    return status;
}

bool ending_may_be_retry(const struct idem_outcome_table *outcomes)
{
    int status;

    for (status = 0; status <= UINT8_MAX; status++) {
        if (idem_outcome_of_status(outcomes, status, NULL) ==
            IDEM_STATUS_RETRY) {
            return true;
        }
    }
    return outcomes->none == IDEM_STATUS_RETRY;
}

void ending_decide(const struct run_options *options,
                   enum idem_on_expired_lease policy,
                   const struct child_end *end, struct ending *ret_ending)
{
    struct ending *e = ret_ending;
    bool died = end->signal != 0;
    int number = died ? end->signal : end->exit_status;
    bool named;

    memset(e, 0, sizeof(*e));
    (void)idem_outcome_of_status(&options->outcomes, number, &named);
    e->status = ending_status(options, policy, end);
    e->exit_status = died ? 128 + number : number;
    e->ended_ms = end->at_ms;
    named = named && e->status == IDEM_STATUS_COMPLETED && number != 0;
    (void)snprintf(e->meta, sizeof(e->meta), "%s %d%s\n",
                   died ? "signal" : "exit", number,
                   named ? IDEM_META_COMPLETE : "");
    (void)snprintf(e->text, sizeof(e->text),
                   died ? "the command died of signal %d"
                        : "the command ended with status %d",
                   number);
    e->result.meta = idem_str(e->meta);
}

/* The outcome as the store takes it. */
static struct idem_outcome outcome_of(const struct run_options *options,
                                      const struct ending *e)
{
    struct idem_outcome outcome = {
        .status = e->status,
        .ended_boot_ms = e->ended_ms,
        .failures_max = (uint32_t)options->failures_max,
        .retry_after_ms = options->retry_after_ms,
    };

    if (e->status == IDEM_STATUS_COMPLETED || e->status == IDEM_STATUS_FAILED ||
        e->status == IDEM_STATUS_RETRY) {
        outcome.result = e->result;
    }
    if (e->status != IDEM_STATUS_COMPLETED) {
        outcome.text = idem_str(e->text);
    }
    return outcome;
}

static int record_once(struct idem_attempt *attempt,
                       const struct idem_outcome *outcome,
                       struct idem_error *error)
{
    return outcome->status == IDEM_STATUS_IN_PROGRESS
               ? idem_expire(attempt, error)
               : idem_end(attempt, outcome, error);
}

/* Try at least once, even after the lease: the store accepts the outcome as long as
 * nobody took over. When patience runs out, the journal keeps the outcome and our
 * caller need not wait longer. */
static int record_patiently(const struct run *run, struct cli_net *net,
                            struct idem_error *error)
{
    int64_t patience_ms = cli_patience_ms(&run->patience, run->store,
                                          net->outcome->result.bytes.len);
    int64_t until_ms = io_now_ms() + patience_ms;
    int rc;

    for (;;) {
        cli_patience_set(run->store, until_ms - io_now_ms());
        rc = record_once(net->attempt, net->outcome, error);
        cli_net_answered(net, rc);
        if (idem_error_kind(rc) != IDEM_KIND_RETRY ||
            idem_attempt_lease_left_ms(net->attempt) == 0 ||
            io_now_ms() + AGAIN_MS >= until_ms) {
            break;
        }
        (void)poll(NULL, 0, AGAIN_MS);
    }
    cli_patience_set(run->store, patience_ms);
    return rc;
}

/* If neither the store nor the journal has room, record the outcome without its
 * output: that the work was done matters more. */
static int record_less(const struct run *run, struct cli_net *net,
                       struct idem_outcome *outcome, int rc,
                       struct idem_error *error)
{
    if (rc != IDEM_EFULL || net->entry != NULL ||
        outcome->result.bytes.len == 0) {
        return rc;
    }
    outcome->result.bytes = idem_bytes(NULL, 0);
    outcome->result.not_kept = true;
    rc = record_once(net->attempt, outcome, error);
    if (rc == 0) {
        run_say(run, RUN_NOTICE,
                "neither the store nor the journal has room for the "
                "output: a replay will not have it");
    }
    return rc;
}

static int record_with_net(struct run *run, struct idem_outcome *outcome,
                           struct idem_error *error)
{
    enum cli_journal_rule rule =
        outcome->status == IDEM_STATUS_IN_PROGRESS
            ? CLI_JOURNAL_OFF /* Such a status is not an outcome. */
            : (enum cli_journal_rule)run->options->journal;
    struct cli_net net;
    int rc;

    cli_net_init(&net, rule, run->store, run->attempt, outcome);
    rc = record_patiently(run, &net, error);
    rc = record_less(run, &net, outcome, rc, error);
    if (cli_net_settle(&net, rc)) {
        status_report_set_journal(&run->report, net.path);
        net.path = NULL;
    } else if (rc != 0) {
        cli_net_explain(&net, error);
    } else if (net.error.code != 0) {
        run_say(run, RUN_DETAIL, "no journal: %s", net.error.text);
    }
    cli_net_finish(&net);
    return rc;
}

int ending_record(struct run *run, const struct ending *ending,
                  struct idem_error *ret_error)
{
    struct idem_outcome outcome = outcome_of(run->options, ending);
    enum idem_status status = ending->status;
    int rc;

    rc = record_with_net(run, &outcome, ret_error);
    if (rc == IDEM_ELOST) {
        status = self_report(run->store, run->attempt);
        rc = status != 0 ? 0 : rc;
    }
    if (rc != 0) {
        return rc;
    }
    if (status == IDEM_STATUS_RETRY &&
        run->attempt->record->status == IDEM_STATUS_FAILED) {
        status = IDEM_STATUS_FAILED; /* Its retry budget is used up. */
    }
    run->report.recorded = true;
    run->report.status = idem_status_name(status);
    run->report.not_kept = run->attempt->record->result.not_kept;
    return 0;
}

int ending_not_recorded(struct run *run, const struct ending *ending,
                        const struct idem_error *error)
{
    char until[48];

    status_report_set_error(&run->report, error->text);
    if (error->code == IDEM_ELOST) {
        run_say(run, RUN_ERROR, "%s, but the lease had been lost: %s",
                ending->text, error->text);
        return CLI_NOT_RECORDED;
    }
    if (run->report.journal != NULL) {
        run_say(
            run, RUN_ERROR,
            "%s, but it could not be recorded: %s; the outcome is kept in %s; the next command for this key records it, or: idem reconcile",
            ending->text, error->text, run->report.journal);
        return CLI_NOT_RECORDED;
    }
    cli_time_for(cli_stderr_is_tty(), run->attempt->record->lease_end_ms,
                 until);
    run_say_resolve(
        run, RUN_ERROR,
        "%s, but it could not be recorded: %s; after its lease ends (%s), record the outcome:",
        ending->text, error->text, until);
    return CLI_NOT_RECORDED;
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
    } else if (run->report.journal != NULL) {
        run_say(
            run, RUN_ERROR,
            "nothing was run, but the release could not be recorded: %s; it is kept in %s; the next command for this key records it, or: idem reconcile",
            error.text, run->report.journal);
    } else if (rc != 0) {
        run_say(run, RUN_ERROR,
                "nothing was run, but the key stays claimed until its lease "
                "ends: %s",
                error.text);
    }
    return rc;
}
