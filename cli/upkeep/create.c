/* idem store create: a table of DynamoDB, tables of PostgreSQL, or a file. */
#include "contract/kind.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/text.h"
#include "upkeep/store.h"

#include <stdlib.h>

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
