/* idem export: the records of a store as lines of JSON. */
#include "options/command.h"
#include "options/common.h"
#include "options/record_statuses.h"
#include "options/usage.h"
#include "record/names.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/progress.h"
#include "text/text.h"
#include "upkeep/commands.h"
#include "upkeep/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <idem/operator.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *scope;
    const char *statuses;
    const char *store;
} args;

struct exporting {
    struct idem_store *store;
    unsigned statuses;
    struct cli_names names;
    FILE *out;
    uint64_t exported;
    uint64_t corrupt;
};

/* ---- Where it goes ---- */

/* A file is written beside itself and takes its name at the end. */
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
        cli_say("%s is not a regular file; to write to what it is, say: "
                "idem export - >%s",
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
    fd = mkostemp(target->temp, O_CLOEXEC); /* With mode 0600. */
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

/* Keeps the file unless @status says that it is not whole. */
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

/* ---- What goes there ---- */

static void say_corrupt(struct exporting *e, struct idem_slice key)
{
    char shown[128];

    e->corrupt++;
    cli_say("the record of \"%s\" cannot be trusted; it is left out",
            cli_escape(key, shown, sizeof(shown)));
}

static int note_name(void *ctx, int code, const struct idem_record *r)
{
    struct exporting *e = ctx;

    if (code != 0) {
        say_corrupt(e, r->key);
        return 0;
    }
    cli_progress("looking through the store", e->names.len, /* all= */ 0);
    return !cli_names_add(&e->names, r);
}

/* Gone, or of another status than was asked for: it has changed meanwhile. */
static int export_one(struct exporting *e, struct idem_slice scope,
                      struct idem_slice key)
{
    const struct idem_record *record;
    struct idem_error error = {0};
    struct idem_answer *answer;
    int status = 0;

    error.code = idem_get(e->store, scope, key, &answer, &error);
    if (error.code == IDEM_ENOTFOUND) {
        return 0;
    }
    if (error.code == IDEM_ECORRUPT) {
        say_corrupt(e, key);
        return 0;
    }
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    record = idem_answer_record(answer);
    if (e->statuses == 0 || (e->statuses & 1u << record->status) != 0) {
        status = cli_transfer_write(e->out, record);
        e->exported++;
    }
    idem_answer_destroy(answer);
    return status;
}

static int export_named(struct exporting *e)
{
    struct cli_name name;
    uint64_t done = 0;
    int status = cli_names_rewind(&e->names);

    while (status == 0 && !ferror(e->out) && cli_names_next(&e->names, &name)) {
        status = export_one(e, name.scope, name.key);
        cli_progress("exporting", ++done, e->names.len);
    }
    cli_progress_end();
    return status;
}

static int export_all(struct exporting *e)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_error error = {0};

    filter.statuses = e->statuses;
    filter.any_scope = args.scope == NULL;
    filter.scope = idem_str(args.scope);
    error.code = idem_list(e->store, &filter, note_name, e,
                           /* ret_now_ms= */ NULL, &error);
    return error.code != 0 ? cli_fail_with(&error) : export_named(e);
}

static int export_store(struct exporting *e)
{
    int status = cli_names_open(&e->names);

    if (status == 0) {
        status = export_all(e);
    }
    cli_names_close(&e->names);
    return status == 0 && e->corrupt > 0 ? CLI_CORRUPT : status;
}

static int export_to(const char *path, struct exporting *e, const char *url)
{
    struct target target;
    int status = target_open(&target, path);

    if (status != 0) {
        return status;
    }
    e->out = target.f;
    status = cli_transfer_header(e->out, url);
    if (status == 0) {
        status = export_store(e);
    }
    status = target_close(&target, status);
    if (path != NULL && (status == 0 || status == CLI_CORRUPT)) {
        (void)printf("exported %llu record%s\n",
                     (unsigned long long)e->exported,
                     e->exported == 1 ? "" : "s");
    }
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct exporting e = {0};
    const char *path = argc == 1 && strcmp(argv[0], "-") != 0 ? argv[0] : NULL;
    char *url;
    int status;

    if (argc > 1) {
        return cli_usage(command, "one file, or - for standard output");
    }
    if (argc == 0 && isatty(STDOUT_FILENO)) {
        return cli_usage(command,
                         "the records hold results and credentials; name a "
                         "file, or - to see them here");
    }
    status = cli_statuses(command, args.statuses, &e.statuses);
    if (status == 0) {
        status = cli_store_url(args.store, /* make= */ false, &url);
    }
    if (status != 0) {
        return status;
    }
    if (path == NULL && isatty(STDOUT_FILENO)) {
        cli_progress_off = true; /* The records themselves come by. */
    }
    status = cli_open_store(url, IDEM_OPEN_READONLY, &e.store);
    if (status == 0) {
        status = export_to(path, &e, url);
        idem_close(e.store);
    }
    free(url);
    return status;
}

static struct cli_option options[] = {
    CLI_OPTION_SCOPES(&args.scope),
    {.name = "status",
     .kind = CLI_TEXT,
     .target = &args.statuses,
     .arg = "STATUS",
     .help = "only these: failed,unknown"},
    CLI_OPTION_NO_PROGRESS,
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem export records.jsonl         # as secret as the store itself",
    "idem export - | ssh new-host idem import",
    "idem export --status completed - | jq -r .key",
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
