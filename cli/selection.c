/* One decision for all records that are alike. */
#include "selection.h"

#include "cli.h"
#include "decided.h"
#include "journal.h"
#include "look.h"

static bool is_selected(const struct cli_selection *selection,
                        const struct cli_look *look,
                        const struct cli_open *open)
{
    const struct idem_record *r = &open->record;
    bool wanted;

    if (open->unreadable) {
        return false;
    }
    wanted =
        r->status == IDEM_STATUS_IN_PROGRESS
            ? selection->overdue && r->overdue && !cli_is_live(r, look->now_ms)
            : (selection->statuses & 1u << r->status) != 0;
    return wanted && look->now_ms - r->started_ms >= selection->older_ms;
}

static uint64_t count(const struct cli_selection *selection,
                      const struct cli_look *look)
{
    uint64_t n = 0;
    size_t i;

    for (i = 0; i < look->len; i++) {
        n += is_selected(selection, look, &look->open[i]);
    }
    return n;
}

/* Work that is late and whose owner may be at it is decided one by one. */
static void say_left_out(const struct cli_selection *selection,
                         const struct cli_look *look)
{
    unsigned long long n = 0;
    size_t i;

    for (i = 0; i < look->len; i++) {
        const struct cli_open *open = &look->open[i];

        n += selection->overdue && !open->unreadable && open->record.overdue &&
             cli_is_live(&open->record, look->now_ms);
    }
    if (n > 0) {
        (void)fflush(stdout);
        cli_say("%llu more %s late, but the lease of the owner runs: left out",
                n, n == 1 ? "is" : "are");
    }
}

static void print_one(const struct cli_selection *selection,
                      const struct idem_record *r,
                      const struct cli_decision *decision, enum cli_decided how)
{
    if (selection->json) {
        (void)cli_print_decided_json(r, decision->status, how == CLI_DECIDED);
        return;
    }
    if (r->scope.len > 0) {
        cli_print_escaped(stdout, r->scope);
        (void)fputs("/", stdout);
    }
    cli_print_decided(r, decision->status, how);
}

/* True: the others can still be decided. */
static bool decide_one(struct idem_store *store, const struct cli_audit *audit,
                       const struct cli_selection *selection,
                       const struct idem_record *r,
                       const struct cli_decision *decision, int *status)
{
    struct idem_error error = {0};

    /* Somebody may know how it ended, after all. */
    (void)cli_journal_settle(store, r->scope, r->key, /* remarks= */ true,
                             &error);
    memset(&error, 0, sizeof(error));
    error.code = cli_decide(store, audit, r, r->fence, decision, &error);
    if (error.code == 0) {
        print_one(selection, r, decision, CLI_DECIDED);
        return true;
    }
    print_one(selection, r, decision, CLI_NOT_DECIDED);
    (void)fflush(stdout);
    *status = cli_fail_with(&error);
    return error.code == IDEM_ELOST || error.code == IDEM_EINVALID ||
           error.code == IDEM_ENOTFOUND;
}

static int decide_all(struct idem_store *store, const struct cli_audit *audit,
                      const struct cli_selection *selection,
                      const struct cli_look *look,
                      const struct cli_decision *decision)
{
    int status = 0;
    size_t i;

    for (i = 0; i < look->len; i++) {
        if (is_selected(selection, look, &look->open[i]) &&
            !decide_one(store, audit, selection, &look->open[i].record,
                        decision, &status)) {
            break;
        }
    }
    return status;
}

static int foretell(const struct cli_selection *selection,
                    const struct cli_look *look,
                    const struct cli_decision *decision)
{
    uint64_t n = count(selection, look);
    size_t i;

    for (i = 0; i < look->len; i++) {
        if (is_selected(selection, look, &look->open[i])) {
            print_one(selection, &look->open[i].record, decision,
                      CLI_WOULD_DECIDE);
        }
    }
    (void)fflush(stdout);
    cli_say("%llu record%s; to decide, add: --count %llu --yes",
            (unsigned long long)n, n == 1 ? "" : "s", (unsigned long long)n);
    return 0;
}

int cli_resolve_selected(struct idem_store *store,
                         const struct cli_audit *audit,
                         const struct cli_selection *selection,
                         const struct cli_decision *decision, bool yes)
{
    struct idem_error error = {0};
    struct cli_look look;
    int status;

    error.code = cli_look(store, selection->scope, &look, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    if (!yes) {
        status = foretell(selection, &look, decision);
    } else if (selection->count != 0 &&
               selection->count != count(selection, &look)) {
        cli_say("it is about %llu records now, not %llu: look again",
                (unsigned long long)count(selection, &look),
                (unsigned long long)selection->count);
        status = CLI_NOT_RECORDED;
    } else {
        status = decide_all(store, audit, selection, &look, decision);
    }
    say_left_out(selection, &look);
    cli_look_finish(&look);
    return status;
}
