/* The end of a run whose output cannot be written to our stdout. */
#include "record/remedy.h"
#include "run/run.h"
#include "run/status_report.h"
#include "text/exit_status.h"

#include <errno.h>
#include <stdlib.h>

/* An outcome is on record, and a replay gives it. */
static bool is_outcome(const struct status_report *report)
{
    return report->status != NULL &&
           (strcmp(report->status, "completed") == 0 ||
            strcmp(report->status, "failed") == 0);
}

static void print_what_is_lost(FILE *f, const struct run *run)
{
    if (!is_outcome(&run->report)) {
        (void)fputs("part of the output is lost", f);
    } else if (run->report.not_kept) {
        (void)fputs("the outcome is on record without its output, and part of "
                    "that is lost; a larger --max-output keeps it",
                    f);
    } else {
        (void)fputs("the outcome is on record; write its output again with: ",
                    f);
        cli_print_remedy(f, "show", " --output", run->attempt->record,
                         run->options->store);
    }
}

static void say_lost(struct run *run, int write_error)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (f != NULL) {
        print_what_is_lost(f, run);
        (void)fclose(f);
    }
    run_say(run, RUN_ERROR, "cannot write to standard output: %s; %s",
            strerror(write_error), text != NULL ? text : "out of memory");
    free(text);
    status_report_set_error(&run->report, "cannot write to standard output");
}

/* A reader that went away wants no more, as everywhere in a pipeline. Where no
 * outcome is on record, the status that says so is worth more than ours. */
int run_passed_on(struct run *run, int write_error, int status)
{
    if (write_error == 0 || write_error == EPIPE) {
        return status;
    }
    say_lost(run, write_error);
    return is_outcome(&run->report) ? CLI_OUTPUT_LOST : status;
}
