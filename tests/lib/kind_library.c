/* Libraries with a kind of store, good and bad, for tests/unit/api/kind.c: one for each
 * set of definitions in the meson.build there. */

#include "contract/kind.h"

static int refuse(const char *place, const struct idem_open_options *options,
                  struct idem_store **ret_store, struct idem_error *ret_error)
{
    (void)place;
    (void)options;
    (void)ret_store;
    ret_error->code = IDEM_EDENIED;
    return IDEM_EDENIED;
}

extern const struct idem_store_kind KIND_SYMBOL;
const struct idem_store_kind KIND_SYMBOL = {
    .abi = KIND_ABI,
    .size = sizeof(struct idem_store_kind),
    .scheme = KIND_SCHEME,
    .example = KIND_SCHEME ":",
    .open = refuse,
};
