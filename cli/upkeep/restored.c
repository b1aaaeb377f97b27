/* idem store create, template and mark-restored. */
#include "contract/kind.h"
#include "options/command.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/screen.h"
#include "text/text.h"
#include "upkeep/store.h"

#include <idem/sqlite.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- idem store create ---- */

static int print_done(const char *url, bool created, bool json)
{
    struct cli_json object;
    char shown[IDEM_STORE_URL_MAX + 1];
    int status;

    url = idem_url_hide(url, shown, sizeof(shown));
    if (!json) {
        cli_print_escaped(stdout, idem_str(url));
        (void)fputs(created ? " was made\n"
                            : " is there already; nothing was changed\n",
                    stdout);
        return 0;
    }
    cli_json_init(&object);
    cli_json_bytes(&object, "store", idem_str(url));
    cli_json_bool(&object, "created", created);
    status = cli_json_print(&object);
    cli_json_finish(&object);
    return status;
}

int cli_create(const char *store_url, bool json)
{
    const struct idem_store_kind *kind;
    const char *place;
    struct idem_error error = {0};
    bool created = false;
    char *url;
    int status = cli_store_url(store_url, /* make= */ true, &url);

    if (status != 0) {
        return status;
    }
    error.code = idem__kind_find(url, &kind, &place, &error);
    if (error.code == 0 && kind->create == NULL) {
        cli_say("only sqlite:, dynamodb: and postgres: stores can be made");
        free(url);
        return CLI_USAGE;
    }
    if (error.code == 0) {
        error.code = kind->create(place, &created, &error);
    }
    status = error.code != 0 ? cli_fail_with(&error)
                             : print_done(url, created, json);
    free(url);
    return status;
}

/* ---- idem store template ---- */

int cli_schema(const char *store_url, char **ret_text)
{
    const char *url =
        store_url != NULL ? store_url : secure_getenv("IDEM_STORE");
    const size_t cap = 16384;
    const struct idem_store_kind *kind;
    struct idem_error error = {0};
    const char *place;

    *ret_text = NULL;
    /* A table of DynamoDB has templates for several tools: cli/dynamodb. */
    if (url == NULL || strncmp(url, "dynamodb:", strlen("dynamodb:")) == 0 ||
        idem__kind_find(url, &kind, &place, &error) != 0 ||
        kind->size < offsetof(struct idem_store_kind, completion) ||
        kind->schema == NULL) {
        return 0;
    }
    *ret_text = malloc(cap);
    error.code = *ret_text == NULL
                     ? IDEM_ENOMEM
                     : kind->schema(place, *ret_text, cap, &error);
    if (error.code == 0) {
        return 0;
    }
    free(*ret_text);
    *ret_text = NULL;
    return cli_fail_with(&error);
}

/* ---- Stores that were put back or lost ---- */

static void plural(char *buf, size_t cap, uint64_t n, const char *one,
                   const char *many)
{
    (void)snprintf(buf, cap, "%llu %s", (unsigned long long)n,
                   n == 1 ? one : many);
}

/* ---- Before ---- */

static int read_info(struct idem_store *store, struct idem_sqlite_info *info)
{
    struct idem_error error = {0};

    error.code = idem_sqlite_inspect(store, info, &error);
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

static void say_what_it_means(const struct idem_sqlite_info *info)
{
    char known[32];
    char open[64];

    cli_time_text(info->known_ms, known);
    plural(open, sizeof(open), info->records[IDEM_STATUS_IN_PROGRESS],
           "attempt is", "attempts are");
    (void)fprintf(stderr,
                  "%s in progress there, and will be unknown: a person must "
                  "resolve each.\n"
                  "It knows nothing of what happened after %s.\n"
                  "Its later records are gone: a request for one of them "
                  "runs the work again.\n",
                  open, known);
    if (info->restores > 0) {
        cli_time_text(info->restored_ms, known);
        (void)fprintf(stderr,
                      "It was marked before, at %s: what was begun since will "
                      "be unknown too.\n",
                      known);
    }
}

static bool is_yes(const char *question)
{
    char answer[16] = "";

    (void)fputs(question, stderr);
    return fgets(answer, sizeof(answer), stdin) != NULL &&
           (answer[0] == 'y' || answer[0] == 'Y');
}

/* 0, or an exit status. */
static int need_terminal(const struct cli_command *command)
{
    if (isatty(STDIN_FILENO) && cli_stderr_is_tty()) {
        return 0;
    }
    return cli_usage(command, "this cannot be undone: say --yes where nobody "
                              "can be asked");
}

static int ask_about_loss(const struct cli_command *command)
{
    int status = need_terminal(command);

    if (status != 0) {
        return status;
    }
    (void)fputs("The records of the lost store are gone: a request for one "
                "of them runs the work again.\n",
                stderr);
    if (!is_yes("Shall a new store be made in its place? [y/N] ")) {
        cli_say("nothing was changed");
        status = CLI_USAGE;
    }
    return status;
}

static int ask(const struct cli_command *command, const char *store_url)
{
    struct idem_sqlite_info info = IDEM_SQLITE_INFO_INIT;
    struct idem_store *store;
    int status = need_terminal(command);

    if (status != 0) {
        return status;
    }
    status = cli_open_store(store_url, IDEM_OPEN_READONLY, &store);
    if (status != 0) {
        return status;
    }
    status = read_info(store, &info);
    if (status == 0) {
        say_what_it_means(&info);
    }
    idem_close(store);
    if (status == 0 && !is_yes("Was it put back from a copy, and shall it be "
                               "marked? [y/N] ")) {
        cli_say("nothing was changed");
        status = CLI_USAGE;
    }
    return status;
}

/* ---- After ---- */

static int print_json(const struct idem_sqlite_restored *r)
{
    struct cli_json json;
    int status;

    cli_json_init(&json);
    cli_json_count(&json, "unknown", r->unknown);
    cli_json_count(&json, "cut_off", r->cut_off);
    cli_json_count(&json, "corrupt", r->corrupt);
    cli_json_ms(&json, "known_ms", r->known_ms);
    cli_json_ms(&json, "marked_ms", r->marked_ms);
    cli_json_count(&json, "fence", r->fence);
    cli_json_count(&json, "times", r->times);
    cli_json_hex(&json, "id", idem_bytes(r->id, sizeof(r->id)));
    status = cli_json_print(&json);
    cli_json_finish(&json);
    return status;
}

static void print_text(const struct idem_sqlite_restored *r, bool is_new)
{
    char count[64];
    char known[32];

    plural(count, sizeof(count), r->unknown, "attempt in progress is",
           "attempts in progress are");
    (void)printf("%s unknown now%s\n", count,
                 r->unknown > 0 ? " (idem list --status unknown)" : "");
    if (r->cut_off > 0) {
        plural(count, sizeof(count), r->cut_off, "record", "records");
        (void)printf("%s can no longer be ended by their owners\n", count);
    }
    (void)printf("every fence from now on is above %llu\n",
                 (unsigned long long)r->fence);
    if (is_new) {
        (void)puts("the earlier records are gone: a request for one of them "
                   "runs it again");
        return;
    }
    cli_time_text(r->known_ms, known);
    (void)printf("records made after %s are gone: a request for one of them "
                 "runs it again\n",
                 known);
}

static void report(void *ctx, uint64_t records)
{
    (void)ctx;
    cli_progress("looked at", records, /* all= */ 0);
}

static int mark(const char *path, bool may_lose, bool json)
{
    struct idem_sqlite_restored restored = IDEM_SQLITE_RESTORED_INIT;
    struct idem_error error = {0};
    int status = 0;

    error.code = may_lose
                     ? idem_sqlite_accept_loss(path, report, /* ctx= */ NULL,
                                               &restored, &error)
                     : idem_sqlite_mark_restored(path, report, /* ctx= */ NULL,
                                                 &restored, &error);
    cli_progress_end();
    if (error.code == IDEM_ENOTFOUND) {
        cli_say("%s", error.text);
        return CLI_CONFIG;
    }
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    if (json) {
        status = print_json(&restored);
    } else {
        print_text(&restored, /* is_new= */ restored.known_ms == 0);
    }
    if (restored.corrupt > 0) {
        char count[64];

        plural(count, sizeof(count), restored.corrupt, "record", "records");
        cli_say("%s cannot be trusted; left as it was", count);
        status = status == 0 ? CLI_CORRUPT : status;
    }
    return status;
}

static int restore(const struct cli_command *command, const char *store_url,
                   bool may_lose, bool yes, bool json)
{
    const char *scheme = "sqlite:";
    char *url;
    int status = cli_store_url(store_url, /* make= */ may_lose, &url);

    if (status != 0) {
        return status;
    }
    if (strncmp(url, scheme, strlen(scheme)) != 0) {
        cli_say("only the file of an sqlite: store can be put back");
        status = CLI_USAGE;
    } else if (!yes) {
        status = may_lose ? ask_about_loss(command) : ask(command, url);
    }
    if (status == 0) {
        status = mark(url + strlen(scheme), may_lose, json);
    }
    free(url);
    return status;
}

int cli_mark_restored(const struct cli_command *command, const char *store_url,
                      bool yes, bool json)
{
    return restore(command, store_url, /* may_lose= */ false, yes, json);
}

int cli_accept_loss(const struct cli_command *command, const char *store_url,
                    bool yes, bool json)
{
    return restore(command, store_url, /* may_lose= */ true, yes, json);
}
