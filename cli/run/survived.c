/* A process of the command is alive, or may be: the lease decides. */
#include "run/descendants.h"
#include "run/ending.h"
#include "run/run.h"
#include "run/self_report.h"
#include "run/status_report.h"
#include "run/watch.h"
#include "run/work.h"
#include "text/exit_status.h"
#include "text/text.h"

/* The result of the command itself. */
static const char *end_of(const struct watch *watch,
                          const struct ending *ending)
{
    return watch->ended ? ending->text : "the command was told to stop";
}

static void say_next(struct run *run, const char *what)
{
    const struct idem_record *record = run->attempt->record;
    char until[32];

    if (record->lease_ms == IDEM_NEVER) {
        run_say_resolve(run, RUN_ERROR,
                        "%s; nothing is recorded, and the key stays claimed: "
                        "its lease never ends; once the process is gone, say "
                        "what came of it:",
                        what);
        return;
    }
    cli_time_text(record->lease_end_ms, until);
    if (record->on_expired_lease == IDEM_RERUN) {
        run_say(run, RUN_ERROR,
                "%s; nothing is recorded, and the key stays claimed until its "
                "lease ends at %s; the next run then takes over: end the "
                "process before",
                what, until);
    } else {
        run_say_resolve(run, RUN_ERROR,
                        "%s; nothing is recorded, and the key stays claimed "
                        "until its lease ends at %s; its outcome is unknown "
                        "then: find out, and say what came of it:",
                        what, until);
    }
}

int survived_say(struct run *run, const struct watch *watch,
                 const struct ending *ending)
{
    enum idem_status own = self_report(run->store, run->attempt);
    char who[SURVIVOR_TEXT_MAX];
    char what[SURVIVOR_TEXT_MAX + sizeof(ending->text) + 8]; /* ", but " */

    descendants_describe(&watch->survivor, who, sizeof(who));
    (void)snprintf(what, sizeof(what), "%s, but %s", end_of(watch, ending),
                   who);
    status_report_set_error(&run->report, what);
    if (own != 0) {
        run->report.recorded = true;
        run->report.status = idem_status_name(own);
        run_say(run, RUN_ERROR, "%s; recorded as %s by the command itself",
                what, run->report.status);
        return watch->ended ? ending->exit_status : CLI_NOT_RECORDED;
    }
    say_next(run, what);
    return CLI_NOT_RECORDED;
}
