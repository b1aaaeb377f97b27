/* idem export: the records of a store as lines of JSON. */
#include "contract/kind.h"
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "options/value.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "upkeep/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *scope;
    const char *statuses;
    bool open;
    const char *to;
    int64_t wait_ms;
    bool has_wait;
    const char *store;
} args = {.wait_ms = 60 * 1000};

/* ---- The target ---- */

/* A file is written beside its path, and gets its name at the end. */
struct target {
    const char *path; /* NULL: standard output. */
    char *temp;
    FILE *f;
};

static int cannot_write(const char *path)
{
    cli_say("cannot write %s: %s", path, strerror(errno));
    return CLI_OUTPUT_FAILED;
}

/* A device or a pipe must not be replaced by a file. */
static int check_path(const char *path)
{
    struct stat st;

    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        cli_say(
            "%s is not a regular file; to write to it anyway: idem export - "
            ">%s",
            path, path);
        return CLI_USAGE;
    }
    return 0;
}

static int target_open(struct target *target, const char *path)
{
    int status;
    int fd;

    *target = (struct target){.f = stdout};
    if (path == NULL) {
        return 0;
    }
    status = check_path(path);
    if (status != 0) {
        return status;
    }
    if (asprintf(&target->temp, "%s.XXXXXX", path) < 0) {
        target->temp = NULL;
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    fd = mkostemp(target->temp, O_CLOEXEC); /* Its mode is 0600. */
    target->f = fd < 0 ? NULL : fdopen(fd, "w");
    if (target->f == NULL) {
        status = cannot_write(path);
        free(target->temp);
        return status;
    }
    target->path = path;
    return 0;
}

static bool flush(FILE *f)
{
    return fflush(f) == 0 && !ferror(f) && fsync(fileno(f)) == 0;
}

/* Keeps the file unless @status says that it is incomplete. */
static int target_close(struct target *target, int status)
{
    bool keep = status == 0 || status == CLI_CORRUPT;

    if (target->path == NULL) {
        return status;
    }
    if (keep &&
        (!flush(target->f) || rename(target->temp, target->path) != 0)) {
        status = cannot_write(target->path);
        keep = false;
    }
    (void)fclose(target->f);
    if (!keep) {
        (void)unlink(target->temp);
    }
    free(target->temp);
    return status;
}

/* ---- The command ---- */

static int export_to(const char *path, struct cli_exporting *e)
{
    struct target target;
    int status = target_open(&target, path);

    if (status != 0) {
        return status;
    }
    e->out = target.f;
    status = target_close(&target, cli_exporting(e));
    if (path != NULL && (status == 0 || status == CLI_CORRUPT)) {
        (void)printf("exported %llu record%s\n",
                     (unsigned long long)e->exported,
                     e->exported == 1 ? "" : "s");
    }
    if (status == 0 && e->unknown > 0) {
        cli_say(
            "%llu were still in progress, and are unknown in the new store: "
            "idem list --status unknown",
            (unsigned long long)e->unknown);
    }
    return status;
}

/* Messages show the place, so it has to be a URL, and its password is hidden. */
static int check_place(const struct cli_command *command, const char *to,
                       char *buf, size_t cap, const char **ret_place)
{
    const char *shown = to == NULL ? NULL : idem_url_hide(to, buf, cap);
    size_t i;

    for (i = 0; shown != NULL && shown[i] != '\0'; i++) {
        if (shown[i] <= ' ' || shown[i] > '~' || i == IDEM_MOVE_PLACE_MAX) {
            return cli_usage(command, "--to: a URL of at most 100 characters, "
                                      "without spaces");
        }
    }
    *ret_place = shown;
    return 0;
}

static int check_args(const struct cli_command *command, int argc)
{
    if (argc > 1) {
        return cli_usage(command, "one file, or - for standard output");
    }
    if (argc == 0 && isatty(STDOUT_FILENO)) {
        return cli_usage(command,
                         "the records hold results and credentials; name a "
                         "file, or - to see them here");
    }
    if (args.open && (args.scope != NULL || args.statuses != NULL)) {
        return cli_usage(command, "--open moves all of the store: leave out "
                                  "--scope and --status");
    }
    if (!args.open && (args.to != NULL || args.has_wait)) {
        return cli_usage(command, "--to and --wait belong to --open");
    }
    return 0;
}

static int export_store(const char *url, const char *path,
                        struct cli_exporting *e)
{
    unsigned flags = e->moves ? CLI_OPEN_FOR_PERSON : IDEM_OPEN_READONLY;
    int status;

    cli_store_must_exist = e->moves;
    status = cli_open_store(url, flags, &e->store);
    if (status == 0 && e->moves && idem_store_url(e->store) == NULL) {
        cli_say("a store in memory cannot be moved");
        status = CLI_USAGE;
    }
    if (status == 0) {
        e->url = url;
        status = export_to(path, e);
    }
    idem_close(e->store);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_exporting e = {.moves = args.open,
                              .scope = args.scope,
                              .wait_ms = args.wait_ms};
    const char *path = argc == 1 && strcmp(argv[0], "-") != 0 ? argv[0] : NULL;
    char place[IDEM_STORE_URL_MAX + 1];
    char *url;
    int status = check_args(command, argc);

    if (status == 0) {
        status = check_place(command, args.to, place, sizeof(place), &e.place);
    }
    if (status == 0) {
        status = cli_statuses(command, args.statuses, &e.statuses);
    }
    if (status == 0) {
        status = cli_store_url(args.store, /* make= */ false, &url);
    }
    if (status != 0) {
        return status;
    }
    if (path == NULL && isatty(STDOUT_FILENO)) {
        cli_progress_off = true; /* The records themselves show the progress. */
    }
    status = export_store(url, path, &e);
    free(url);
    return status;
}

static struct cli_option options[] = {
    CLI_OPTION_SCOPES(&args.scope),
    CLI_VALUE("status", "STATUS", CLI_TEXT, &args.statuses,
              "only these statuses: failed,unknown"),
    CLI_SWITCH("open", &args.open,
               "move the store: nothing begins in it from now on"),
    CLI_VALUE("to", "URL", CLI_TEXT, &args.to,
              "with --open: the new store, shown to callers"),
    CLI_VALUE("wait", "TIME", CLI_DURATION, &args.wait_ms,
              "with --open: how long to wait for open work (1m)",
              .given = &args.has_wait),
    CLI_OPTION_NO_PROGRESS,
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem export records.jsonl         # as secret as the store itself",
    "idem export - | ssh new-host idem import",
    "idem export --status completed - | jq -r .key",
    "idem export --open - | idem import --store dynamodb://idem   # moves it",
    NULL,
};

const struct cli_command cli_export = {
    .name = "export",
    .summary = "write the records as lines of JSON",
    .usage = "idem export [OPTION...] [FILE|-]",
    .examples = examples,
    .options = options,
    .run = run,
};
