/* idem store: shows, creates, checks and repairs the store. */
#include "upkeep/store.h"

#include "dynamodb/table.h"
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/text.h"

#include <idem/operator.h>
#include <idem/sqlite.h>
#include <stdlib.h>

static struct {
    bool json;
    bool yes;
    bool force;
    int format;
    const char *store;
} args;

static const enum idem_status statuses[] = {
    IDEM_STATUS_IN_PROGRESS, IDEM_STATUS_COMPLETED, IDEM_STATUS_FAILED,
    IDEM_STATUS_UNKNOWN,     IDEM_STATUS_RELEASED,
};

#define STATUSES_LEN (sizeof(statuses) / sizeof(statuses[0]))

/* ---- info ---- */

static int read_info(struct idem_store *store, struct idem_sqlite_info *info,
                     int64_t *ret_now_ms, struct idem_error *error)
{
    bool any;
    int rc = idem_sqlite_inspect(store, info, error);

    return rc != 0 ? rc : cli_store_look(store, ret_now_ms, &any, error);
}

static int print_json(const struct idem_sqlite_info *info, int64_t now_ms)
{
    struct cli_json json;
    size_t i;

    cli_json_init(&json);
    cli_json_bytes(&json, "path", idem_str(info->path));
    cli_json_count(&json, "schema", info->schema);
    cli_json_ms(&json, "store_ms", now_ms);
    cli_json_count(&json, "file_bytes", info->file_len);
    cli_json_count(&json, "wal_bytes", info->wal_len);
    cli_json_count(&json, "page_bytes", info->page_size);
    cli_json_count(&json, "pages", info->pages);
    cli_json_count(&json, "pages_free", info->pages_free);
    cli_json_open(&json, "records");
    for (i = 0; i < STATUSES_LEN; i++) {
        cli_json_count(&json, idem_status_name(statuses[i]),
                       info->records[statuses[i]]);
    }
    cli_json_close(&json);
    cli_json_ms(&json, "known_ms", info->known_ms);
    cli_json_bool(&json, "is_copy", info->is_copy);
    cli_json_bool(&json, "is_other", info->is_other);
    cli_json_hex(&json, "id", idem_bytes(info->id, sizeof(info->id)));
    cli_json_count(&json, "restores", info->restores);
    if (info->restores > 0) {
        cli_json_ms(&json, "restored_ms", info->restored_ms);
    }
    return cli_json_print(&json);
}

static void print_restores(const struct idem_sqlite_info *info)
{
    char time[32];

    if (info->restores > 0) {
        cli_time_text(info->restored_ms, time);
        (void)printf("restored      %s (%llu time%s)\n", time,
                     (unsigned long long)info->restores,
                     info->restores == 1 ? "" : "s");
    }
    if (info->is_copy) {
        cli_say("the store is older than it was before: it was restored from a "
                "copy; mark it: idem store mark-restored");
    }
    if (info->is_other) {
        cli_say("the store is not the one that was made here, or lies here "
                "without its lock file; accept it: idem store mark-restored");
    }
}

static int print_text(const struct idem_sqlite_info *info, int64_t now_ms)
{
    char now[32];
    size_t i;

    cli_time_text(now_ms, now);
    (void)fputs("path          ", stdout);
    cli_print_escaped(stdout, idem_str(info->path));
    (void)printf("\n"
                 "schema        %u\n"
                 "store time    %s\n"
                 "file          %llu bytes, %llu pages, %llu free\n"
                 "log           %llu bytes\n",
                 info->schema, now, (unsigned long long)info->file_len,
                 (unsigned long long)info->pages,
                 (unsigned long long)info->pages_free,
                 (unsigned long long)info->wal_len);
    for (i = 0; i < STATUSES_LEN; i++) {
        (void)printf("%-12s  %llu\n", idem_status_name(statuses[i]),
                     (unsigned long long)info->records[statuses[i]]);
    }
    print_restores(info);
    return 0;
}

static int info(const struct cli_command *command)
{
    struct idem_sqlite_info info = IDEM_SQLITE_INFO_INIT;
    struct idem_error error = {0};
    struct idem_store *store;
    int64_t now_ms;
    int status = cli_open_store(args.store, IDEM_OPEN_READONLY, &store);

    (void)command;
    if (status != 0) {
        return status;
    }
    error.code = read_info(store, &info, &now_ms, &error);
    if (error.code == IDEM_EINVALID) {
        cli_say("info is about the file of an sqlite: store; of others: idem "
                "store check, idem stats");
        status = CLI_USAGE;
    } else if (error.code != 0) {
        status = cli_fail_with(&error);
    } else {
        status =
            args.json ? print_json(&info, now_ms) : print_text(&info, now_ms);
    }
    idem_close(store);
    return status;
}

/* ---- template ---- */

static enum cli_template_format format_wanted(void)
{
    return args.json ? CLI_TEMPLATE_JSON
                     : (enum cli_template_format)args.format;
}

static int template(const struct cli_command *command)
{
    char *text;
    int status = cli_schema(args.store, &text);

    if (status != 0) {
        return status;
    }
    if (text == NULL) {
        return cli_template(command, args.store, format_wanted());
    }
    if (format_wanted() != 0) {
        status = cli_usage(command, "the template of this store is SQL: leave "
                                    "out --format and --json");
    } else {
        (void)fputs(text, stdout);
    }
    free(text);
    return status;
}

/* ---- check ---- */

static int check(const struct cli_command *command)
{
    struct cli_check check = {.json = args.json};

    (void)command;
    return cli_check_run(&check, args.store);
}

/* ---- create ---- */

static int create(const struct cli_command *command)
{
    if (!args.force) {
        return cli_create(args.store, args.json);
    }
    return args.yes
               ? cli_mark_restored(args.store, /* may_lose= */ true, args.json)
               : cli_usage(command,
                           "the records of the lost store are gone: a request "
                           "for one of them runs the work again; to accept "
                           "that, add --yes");
}

/* ---- mark-restored ---- */

static int mark_restored(const struct cli_command *command)
{
    return args.yes
               ? cli_mark_restored(args.store, /* may_lose= */ false, args.json)
               : cli_usage(command,
                           "mark-restored cannot be undone: attempts in "
                           "progress become unknown, and records made after "
                           "the copy are gone; look at it (idem store info), "
                           "then add --yes");
}

/* ---- set-clock ---- */

static int print_clock(int64_t from_ms, int64_t to_ms)
{
    struct cli_json json;
    char from[32];
    char to[32];

    if (!args.json) {
        cli_time_text(from_ms, from);
        cli_time_text(to_ms, to);
        (void)printf(from_ms == to_ms
                         ? "the store's time is %s, and not ahead of this "
                           "host's clock; nothing was changed\n"
                         : "the store's time was %s; it is %s now\n",
                     from, to);
        return 0;
    }
    cli_json_init(&json);
    cli_json_ms(&json, "from_ms", from_ms);
    cli_json_ms(&json, "to_ms", to_ms);
    return cli_json_print(&json);
}

static int set_clock(const struct cli_command *command)
{
    struct idem_error error = {0};
    int64_t from_ms;
    int64_t to_ms;
    char *url;
    int status;

    if (!args.yes) {
        return cli_usage(command, "set-clock trusts this host's clock: check "
                                  "it, then add --yes");
    }
    status = cli_sqlite_url(args.store, /* make= */ false, &url);
    if (status != 0) {
        return status;
    }
    error.code =
        idem_sqlite_set_clock(url + strlen(CLI_SQLITE_SCHEME),
                              /* options= */ NULL, &from_ms, &to_ms, &error);
    free(url);
    return error.code != 0 ? cli_store_failed(&error)
                           : print_clock(from_ms, to_ms);
}

/* ---- The command ---- */

static const char *const actions[] = {
    "create", "check", "info", "template", "mark-restored", "set-clock", NULL,
};

static int run(const struct cli_command *command, int argc, char **argv)
{
    static int (*const functions[])(const struct cli_command *command) = {
        create, check, info, template, mark_restored, set_clock,
    };
    size_t i;

    for (i = 0; argc == 1 && actions[i] != NULL; i++) {
        if (strcmp(argv[0], actions[i]) == 0) {
            return functions[i](command);
        }
    }
    return cli_usage(
        command,
        "no action given: create, check, info, template, mark-restored or "
        "set-clock");
}

static struct cli_option options[] = {
    CLI_SWITCH("force", &args.force, "create: replace a store that is lost"),
    CLI_VALUE("format", "FORMAT", CLI_CHOICE, &args.format,
              "template: the tool to print it for",
              .choices = cli_template_formats),
    CLI_OPTION_JSON(&args.json),
    CLI_SWITCH("yes", &args.yes,
               "needed by mark-restored, create --force, set-clock",
               .letter = 'y'),
    CLI_OPTION_NO_PROGRESS,
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem store info                   # its size, its schema, its records",
    "idem store create --store dynamodb://idem   # a table for many machines",
    "idem store create --store postgres://db.example.com/idem",
    "idem store check                  # what is wrong with it, and how to mend it",
    "idem store template >table.yaml   # a table for CloudFormation to create",
    "idem store mark-restored --yes    # after restoring a copy of the file",
    "idem store set-clock --yes        # when its time is ahead",
    NULL,
};

const struct cli_command cli_store = {
    .name = "store",
    .summary = "create, check and repair the store",
    .usage = "idem store [OPTION...] create|check|info|template\n"
             "       idem store [OPTION...] mark-restored|set-clock",
    .examples = examples,
    .options = options,
    .run = run,
    .operands = actions,
};
