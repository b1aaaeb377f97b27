/* The answer where nothing is run: the recorded outcome, or what is wrong. */
#include "crash.h"
#include "fields.h"
#include "record.h"
#include "run/frames.h"
#include "run/io.h"
#include "run/run.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Where a failure is replayed its cause may be mended long since. NULL: no memory. */
static void reopen_text(const struct run *run, char **ret_text)
{
    size_t len;
    FILE *f = open_memstream(ret_text, &len);

    if (f != NULL) {
        cli_print_reopen(f, run->attempt->record, run->options->store);
        (void)fclose(f);
    }
}

static void remark_replay(const struct run *run)
{
    const struct idem_record *record = run->attempt->record;
    char *reopen = NULL;
    char outcome[64];
    char ended[48];

    cli_time_for(cli_stderr_is_tty(), record->ended_ms, ended);
    cli_outcome_text(record, outcome);
    if (cli_outcome_failed(record)) {
        reopen_text(run, &reopen);
    }
    run_say(run, RUN_REMARK, "replayed; %s at %s%s%s", outcome, ended,
            reopen != NULL ? "; to have it run again:" : "",
            reopen != NULL ? reopen : "");
    free(reopen);
}

/* Bytes that somebody recorded by hand are one stream. 0 with the errno of the
 * write to stdout that failed (0: none did), or an exit status. */
static int write_result(struct run *run, const struct idem_result *result,
                        int *ret_write_error)
{
    static const char damaged[] = "the recorded output is damaged";

    if (!cli_is_output(result)) {
        run->story.replayed_bytes = result->bytes.len;
        *ret_write_error = io_write_all(STDOUT_FILENO, result->bytes.base,
                                        result->bytes.len) != 0
                               ? errno
                               : 0;
        return 0;
    }
    if (cli_frames_write(result->bytes, STDOUT_FILENO, STDERR_FILENO,
                         ret_write_error) != 0) {
        story_set_error(&run->story, damaged);
        run_say(run, RUN_ERROR, "%s; nothing of it was printed", damaged);
        return CLI_CORRUPT;
    }
    run->story.replayed_bytes = frames_payload(result->bytes);
    return 0;
}

/* True if there never was any output to keep, or it became too long for it. */
static bool has_no_output(const struct idem_result *result)
{
    return result->not_kept ||
           (result->bytes.len == 0 && result->content_type.len == 0);
}

/* @otherwise: the status where none is on record. */
static int replay(struct run *run, int otherwise)
{
    const struct idem_result *result = &run->attempt->record->result;
    int recorded = cli_meta_status(result->meta);
    char outcome[64];
    char ended[48];
    int write_error;
    int status;

    if (recorded >= 0) {
        run->story.exit_status = recorded;
    }
    run->story.not_kept = result->not_kept;
    if (has_no_output(result)) {
        cli_outcome_text(run->attempt->record, outcome);
        cli_time_for(cli_stderr_is_tty(), run->attempt->record->ended_ms,
                     ended);
        run_say(run, RUN_NOTICE, "%s at %s; its output was not kept", outcome,
                ended);
        return recorded >= 0 ? recorded : otherwise;
    }
    CLI_CRASH_POINT("run/answer/replays");
    status = write_result(run, result, &write_error);
    CLI_CRASH_POINT("run/answer/replayed");
    if (status != 0) {
        return status;
    }
    remark_replay(run);
    return run_passed_on(run, write_error,
                         recorded >= 0 ? recorded : otherwise);
}

/* That somebody is at work is no news for a quiet job. */
static int refuse_busy(const struct run *run)
{
    if (run_says(run, RUN_NOTICE)) {
        (void)cli_refuse(run->attempt, run->options->store);
    }
    return (int)run->options->busy_exit;
}

int run_answer(struct run *run)
{
    const struct idem_attempt *attempt = run->attempt;

    switch (attempt->verdict) {
    case IDEM_REPLAY:
        return replay(run, CLI_OK);
    case IDEM_FAILED:
        if (attempt->record->result.meta.len > 0) {
            return replay(run, CLI_FAILED);
        }
        break;
    case IDEM_BUSY:
    case IDEM_RELEASED:
        return refuse_busy(run);
    case IDEM_STARTED:
    case IDEM_MISMATCH:
    case IDEM_UNKNOWN:
        break;
    }
    return cli_refuse(attempt, run->options->store);
}
