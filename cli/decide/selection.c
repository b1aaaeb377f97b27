/* One decision for all records that are alike. */
#include "decide/decided.h"
#include "record/record.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <idem/operator.h>

/* One pass over all open records notes those to decide in a file, because they may be
 * many. Then exactly those are decided. */
struct choosing {
    const struct cli_selection *selection;
    const struct cli_decision *decision;
    struct cli_names *names; /* NULL: what would be decided is printed. */
    uint64_t chosen;
    uint64_t left_out; /* Overdue, but the owner's lease still runs. */
};

static bool is_selected(const struct choosing *choosing,
                        const struct idem_record *r)
{
    const struct cli_selection *selection = choosing->selection;

    return r->status == IDEM_STATUS_IN_PROGRESS
               ? selection->overdue && r->overdue && !r->live
               : (selection->statuses & 1u << r->status) != 0;
}

/* Overdue work whose owner may still be at it is left to decisions about one key. */
static void say_left_out(const struct choosing *choosing)
{
    unsigned long long n = choosing->left_out;

    if (n > 0) {
        (void)fflush(stdout);
        cli_say("%llu more %s late, but skipped: the owner's lease still runs",
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
    struct idem_answer *found = NULL;

    /* The journal may know how the work ended. */
    (void)cli_journal_settle(store, r->scope, r->key, /* remarks= */ true,
                             &error);
    memset(&error, 0, sizeof(error));
    /* The list has no results, and the audit log keeps the whole record. */
    error.code = idem_get(store, r->scope, r->key, &found, &error);
    if (error.code == 0) {
        error.code = cli_decide(store, audit, idem_answer_record(found),
                                r->fence, decision, &error);
        idem_answer_destroy(found);
    }
    if (error.code == 0) {
        print_one(selection, r, decision, CLI_DECIDED);
        return true;
    }
    print_one(selection, r, decision, CLI_NOT_DECIDED);
    (void)fflush(stdout);
    *status = cli_decide_refused(&error);
    return error.code == IDEM_ELOST || error.code == IDEM_EINVALID ||
           error.code == IDEM_ENOTFOUND;
}

static int decide_all(struct idem_store *store, const struct cli_audit *audit,
                      const struct choosing *choosing)
{
    struct cli_name name;
    int status = cli_names_rewind(choosing->names);
    bool going = status == 0;

    while (going && cli_names_next(choosing->names, &name)) {
        struct idem_record r = {.scope = name.scope,
                                .key = name.key,
                                .owner = name.owner,
                                .fence = name.fence,
                                .status = name.status,
                                .retry = name.retry};

        going = idem_id(r.scope, r.key, r.id) == 0 &&
                decide_one(store, audit, choosing->selection, &r,
                           choosing->decision, &status);
    }
    return status;
}

/* ---- The records to decide ---- */

static int choose_one(void *ctx, int code, const struct idem_record *r)
{
    struct choosing *choosing = ctx;

    if (code != 0 || cli_is_alert(r)) {
        return 0;
    }
    choosing->left_out += choosing->selection->overdue && r->overdue && r->live;
    if (!is_selected(choosing, r)) {
        return 0;
    }
    choosing->chosen++;
    if (choosing->names != NULL) {
        return !cli_names_add(choosing->names, r);
    }
    print_one(choosing->selection, r, choosing->decision, CLI_WOULD_DECIDE);
    return ferror(stdout);
}

static int choose(struct idem_store *store, struct choosing *choosing)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_error error = {0};

    filter.statuses = 1u << IDEM_STATUS_IN_PROGRESS | 1u << IDEM_STATUS_FAILED |
                      1u << IDEM_STATUS_UNKNOWN;
    if (choosing->selection->scope != NULL) {
        filter.any_scope = false;
        filter.scope = *choosing->selection->scope;
    }
    error.code = idem_list(store, &filter, choose_one, choosing, NULL, &error);
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

static int dry_run(struct idem_store *store, struct choosing *choosing)
{
    int status = choose(store, choosing);

    if (status == 0) {
        (void)fflush(stdout);
        cli_say("%llu record%s; to decide, add: --count %llu --yes",
                (unsigned long long)choosing->chosen,
                choosing->chosen == 1 ? "" : "s",
                (unsigned long long)choosing->chosen);
        say_left_out(choosing);
    }
    return status;
}

static int choose_and_decide(struct idem_store *store,
                             const struct cli_audit *audit,
                             struct choosing *choosing)
{
    uint64_t count = choosing->selection->count;
    int status = choose(store, choosing);

    if (status != 0) {
        return status;
    }
    if (count != 0 && count != choosing->chosen) {
        cli_say("%llu records match now, not %llu: list them again",
                (unsigned long long)choosing->chosen,
                (unsigned long long)count);
        status = CLI_NOT_RECORDED;
    } else {
        status = decide_all(store, audit, choosing);
    }
    say_left_out(choosing);
    return status;
}

int cli_resolve_selected(struct idem_store *store,
                         const struct cli_audit *audit,
                         const struct cli_selection *selection,
                         const struct cli_decision *decision, bool yes)
{
    struct choosing choosing = {.selection = selection, .decision = decision};
    struct cli_names names;
    int status;

    if (!yes) {
        return dry_run(store, &choosing);
    }
    status = cli_names_open(&names);
    if (status == 0) {
        choosing.names = &names;
        status = choose_and_decide(store, audit, &choosing);
        cli_names_close(&names);
    }
    return status;
}
