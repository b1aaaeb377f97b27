/* Checks whether the table has parts of bodies that belong to no record. Reads it in pages,
 * and the caller can stop the check after each. */
#include "aws/dynamodb/table/table.h"
#include "aws/dynamodb/task/walk.h"
#include "core/error.h"
#include "queue/op.h"

#include <idem/queue.h>
#include <stdio.h>

struct walk {
    const struct idem__table_check *table;
    struct idem__dynamodb_store *store;
    const struct idem_check_options *options;
    struct idem_op *op;
    uint64_t pages;
    uint64_t items; /* About how many are in the table. */
    bool stopped;
};

/* ---- The pages ---- */

/* Reads one page, as a purge does. If it is not answered, the queue keeps the op, and *@op
 * is NULL. */
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

static bool go_on(struct walk *walk)
{
    const struct idem_check_options *options = walk->options;
    uint64_t done = walk->pages * IDEM__HEADS_GET;
    uint64_t all = walk->items > done ? walk->items : done;

    if (options->progress != NULL &&
        options->progress(options->ctx, done, walk->items == 0 ? 0 : all) !=
            0) {
        walk->stopped = true;
        return false;
    }
    return true;
}

static int look_at_all(struct walk *walk, struct idem_queue *queue,
                       struct idem_error *error)
{
    int rc = 0;

    while (rc == 0 && !walk->op->u.purge.done && go_on(walk)) {
        rc = look(&walk->store->remote.base, queue, &walk->op, error);
        walk->pages += rc == 0;
    }
    return rc;
}

static void tell(const struct idem__table_check *table,
                 const struct idem__orphans *orphans)
{
    if (orphans->found > 0) {
        idem__found(
            &table->to, IDEM_GRADE_WARN, "bodies", table->purge,
            "%llu item%s of large results and inputs ha%s no record, the first "
            "is %s: nothing reads them, and they cost storage",
            (unsigned long long)orphans->found, orphans->found == 1 ? "" : "s",
            orphans->found == 1 ? "s" : "ve", orphans->first);
    }
}

static void tell_all(const struct walk *walk)
{
    const struct idem__table_check *table = walk->table;

    tell(table, &walk->store->orphans);
    if (walk->stopped) {
        idem__found(
            &table->to, IDEM_GRADE_SKIP, "bodies", /* mend= */ NULL,
            "about %llu items of the table were read; the rest was not checked "
            "for large results and inputs without a record",
            (unsigned long long)walk->pages * IDEM__HEADS_GET);
    } else if (walk->store->orphans.found == 0) {
        idem__found(&table->to, IDEM_GRADE_OK, "bodies", /* mend= */ NULL,
                    "every large result and input in the table has its "
                    "record");
    }
}

static void walk_table(struct walk *walk)
{
    struct idem_queue *queue = NULL;
    struct idem_error error;
    int rc;

    walk->op->u.purge.max = UINT64_MAX;
    walk->op->u.purge.from[IDEM__PURGE_LOOKS] = 1;
    rc = idem_queue_create(&walk->store->remote.base, &queue, &error);
    if (rc != 0) {
        goto done;
    }
    rc = look_at_all(walk, queue, &error);
    if (rc != 0) {
        goto done;
    }
    tell_all(walk);

done:
    /* IDEM_EDENIED: the check of the permission to scan has reported that already. */
    if (rc != 0 && rc != IDEM_EDENIED) {
        idem__found(&walk->table->to, IDEM_GRADE_WARN, "bodies",
                    /* mend= */ NULL, "not checked: %.200s", error.text);
    }
    idem_queue_destroy(queue);
}

static void tell_quick(const struct idem__table_check *table, const char *place)
{
    char mend[IDEM_STORE_URL_MAX + 64];

    (void)snprintf(mend, sizeof(mend), "idem store check --store 'dynamodb:%s'",
                   place);
    idem__found(
        &table->to, IDEM_GRADE_SKIP, "bodies", mend,
        "the table was not read: large results and inputs were not checked for "
        "their records");
}

int idem__check_bodies(const struct idem__table_check *table,
                       struct idem__dynamodb_store *store,
                       const struct idem_check_options *options,
                       const char *place, uint64_t items,
                       struct idem_error *ret_error)
{
    struct walk walk = {.table = table,
                        .store = store,
                        .options = options,
                        .items = items};

    if (options->quick) {
        tell_quick(table, place);
        return 0;
    }
    walk.op = idem__op_create(IDEM_OP_PURGE, 0);
    if (walk.op == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    walk_table(&walk);
    idem_op_destroy(walk.op);
    return 0;
}
