/* The store in memory: a hash table under one mutex. */
#include "base/heap.h"
#include "contract/parts.h"
#include "core/error.h"
#include "core/move.h"
#include "queue/queue.h"
#include "store/memory/limit.h"
#include "store/shared/tally.h"

#include <assert.h>
#include <idem/memory.h>
#include <idem/queue.h>

/* A record in its stored form: encoded, so that this store exercises the codec like any
 * other. */
struct row {
    struct row *next; /* In its bucket. */
    uint64_t seq;
    uint8_t id[IDEM_ID_LEN];
    uint8_t *bytes; /* Scope, key, head, result, input. */
    size_t scope_len;
    size_t key_len;
    size_t head_len;
    size_t result_len;
    size_t input_len;
};

struct memory_store {
    struct idem_store base;
    pthread_mutex_t mutex;
    struct idem_anchor anchor;
    int64_t last_ms;
    uint64_t fence_floor;
    char mark[IDEM_MARK_MAX];
    uint64_t last_seq;
    struct row **buckets;
    size_t buckets_len; /* A power of two. */
    struct row **rows;  /* All of them, in the order of seq. */
    size_t rows_len;
    size_t rows_cap;
    struct idem__tally tally;
    struct idem__memory_limits limits;
    uint8_t *garbage; /* Bytes that the engine may still be reading after a
                         save. */
    uint8_t head[IDEM_HEAD_MAX]; /* Where heads are encoded. */
};

static const struct idem_store_ops memory_ops;

static struct memory_store *memory_from_base(struct idem_store *base)
{
    assert(base->ops == &memory_ops);
    return (struct memory_store *)base;
}

/* ---- Rows ---- */

static struct row **bucket_of(const struct memory_store *m, const uint8_t *id)
{
    size_t hash;

    memcpy(&hash, id, sizeof(hash)); /* The id is a hash already. */
    return &m->buckets[hash & (m->buckets_len - 1)];
}

static struct row **find(const struct memory_store *m, const uint8_t *id)
{
    struct row **at = bucket_of(m, id);

    while (*at != NULL && memcmp((*at)->id, id, IDEM_ID_LEN) != 0) {
        at = &(*at)->next;
    }
    return at;
}

static int rehash(struct memory_store *m, size_t len)
{
    struct row **buckets = idem__zalloc(len * sizeof(struct row *));
    size_t i;

    if (buckets == NULL) {
        return IDEM_ENOMEM;
    }
    idem__free(m->buckets);
    m->buckets = buckets;
    m->buckets_len = len;
    for (i = 0; i < m->rows_len; i++) {
        struct row **at = bucket_of(m, m->rows[i]->id);

        m->rows[i]->next = *at;
        *at = m->rows[i];
    }
    return 0;
}

/* Makes room for one more row in both tables. */
static int make_room(struct memory_store *m)
{
    if (m->rows_len == m->rows_cap) {
        size_t cap = m->rows_cap * 2;
        struct row **rows = idem__realloc(m->rows, cap * sizeof(struct row *));

        if (rows == NULL) {
            return IDEM_ENOMEM;
        }
        m->rows = rows;
        m->rows_cap = cap;
    }
    if (m->rows_len >= m->buckets_len) {
        return rehash(m, m->buckets_len * 2);
    }
    return 0;
}

static void free_row(struct row *row)
{
    idem__free(row->bytes);
    idem__free(row);
}

static void decode_names(const struct row *row, struct idem_record *record)
{
    record->scope = idem_bytes(row->bytes, row->scope_len);
    record->key = idem_bytes(row->bytes + row->scope_len, row->key_len);
    memcpy(record->id, row->id, IDEM_ID_LEN);
}

static const uint8_t *head_of(const struct row *row)
{
    return row->bytes + row->scope_len + row->key_len;
}

static int decode(const struct row *row, struct idem_record *record,
                  struct idem_error *error)
{
    int rc =
        idem__record_decode(row->id, idem_bytes(head_of(row), row->head_len),
                            record, error);

    if (rc == 0) {
        decode_names(row, record);
    }
    return rc;
}

/* ---- The table that the engine works on ---- */

static int load(void *ctx, const uint8_t *id, bool with_bodies,
                struct idem_record *ret_record, struct idem_error *ret_error)
{
    struct memory_store *m = ctx;
    const struct row *row = *find(m, id);
    const uint8_t *bodies;
    int rc;

    if (row == NULL) {
        return 0;
    }
    rc = decode(row, ret_record, ret_error);
    if (rc != 0) {
        return rc;
    }
    if (!with_bodies) {
        return 1;
    }
    bodies = head_of(row) + row->head_len;
    ret_record->result.bytes = idem_bytes(bodies, row->result_len);
    ret_record->input = idem_bytes(bodies + row->result_len, row->input_len);
    rc = idem__verb_check_bodies(ret_record, ret_error);
    return rc != 0 ? rc : 1;
}

/* Builds the row that @decision writes. @old is the current row (NULL: there is none). */
static int build(struct memory_store *m, const struct row *old,
                 const struct idem_decision *decision, struct row *ret_row)
{
    const struct idem_record *next = &decision->next;
    struct idem_slice result = next->result.bytes;
    struct idem_slice input = next->input;
    struct row row = {.seq = old != NULL ? old->seq : m->last_seq + 1};
    struct idem_slice parts[5];
    uint8_t *p;
    size_t i;
    int rc;

    rc = idem__record_encode(next, m->head, sizeof(m->head), &row.head_len);
    if (rc != 0) {
        return rc;
    }
    if (old != NULL && !decision->set_result) {
        result = idem_bytes(head_of(old) + old->head_len, old->result_len);
    }
    if (old != NULL && !decision->set_input) {
        input = idem_bytes(head_of(old) + old->head_len + old->result_len,
                           old->input_len);
    }
    parts[0] = next->scope;
    parts[1] = next->key;
    parts[2] = idem_bytes(m->head, row.head_len);
    parts[3] = result;
    parts[4] = input;
    row.scope_len = next->scope.len;
    row.key_len = next->key.len;
    row.result_len = result.len;
    row.input_len = input.len;
    memcpy(row.id, next->id, IDEM_ID_LEN);
    row.bytes = idem__alloc(row.scope_len + row.key_len + row.head_len +
                            result.len + input.len);
    if (row.bytes == NULL) {
        return IDEM_ENOMEM;
    }
    for (p = row.bytes, i = 0; i < 5; i++) {
        if (parts[i].len > 0) {
            memcpy(p, parts[i].base, parts[i].len);
            p += parts[i].len;
        }
    }
    *ret_row = row;
    return 0;
}

static int insert(struct memory_store *m, const struct row *built)
{
    struct row *row = idem__alloc(sizeof(*row));
    struct row **at;

    if (row == NULL || make_room(m) != 0) {
        idem__free(row);
        return IDEM_ENOMEM;
    }
    *row = *built;
    at = bucket_of(m, row->id);
    row->next = *at;
    *at = row;
    m->rows[m->rows_len++] = row;
    m->last_seq = row->seq;
    return 0;
}

static int save(void *ctx, const struct idem_decision *decision,
                struct idem_error *ret_error)
{
    struct memory_store *m = ctx;
    struct row *old = *find(m, decision->next.id);
    struct row built;
    int rc;

    assert((old != NULL) == (decision->change == IDEM_CHANGE_REPLACE));
    rc = build(m, old, decision, &built);
    if (rc != 0) {
        return idem__error_plain(ret_error, rc);
    }
    if (old == NULL) {
        rc = insert(m, &built);
        if (rc != 0) {
            idem__free(built.bytes);
            return idem__error_plain(ret_error, rc);
        }
        return 0;
    }
    /* The engine may still read the old bytes for its answer, so keep them until the next
     * save. */
    built.next = old->next;
    idem__free(m->garbage);
    m->garbage = old->bytes;
    *old = built;
    return 0;
}

static struct idem_table table_of(struct memory_store *m)
{
    return (struct idem_table){.load = load, .save = save, .ctx = m};
}

/* ---- Lists and purges ---- */

/* The number of rows with a seq of at most @seq. */
static size_t row_after(const struct memory_store *m, uint64_t seq)
{
    size_t low = 0;
    size_t high = m->rows_len;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (m->rows[mid]->seq <= seq) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

/* The next row of the list, in its direction. NULL: there is none. */
static const struct row *next_row(const struct memory_store *m,
                                  const struct idem_op *op)
{
    uint64_t seq = op->u.list.cursor[0];
    size_t i;

    if (!idem__verb_list_down(op)) {
        i = row_after(m, seq);
        return i < m->rows_len ? m->rows[i] : NULL;
    }
    i = seq == 0 ? m->rows_len : row_after(m, seq - 1);
    return i > 0 ? m->rows[i - 1] : NULL;
}

static void list(struct memory_store *m, struct idem_op *op,
                 const struct idem_now *now)
{
    const struct row *row = next_row(m, op);
    uint64_t n;

    op->u.list.now_ms = now->store_ms;
    for (n = 0; n < op->u.list.limit && row != NULL && !op->u.list.stopped;
         n++) {
        struct idem_record record;
        int rc = decode(row, &record, NULL);

        if (rc != 0) {
            memset(&record, 0, sizeof(record));
            decode_names(row, &record);
        }
        op->u.list.cursor[0] = row->seq;
        (void)idem__verb_list_row(op, rc, &record, now);
        row = next_row(m, op);
    }
    op->u.list.done = row == NULL || op->u.list.stopped;
}

static void purge(struct memory_store *m, struct idem_op *op,
                  const struct idem_now *now)
{
    size_t kept = 0;
    size_t i;

    for (i = 0; i < m->rows_len; i++) {
        struct row *row = m->rows[i];
        struct idem_record record;

        if (op->u.purge.purged < op->u.purge.max &&
            decode(row, &record, NULL) == 0 &&
            idem__decide_expired(&record, now)) {
            if (record.fence > m->fence_floor) {
                m->fence_floor = record.fence;
            }
            *find(m, row->id) = row->next;
            free_row(row);
            op->u.purge.purged++;
        } else {
            m->rows[kept++] = row;
        }
    }
    op->u.purge.done = op->u.purge.purged < op->u.purge.max;
    m->rows_len = kept;
}

/* ---- Operations ---- */

static int read_now(struct memory_store *m, struct idem_now *ret_now,
                    struct idem_error *error)
{
    const struct idem_host *host = &m->base.options.host;
    struct idem_clock_reading reading = {0};

    if (host->clock(host->ctx, &reading) != 0) {
        return idem__error(error, IDEM_EUNAVAILABLE, "cannot read the clock");
    }
    (void)idem__anchor_now(&m->anchor, &reading, m->last_ms, ret_now);
    m->last_ms = ret_now->store_ms - ret_now->doubt_ms;
    ret_now->fence_floor = m->fence_floor;
    ret_now->mark = m->mark;
    return 0;
}

static void move(struct memory_store *m, struct idem_op *op,
                 const struct idem_now *now)
{
    if (idem__move_run(op, m->mark, now) &&
        m->fence_floor < op->u.move.fence_floor) {
        m->fence_floor = op->u.move.fence_floor;
    }
}

static bool run(struct memory_store *m, struct idem_op *op)
{
    struct idem_table table = table_of(m);
    struct idem_now now;

    if (read_now(m, &now, &op->error) != 0) {
        return false;
    }
    switch (op->verb) {
    case IDEM_OP_LIST:
        list(m, op, &now);
        return false;
    case IDEM_OP_PURGE:
        purge(m, op, &now);
        idem__memory_limits_purge(&m->limits, &now);
        return false;
    case IDEM_OP_COUNT:
        idem__tally_answer(&m->tally, op);
        return false;
    case IDEM_OP_LIMIT:
        idem__memory_limit(&m->limits, op, &now);
        return false;
    case IDEM_OP_MOVE:
        move(m, op, &now);
        return false;
    case IDEM_OP_BEGIN:
    case IDEM_OP_END:
    case IDEM_OP_RENEW:
    case IDEM_OP_EXPIRE:
    case IDEM_OP_GET:
    case IDEM_OP_IMPORT:
    case IDEM_OP_RESOLVE:
        break;
    }
    return idem__table_run(&table, op, &now);
}

static int memory_submit(struct idem_store *base, struct idem_op *op)
{
    struct memory_store *m = memory_from_base(base);
    bool changed;

    (void)pthread_mutex_lock(&m->mutex);
    idem__op_run(op);
    changed = run(m, op);
    idem__tally_op(&m->tally, op);
    (void)pthread_mutex_unlock(&m->mutex);
    /* Wake waiters before the answer: once the op is answered, its caller may free it. */
    if (changed) {
        idem__store_changed(base, op->id);
    }
    idem__op_answer(op);
    return 0;
}

static enum idem_cancel memory_cancel(struct idem_store *base,
                                      struct idem_op *op)
{
    (void)base;
    return idem__op_detach(op);
}

static void memory_drive(struct idem_store *base, struct idem_queue *queue,
                         int64_t deadline_ms)
{
    (void)base;
    idem__queue_sleep(queue, deadline_ms);
}

static void free_store(struct memory_store *m)
{
    size_t i;

    for (i = 0; i < m->rows_len; i++) {
        free_row(m->rows[i]);
    }
    idem__memory_limits_finish(&m->limits);
    idem__free(m->garbage);
    idem__free(m->rows);
    idem__free(m->buckets);
    idem__store_finish(&m->base);
    idem__free(m);
}

static void memory_close(struct idem_store *base)
{
    struct memory_store *m = memory_from_base(base);

    (void)pthread_mutex_destroy(&m->mutex);
    free_store(m);
}

static const struct idem_store_ops memory_ops = {
    .name = "memory",
    .submit = memory_submit,
    .cancel = memory_cancel,
    .drive = memory_drive,
    .close = memory_close,
};

int idem_memory_open(const struct idem_open_options *options,
                     struct idem_store **ret_store,
                     struct idem_error *ret_error)
{
    struct memory_store *m;
    int rc;

    if (options != NULL &&
        (options->flags & (IDEM_OPEN_READONLY | IDEM_OPEN_NO_CREATE)) != 0) {
        return idem__error(ret_error, IDEM_ENOTFOUND,
                           "a store in memory is always a new one");
    }
    m = idem__zalloc(sizeof(*m));
    if (m == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = idem__store_init(&m->base, &memory_ops, options, ret_error);
    if (rc != 0) {
        idem__free(m);
        return rc;
    }
    m->rows_cap = 64;
    m->rows = idem__alloc(m->rows_cap * sizeof(struct row *));
    if (m->rows == NULL || rehash(m, 64) != 0 ||
        pthread_mutex_init(&m->mutex, NULL) != 0) {
        free_store(m);
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    *ret_store = &m->base;
    return 0;
}
