/* Lists and purges: ops that walk over many items, a page at a time.
 *
 * A list of what is open asks the index and then reads the heads, strongly; any
 * other list, and a purge, scans the table. */
#include "base/heap.h"
#include "core/error.h"
#include "store/dynamodb/task.h"
#include "store/shared/verbs.h"

enum {
    SHARDS = 16,
    CURSOR_SHARD = 0,
    CURSOR_SINCE,
    CURSOR_LEN,
    CURSOR_NAME,
    /* An orphan is a part of a body that no head names, and which is older than
     * any attempt to write one can be. */
    ORPHAN_MS = 24 * 3600 * 1000,
};

/* An item that a purge is to delete. */
struct victim {
    uint8_t id[IDEM_ID_LEN];
    size_t head_at; /* Its head, in walk->memory ... */
    size_t head_len;
    size_t key_len; /* ... and behind it its key. */
    struct idem__body result;
    struct idem__body input;
};

struct idem__walk {
    uint8_t ids[IDEM__HEADS_GET][IDEM_ID_LEN];
    struct victim victims[IDEM__HEADS_GET];
    size_t len;
    size_t at;
    char kind; /* Of the parts that are being deleted; '\0': the head. */
    struct idem__buffer memory;
};

void idem__walk_free(struct idem__walk *walk)
{
    if (walk != NULL) {
        idem__buffer_free(&walk->memory);
        idem__free(walk);
    }
}

static void no_memory(struct idem__task *task)
{
    struct idem_error error;

    (void)idem__error_plain(&error, IDEM_ENOMEM);
    idem__task_fail(task, &error);
}

static bool prepare(struct idem__task *task)
{
    if (task->walk == NULL) {
        task->walk = idem__zalloc(sizeof(*task->walk));
    }
    if (task->walk == NULL) {
        no_memory(task);
        return false;
    }
    task->walk->len = 0;
    task->walk->at = 0;
    task->walk->memory.len = 0;
    task->out.len = 0;
    return true;
}

/* ---- Where to go on ---- */

static struct idem_slice cursor_name(const uint64_t *cursor)
{
    return idem_bytes(cursor + CURSOR_NAME, (size_t)cursor[CURSOR_LEN]);
}

/* Remembers the LastEvaluatedKey of @body. 1: there is more; 0: that was all; or
 * a code. */
static int set_cursor(const struct idem__task *task, uint64_t *cursor,
                      json_object *body)
{
    const char *key = idem__layout_key(task->env->table.layout);
    const size_t cap = (IDEM_CURSOR_LEN - CURSOR_NAME) * sizeof(*cursor);
    json_object *last;
    struct idem_slice text;

    cursor[CURSOR_LEN] = 0;
    cursor[CURSOR_SINCE] = 0;
    if (!json_object_object_get_ex(body, "LastEvaluatedKey", &last)) {
        return 0;
    }
    if (idem__json_attribute(last, key, "S", &text) != 1 || text.len == 0 ||
        text.len > cap) {
        return IDEM_ECORRUPT;
    }
    memcpy(cursor + CURSOR_NAME, text.base, text.len);
    cursor[CURSOR_LEN] = text.len;
    if (idem__json_attribute(last, "since", "N", &text) == 1) {
        const char *p = text.base;
        size_t i;

        for (i = 0; i < text.len && i < 18 && p[i] >= '0' && p[i] <= '9'; i++) {
            cursor[CURSOR_SINCE] =
                cursor[CURSOR_SINCE] * 10 + (uint64_t)(p[i] - '0');
        }
    }
    return 1;
}

static void strange(struct idem__task *task)
{
    struct idem_error error;

    (void)idem__error(&error, IDEM_ECORRUPT,
                      "DynamoDB: the answer, or the table, has a form that is "
                      "not ours");
    idem__task_fail(task, &error);
}

static json_object *array_of(json_object *body, const char *name)
{
    json_object *list;

    return json_object_object_get_ex(body, name, &list) &&
                   json_object_is_type(list, json_type_array)
               ? list
               : NULL;
}

/* The items of a page, and @cursor set to the next one; false when the task goes
 * another way: with @again, which asked for the page, or to its end. */
static bool take_page(struct idem__task *task,
                      const struct idem__answer *answer, uint64_t *cursor,
                      void (*again)(struct idem__task *task,
                                    const struct idem_now *now),
                      json_object **ret_items, size_t *ret_len)
{
    if (answer->said != IDEM__SAID_OK) {
        idem__task_retry(task, answer, again);
        return false;
    }
    *ret_items = array_of(answer->body, "Items");
    *ret_len = *ret_items == NULL ? 0 : json_object_array_length(*ret_items);
    if (*ret_len > IDEM__HEADS_GET ||
        set_cursor(task, cursor, answer->body) < 0) {
        strange(task);
        return false;
    }
    return true;
}

/* ---- Lists ---- */

static void show_items(struct idem__task *task, json_object *list,
                       const struct idem_now *now)
{
    struct idem_op *op = task->op;
    size_t n = list == NULL ? 0 : json_object_array_length(list);
    size_t i;

    op->u.list.now_ms = now->store_ms;
    for (i = 0; i < n && !op->u.list.stopped; i++) {
        struct idem_error error;
        int rc = idem__task_read(task, json_object_array_get_idx(list, i), NULL,
                                 &error);

        if (rc == IDEM_ENOMEM) {
            idem__task_fail(task, &error);
            return;
        }
        (void)idem__verb_list_row(op, rc, &task->found.record, now);
    }
}

static void scanned(struct idem__task *task, const struct idem_now *now,
                    struct idem__answer *answer)
{
    struct idem_op *op = task->op;
    int more;

    if (answer->said != IDEM__SAID_OK) {
        idem__task_retry(task, answer, idem__walk_list);
        return;
    }
    more = set_cursor(task, op->u.list.cursor, answer->body);
    if (more < 0) {
        strange(task);
        return;
    }
    idem__task_done(task);
    show_items(task, array_of(answer->body, "Items"), now);
    op->u.list.done = more == 0 || op->u.list.stopped;
}

static void read_heads(struct idem__task *task, const struct idem_now *now);

static void next_shard(struct idem__task *task)
{
    uint64_t *cursor = task->op->u.list.cursor;

    if (cursor[CURSOR_LEN] == 0) {
        cursor[CURSOR_SHARD]++;
    }
    task->op->u.list.done =
        cursor[CURSOR_SHARD] == SHARDS || task->op->u.list.stopped;
    idem__task_done(task);
}

/* What is in the index may be gone from the table, and the other way round. */
static void heads_came(struct idem__task *task, const struct idem_now *now,
                       struct idem__answer *answer)
{
    json_object *responses = NULL;
    json_object *list = NULL;
    json_object *unread = NULL;

    if (answer->said != IDEM__SAID_OK) {
        idem__task_retry(task, answer, read_heads);
        return;
    }
    if (json_object_object_get_ex(answer->body, "UnprocessedKeys", &unread) &&
        json_object_object_length(unread) > 0) {
        idem__task_busy(task, false, "read the records", read_heads);
        return;
    }
    if (json_object_object_get_ex(answer->body, "Responses", &responses)) {
        list = array_of(responses, task->env->table.name);
    }
    next_shard(task);
    show_items(task, list, now);
    task->op->u.list.done |= task->op->u.list.stopped;
}

static void read_heads(struct idem__task *task, const struct idem_now *now)
{
    (void)now;
    task->out.len = 0;
    idem__request_heads_get(&task->out, &task->env->table,
                            (const uint8_t(*)[IDEM_ID_LEN])task->walk->ids,
                            task->walk->len);
    idem__task_send(task, IDEM__TARGET("BatchGetItem"), heads_came);
}

static void queried(struct idem__task *task, const struct idem_now *now,
                    struct idem__answer *answer)
{
    struct idem__walk *walk = task->walk;
    json_object *list;
    size_t n;
    size_t i;

    if (!take_page(task, answer, task->op->u.list.cursor, idem__walk_list,
                   &list, &n)) {
        return;
    }
    for (i = 0; i < n; i++) {
        struct idem_slice text;

        if (idem__json_attribute(json_object_array_get_idx(list, i), "id", "S",
                                 &text) == 1 &&
            idem__item_id_read(text, walk->ids[walk->len])) {
            walk->len++;
        }
    }
    task->op->u.list.now_ms = now->store_ms;
    if (walk->len > 0) {
        read_heads(task, now);
    } else {
        next_shard(task);
    }
}

/* What is completed or released is not in the index. */
static bool index_serves(const struct idem__task *task)
{
    const struct idem_filter *filter = &task->op->u.list.filter;
    const unsigned ended =
        1u << IDEM_STATUS_COMPLETED | 1u << IDEM_STATUS_RELEASED;

    return task->env->table.index &&
           (filter->overdue ||
            (filter->statuses != 0 && (filter->statuses & ended) == 0));
}

void idem__walk_list(struct idem__task *task, const struct idem_now *now)
{
    const uint64_t *cursor = task->op->u.list.cursor;
    uint64_t limit = task->op->u.list.limit;

    (void)now;
    if (!prepare(task)) {
        return;
    }
    if (!index_serves(task)) {
        idem__request_scan(&task->out, &task->env->table, cursor_name(cursor),
                           limit);
        idem__task_send(task, IDEM__TARGET("Scan"), scanned);
        return;
    }
    idem__request_query(&task->out, &task->env->table,
                        (unsigned)cursor[CURSOR_SHARD], cursor_name(cursor),
                        cursor[CURSOR_SINCE],
                        limit < IDEM__HEADS_GET ? limit : IDEM__HEADS_GET);
    idem__task_send(task, IDEM__TARGET("Query"), queried);
}

/* ---- Purges ---- */

static void delete_next(struct idem__task *task, const struct idem_now *now);

/* One that changed meanwhile, or is gone, is left alone. */
static void deleted(struct idem__task *task, const struct idem_now *now,
                    struct idem__answer *answer)
{
    struct idem__walk *walk = task->walk;

    if (answer->said == IDEM__SAID_REFUSED) {
        walk->at++;
        walk->kind = '\0';
    } else if (answer->said != IDEM__SAID_OK) {
        idem__task_retry(task, answer, delete_next);
        return;
    } else if (walk->kind == '\0') {
        task->op->u.purge.purged++;
        walk->kind = 'r';
    } else {
        walk->kind = walk->kind == 'r' ? 'i' : '\0';
        walk->at += walk->kind == '\0';
    }
    delete_next(task, now);
}

/* First the head: a reader that finds one must find its bodies. A part that is
 * left when this is interrupted is an orphan, and has a ttl. */
static void delete_next(struct idem__task *task, const struct idem_now *now)
{
    static const bool none_done[IDEM__PARTS_MAX];
    struct idem__walk *walk = task->walk;
    struct victim *victim = &walk->victims[walk->at];
    struct idem__parts parts = {.done = none_done};

    if (walk->at == walk->len) {
        task->op->u.purge.done = task->op->u.purge.cursor[CURSOR_LEN] == 0;
        idem__task_done(task);
        return;
    }
    task->out.len = 0;
    if (walk->kind == '\0') {
        const uint8_t *head = walk->memory.base + victim->head_at;

        idem__request_delete(&task->out, &task->env->table, victim->id,
                             idem_bytes(head + victim->head_len,
                                        victim->key_len),
                             idem_bytes(head, victim->head_len));
        idem__task_send(task, IDEM__TARGET("DeleteItem"), deleted);
        return;
    }
    parts.id = victim->id;
    parts.kind = walk->kind;
    parts.body = walk->kind == 'r' ? &victim->result : &victim->input;
    if (parts.body->place != IDEM__PLACE_APART) {
        struct idem__answer skipped = {.said = IDEM__SAID_OK};

        deleted(task, now, &skipped);
        return;
    }
    idem__request_parts_delete(&task->out, &task->env->table, &parts);
    idem__task_send(task, IDEM__TARGET("BatchWriteItem"), deleted);
}

static bool may_go(const struct idem_record *record, const struct idem_now *now)
{
    struct idem_record later = *record;

    later.expires_ms = idem__item_ttl_ms(record);
    return idem_decide_expired(&later, now);
}

static void purge_scanned(struct idem__task *task, const struct idem_now *now,
                          struct idem__answer *answer)
{
    struct idem__walk *walk = task->walk;
    json_object *list;
    size_t n;
    size_t i;

    if (!take_page(task, answer, task->op->u.purge.cursor, idem__walk_purge,
                   &list, &n)) {
        return;
    }
    for (i = 0; i < n && walk->len < task->op->u.purge.max; i++) {
        struct idem_error error;
        int rc = idem__task_read(task, json_object_array_get_idx(list, i), NULL,
                                 &error);

        if (rc == IDEM_ENOMEM) {
            no_memory(task);
            return;
        }
        if (rc == 0 && may_go(&task->found.record, now)) {
            struct victim *victim = &walk->victims[walk->len++];

            memcpy(victim->id, task->found.record.id, IDEM_ID_LEN);
            victim->head_at = walk->memory.len;
            victim->head_len = task->found.head.len;
            idem__buffer_add(&walk->memory, task->found.head.base,
                             task->found.head.len);
            victim->key_len = task->found.record.key.len;
            idem__buffer_add(&walk->memory, task->found.record.key.base,
                             victim->key_len);
            victim->result = task->found.result;
            victim->input = task->found.input;
        }
    }
    if (walk->memory.failed) {
        no_memory(task);
        return;
    }
    walk->kind = '\0';
    delete_next(task, now);
}

void idem__walk_purge(struct idem__task *task, const struct idem_now *now)
{
    (void)now;
    if (!prepare(task)) {
        return;
    }
    idem__request_scan(&task->out, &task->env->table,
                       cursor_name(task->op->u.purge.cursor), IDEM__HEADS_GET);
    idem__task_send(task, IDEM__TARGET("Scan"), purge_scanned);
}
