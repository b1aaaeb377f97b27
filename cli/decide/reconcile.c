/* idem reconcile: records the outcomes that wait on this host for their store. */
#include "decide/reconcile.h"

#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "record/record.h"
#include "store/journal.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    bool list;
    bool dry_run;
    const char *output;
    const char *drop;
    const char *from;
    bool json;
    const char *store;
    bool named; /* The user named journals or logs. */
} args;

/* ---- --list, --output, --drop ------------------------------------------ */

static int list_one(void *ctx, const struct idem_journal_info *info,
                    const struct idem_error *error)
{
    const struct cli_waiting_style style = {.json = args.json};
    int *printed = ctx;

    *printed = cli_waiting_print(&style, info, info->state, error);
    return *printed != 0 || ferror(stdout);
}

static int list(struct idem_journal *journal)
{
    struct idem_error error = {0};
    int printed = 0;

    error.code = idem_journal_list(journal, NULL, list_one, &printed, &error);
    return error.code == 0 ? printed : cli_fail_with(&error);
}

static int write_one(void *ctx, const struct idem_journal_info *info,
                     const struct idem_error *error)
{
    int *status = ctx;

    if (cli_waiting_known(info)) {
        const struct idem_record record = {
            .status = info->outcome.status,
            .ended_ms = info->written_ms,
            .result = info->outcome.result,
        };

        *status = cli_write_result(&record);
    } else {
        cli_say("%s", error->code != 0 ? error->text
                                       : "another process is using the entry");
        *status = error->code != 0 ? CLI_CORRUPT : CLI_BUSY;
    }
    return 1;
}

static int write_result(struct idem_journal *journal)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    struct idem_error error = {0};
    int status = CLI_NO_RECORD;

    filter.name = args.output;
    error.code =
        idem_journal_list(journal, &filter, write_one, &status, &error);
    if (error.code == 0 && status == CLI_NO_RECORD) {
        cli_say("no such entry; see: idem reconcile --list");
    }
    return error.code == 0 ? status : cli_fail_with(&error);
}

static int drop(struct idem_journal *journal)
{
    struct idem_error error = {0};

    error.code = idem_journal_drop(journal, args.drop, &error);
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

/* ---- The command ------------------------------------------------------- */

static int check(const struct cli_command *command, int argc)
{
    bool replays = !args.list && args.output == NULL && args.drop == NULL;

    if (argc > 0 && (args.output != NULL || args.drop != NULL)) {
        return cli_usage(command, "--output and --drop are for the journal of "
                                  "this host: name no others");
    }
    if (args.list + (args.output != NULL) + (args.drop != NULL) > 1) {
        return cli_usage(command, "choose one: --list, --output or --drop");
    }
    if (!replays && (args.dry_run || args.store != NULL || args.from != NULL)) {
        return cli_usage(command, "--dry-run, --store and --from are for "
                                  "outcomes that are to be recorded");
    }
    return 0;
}

static int reconcile(struct idem_journal *journal)
{
    struct cli_reconcile_how how = {
        .style = {.json = args.json, .dry_run = args.dry_run},
        .store = args.store,
        .from = args.from,
        .each_its_own = !args.named && args.store == NULL && args.from == NULL,
    };

    if (how.store == NULL) {
        how.store = secure_getenv("IDEM_STORE");
    }
    if (how.store != NULL && *how.store == '\0') {
        how.store = NULL;
    }
    return cli_reconcile_journal(journal, &how);
}

static int act(struct idem_journal *journal)
{
    if (args.list) {
        return list(journal);
    }
    if (args.output != NULL) {
        return write_result(journal);
    }
    return args.drop != NULL ? drop(journal) : reconcile(journal);
}

/* The journal of this host. */
static int act_here(void)
{
    struct idem_error error = {0};
    struct idem_journal *journal;
    char *directory;
    int status;

    error.code =
        cli_journal_open(/* make= */ false, &journal, &directory, &error);
    free(directory);
    if (error.code == IDEM_ENOTFOUND) {
        /* A journal that was never needed is empty; but an entry that the user named
         * should be there. */
        if (args.output == NULL && args.drop == NULL) {
            return 0;
        }
        cli_say("%s", error.text);
        return CLI_NO_RECORD;
    }
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    status = act(journal);
    idem_journal_close(journal);
    return status;
}

/* ---- Journals and logs that the user names ---- */

static int remove_one(const char *path, const struct stat *st, int kind,
                      struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    (void)remove(path);
    return 0;
}

static void remove_all(const char *directory)
{
    (void)nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static bool is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Gathers the entries of the files in @argv in @journal, and skips directories. */
static int gather(struct idem_journal *journal, int argc, char **argv)
{
    struct cli_harvest harvest = {.journal = journal};
    int status = 0;
    int i;

    for (i = 0; i < argc && status == 0; i++) {
        if (!is_directory(argv[i])) {
            uint64_t before = harvest.found + harvest.damaged;

            status = cli_harvest_file(&harvest, argv[i]);
            if (status == 0 && harvest.found + harvest.damaged == before) {
                cli_say("no outcome found in %s", argv[i]);
            }
        }
    }
    if (harvest.damaged > 0) {
        cli_say("%llu outcome%s cannot be trusted: truncated or changed",
                (unsigned long long)harvest.damaged,
                harvest.damaged == 1 ? "" : "s");
    }
    return status == 0 && harvest.damaged > 0 ? CLI_CORRUPT : status;
}

/* Gathers the entries of @argv in the journal at @path, and acts on it. */
static int act_on(const char *path, int argc, char **argv)
{
    struct idem_error error = {0};
    struct idem_journal *journal;
    int status;

    error.code = idem_journal_open(path, /* create= */ false, &journal, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    status = gather(journal, argc, argv);
    if (status == 0 || status == CLI_CORRUPT) {
        status = cli_reconcile_worse(status, act(journal));
    }
    idem_journal_close(journal);
    return status;
}

/* A directory is a journal, from which the entries that were recorded are removed. A file
 * is only read: its entries go through a temporary journal. */
static int act_on_named(int argc, char **argv)
{
    const char *where = secure_getenv("TMPDIR");
    char *temp = NULL;
    int status;
    int i;

    if (asprintf(&temp, "%s/idem-XXXXXX",
                 where != NULL && *where != '\0' ? where : "/tmp") < 0) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    if (mkdtemp(temp) == NULL) {
        cli_say("cannot create the directory %s: %s", temp, strerror(errno));
        free(temp);
        return CLI_DENIED;
    }
    status = act_on(temp, argc, argv);
    remove_all(temp);
    free(temp);
    for (i = 0; i < argc; i++) {
        if (is_directory(argv[i])) {
            status = cli_reconcile_worse(status, act_on(argv[i], 0, NULL));
        }
    }
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    int status = check(command, argc);

    if (status != 0) {
        return status;
    }
    args.named = argc > 0;
    return argc > 0 ? act_on_named(argc, argv) : act_here();
}

static struct cli_option options[] = {
    CLI_SWITCH("list", &args.list,
               "only show what is in the journal, for all stores",
               .letter = 'l'),
    CLI_OPTION_DRY_RUN(&args.dry_run,
                       "print what would happen, change nothing"),
    CLI_VALUE("output", "ENTRY", CLI_TEXT, &args.output,
              "write the result of an entry to stdout"),
    CLI_VALUE("drop", "ENTRY", CLI_TEXT, &args.drop,
              "delete an entry for good"),
    CLI_VALUE("from", "URL", CLI_TEXT, &args.from,
              "record outcomes meant for that store, which moved"),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_NO_PROGRESS,
    CLI_VALUE("store", "URL", CLI_TEXT, &args.store,
              "only for this store (for a JOURNAL or LOG: $IDEM_STORE)"),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem reconcile                    # record what waits on this host",
    "idem reconcile --list             # see what waits, was lost, is damaged",
    "idem reconcile --output ENTRY     # what a lost outcome was",
    "idem reconcile --drop ENTRY       # delete it when dealt with",
    "idem reconcile -n lambda.log      # what a log has that IDEM_STORE has not",
    NULL,
};

const struct cli_command cli_reconcile = {
    .name = "reconcile",
    .summary = "record outcomes that wait in the journal or in a log",
    .usage = "idem reconcile [OPTION...] [JOURNAL|LOG...]",
    .examples = examples,
    .options = options,
    .run = run,
};
