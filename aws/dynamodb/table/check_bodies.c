/* Are there parts of bodies in the table that belong to no record?
 *
 * The table is read in pages, and the check can be stopped after each. The state that
 * is kept then:
 *
 *        0  4  "idd1", checksum of all after it (4), checksum of region and table (4)
 *       12  .  pages read (8), parts without a record (8), the name of the first
 *              (ORPHAN_NAME_MAX, filled with 0), length of the rest (4)
 *        .  .  the key after which the next page begins */
#include "aws/dynamodb/table/check_bodies.h"
#include "aws/dynamodb/task/walk.h"
#include "base/bytes.h"
#include "base/crc32.h"
#include "base/host.h"
#include "core/error.h"
#include "queue/op.h"

#include <idem/queue.h>
#include <stdio.h>

enum {
    MAGIC = 0x69646431,
    FIRST_AT = 28,
    KEY_LEN_AT = FIRST_AT + sizeof(((struct idem__orphans *)0)->first),
    KEY_AT = KEY_LEN_AT + 4,
    KEY_MAX = (IDEM_CURSOR_LEN - IDEM__CURSOR_NAME) * 8,
    KEEP_EVERY_MS = 5000,
};

struct walk {
    const struct idem__table_check *table;
    struct idem__dynamodb_store *store;
    const struct idem_check_options *options;
    struct idem_op *op;
    uint64_t pages;
    uint64_t items; /* In the table, about. */
    bool stopped;
    int64_t kept_ms;
};

/* ---- The state ---- */

static uint32_t table_sum(const struct walk *walk)
{
    uint32_t sum = idem__crc32(0, idem_str(walk->table->region));

    return idem__crc32(sum, idem_str(walk->table->place->table.name));
}

static void keep(struct walk *walk)
{
    struct idem_slice key = idem__walk_cursor(walk->op->u.purge.cursor);
    const struct idem__orphans *orphans = &walk->store->orphans;
    uint8_t state[KEY_AT + KEY_MAX];
    size_t len = KEY_AT + key.len;

    walk->kept_ms = idem__mono_ms();
    if (walk->options->keep == NULL || key.len > KEY_MAX) {
        return;
    }
    idem__put_u32(state, MAGIC);
    idem__put_u32(state + 8, table_sum(walk));
    idem__put_u64(state + 12, walk->pages);
    idem__put_u64(state + 20, orphans->found);
    memcpy(state + FIRST_AT, orphans->first, sizeof(orphans->first));
    idem__put_u32(state + KEY_LEN_AT, (uint32_t)key.len);
    memcpy(state + KEY_AT, key.base, key.len);
    idem__put_u32(state + 4, idem__crc32(0, idem_bytes(state + 8, len - 8)));
    walk->options->keep(walk->options->ctx, state, len);
}

static int resume(struct walk *walk, struct idem_error *error)
{
    struct idem_slice state = walk->options->state;
    struct idem__orphans *orphans = &walk->store->orphans;
    const uint8_t *from = state.base;

    if (state.len == 0) {
        return 0;
    }
    if (state.len < KEY_AT || state.len > KEY_AT + KEY_MAX ||
        idem__get_u32(from) != MAGIC ||
        idem__get_u32(from + 4) !=
            idem__crc32(0, idem_bytes(from + 8, state.len - 8)) ||
        idem__get_u32(from + KEY_LEN_AT) != state.len - KEY_AT) {
        return idem__error(error, IDEM_EINVALID,
                           "the state of the check is damaged: begin anew");
    }
    if (idem__get_u32(from + 8) != table_sum(walk)) {
        return idem__error(error, IDEM_EINVALID,
                           "the state is of a check of another table: begin "
                           "anew");
    }
    walk->pages = idem__get_u64(from + 12);
    orphans->found = idem__get_u64(from + 20);
    memcpy(orphans->first, from + FIRST_AT, sizeof(orphans->first));
    orphans->first[sizeof(orphans->first) - 1] = '\0';
    walk->op->u.purge.cursor[IDEM__CURSOR_LEN] = state.len - KEY_AT;
    memcpy(walk->op->u.purge.cursor + IDEM__CURSOR_NAME, from + KEY_AT,
           state.len - KEY_AT);
    return 0;
}

/* ---- The pages ---- */

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
    if (idem__mono_ms() - walk->kept_ms >= KEEP_EVERY_MS) {
        keep(walk);
    }
    return true;
}

static int look_at_all(struct walk *walk, struct idem_queue *queue,
                       struct idem_error *error)
{
    int rc = 0;

    walk->kept_ms = idem__mono_ms();
    while (rc == 0 && !walk->op->u.purge.done && go_on(walk)) {
        rc = look(&walk->store->remote.base, queue, &walk->op, error);
        walk->pages += rc == 0;
    }
    if (walk->stopped) {
        keep(walk);
    }
    return rc;
}

static void tell(const struct idem__table_check *table,
                 const struct idem__orphans *orphans)
{
    if (orphans->found > 0) {
        idem__found(&table->to, IDEM_GRADE_WARN, "bodies", table->purge,
                    "%llu item%s of large results and inputs ha%s no record, "
                    "the first is %s: nobody reads them, and they are paid for",
                    (unsigned long long)orphans->found,
                    orphans->found == 1 ? "" : "s",
                    orphans->found == 1 ? "s" : "ve", orphans->first);
    }
}

static void tell_all(const struct walk *walk)
{
    const struct idem__table_check *table = walk->table;

    tell(table, &walk->store->orphans);
    if (walk->stopped) {
        idem__found(&table->to, IDEM_GRADE_SKIP, "bodies", /* mend= */ NULL,
                    "about %llu items of the table were read: whether the "
                    "rest has large results or inputs without a record was "
                    "not looked at",
                    (unsigned long long)walk->pages * IDEM__HEADS_GET);
    } else if (walk->store->orphans.found == 0) {
        idem__found(&table->to, IDEM_GRADE_OK, "bodies", /* mend= */ NULL,
                    "every large result and input in the table has its "
                    "record");
    }
}

static int walk_table(struct walk *walk, struct idem_error *ret_error)
{
    struct idem_queue *queue = NULL;
    struct idem_error error;
    int rc = resume(walk, ret_error);

    if (rc != 0) {
        return rc;
    }
    walk->op->u.purge.max = UINT64_MAX;
    walk->op->u.purge.from[IDEM__PURGE_LOOKS] = 1;
    rc = idem_queue_create(&walk->store->remote.base, &queue, &error);
    if (rc == 0) {
        rc = look_at_all(walk, queue, &error);
    }
    if (rc == 0) {
        tell_all(walk);
    } else if (rc != IDEM_EDENIED) { /* The right to scan was checked before. */
        idem__found(&walk->table->to, IDEM_GRADE_WARN, "bodies",
                    /* mend= */ NULL, "it was not checked: %.200s", error.text);
    }
    idem_queue_destroy(queue);
    return 0;
}

static void tell_quick(const struct idem__table_check *table, const char *place)
{
    char mend[IDEM_STORE_URL_MAX + 64];

    (void)snprintf(mend, sizeof(mend), "idem store check --store 'dynamodb:%s'",
                   place);
    idem__found(&table->to, IDEM_GRADE_SKIP, "bodies", mend,
                "the table was not read: whether large results and inputs all "
                "have their record was not looked at");
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
    int rc;

    if (options->quick) {
        tell_quick(table, place);
        return 0;
    }
    walk.op = idem__op_create(IDEM_OP_PURGE, 0);
    if (walk.op == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = walk_table(&walk, ret_error);
    idem_op_destroy(walk.op);
    return rc;
}
