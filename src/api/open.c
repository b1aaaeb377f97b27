/* Opening a store by its URL, and closing it. */
#include "contract/kind.h"
#include "queue/queue.h"

int idem_open(const char *url, const struct idem_open_options *options,
              struct idem_store **ret_store, struct idem_error *ret_error)
{
    const struct idem_store_kind *kind;
    const char *place;
    int rc = idem__kind_find(url, &kind, &place, ret_error);

    return rc != 0 ? rc : kind->open(place, options, ret_store, ret_error);
}

void idem_close(struct idem_store *store)
{
    if (store != NULL) {
        store->ops->close(store);
    }
}
