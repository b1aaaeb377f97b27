/* Are there parts of bodies in the table that belong to no record? */
#include "base/host.h"
#include "core/error.h"
#include "queue/op.h"
#include "store/dynamodb/check_bodies.h"

enum {
    /* A table may be too large to read for a check. */
    LOOK_MS = 5000,
};

/* Looks at one page, as a purge does. *@op is NULL after this if it was not
 * answered, for it is the queue's then. */
static int look(const struct idem_store *store, struct idem_queue *queue,
                struct idem_op **op, struct idem_error *error)
{
    int rc = idem_queue_submit(queue, *op, error);

    if (rc != 0) {
        return rc;
    }
    *op = idem_queue_reap(queue, store->options.timeout_ms);
    if (*op == NULL) {
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "DynamoDB did not answer in time");
    }
    *error = (*op)->error;
    return error->code;
}

/* Looks at pages until the end or for LOOK_MS. */
static int look_at_all(const struct idem_store *store, struct idem_queue *queue,
                       bool *ret_all, struct idem_error *error)
{
    int64_t until_ms = idem__time_add(idem__mono_ms(), LOOK_MS);
    struct idem_op *op = idem__op_create(IDEM_OP_PURGE, 0);
    int rc = 0;

    if (op == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    op->u.purge.max = UINT64_MAX;
    op->u.purge.from[IDEM__PURGE_LOOKS] = 1;
    while (rc == 0 && !op->u.purge.done && idem__mono_ms() < until_ms) {
        rc = look(store, queue, &op, error);
    }
    *ret_all = rc == 0 && op->u.purge.done;
    idem_op_destroy(op);
    return rc;
}

static void tell(const struct idem__judge *judge,
                 const struct idem__orphans *orphans, bool all)
{
    const char *where = all ? "" : " in the part of it that was read";

    if (orphans->found == 0) {
        idem__found(&judge->to, IDEM_GRADE_OK, "bodies", /* mend= */ NULL,
                    "every large result and input in the table has its "
                    "record%s",
                    where);
        return;
    }
    idem__found(&judge->to, IDEM_GRADE_WARN, "bodies", judge->purge,
                "%llu item%s of large results and inputs ha%s no record%s, the "
                "first is %s: nobody reads them, and they are paid for",
                (unsigned long long)orphans->found,
                orphans->found == 1 ? "" : "s",
                orphans->found == 1 ? "s" : "ve", where, orphans->first);
}

void idem__check_bodies(const struct idem__judge *judge,
                        struct idem__dynamodb_store *store)
{
    struct idem_queue *queue = NULL;
    struct idem_error error;
    bool all = false;
    int rc = idem_queue_create(&store->base, &queue, &error);

    if (rc == 0) {
        rc = look_at_all(&store->base, queue, &all, &error);
    }
    if (rc == 0) {
        tell(judge, &store->orphans, all);
    } else if (rc != IDEM_EDENIED) { /* The right to scan was checked before. */
        idem__found(&judge->to, IDEM_GRADE_WARN, "bodies", /* mend= */ NULL,
                    "it was not checked: %.200s", error.text);
    }
    idem_queue_destroy(queue);
}
