/* idem store create: a table of DynamoDB, or a file. */
#include "create.h"

#include "cli.h"
#include "json.h"

#include <idem/dynamodb.h>
#include <stdlib.h>

static int print_done(const char *url, bool created, bool json)
{
    struct cli_json object;
    int status;

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

/* A file is made by opening it. */
static int create_file(const char *url, bool *ret_created,
                       struct idem_error *error)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_store *store;
    int rc;

    options.flags = IDEM_OPEN_READONLY;
    rc = idem_open(url, &options, &store, error);
    *ret_created = rc == IDEM_ENOTFOUND;
    if (rc == IDEM_ENOTFOUND) {
        rc = idem_open(url, NULL, &store, error);
    }
    if (rc == 0) {
        idem_close(store);
    }
    return rc;
}

int cli_create(const char *store_url, bool json)
{
    const char *scheme = "dynamodb:";
    struct idem_error error = {0};
    bool created;
    char *url;
    int status = cli_store_url(store_url, /* make= */ true, &url);

    if (status != 0) {
        return status;
    }
    if (strncmp(url, scheme, strlen(scheme)) == 0) {
        error.code =
            idem_dynamodb_create(url + strlen(scheme), &created, &error);
    } else {
        error.code = create_file(url, &created, &error);
    }
    status = error.code != 0 ? cli_fail_with(&error)
                             : print_done(url, created, json);
    free(url);
    return status;
}
