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
    return cli_json_print(&object);
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

/* ---- idem store mark-restored, and create --force ---- */

int cli_sqlite_url(const char *store_url, bool make, char **ret_url)
{
    int status = cli_store_url(store_url, make, ret_url);

    if (status == 0 &&
        strncmp(*ret_url, CLI_SQLITE_SCHEME, strlen(CLI_SQLITE_SCHEME)) != 0) {
        cli_say("this is for the file of an sqlite: store only");
        free(*ret_url);
        status = CLI_USAGE;
    }
    return status;
}

static int print_json(const struct idem_sqlite_restored *r)
{
    struct cli_json json;

    cli_json_init(&json);
    cli_json_count(&json, "unknown", r->unknown);
    cli_json_count(&json, "cut_off", r->cut_off);
    cli_json_count(&json, "corrupt", r->corrupt);
    cli_json_ms(&json, "known_ms", r->known_ms);
    cli_json_ms(&json, "marked_ms", r->marked_ms);
    cli_json_count(&json, "fence", r->fence);
    cli_json_count(&json, "times", r->times);
    cli_json_hex(&json, "id", idem_bytes(r->id, sizeof(r->id)));
    return cli_json_print(&json);
}

static int print_text(const struct idem_sqlite_restored *r)
{
    char known[32];

    (void)printf("%llu attempt%s in progress %s unknown now%s\n",
                 (unsigned long long)r->unknown, r->unknown == 1 ? "" : "s",
                 r->unknown == 1 ? "is" : "are",
                 r->unknown > 0 ? " (idem list --status unknown)" : "");
    if (r->cut_off > 0) {
        (void)printf("%llu record%s can no longer be ended by %s\n",
                     (unsigned long long)r->cut_off, r->cut_off == 1 ? "" : "s",
                     r->cut_off == 1 ? "its owner" : "their owners");
    }
    (void)printf("every fence from now on is above %llu\n",
                 (unsigned long long)r->fence);
    cli_time_text(r->known_ms, known);
    (void)printf(
        "records made %s%s are gone: a request for one of them runs it again\n",
        r->known_ms == 0 ? "earlier" : "after ", r->known_ms == 0 ? "" : known);
    return 0;
}

static void report(void *ctx, uint64_t records)
{
    (void)ctx;
    cli_progress("records read", records, /* all= */ 0);
}

int cli_mark_restored(const char *store_url, bool may_lose, bool json)
{
    struct idem_sqlite_restored restored = IDEM_SQLITE_RESTORED_INIT;
    struct idem_error error = {0};
    char *url;
    int status = cli_sqlite_url(store_url, /* make= */ may_lose, &url);

    if (status != 0) {
        return status;
    }
    error.code =
        (may_lose ? idem_sqlite_accept_loss
                  : idem_sqlite_mark_restored)(url + strlen(CLI_SQLITE_SCHEME),
                                               report, /* ctx= */ NULL,
                                               &restored, &error);
    cli_progress_end();
    free(url);
    if (error.code != 0) {
        return cli_store_failed(&error);
    }
    status = json ? print_json(&restored) : print_text(&restored);
    if (restored.corrupt > 0) {
        cli_say("%llu record%s cannot be trusted; left as %s",
                (unsigned long long)restored.corrupt,
                restored.corrupt == 1 ? "" : "s",
                restored.corrupt == 1 ? "it was" : "they were");
        status = status == 0 ? CLI_CORRUPT : status;
    }
    return status;
}
