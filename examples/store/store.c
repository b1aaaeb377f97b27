/* A store of idem in a key-value file, on the public headers alone.
 *
 * An op is answered within submit(). If it may write it is one transaction, and one
 * flush:
 *
 *     writer's lock | read, decide, write | commit: flush | answer
 *
 * The rows, by their keys:
 *
 *     H id               lengths of scope and key (2 + 2), scope, key, head
 *     L window           what was counted in a window of a rate limit
 *     L window request   what a request was answered
 *     i id, r id         input, result
 *     m                  the clock, and the fence floor
 */
#include "store.h"

#include "kv.h"

#include <idem/store_parts.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LENGTHS = 4,
    KEY_MAX = 1 + 2 * IDEM_ID_LEN,
    SLICE_MAX = 1000, /* Rows that a slice of a purge looks at. */
};

struct meta {
    struct idem_anchor anchor;
    int64_t last_ms; /* The newest time that was saved. */
    uint64_t fence_floor;
};

struct window {
    uint64_t used;
    uint64_t refusals;
    int64_t expires_ms;
};

struct store {
    struct idem_store base;
    struct kv *kv;
    char url[IDEM_STORE_URL_MAX + 1];
    pthread_mutex_t mutex; /* Over counters. */
    struct idem_counters counters;
    uint8_t row[LENGTHS + IDEM_SCOPE_MAX + IDEM_KEY_MAX + IDEM_HEAD_MAX];
};

/* A transaction about an op. */
struct turn {
    struct store *store;
    struct kv_txn txn;
    struct idem_error *error; /* The op's. */
    struct meta meta;
    bool moved; /* meta.anchor was, and is to be saved. */
    struct idem_now now;
};

/* The key of a row, in @buf. */
static struct idem_slice name(uint8_t buf[KEY_MAX], char kind,
                              const uint8_t *id)
{
    buf[0] = (uint8_t)kind;
    memcpy(buf + 1, id, IDEM_ID_LEN);
    return idem_bytes(buf, 1 + IDEM_ID_LEN);
}

static int put(struct turn *t, char kind, const uint8_t *id,
               struct idem_slice value)
{
    uint8_t buf[KEY_MAX];

    return kv_put(&t->txn, name(buf, kind, id), value, t->error);
}

static bool is(struct idem_slice key, char kind)
{
    return *(const char *)key.base == kind;
}

/* ---- Records ---- */

/* Nothing of a row is trusted but what was looked at. */
static int decode(const uint8_t *id, struct idem_slice row,
                  struct idem_record *ret_record, struct idem_error *error)
{
    const uint8_t *bytes = row.base;
    size_t scope = row.len < LENGTHS ? 0 : (size_t)bytes[0] << 8 | bytes[1];
    size_t key = row.len < LENGTHS ? 0 : (size_t)bytes[2] << 8 | bytes[3];
    size_t head = LENGTHS + scope + key;
    int rc = IDEM_ECORRUPT;

    memset(ret_record, 0, sizeof(*ret_record));
    if (row.len >= head) {
        rc = idem_record_decode(id, idem_bytes(bytes + head, row.len - head),
                                ret_record, error);
        ret_record->scope = idem_bytes(bytes + LENGTHS, scope);
        ret_record->key = idem_bytes(bytes + LENGTHS + scope, key);
    } else if (error != NULL) {
        error->code = rc;
        (void)snprintf(error->text, sizeof(error->text),
                       "the row of the record is cut short");
    }
    memcpy(ret_record->id, id, IDEM_ID_LEN);
    return rc;
}

/* load of struct idem_table. */
static int load(void *ctx, const uint8_t *id, bool with_bodies,
                struct idem_record *ret_record, struct idem_error *ret_error)
{
    struct turn *t = ctx;
    struct idem_slice *result = &ret_record->result.bytes;
    struct idem_slice row;
    uint8_t buf[KEY_MAX];
    int rc = kv_get(&t->txn, name(buf, 'H', id), &row, ret_error);

    if (rc != 1) {
        return rc;
    }
    rc = decode(id, row, ret_record, ret_error);
    if (rc != 0 || !with_bodies) {
        return rc != 0 ? rc : 1;
    }
    if (kv_get(&t->txn, name(buf, 'r', id), result, ret_error) < 0 ||
        kv_get(&t->txn, name(buf, 'i', id), &ret_record->input, ret_error) <
            0) {
        return ret_error->code;
    }
    rc = idem_verb_check_bodies(ret_record, ret_error);
    return rc != 0 ? rc : 1;
}

/* save of struct idem_table. */
static int save(void *ctx, const struct idem_decision *decision,
                struct idem_error *ret_error)
{
    struct turn *t = ctx;
    const struct idem_record *next = &decision->next;
    size_t head = LENGTHS + next->scope.len + next->key.len;
    uint8_t *row = t->store->row; /* The writer's, and there is one. */
    size_t len = 0;
    int rc = idem_record_encode(next, row + head, IDEM_HEAD_MAX, &len);

    if (rc != 0) {
        ret_error->code = rc;
        (void)snprintf(ret_error->text, sizeof(ret_error->text), "%s",
                       idem_error_text(rc));
        return rc;
    }
    row[0] = (uint8_t)(next->scope.len >> 8);
    row[1] = (uint8_t)next->scope.len;
    row[2] = (uint8_t)(next->key.len >> 8);
    row[3] = (uint8_t)next->key.len;
    if (next->scope.len > 0) {
        memcpy(row + LENGTHS, next->scope.base, next->scope.len);
    }
    memcpy(row + LENGTHS + next->scope.len, next->key.base, next->key.len);
    rc = put(t, 'H', next->id, idem_bytes(row, head + len));
    if (rc == 0 && decision->set_result) {
        rc = put(t, 'r', next->id, next->result.bytes);
    }
    if (rc == 0 && decision->set_input) {
        rc = put(t, 'i', next->id, next->input);
    }
    return rc;
}

/* ---- Lists and purges: where they are is a key in the op's cursor ---- */

static int next_row(struct turn *t, uint64_t *cursor,
                    struct idem_slice *ret_key, struct idem_slice *ret_row)
{
    struct idem_slice after =
        cursor[0] == 0 ? idem_str("H") : idem_bytes(&cursor[1], cursor[0]);

    return kv_next(&t->txn, after, ret_key, ret_row, t->error);
}

static void remember(uint64_t *cursor, struct idem_slice key)
{
    cursor[0] = key.len;
    memcpy(&cursor[1], key.base, key.len);
}

static int list(struct turn *t, struct idem_op *op)
{
    struct idem_slice key;
    struct idem_slice row;
    uint64_t n;
    int rc = 1;

    op->u.list.now_ms = t->now.store_ms;
    for (n = 0; n < op->u.list.limit && !op->u.list.stopped; n++) {
        struct idem_record record;
        int code;

        rc = next_row(t, op->u.list.cursor, &key, &row);
        if (rc != 1 || !is(key, 'H')) {
            op->u.list.done = rc >= 0;
            return rc;
        }
        code = decode((const uint8_t *)key.base + 1, row, &record, NULL);
        remember(op->u.list.cursor, key);
        (void)idem_verb_list_row(op, code, &record, &t->now);
    }
    op->u.list.done = op->u.list.stopped;
    return rc;
}

static int purge_record(struct turn *t, struct idem_op *op, const uint8_t *id,
                        struct idem_slice row)
{
    static const struct idem_slice none = {NULL, 0};
    struct idem_record record;
    int rc;

    if (decode(id, row, &record, NULL) != 0 ||
        !idem_decide_expired(&record, &t->now)) {
        return 0;
    }
    if (record.fence > t->meta.fence_floor) {
        t->meta.fence_floor = record.fence;
    }
    rc = put(t, 'H', id, none);
    rc = rc != 0 ? rc : put(t, 'r', id, none);
    rc = rc != 0 ? rc : put(t, 'i', id, none);
    op->u.purge.purged++;
    op->changed = true;
    return rc;
}

/* A window goes before its requests, and a slice may end between them. */
static int purge_limit(struct turn *t, struct idem_op *op,
                       struct idem_slice key)
{
    struct window window;
    struct idem_slice row;
    int rc =
        kv_get(&t->txn, idem_bytes(key.base, 1 + IDEM_ID_LEN), &row, t->error);

    if (rc == 1 && row.len == sizeof(window)) {
        memcpy(&window, row.base, sizeof(window));
        if (!idem_limit_expired(window.expires_ms, &t->now)) {
            return 0;
        }
    }
    op->changed = true;
    return rc < 0 ? rc : kv_put(&t->txn, key, idem_bytes(NULL, 0), t->error);
}

static int purge(struct turn *t, struct idem_op *op)
{
    struct idem_slice key;
    struct idem_slice row;
    int rc = 0;
    int n;

    for (n = 0;
         rc == 0 && n < SLICE_MAX && op->u.purge.purged < op->u.purge.max;
         n++) {
        rc = next_row(t, op->u.purge.cursor, &key, &row);
        if (rc != 1 || (!is(key, 'H') && !is(key, 'L'))) {
            op->u.purge.done = rc >= 0;
            return rc;
        }
        remember(op->u.purge.cursor, key);
        rc = is(key, 'H')
                 ? purge_record(t, op, (const uint8_t *)key.base + 1, row)
                 : purge_limit(t, op, key);
    }
    return rc;
}

/* ---- Rate limits ---- */

static int limit(struct turn *t, struct idem_op *op)
{
    struct idem_limit_state found = {.has_window = false};
    struct idem_limit_decision decision;
    struct window window = {0, 0, 0};
    struct idem_slice row;
    struct idem_slice key;
    uint8_t buf[KEY_MAX];

    key = name(buf, 'L', op->u.limit.window);
    if (kv_get(&t->txn, key, &row, t->error) == 1 &&
        row.len == sizeof(window)) {
        memcpy(&window, row.base, sizeof(window));
        found.has_window = true;
        found.used = window.used;
        found.refusals = window.refusals;
    }
    memcpy(buf + key.len, op->u.limit.request, IDEM_ID_LEN);
    if (kv_get(&t->txn, idem_bytes(buf, KEY_MAX), &row, t->error) == 1 &&
        row.len == sizeof(found.entry)) {
        memcpy(&found.entry, row.base, sizeof(found.entry));
        found.has_entry = true;
    }
    if (op->error.code != 0 ||
        !idem_limit_settle(op, &found, &t->now, &decision) ||
        !decision.remember) {
        return op->error.code;
    }
    op->changed = true;
    window.used = decision.used;
    window.refusals = decision.refusals;
    if (decision.expires_ms > window.expires_ms) {
        window.expires_ms = decision.expires_ms;
    }
    if (kv_put(&t->txn, key, idem_bytes(&window, sizeof(window)), t->error) !=
        0) {
        return op->error.code;
    }
    return kv_put(&t->txn, idem_bytes(buf, KEY_MAX),
                  idem_bytes(&decision.entry, sizeof(decision.entry)),
                  t->error);
}

/* ---- One op ---- */

static int begin(struct turn *t, bool write)
{
    const struct idem_host *host = &t->store->base.options.host;
    struct idem_clock_reading reading;
    struct idem_slice row;
    int rc = kv_begin(t->store->kv, write, &t->txn, t->error);

    if (rc == 0 && kv_get(&t->txn, idem_str("m"), &row, t->error) == 1) {
        memcpy(&t->meta, row.base,
               row.len < sizeof(t->meta) ? row.len : sizeof(t->meta));
    }
    if (t->error->code == 0 && host->clock(host->ctx, &reading) != 0) {
        t->error->code = IDEM_EUNAVAILABLE;
        (void)strcpy(t->error->text, "the clock does not answer");
    }
    if (t->error->code == 0) {
        t->moved = idem_anchor_now(&t->meta.anchor, &reading, t->meta.last_ms,
                                   &t->now);
        t->now.fence_floor = t->meta.fence_floor;
    }
    return t->error->code;
}

/* From here on the change is on the disk; or the answer says that it is not, or
 * that nobody knows, with the fence of the claim that there may be. */
static void commit(struct turn *t, struct idem_op *op)
{
    int64_t sure_ms = t->now.store_ms - t->now.doubt_ms;
    struct idem_slice row = idem_bytes(&t->meta, sizeof(t->meta));
    int rc;

    t->meta.last_ms = sure_ms > t->meta.last_ms ? sure_ms : t->meta.last_ms;
    rc = kv_put(&t->txn, idem_str("m"), row, t->error);
    rc = rc != 0 ? rc : kv_commit(&t->txn, t->error);
    if (rc != 0) {
        op->changed = false;
    }
    if (rc == IDEM_EUNKNOWN && op->verb == IDEM_OP_BEGIN && op->has_record) {
        op->fence = op->record->fence;
    }
}

/* A replay, a look and a list wait for no writer and flush nothing. True: @op was
 * answered so. */
static bool look(struct store *store, struct idem_op *op)
{
    bool may_write = (store->base.options.flags & IDEM_OPEN_READONLY) == 0;
    struct turn t = {.store = store, .error = &op->error};
    struct idem_table table = {load, save, &t};
    bool answered = true;

    if (begin(&t, /* write= */ false) == 0) {
        if (t.moved && may_write) {
            answered = false; /* The time is to be saved first. */
        } else if (op->verb == IDEM_OP_LIST) {
            (void)list(&t, op);
        } else if (!idem_table_peek(&table, op, &t.now)) {
            answered = !may_write;
            if (answered) {
                (void)idem_op_fail(op, IDEM_EDENIED,
                                   "the store was opened read-only");
            }
        }
    }
    kv_end(&t.txn);
    return answered;
}

static void change(struct store *store, struct idem_op *op)
{
    struct turn t = {.store = store, .error = &op->error};
    struct idem_table table = {load, save, &t};

    if (begin(&t, /* write= */ true) == 0) {
        if (op->verb == IDEM_OP_LIST) {
            (void)list(&t, op);
        } else if (op->verb == IDEM_OP_PURGE) {
            (void)purge(&t, op);
        } else if (op->verb == IDEM_OP_LIMIT) {
            (void)limit(&t, op);
        } else {
            (void)idem_table_run(&table, op, &t.now);
        }
        if (op->error.code == 0 && (op->changed || t.moved)) {
            commit(&t, op);
        }
    }
    kv_end(&t.txn);
}

/* ---- The door ---- */

static int store_submit(struct idem_store *base, struct idem_op *op)
{
    struct store *store = (struct store *)base;

    idem_op_run(op);
    op->changed = false;
    if (op->verb != IDEM_OP_COUNT && !look(store, op)) {
        change(store, op);
    }
    (void)pthread_mutex_lock(&store->mutex);
    idem_counters_add(&store->counters, op);
    if (op->verb == IDEM_OP_COUNT) {
        op->u.counters = store->counters;
    }
    (void)pthread_mutex_unlock(&store->mutex);
    if (op->changed) {
        idem_store_changed(base, op->id);
    }
    idem_op_answer(op);
    return 0;
}

/* Nothing is ever pending: an op is answered before submit() returns. */
static enum idem_cancel store_cancel(struct idem_store *base,
                                     struct idem_op *op)
{
    (void)base;
    return idem_op_detach(op);
}

static void store_drive(struct idem_store *base, struct idem_queue *queue,
                        int64_t deadline_ms)
{
    (void)base;
    idem_queue_sleep(queue, deadline_ms);
}

static void store_close(struct idem_store *base)
{
    struct store *store = (struct store *)base;

    if (store->kv != NULL) {
        kv_close(store->kv);
    }
    idem_store_finish(base);
    (void)pthread_mutex_destroy(&store->mutex);
    free(store);
}

static const struct idem_store_ops store_ops = {
    .abi = IDEM_STORE_ABI,
    .size = sizeof(struct idem_store_ops),
    .name = "kv",
    .submit = store_submit,
    .cancel = store_cancel,
    .drive = store_drive,
    .close = store_close,
};

int kv_store_open(const char *path, const struct idem_open_options *options,
                  struct idem_store **ret_store, struct idem_error *ret_error)
{
    static const struct idem_counters none = IDEM_COUNTERS_INIT;
    struct store *store = calloc(1, sizeof(*store));
    bool create =
        options == NULL ||
        (options->flags & (IDEM_OPEN_READONLY | IDEM_OPEN_NO_CREATE)) == 0;
    int rc;

    if (store == NULL) {
        return IDEM_ENOMEM;
    }
    rc = idem_store_init(&store->base, &store_ops, options, ret_error);
    if (rc != 0) {
        free(store);
        return rc;
    }
    (void)pthread_mutex_init(&store->mutex, NULL);
    store->counters = none;
    (void)snprintf(store->url, sizeof(store->url), "kv:%s", path);
    store->base.url = store->url;
    rc = kv_open(path, create, &store->kv, ret_error);
    if (rc != 0) {
        store_close(&store->base);
        return rc;
    }
    *ret_store = &store->base;
    return 0;
}
