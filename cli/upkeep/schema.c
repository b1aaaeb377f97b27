/* idem store template, of a store whose kind says itself what makes it. */
#include "store/open.h"
#include "text/error.h"
#include "upkeep/store.h"

#include <idem/kind.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

bool cli_schema(const char *store_url, int *ret_status)
{
    const char *url =
        store_url != NULL ? store_url : secure_getenv("IDEM_STORE");
    const struct idem_store_kind *kind;
    struct idem_error error = {0};
    const char *place;
    char text[16384];

    /* A table of DynamoDB has templates for several tools: cli/dynamodb. */
    if (url == NULL || strncmp(url, "dynamodb:", strlen("dynamodb:")) == 0 ||
        idem_kind_find(url, &kind, &place, &error) != 0 ||
        kind->size < offsetof(struct idem_store_kind, completion) ||
        kind->schema == NULL) {
        return false;
    }
    error.code = kind->schema(place, text, sizeof(text), &error);
    if (error.code == 0) {
        (void)fputs(text, stdout);
    }
    *ret_status = error.code == 0 ? 0 : cli_fail_with(&error);
    return true;
}
