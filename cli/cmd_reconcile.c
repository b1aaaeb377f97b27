/* idem reconcile: records the outcomes that wait on this host for their store. */
#include "cli.h"
#include "harvest.h"
#include "journal.h"
#include "json.h"

#include <idem/journal.h>
#include <idem/store.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    bool list;
    bool dry_run;
    const char *output;
    const char *drop;
    const char *from;
    const char *directory;
    bool json;
    const char *store;
} args;

/* ---- One line for each ------------------------------------------------- */

static const char *state_name(enum idem_journal_state state)
{
    switch (state) {
    case IDEM_JOURNAL_WAITING:
        return "waiting";
    case IDEM_JOURNAL_IN_USE:
        return "in_use";
    case IDEM_JOURNAL_RECORDED:
        return "recorded";
    case IDEM_JOURNAL_LOST:
        return "lost";
    case IDEM_JOURNAL_DAMAGED:
        return "damaged";
    case IDEM_JOURNAL_NEWER:
        return "newer";
    }
    return "unknown";
}

/* Of an entry that could be read. */
static bool is_known(const struct idem_journal_info *info)
{
    return info->fence != 0;
}

static void print_word(struct idem_slice s)
{
    if (s.len == 0) {
        (void)putchar('-');
    }
    cli_print_escaped(stdout, s);
    (void)fputs("  ", stdout);
}

/* recorded  completed  2026-11-21T08:24:00.123Z  -  order-42  4f1c...idj */
static void print_row(const struct idem_journal_info *info,
                      enum idem_journal_state state)
{
    char when[32] = "-";

    if (is_known(info)) {
        cli_time_text(info->written_ms, when);
    }
    (void)printf("%s%-8s  %-9s  %-24s  ", args.dry_run ? "would be " : "",
                 state_name(state),
                 is_known(info) ? idem_status_name(info->outcome.status) : "-",
                 when);
    print_word(info->scope);
    print_word(info->key);
    cli_print_escaped(stdout, idem_str(info->name));
    (void)putchar('\n');
}

static void fill_outcome(struct cli_json *json,
                         const struct idem_journal_info *info)
{
    const struct idem_outcome *outcome = &info->outcome;

    cli_json_text(json, "status", idem_status_name(outcome->status));
    cli_json_bytes(json, "store", info->store_url);
    cli_json_hex(json, "id", idem_bytes(info->id, sizeof(info->id)));
    cli_json_count(json, "fence", info->fence);
    cli_json_ms(json, "written_ms", info->written_ms);
    cli_json_count(json, "result_len", outcome->result.bytes.len);
    cli_json_bool(json, "not_kept", outcome->result.not_kept);
    if (outcome->text.len > 0) {
        cli_json_bytes(json, "text", outcome->text);
    }
}

static int print_json(const struct idem_journal_info *info,
                      enum idem_journal_state state,
                      const struct idem_error *error)
{
    struct cli_json json;
    int status;

    cli_json_init(&json);
    cli_json_text(&json, "state", state_name(info->state));
    if (args.dry_run) {
        cli_json_text(&json, "would_be", state_name(state));
    }
    cli_json_bytes(&json, "entry", idem_str(info->name));
    if (info->key.len > 0) {
        cli_json_bytes(&json, "scope", info->scope);
        cli_json_bytes(&json, "key", info->key);
    }
    if (is_known(info)) {
        fill_outcome(&json, info);
    }
    if (error->code != 0) {
        cli_json_text(&json, "problem", idem_error_name(error->code));
        cli_json_text(&json, "why", error->text);
    }
    status = cli_json_print(&json);
    cli_json_finish(&json);
    return status;
}

/* One go through the journal. */
struct round {
    struct idem_store *store; /* NULL where it is only looked at. */
    bool all;      /* Of several stores: what is for none comes at the end. */
    int printed;   /* Exit status of the output. */
    int status;    /* What the entries stand for, the worst so far. */
    uint64_t len;  /* Of those that were shown. */
    unsigned away; /* How often in a row the store did not answer. */
};

/* A person must know what was lost; what waits can wait. */
static int rank(int status)
{
    switch (status) {
    case CLI_OK:
        return 0;
    case CLI_BUSY:
        return 1;
    case CLI_CORRUPT:
        return 3;
    case CLI_NOT_RECORDED:
        return 4;
    default:
        return 2;
    }
}

static void worsen(struct round *round, int status)
{
    if (rank(status) > rank(round->status)) {
        round->status = status;
    }
}

/* @state: what it is now or, with --dry-run, would be. */
static int show(struct round *round, const struct idem_journal_info *info,
                enum idem_journal_state state, const struct idem_error *error)
{
    round->len++;
    if (args.json) {
        round->printed = print_json(info, state, error);
    } else {
        print_row(info, state);
        if (error->code != 0) {
            (void)fflush(stdout);
            cli_say("%s", error->text);
        }
    }
    return round->printed != 0 || ferror(stdout);
}

/* ---- --list, --output, --drop ------------------------------------------ */

static int list_one(void *ctx, const struct idem_journal_info *info,
                    const struct idem_error *error)
{
    return show(ctx, info, info->state, error);
}

static int list(struct idem_journal *journal)
{
    struct round round = {.status = 0};
    struct idem_error error = {0};

    error.code = idem_journal_list(journal, NULL, list_one, &round, &error);
    return error.code == 0 ? round.printed : cli_fail_with(&error);
}

static int write_one(void *ctx, const struct idem_journal_info *info,
                     const struct idem_error *error)
{
    struct round *round = ctx;

    round->len++;
    if (is_known(info)) {
        round->status = cli_write_result(&info->outcome.result);
    } else {
        cli_say("%s", error->code != 0 ? error->text
                                       : "another process is at the entry");
        round->status = error->code != 0 ? CLI_CORRUPT : CLI_BUSY;
    }
    return 1;
}

static int write_result(struct idem_journal *journal)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    struct round round = {.status = 0};
    struct idem_error error = {0};

    filter.name = args.output;
    error.code = idem_journal_list(journal, &filter, write_one, &round, &error);
    if (error.code == 0 && round.len == 0) {
        cli_say("there is no such entry; see: idem reconcile --list");
        return CLI_NO_RECORD;
    }
    return error.code == 0 ? round.status : cli_fail_with(&error);
}

static int drop(struct idem_journal *journal)
{
    struct idem_error error = {0};

    error.code = idem_journal_drop(journal, args.drop, &error);
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

/* ---- Replay ------------------------------------------------------------ */

enum {
    AWAY_MAX = 3
};

static int status_of(const struct idem_journal_info *info,
                     const struct idem_error *error)
{
    switch (info->state) {
    case IDEM_JOURNAL_RECORDED:
        break;
    case IDEM_JOURNAL_IN_USE:
        return CLI_BUSY;
    case IDEM_JOURNAL_LOST:
        return CLI_NOT_RECORDED;
    case IDEM_JOURNAL_DAMAGED:
        return CLI_CORRUPT;
    case IDEM_JOURNAL_WAITING:
    case IDEM_JOURNAL_NEWER:
        return cli_exit_of(error->code);
    }
    return 0;
}

/* Cannot be told to any store, now or ever, and was not set aside. */
static bool is_left_over(const struct idem_journal_info *info)
{
    const char *end = strrchr(info->name, '.');

    return info->state == IDEM_JOURNAL_IN_USE ||
           info->state == IDEM_JOURNAL_NEWER ||
           (info->state == IDEM_JOURNAL_DAMAGED && end != NULL &&
            (strcmp(end, ".idj") == 0 || strcmp(end, ".new") == 0));
}

static int show_left_over(void *ctx, const struct idem_journal_info *info,
                          const struct idem_error *error)
{
    struct round *round = ctx;

    if (!is_left_over(info)) {
        return 0;
    }
    worsen(round, status_of(info, error));
    return show(round, info, info->state, error);
}

/* A store that does not answer again and again is not asked for the rest. */
static int told_one(void *ctx, const struct idem_journal_info *info,
                    const struct idem_error *error)
{
    struct round *round = ctx;
    bool away = info->state == IDEM_JOURNAL_WAITING &&
                idem_error_kind(error->code) == IDEM_KIND_RETRY;

    if (round->all && is_left_over(info)) {
        return 0;
    }
    worsen(round, status_of(info, error));
    round->away = away ? round->away + 1 : 0;
    return show(round, info, info->state, error) || round->away >= AWAY_MAX;
}

/* What the store would answer: LOST, or that it is recorded. */
static int foretell_end(struct idem_store *store,
                        const struct idem_journal_info *info,
                        struct idem_error *error)
{
    struct idem_answer *answer = NULL;
    struct idem_decision decision;
    struct idem_now now = {.store_ms = cli_now_ms()};
    struct idem_op op;
    int rc = idem_get(store, info->scope, info->key, &answer, error);

    if (rc != 0 && rc != IDEM_ENOTFOUND) {
        return rc;
    }
    memset(&op, 0, sizeof(op));
    op.verb = IDEM_OP_END;
    memcpy(op.nonce, info->nonce, sizeof(op.nonce));
    op.fence = info->fence;
    op.u.end = info->outcome;
    idem_decide_end(answer != NULL ? idem_answer_record(answer) : NULL, &op,
                    &now, &decision);
    (void)snprintf(error->text, sizeof(error->text), "%s", decision.text);
    error->code = decision.code;
    idem_answer_destroy(answer);
    return decision.code;
}

static int foretell_one(void *ctx, const struct idem_journal_info *info,
                        const struct idem_error *error)
{
    struct round *round = ctx;
    struct idem_error why = *error;
    enum idem_journal_state state = info->state;

    if (state != IDEM_JOURNAL_WAITING || !is_known(info)) {
        return 0; /* Nothing would be told. */
    }
    switch (foretell_end(round->store, info, &why)) {
    case IDEM_OK:
        state = IDEM_JOURNAL_RECORDED;
        break;
    case IDEM_ELOST:
        state = IDEM_JOURNAL_LOST;
        break;
    default:
        break;
    }
    return show(round, info, state, &why);
}

static int go(struct idem_journal *journal, struct round *round)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    struct idem_error error = {0};

    filter.store_url = args.from;
    if (!args.dry_run) {
        error.code = idem_journal_replay(journal, round->store, &filter,
                                         told_one, round, &error);
    } else {
        if (args.from == NULL) {
            filter.store_url = idem_store_url(round->store);
        }
        error.code =
            idem_journal_list(journal, &filter, foretell_one, round, &error);
    }
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

/* In one store; what goes wrong with it does not keep the others waiting. */
static void reconcile_one(struct idem_journal *journal, const char *url,
                          struct round *round)
{
    unsigned flags = args.dry_run ? IDEM_OPEN_READONLY : IDEM_OPEN_NO_CREATE;
    int status = cli_open_store(url, flags, &round->store);

    round->away = 0;
    if (status == 0) {
        status = go(journal, round);
        idem_close(round->store);
        round->store = NULL;
    }
    if (status != 0) {
        worsen(round, status);
    }
}

/* ---- Which stores ------------------------------------------------------ */

struct urls {
    char **urls;
    size_t len;
    bool failed; /* Out of memory. */
};

static bool has(const struct urls *urls, struct idem_slice url)
{
    size_t i;

    for (i = 0; i < urls->len; i++) {
        if (strlen(urls->urls[i]) == url.len &&
            memcmp(urls->urls[i], url.base, url.len) == 0) {
            return true;
        }
    }
    return false;
}

static int add_url(void *ctx, const struct idem_journal_info *info,
                   const struct idem_error *error)
{
    struct urls *urls = ctx;
    char **more;

    (void)error;
    if (info->state != IDEM_JOURNAL_WAITING || !is_known(info) ||
        has(urls, info->store_url)) {
        return 0;
    }
    more = realloc(urls->urls, (urls->len + 1) * sizeof(*more));
    if (more != NULL) {
        urls->urls = more;
        more[urls->len] = strndup(info->store_url.base, info->store_url.len);
        urls->failed = more[urls->len] == NULL;
    }
    urls->failed = urls->failed || more == NULL;
    urls->len += !urls->failed;
    return urls->failed;
}

static void reconcile_all(struct idem_journal *journal, struct round *round)
{
    struct idem_error error = {0};
    struct urls urls = {.len = 0};
    size_t i;

    error.code = idem_journal_list(journal, NULL, add_url, &urls, &error);
    if (error.code == 0 && urls.failed) {
        error.code = IDEM_ENOMEM;
    }
    if (error.code != 0) {
        worsen(round, cli_fail_with(&error));
    }
    for (i = 0; i < urls.len; i++) {
        reconcile_one(journal, urls.urls[i], round);
        free(urls.urls[i]);
    }
    free(urls.urls);
    if (error.code == 0) {
        (void)idem_journal_list(journal, NULL, show_left_over, round, NULL);
    }
}

static int reconcile(struct idem_journal *journal)
{
    struct round round = {.all = args.store == NULL && args.from == NULL};

    if (round.all) {
        reconcile_all(journal, &round);
    } else {
        reconcile_one(journal, args.store, &round);
    }
    if (round.len == 0 && round.status == 0 && cli_stderr_is_tty()) {
        cli_say("nothing waits");
    }
    return round.printed != 0 ? round.printed : round.status;
}

/* ---- The command ------------------------------------------------------- */

static int check(const struct cli_command *command, int argc)
{
    bool replays = !args.list && args.output == NULL && args.drop == NULL;

    if (argc > 0 &&
        (args.output != NULL || args.drop != NULL || args.directory != NULL)) {
        return cli_usage(command, "--output, --drop and --dir are for the "
                                  "journal of this host: name no others");
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

/* The journal of this host, or the one of --dir. */
static int act_here(void)
{
    struct idem_error error = {0};
    struct idem_journal *journal;
    char *directory;
    int status;

    error.code = cli_journal_open(args.directory, /* make= */ false, &journal,
                                  &directory, &error);
    free(directory);
    if (error.code == IDEM_ENOTFOUND) {
        /* What was never needed is empty; what was named should be there. */
        if (args.directory == NULL && args.output == NULL &&
            args.drop == NULL) {
            return 0;
        }
        cli_say("%s", error.text);
        return args.directory != NULL ? CLI_CONFIG : CLI_NO_RECORD;
    }
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    status = act(journal);
    idem_journal_close(journal);
    return status;
}

/* ---- Journals and logs that are named ---- */

static void empty(const char *directory)
{
    DIR *dir = opendir(directory);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        (void)unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    (void)rmdir(directory);
}

static bool is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* What @paths have, but for the directories, is gathered in @journal. */
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
                cli_say("there is no outcome in %s", argv[i]);
            }
        }
    }
    if (harvest.damaged > 0) {
        cli_say("%llu outcome%s cannot be trusted: cut, or changed",
                (unsigned long long)harvest.damaged,
                harvest.damaged == 1 ? "" : "s");
    }
    return status == 0 && harvest.damaged > 0 ? CLI_CORRUPT : status;
}

/* The worse of two. */
static int worse(int a, int b)
{
    return rank(b) > rank(a) ? b : a;
}

static int act_on_files(int argc, char **argv, const char *temp)
{
    struct idem_error error = {0};
    struct idem_journal *journal;
    int status;

    error.code = idem_journal_open(temp, NULL, &journal, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    status = gather(journal, argc, argv);
    if (status == 0 || status == CLI_CORRUPT) {
        status = worse(status, act(journal));
    }
    idem_journal_close(journal);
    return status;
}

static int act_on_directory(const char *path)
{
    struct idem_error error = {0};
    struct idem_journal *journal;
    int status;

    error.code = idem_journal_open(path, NULL, &journal, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    status = act(journal);
    idem_journal_close(journal);
    return status;
}

/* Directories are journals, where what was recorded is removed. Files are only
 * read: what is in them goes through a journal that is gone afterwards. */
static int act_on(int argc, char **argv)
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
        cli_say("cannot make the directory %s: %s", temp, strerror(errno));
        free(temp);
        return CLI_DENIED;
    }
    status = act_on_files(argc, argv, temp);
    empty(temp);
    free(temp);
    for (i = 0; i < argc; i++) {
        if (is_directory(argv[i])) {
            status = worse(status, act_on_directory(argv[i]));
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
    return argc > 0 ? act_on(argc, argv) : act_here();
}

static struct cli_option options[] = {
    {.name = "list",
     .letter = 'l',
     .kind = CLI_FLAG,
     .target = &args.list,
     .help = "only show what is in the journal, for all stores"},
    {.name = "dry-run",
     .letter = 'n',
     .kind = CLI_FLAG,
     .target = &args.dry_run,
     .help = "say what would become of it, and change nothing"},
    {.name = "output",
     .kind = CLI_TEXT,
     .target = &args.output,
     .arg = "ENTRY",
     .help = "write the result of an entry to stdout"},
    {.name = "drop",
     .kind = CLI_TEXT,
     .target = &args.drop,
     .arg = "ENTRY",
     .help = "delete an entry: it was seen, and is not needed"},
    {.name = "from",
     .kind = CLI_TEXT,
     .target = &args.from,
     .arg = "URL",
     .help = "record what was meant for that store, which has moved"},
    {.name = "dir",
     .kind = CLI_TEXT,
     .target = &args.directory,
     .arg = "FILE",
     .help = "the journal (default: $IDEM_JOURNAL_DIR)"},
    CLI_OPTION_JSON(&args.json),
    {.name = "store",
     .kind = CLI_TEXT,
     .target = &args.store,
     .arg = "URL",
     .help = "only for this store (default: for each its own)"},
    {.name = NULL},
};

static const char *const examples[] = {
    "idem reconcile                    # record what waits on this host",
    "idem reconcile --list             # see what waits, was lost, is damaged",
    "idem reconcile --output ENTRY     # what a lost outcome was",
    "idem reconcile --drop ENTRY       # it was dealt with",
    "idem reconcile -n lambda.log      # what a log has that the store has not",
    NULL,
};

const struct cli_command cli_reconcile = {
    .name = "reconcile",
    .summary = "record outcomes that were kept or logged, and not recorded",
    .usage = "idem reconcile [OPTION...] [JOURNAL|LOG...]",
    .examples = examples,
    .options = options,
    .run = run,
};
