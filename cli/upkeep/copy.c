/* idem store copy: the records of one store into another. */
#include "options/command.h"
#include "options/usage.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "upkeep/copying.h"
#include "upkeep/store.h"

const char *const cli_copy_opens[] = {"leave", "unknown", NULL};

/* ---- What came of it ---- */

static int print_json(const struct cli_copied *c)
{
    struct cli_json json;
    int status;

    cli_json_init(&json);
    cli_json_count(&json, "copied", c->copied);
    cli_json_count(&json, "unknown", c->unknown);
    cli_json_count(&json, "same", c->same);
    cli_json_count(&json, "newer", c->newer);
    cli_json_count(&json, "differ", c->differ);
    cli_json_count(&json, "in_progress", c->in_progress);
    cli_json_count(&json, "gone", c->gone);
    cli_json_count(&json, "corrupt", c->corrupt);
    cli_json_count(&json, "refused", c->refused);
    status = cli_json_print(&json);
    cli_json_finish(&json);
    return status;
}

static void print_text(const struct cli_copied *c)
{
    (void)printf("copied %llu", (unsigned long long)c->copied);
    if (c->unknown > 0) {
        (void)printf(", of which %llu are unknown now",
                     (unsigned long long)c->unknown);
    }
    (void)printf("; there already %llu, newer there %llu, other there %llu; "
                 "left out: in progress %llu, past their retention %llu, "
                 "not to be trusted %llu\n",
                 (unsigned long long)c->same, (unsigned long long)c->newer,
                 (unsigned long long)c->differ,
                 (unsigned long long)c->in_progress,
                 (unsigned long long)c->gone,
                 (unsigned long long)(c->corrupt + c->refused));
}

static int conclude(const struct cli_copied *c, bool json, int status)
{
    int printed = 0;

    if (json) {
        printed = print_json(c);
    } else {
        print_text(c);
    }
    if (status == 0 && c->in_progress > 0) {
        cli_say("do not use the target yet: wait for what is in progress "
                "(idem list --status in_progress, idem reconcile) and copy "
                "again, or say --open unknown");
    }
    if (status != 0) {
        return status;
    }
    return c->corrupt + c->refused > 0 ? CLI_CORRUPT
           : c->in_progress > 0        ? CLI_BUSY
           : c->differ > 0             ? CLI_UNKNOWN
                                       : printed;
}

/* ---- The command ---- */

static int check_urls(const struct cli_command *command,
                      const struct idem_store *from,
                      const struct idem_store *to)
{
    if (idem_store_url(from) == NULL || idem_store_url(to) == NULL) {
        return cli_usage(command, "a store in memory cannot be copied");
    }
    if (strcmp(idem_store_url(from), idem_store_url(to)) == 0) {
        return cli_usage(command, "--from and --to are the same store");
    }
    return 0;
}

static int check_args(const struct cli_command *command, const char *from_url,
                      const char *to_url,
                      const struct cli_copy_options *options)
{
    if (from_url == NULL || to_url == NULL) {
        return cli_usage(command, "copy needs both --from URL and --to URL");
    }
    if (options->scope.len > IDEM_SCOPE_MAX) {
        return cli_usage(command, "--to-scope: a scope has at most 255 bytes");
    }
    return 0;
}

/* A file is not opened, for it may not be there; only a table says whether its URL is
 * right. */
static int check_target(const struct cli_command *command,
                        const struct idem_store *from, const char *from_url,
                        const char *to_url)
{
    struct idem_store *to = NULL;
    int status;

    if (strcmp(from_url, to_url) == 0) {
        return cli_usage(command, "--from and --to are the same store");
    }
    if (strncmp(to_url, "sqlite:", 7) == 0) {
        return 0;
    }
    status = cli_open_store(to_url, /* flags= */ 0, &to);
    if (status == 0) {
        status = check_urls(command, from, to);
    }
    idem_close(to);
    return status;
}

int cli_copy_dry(const struct cli_command *command, const char *from_url,
                 const char *to_url, const struct cli_copy_options *options,
                 bool json)
{
    struct idem_store *from = NULL;
    int status = check_args(command, from_url, to_url, options);

    if (status == 0) {
        status = cli_open_store(from_url, IDEM_OPEN_READONLY, &from);
    }
    if (status == 0) {
        status = check_target(command, from, from_url, to_url);
    }
    if (status == 0) {
        status = cli_copy_dry_run(from, to_url, options, json);
    }
    idem_close(from);
    return status;
}

int cli_copy(const struct cli_command *command, const char *from_url,
             const char *to_url, const struct cli_copy_options *options,
             bool json)
{
    struct idem_store *from = NULL;
    struct idem_store *to = NULL;
    struct cli_copied copied;
    int status = check_args(command, from_url, to_url, options);

    if (status == 0) {
        status = cli_open_store(from_url, IDEM_OPEN_READONLY, &from);
    }
    if (status == 0) {
        status = cli_open_store(to_url, /* flags= */ 0, &to);
    }
    if (status == 0) {
        status = check_urls(command, from, to);
    }
    if (status == 0) {
        status = cli_store_ask(to);
    }
    if (status == 0) {
        status = cli_copying(from, to, options, &copied);
        status = conclude(&copied, json, status);
    }
    idem_close(to);
    idem_close(from);
    return status;
}
