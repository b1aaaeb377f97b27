/* idem completion: the words of a store that a shell offers after a Tab. */
#include "options/command.h"
#include "options/commands.h"
#include "record/record.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <idem/operator.h>
#include <stdlib.h>

#define NEWEST 200 /* More than anybody reads through. */

/* Nobody waits for a Tab: with one scope in a large store all would be read. */
#define LOOK_MAX 20000

/* The line that was printed last, so that a scope with many keys is offered
 * once. */
struct offering {
    bool scopes;
    struct idem_slice begun; /* Words begin with it. */
    uint64_t left;
    char last[4 * IDEM_SCOPE_MAX + 1];
};

static bool begins_with(struct idem_slice text, struct idem_slice begun)
{
    return text.len >= begun.len &&
           (begun.len == 0 || memcmp(text.base, begun.base, begun.len) == 0);
}

static void offer_scope(struct offering *offering, struct idem_slice scope)
{
    char text[sizeof(offering->last)];

    (void)cli_escape(scope, text, sizeof(text));
    if (scope.len > 0 && begins_with(scope, offering->begun) &&
        strcmp(text, offering->last) != 0) {
        (void)puts(text);
        (void)strcpy(offering->last, text);
        offering->left--;
    }
}

/* As it is typed after -k, too: one that has to be escaped is left out. */
static void offer_key(struct offering *offering, struct idem_slice key)
{
    bool marked = key.len >= strlen(CLI_ESCAPED) &&
                  memcmp(key.base, CLI_ESCAPED, strlen(CLI_ESCAPED)) == 0;

    if (cli_is_seen(key) && !marked && begins_with(key, offering->begun)) {
        (void)fwrite(key.base, 1, key.len, stdout);
        (void)putchar('\n');
        offering->left--;
    }
}

static int offer(void *ctx, int code, const struct idem_record *r)
{
    struct offering *offering = ctx;

    if (code != 0 || cli_is_alert(r)) {
        return 0;
    }
    if (offering->scopes) {
        offer_scope(offering, r->scope);
    } else {
        offer_key(offering, r->key);
    }
    return offering->left == 0;
}

/* Only a local store is asked: each request to a table has its price. */
static int offer_from_store(bool scopes, const char *begun)
{
    struct offering offering = {.scopes = scopes,
                                .begun = idem_str(begun),
                                .left = NEWEST};
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_page page = IDEM_PAGE_INIT;
    struct idem_error error = {0};
    struct idem_store *store;
    char *url;
    int status = cli_store_url(/* store_url= */ NULL, /* make= */ false, &url);
    bool is_local;

    if (status != 0) {
        return status;
    }
    is_local = strncmp(url, "sqlite:", strlen("sqlite:")) == 0;
    free(url);
    if (!is_local) {
        return CLI_OK;
    }
    status = cli_open_store(/* store_url= */ NULL, IDEM_OPEN_READONLY, &store);
    if (status != 0) {
        return status;
    }
    filter.newest_first = true;
    page.look_max = LOOK_MAX;
    error.code =
        idem_list_page(store, &filter, offer, &offering, &page, &error);
    idem_close(store);
    return error.code == 0 ? CLI_OK : cli_fail_with(&error);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    bool scopes = argc > 0 && strcmp(argv[0], "scopes") == 0;

    if (argc < 1 || argc > 2 || (!scopes && strcmp(argv[0], "keys") != 0)) {
        return cli_usage(command, "expected: keys or scopes, and how they "
                                  "begin");
    }
    return offer_from_store(scopes, argc == 2 ? argv[1] : "");
}

static struct cli_option options[] = {
    {.name = NULL},
};

static const char *const examples[] = {
    "idem completion keys order-    # the newest that begin with order-",
    "idem completion scopes",
    NULL,
};

static const char *const words[] = {"keys", "scopes", NULL};

const struct cli_command cli_completion = {
    .name = "completion",
    .summary = "list keys or scopes, as a shell completes them",
    .usage = "idem completion keys|scopes [BEGINNING]",
    .examples = examples,
    .options = options,
    .run = run,
    .operands = words,
};
