/* --dry-run: what would happen, found out by reading only. */
#include "process/host.h"
#include "run/run.h"
#include "run/status_report.h"
#include "store/journal.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "text/text.h"

#include <idem/form.h>

static bool is_other_request(const struct run *run,
                             const struct idem_record *record)
{
    struct idem_slice asked = run->asked.request.fingerprint;
    struct idem_slice found = record->fingerprint;

    return asked.len > 0 && found.len > 0 &&
           (asked.len != found.len ||
            memcmp(asked.base, found.base, asked.len) != 0);
}

/* Whether its lease is over is for the store to say; people get the time, and programs
 * what holds by the clock of this host. */
static int print_in_progress(const struct run *run,
                             const struct idem_record *record)
{
    bool reruns = record->on_expired_lease == IDEM_RERUN &&
                  run->asked.request.on_expired_lease == IDEM_RERUN;
    bool runs = record->lease_end_ms > cli_now_ms();
    char until[48];

    cli_time_for(cli_stdout_is_tty(), record->lease_end_ms, until);
    (void)printf("would %srun: attempt %u is in flight; after its lease (%s) "
                 "%s\n",
                 runs || !reruns ? "not " : "", (unsigned)record->attempts,
                 until, reruns ? "would run again" : "a person must look");
    if (runs) {
        return CLI_BUSY;
    }
    return reruns ? CLI_OK : CLI_UNKNOWN;
}

static void print_outcome(const struct idem_record *record, const char *verb)
{
    struct idem_form form;
    char ended[48];

    cli_time_for(cli_stdout_is_tty(), record->ended_ms, ended);
    (void)printf("would %s: it is %s since %s", verb,
                 idem_status_name(record->status), ended);
    idem_form_read(&record->result, &form);
    if (form.has_exit || form.exit_status > 0) {
        (void)printf(" with exit status %d", form.exit_status);
    }
    (void)printf("\n");
}

static int print_record(const struct run *run, const struct idem_record *record)
{
    bool has_result = record->result.meta.len > 0;

    switch (idem_record_status(record)) {
    case IDEM_STATUS_IN_PROGRESS:
        return print_in_progress(run, record);
    case IDEM_STATUS_COMPLETED:
        print_outcome(record, "replay");
        return CLI_REPLAY;
    case IDEM_STATUS_FAILED:
        print_outcome(record, has_result ? "replay" : "not run");
        return CLI_FAILED;
    case IDEM_STATUS_UNKNOWN:
        print_outcome(record, "not run");
        return CLI_UNKNOWN;
    case IDEM_STATUS_RELEASED:
    case IDEM_STATUS_RETRY:
        break;
    }
    print_outcome(record, "run");
    return CLI_OK;
}

/* What waits in the journal is recorded first, and is what the key has then. */
static int status_waiting(enum idem_status waits)
{
    switch (waits) {
    case IDEM_STATUS_COMPLETED:
        return CLI_REPLAY;
    case IDEM_STATUS_FAILED:
        return CLI_FAILED;
    case IDEM_STATUS_UNKNOWN:
        return CLI_UNKNOWN;
    case IDEM_STATUS_IN_PROGRESS:
    case IDEM_STATUS_RELEASED:
    case IDEM_STATUS_RETRY:
        break;
    }
    return CLI_OK;
}

int run_dry(struct run *run)
{
    const struct idem_request *asked = &run->asked.request;
    const struct idem_record *record;
    struct idem_answer *answer;
    struct idem_error error = {0};
    enum idem_status waits;
    int status;

    waits = cli_journal_peek(run->store, asked->scope, asked->key);
    if (waits != 0) {
        (void)printf("would record it as %s first: that waits in the journal\n",
                     idem_status_name(waits));
    }
    error.code =
        idem_get(run->store, asked->scope, asked->key, &answer, &error);
    if (error.code == IDEM_ENOTFOUND) {
        (void)printf("would run: the key has no record\n");
        return CLI_OK;
    }
    if (error.code != 0) {
        status_report_set_error(&run->report, error.text);
        return cli_fail_with(&error);
    }
    record = idem_answer_record(answer);
    if (record->status != IDEM_STATUS_RELEASED &&
        is_other_request(run, record)) {
        (void)printf("would not run: the key was used for another request\n");
        status = CLI_MISMATCH;
    } else {
        status = print_record(run, record);
        status = waits != 0 ? status_waiting(waits) : status;
    }
    run->report.status = idem_status_name(idem_record_status(record));
    run->report.fence = record->fence;
    run->report.attempts = record->attempts;
    idem_answer_destroy(answer);
    return status;
}
