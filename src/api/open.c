/* Opening a store by its URL, and closing it. */
#include "core/error.h"
#include "queue/queue.h"

#include <idem/dynamodb.h>
#include <idem/memory.h>
#include <idem/sqlite.h>
#include <unistd.h>

typedef int open_fn(const char *rest, const struct idem_open_options *options,
                    struct idem_store **ret_store,
                    struct idem_error *ret_error);

static int open_memory(const char *rest,
                       const struct idem_open_options *options,
                       struct idem_store **ret_store,
                       struct idem_error *ret_error)
{
    if (rest[0] != '\0') {
        return idem__error(ret_error, IDEM_EINVALID,
                           "store \"memory:\" takes no path");
    }
    return idem_memory_open(options, ret_store, ret_error);
}

static const struct {
    const char *scheme;
    open_fn *open;
} schemes[] = {
    {"sqlite:", idem_sqlite_open},
    {"dynamodb:", idem_dynamodb_open},
    {"memory:", open_memory},
};

int idem_open(const char *url, const struct idem_open_options *options,
              struct idem_store **ret_store, struct idem_error *ret_error)
{
    size_t i;

    if (url == NULL) {
        return idem__error(ret_error, IDEM_EINVALID, "no store given");
    }
    for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t len = strlen(schemes[i].scheme);

        if (strncmp(url, schemes[i].scheme, len) == 0) {
            return schemes[i].open(url + len, options, ret_store, ret_error);
        }
    }
    return idem__error(ret_error, IDEM_EINVALID,
                       "unknown kind of store \"%.100s\": use sqlite:PATH, "
                       "dynamodb://TABLE or memory:",
                       url);
}

void idem_close(struct idem_store *store)
{
    if (store != NULL) {
        store->ops->close(store);
    }
}
