/* The kind by which idem_open() finds the store: "kv:FILE". As idem_kv_kind in
 * libidem-kv.so.0 it is found by programs that know nothing of it. */
#include "store.h"

#include <idem/operator.h>
#include <stdio.h>

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

/* ---- idem store check, and idem doctor ---- */

struct counted {
    unsigned long records;
    unsigned long bad;
};

static int count(void *ctx, int code, const struct idem_record *record)
{
    struct counted *counted = ctx;

    (void)record;
    counted->records++;
    counted->bad += code != 0;
    return 0;
}

/* Reads each record, without result and input. */
static int check(const char *place, const struct idem_check_options *options,
                 idem_finding_fn *each, void *ctx, struct idem_error *ret_error)
{
    struct idem_open_options reading = IDEM_OPEN_OPTIONS_INIT;
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_finding finding = {.about = "records"};
    struct counted counted = {0, 0};
    struct idem_store *store;
    char text[128];
    int rc;

    (void)options; /* There is no quicker way, and nothing to go on with. */
    reading.flags = IDEM_OPEN_READONLY;
    rc = kv_store_open(place, &reading, &store, ret_error);
    if (rc != 0) {
        return rc;
    }
    filter.any_scope = true;
    rc = idem_list(store, &filter, count, &counted, NULL, ret_error);
    if (rc == 0) {
        (void)snprintf(text, sizeof(text), "%lu of %lu cannot be read",
                       counted.bad, counted.records);
        finding.grade = counted.bad > 0 ? IDEM_GRADE_BAD : IDEM_GRADE_OK;
        finding.code = counted.bad > 0 ? IDEM_ECORRUPT : 0;
        finding.mend = counted.bad > 0 ? "idem list" : NULL;
        finding.text = text;
        each(ctx, &finding);
    }
    idem_close(store);
    return rc;
}

const struct idem_store_kind idem_kv_kind = {
    .abi = IDEM_STORE_ABI,
    .size = sizeof(struct idem_store_kind),
    .scheme = "kv",
    .example = "kv:FILE",
    .open = kv_store_open,
    .create = create,
    .check = check,
};
