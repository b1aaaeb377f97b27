/* idem store template, of a store whose kind says itself what makes it. */
#include "contract/kind.h"
#include "store/open.h"
#include "text/error.h"
#include "upkeep/store.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

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
