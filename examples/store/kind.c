/* The kind by which idem_open() finds the store: "kv:FILE". As idem_kv_kind in
 * libidem-kv.so.0 it is found by programs that know nothing of it. */
#include "store.h"

/* idem_open() creates the store; this one is for `idem store create`. */
static int create(const char *place, bool *ret_created,
                  struct idem_error *ret_error)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_store *store;
    int rc;

    options.flags = IDEM_OPEN_NO_CREATE;
    rc = kv_store_open(place, &options, &store, ret_error);
    if (ret_created != NULL) {
        *ret_created = rc == IDEM_ENOTFOUND;
    }
    if (rc == IDEM_ENOTFOUND) {
        rc = kv_store_open(place, NULL, &store, ret_error);
    }
    if (rc == 0) {
        idem_close(store);
    }
    return rc;
}

const struct idem_store_kind idem_kv_kind = {
    .abi = IDEM_STORE_ABI,
    .size = sizeof(struct idem_store_kind),
    .scheme = "kv",
    .example = "kv:FILE",
    .open = kv_store_open,
    .create = create,
};
