/* idem import: adds the records of an export that are not there. */
#include "contract/store.h"
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "process/host.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/lines.h"
#include "text/screen.h"
#include "upkeep/transfer.h"

#include <errno.h>
#include <idem/queue.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BATCH_LEN = 256,        /* Records that share a flush to the disk. */
    BATCH_BYTES = 16 << 20, /* Or so many bytes of lines. */
    SAID_MAX = 20,          /* Bad lines that are reported one by one. */
    NUMBERED_MAX = 1000     /* Bad lines whose numbers are in JSON. */
};

static struct {
    bool json;
    const char *scope;
    const char *store;
} args;

struct importing {
    struct idem_store *store;
    struct idem_queue *queue;
    size_t bytes;  /* Of lines, in the queue. */
    uint64_t read; /* Bytes of the export. */
    uint64_t len;  /* Of a file; 0: not known. */
    uint64_t added;
    uint64_t kept;
    uint64_t refused;
    uint64_t refused_lines[NUMBERED_MAX];
    struct cli_transfer transfer;
    bool moves; /* The export is a whole store that is moved here. */
    struct cli_arrival arrival;
};

/* ---- Counting ---- */

static void refuse(struct importing *i, uint64_t line, const char *why)
{
    if (i->refused < NUMBERED_MAX) {
        i->refused_lines[i->refused] = line;
    }
    i->refused++;
    if (i->refused <= SAID_MAX) {
        cli_say("line %llu: %s", (unsigned long long)line, why);
    }
}

static void count(struct importing *i, bool added)
{
    i->added += added ? 1 : 0;
    i->kept += added ? 0 : 1;
}

static int keep(struct importing *i, const struct idem_record *record)
{
    count(i, /* added= */ false);
    return i->moves ? cli_arrive_kept(&i->arrival, record) : 0;
}

/* Takes the store's answer to one line. If the store cannot take the record, only that
 * line is refused; if the store fails, the import ends. */
static int conclude(struct importing *i, uint64_t line,
                    const struct idem_error *error, bool added,
                    const struct idem_record *record)
{
    if (error->code == 0 && !added) {
        return keep(i, record);
    }
    if (error->code == 0) {
        count(i, added);
        return 0;
    }
    if (error->code == IDEM_EINVALID || error->code == IDEM_ECORRUPT) {
        refuse(i, line, error->text);
        return 0;
    }
    return cli_fail_with(error);
}

/* ---- Adding ---- */

/* Waits for all queued ops, also after an error. */
static int settle(struct importing *i)
{
    struct idem_op *op;
    int status = 0;

    while ((op = idem_queue_reap(i->queue, -1)) != NULL) {
        uint64_t line = (uint64_t)(uintptr_t)idem_op_user(op);

        if (status == 0) {
            status = conclude(i, line, idem_op_error(op), idem_op_added(op),
                              op->u.import.record);
        }
        idem_op_destroy(op);
    }
    i->bytes = 0;
    return status;
}

static int add(struct importing *i, const struct cli_lines *lines)
{
    struct idem_error error = {0};
    struct idem_op *op;

    error.code = idem_op_import(&i->transfer.record, &op, &error);
    if (error.code != 0) {
        return conclude(i, lines->number, &error, /* added= */ false,
                        &i->transfer.record);
    }
    idem_op_set_user(op, (void *)(uintptr_t)lines->number);
    error.code = idem_queue_submit(i->queue, op, &error);
    if (error.code != 0) {
        idem_op_destroy(op);
        return cli_fail_with(&error);
    }
    i->bytes += lines->len;
    return idem_queue_len(i->queue) == BATCH_LEN || i->bytes > BATCH_BYTES
               ? settle(i)
               : 0;
}

/* ---- Reading ---- */

/* A record without a scope gets the one that was asked for. */
static int place(struct idem_record *record)
{
    struct idem_error error = {0};

    if (args.scope == NULL || record->scope.len > 0) {
        return 0;
    }
    record->scope = idem_str(args.scope);
    error.code = idem_id(record->scope, record->key, record->id);
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

static int import_record(struct importing *i, const struct cli_lines *lines)
{
    struct idem_record *record = &i->transfer.record;
    int status = place(record);

    i->arrival.records++;
    if (i->arrival.fence_floor < record->fence) {
        i->arrival.fence_floor = record->fence;
    }
    if (status != 0 || i->arrival.is_here) {
        count(i, /* added= */ false);
        return status;
    }
    return add(i, lines);
}

static int import_end(struct importing *i, const struct cli_lines *lines)
{
    const struct cli_transfer *t = &i->transfer;

    if (!i->moves || i->arrival.has_end) {
        refuse(i, lines->number, "unexpected end of a move");
        return 0;
    }
    i->arrival.has_end = true;
    i->arrival.count = t->count;
    i->arrival.store_ms = t->move.store_ms;
    if (i->arrival.fence_floor < t->move.fence_floor) {
        i->arrival.fence_floor = t->move.fence_floor;
    }
    return 0;
}

static int import_header(struct importing *i, const struct cli_lines *lines)
{
    if (i->transfer.version == CLI_TRANSFER_VERSION && !i->transfer.moves) {
        return 0;
    }
    if (i->transfer.version == CLI_TRANSFER_VERSION && lines->number > 1) {
        cli_say("line %llu: a store that is moved comes alone",
                (unsigned long long)lines->number);
        return CLI_CORRUPT;
    }
    if (i->transfer.version == CLI_TRANSFER_VERSION) {
        i->moves = true;
        return cli_arrive(&i->arrival, i->store, i->transfer.move.id);
    }
    cli_say("line %llu: the export has version %lld and this program knows %d: "
            "use a newer idem",
            (unsigned long long)lines->number, (long long)i->transfer.version,
            CLI_TRANSFER_VERSION);
    return CLI_CONFIG;
}

static int import_line(struct importing *i, const struct cli_lines *lines)
{
    struct cli_transfer *t = &i->transfer;
    enum cli_transfer_kind kind =
        cli_transfer_read(idem_bytes(lines->line, lines->len), t);
    int status = 0;

    if (lines->number == 1 && kind != CLI_TRANSFER_HEADER) {
        cli_say(
            "not an idem export: the first line is not an idem header; idem "
            "export makes one");
        status = CLI_CORRUPT;
        kind = CLI_TRANSFER_BAD;
    } else if (kind == CLI_TRANSFER_BAD) {
        refuse(i, lines->number, t->why);
    }
    switch (kind) {
    case CLI_TRANSFER_RECORD:
        status = import_record(i, lines);
        break;
    case CLI_TRANSFER_END:
        status = import_end(i, lines);
        break;
    case CLI_TRANSFER_HEADER:
        status = import_header(i, lines);
        break;
    case CLI_TRANSFER_BAD:
        break;
    case CLI_TRANSFER_NOMEM:
        cli_say("out of memory");
        status = CLI_INTERNAL;
        break;
    }
    cli_transfer_finish(t);
    return status;
}

/* Counts the bytes of a file, whose length is known, and the lines of a pipe. */
static void show_progress(const struct importing *i, uint64_t line)
{
    if (i->len > 0) {
        cli_progress("importing KiB", i->read >> 10, (i->len >> 10) + 1);
    } else {
        cli_progress("importing", line, /* all= */ 0);
    }
}

static int import_lines(struct importing *i, struct cli_lines *lines)
{
    enum cli_lines_got got;
    int status = 0;
    int settled;

    while (status == 0 && (got = cli_lines_next(lines)) != CLI_LINES_END) {
        if (got == CLI_LINES_FAILED) {
            cli_say("cannot read the export: %s", strerror(errno));
            status = CLI_USAGE;
        } else if (got == CLI_LINES_TOO_LONG) {
            refuse(i, lines->number, "it is longer than any record");
        } else {
            status = import_line(i, lines);
        }
        i->read += lines->len + 1;
        show_progress(i, lines->number);
    }
    if (status == 0 && lines->number == 1) {
        cli_say("not an idem export: it is empty");
        status = CLI_CORRUPT;
    }
    settled = settle(i);
    status = status != 0 ? status : settled;
    return status == 0 && i->moves ? cli_arrive_end(&i->arrival, i->refused)
                                   : status;
}

/* ---- Reporting ---- */

static int print_json(const struct importing *i, int done)
{
    uint64_t n = i->refused < NUMBERED_MAX ? i->refused : NUMBERED_MAX;
    struct cli_json json;
    uint64_t at;

    cli_json_init(&json);
    cli_json_count(&json, "added", i->added);
    cli_json_count(&json, "kept", i->kept);
    cli_json_count(&json, "refused", i->refused);
    for (at = 0; at < n; at++) {
        cli_json_append_count(&json, "refused_lines", i->refused_lines[at]);
    }
    if (i->moves) {
        cli_json_bool(&json, "moved", done == 0);
    }
    return cli_json_print(&json);
}

static int tell(const struct importing *i, int status)
{
    int printed = 0;

    cli_progress_end();
    if (i->refused > SAID_MAX) {
        cli_say("and %llu lines more",
                (unsigned long long)(i->refused - SAID_MAX));
    }
    if (args.json) {
        printed = print_json(i, status);
    } else {
        (void)printf("added %llu, kept %llu, refused %llu%s\n",
                     (unsigned long long)i->added, (unsigned long long)i->kept,
                     (unsigned long long)i->refused,
                     i->moves && status == 0 ? "; the move is complete" : "");
    }
    if (status == 0 && i->refused > 0) {
        status = CLI_CORRUPT;
    }
    return status != 0 ? status : printed;
}

/* ---- The command ---- */

static int import_from(FILE *f, struct importing *i)
{
    struct cli_lines lines = {.f = f, .max = CLI_TRANSFER_LINE_MAX};
    struct idem_error error = {0};
    int status;

    error.code = idem_queue_create(i->store, &i->queue, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    status = tell(i, import_lines(i, &lines));
    cli_lines_finish(&lines);
    idem_queue_destroy(i->queue);
    return status;
}

static uint64_t length_of(FILE *f)
{
    struct stat st;

    return fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode)
               ? (uint64_t)st.st_size
               : 0;
}

static int import(FILE *f)
{
    struct importing *i = calloc(1, sizeof(*i));
    int status;

    if (i == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    i->len = length_of(f);
    status = cli_open_store(args.store, /* flags= */ 0, &i->store);
    if (status == 0) {
        status = cli_store_ask(i->store);
        status = status == 0 ? import_from(f, i) : status;
        idem_close(i->store);
    }
    free(i);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    const char *path = argc == 1 && strcmp(argv[0], "-") != 0 ? argv[0] : NULL;
    FILE *f = stdin;
    int status;

    if (argc > 1) {
        return cli_usage(command, "one file, or - for standard input");
    }
    if (argc == 0 && isatty(STDIN_FILENO)) {
        return cli_usage(command, "no file given: idem import FILE");
    }
    if (path != NULL) {
        f = fopen(path, "re");
    }
    if (f == NULL) {
        cli_say("cannot open \"%s\": %s", path, strerror(errno));
        return CLI_USAGE;
    }

    status = import(f);

    if (path != NULL) {
        (void)fclose(f);
    }
    return status;
}

static struct cli_option options[] = {
    CLI_OPTION_JSON(&args.json),
    CLI_VALUE("scope", "SCOPE", CLI_TEXT, &args.scope,
              "the scope of records that have none", .letter = 's',
              .max = IDEM_SCOPE_MAX),
    CLI_OPTION_NO_PROGRESS,
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem import records.jsonl         # keeps what is there; repeat it freely",
    "idem import --store memory: records.jsonl   # only verifies every line",
    "ssh old-host idem export --open - | idem import",
    NULL,
};

const struct cli_command cli_import = {
    .name = "import",
    .summary = "add the records of an export that are not there",
    .usage = "idem import [OPTION...] [FILE|-]",
    .examples = examples,
    .options = options,
    .run = run,
};
