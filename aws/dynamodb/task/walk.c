/* Lists, a page at a time.
 *
 * A list of open records queries the index, and then reads their heads, strongly. Any other
 * list scans the table.
 *
 *     LIST -+-> LIST_SCAN -------------------------------> DONE
 *           +-> LIST_QUERY -+-> LIST_HEADS --------------> DONE
 *                           +-> (none in this shard) ----> DONE
 */
#include "aws/dynamodb/task/walk.h"

#include "base/heap.h"
#include "contract/parts.h"
#include "core/error.h"

#include <idem/operator.h>

enum {
    SHARDS = 16,
};

void idem__walk_free(struct idem__walk *walk)
{
    if (walk != NULL) {
        idem__buffer_free(&walk->memory);
        idem__free(walk);
    }
}

bool idem__walk_prepare(struct idem__task *task)
{
    if (task->walk == NULL) {
        task->walk = idem__zalloc(sizeof(*task->walk));
    }
    if (task->walk == NULL) {
        (void)idem__flight_no_memory(&task->base);
        return false;
    }
    task->walk->ids_len = 0;
    task->walk->victims_len = 0;
    task->walk->orphans_len = 0;
    task->walk->at = 0;
    task->walk->memory.len = 0;
    return true;
}

/* ---- Where to go on ---- */

struct idem_slice idem__walk_cursor(const uint64_t *cursor)
{
    return idem_bytes(cursor + IDEM__CURSOR_NAME,
                      (size_t)cursor[IDEM__CURSOR_LEN]);
}

uint64_t idem__walk_number(json_object *item, const char *name)
{
    struct idem_slice text;
    uint64_t number;

    return idem__json_attribute(item, name, "N", &text) == 1 &&
                   idem__digits(text, INT64_MAX, &number)
               ? number
               : 0;
}

/* Makes the next page begin after the item @name. False: a cursor cannot hold the name. */
static bool set_name(uint64_t *cursor, struct idem_slice name)
{
    const size_t cap = (IDEM_CURSOR_LEN - IDEM__CURSOR_NAME) * sizeof(*cursor);

    if (name.len == 0 || name.len > cap) {
        return false;
    }
    memset(cursor + IDEM__CURSOR_NAME, 0, cap);
    memcpy(cursor + IDEM__CURSOR_NAME, name.base, name.len);
    cursor[IDEM__CURSOR_LEN] = name.len;
    return true;
}

/* The caller may have read the cursor from a text, which can hold anything. */
static bool is_cursor(const uint64_t *cursor)
{
    return cursor[IDEM__CURSOR_SHARD] < SHARDS &&
           cursor[IDEM__CURSOR_LEN] <=
               (IDEM_CURSOR_LEN - IDEM__CURSOR_NAME) * sizeof(*cursor);
}

/* Sets @cursor to the LastEvaluatedKey of @body. 1: there is another page; 0: this was the
 * last one; or a code. */
static int set_cursor(const struct idem__task *task, uint64_t *cursor,
                      json_object *body)
{
    const char *key = idem__layout_key(&task->env->table);
    json_object *last;
    struct idem_slice text;

    cursor[IDEM__CURSOR_LEN] = 0;
    cursor[IDEM__CURSOR_SINCE] = 0;
    if (!json_object_object_get_ex(body, "LastEvaluatedKey", &last)) {
        return 0;
    }
    if (idem__json_attribute(last, key, "S", &text) != 1 ||
        !set_name(cursor, text)) {
        return IDEM_ECORRUPT;
    }
    cursor[IDEM__CURSOR_SINCE] = idem__walk_number(last, "since");
    return 1;
}

static idem__state strange(struct idem__task *task)
{
    return idem__flight_fail_with(
        &task->base, IDEM_ECORRUPT,
        "DynamoDB: malformed answer, or not a table of idem's");
}

idem__state idem__walk_page(struct idem__task *task,
                            const struct idem__answer *answer, uint64_t *cursor,
                            json_object **ret_items, size_t *ret_len)
{
    *ret_items = idem__json_member(answer->body, "Items", json_type_array);
    *ret_len = *ret_items == NULL ? 0 : json_object_array_length(*ret_items);
    if (*ret_len > IDEM__HEADS_GET ||
        set_cursor(task, cursor, answer->body) < 0) {
        return strange(task);
    }
    return IDEM__STATE_NONE;
}

/* ---- Lists ---- */

/* False: the list has stopped, or failed. */
static bool show_item(struct idem__task *task, json_object *item)
{
    const char *key = idem__layout_key(&task->env->table);
    struct idem_error error;
    struct idem_slice name;
    int rc;

    /* A scan of another library's table has no filter, so the mark is among its items. */
    if (idem__json_attribute(item, key, "S", &name) == 1 &&
        idem__gate_is(name)) {
        return true;
    }
    rc = idem__task_read(task, item, NULL, &error);
    if (rc == IDEM_ENOMEM) {
        (void)idem__flight_fail(&task->base, &error);
        return false;
    }
    return idem__verb_list_row(task->base.op, rc, &task->found.record,
                               task->base.now);
}

/* If the caller stops the list within the page, the next list begins after that item. */
static void show_items(struct idem__task *task, json_object *list)
{
    const char *key = idem__layout_key(&task->env->table);
    struct idem_op *op = task->base.op;
    size_t n = list == NULL ? 0 : json_object_array_length(list);
    struct idem_slice name;
    size_t i;

    op->u.list.now_ms = task->base.now->store_ms;
    for (i = 0; i < n; i++) {
        json_object *item = json_object_array_get_idx(list, i);

        if (!show_item(task, item)) {
            if (idem__json_attribute(item, key, "S", &name) == 1) {
                (void)set_name(op->u.list.cursor, name);
            }
            return;
        }
    }
}

idem__state idem__list_scan_answered(struct idem__task *task,
                                     struct idem__answer *answer)
{
    struct idem_op *op = task->base.op;
    int more;

    more = set_cursor(task, op->u.list.cursor, answer->body);
    if (more < 0) {
        return strange(task);
    }
    show_items(task, idem__json_member(answer->body, "Items", json_type_array));
    op->u.list.done = more == 0 || op->u.list.stopped;
    return IDEM__STATE_DONE;
}

idem__state idem__list_scan_ask(struct idem__task *task)
{
    return idem__task_ask(
        task,
        idem__request_scan(idem__task_out(task), &task->env->table,
                           idem__walk_cursor(task->base.op->u.list.cursor),
                           task->base.op->u.list.limit));
}

static void next_shard(struct idem__task *task)
{
    uint64_t *cursor = task->base.op->u.list.cursor;

    if (cursor[IDEM__CURSOR_LEN] == 0) {
        cursor[IDEM__CURSOR_SHARD]++;
    }
    task->base.op->u.list.done =
        cursor[IDEM__CURSOR_SHARD] == SHARDS || task->base.op->u.list.stopped;
}

/* The head of @id in @list, which the service returns in any order; NULL: the record is
 * gone. */
static json_object *head_of(json_object *list, const uint8_t id[IDEM_ID_LEN])
{
    size_t n = list == NULL ? 0 : json_object_array_length(list);
    uint8_t other[IDEM_ID_LEN];
    struct idem_slice text;
    size_t i;

    for (i = 0; i < n; i++) {
        json_object *item = json_object_array_get_idx(list, i);

        if (idem__json_attribute(item, "id", "S", &text) == 1 &&
            idem__item_id_read(text, other) &&
            memcmp(other, id, IDEM_ID_LEN) == 0) {
            return item;
        }
    }
    return NULL;
}

/* Shows the heads in the order of the index, so that the next list can begin where this
 * one stops. */
static void show_heads(struct idem__task *task, json_object *list,
                       uint64_t shard)
{
    const struct idem__walk *walk = task->walk;
    uint64_t *cursor = task->base.op->u.list.cursor;
    struct idem_slice name;
    size_t i;

    task->base.op->u.list.now_ms = task->base.now->store_ms;
    for (i = 0; i < walk->ids_len; i++) {
        json_object *item = head_of(list, walk->ids[i]);

        if (item != NULL && !show_item(task, item)) {
            if (idem__json_attribute(item, "id", "S", &name) == 1 &&
                set_name(cursor, name)) {
                cursor[IDEM__CURSOR_SHARD] = shard;
                cursor[IDEM__CURSOR_SINCE] = walk->since[i];
            }
            return;
        }
    }
}

/* The service updates the index after the table: it may still name a record that is gone or
 * has ended, and a new one may be missing from it. */
idem__state idem__list_heads_answered(struct idem__task *task,
                                      struct idem__answer *answer)
{
    json_object *responses = NULL;
    json_object *list = NULL;
    json_object *unread = NULL;
    uint64_t shard = task->base.op->u.list.cursor[IDEM__CURSOR_SHARD];

    if (json_object_object_get_ex(answer->body, "UnprocessedKeys", &unread) &&
        json_object_object_length(unread) > 0) {
        return idem__task_busy(task, false, "read the records",
                               IDEM__STATE_LIST_HEADS);
    }
    if (json_object_object_get_ex(answer->body, "Responses", &responses)) {
        list = idem__json_member(responses, task->env->table.name,
                                 json_type_array);
    }
    next_shard(task);
    show_heads(task, list, shard);
    task->base.op->u.list.done |= task->base.op->u.list.stopped;
    return IDEM__STATE_DONE;
}

idem__state idem__walk_heads_ask(struct idem__task *task)
{
    idem__request_heads_get(idem__task_out(task), &task->env->table,
                            (const uint8_t(*)[IDEM_ID_LEN])task->walk->ids,
                            task->walk->ids_len);
    return idem__task_ask(task, IDEM__TARGET("BatchGetItem"));
}

idem__state idem__list_query_answered(struct idem__task *task,
                                      struct idem__answer *answer)
{
    struct idem__walk *walk = task->walk;
    idem__state other;
    json_object *list;
    size_t n;
    size_t i;

    other =
        idem__walk_page(task, answer, task->base.op->u.list.cursor, &list, &n);
    if (other != IDEM__STATE_NONE) {
        return other;
    }
    for (i = 0; i < n; i++) {
        json_object *item = json_object_array_get_idx(list, i);
        struct idem_slice text;

        if (idem__json_attribute(item, "id", "S", &text) == 1 &&
            idem__item_id_read(text, walk->ids[walk->ids_len])) {
            walk->since[walk->ids_len] = idem__walk_number(item, "since");
            walk->ids_len++;
        }
    }
    task->base.op->u.list.now_ms = task->base.now->store_ms;
    if (walk->ids_len > 0) {
        return IDEM__STATE_LIST_HEADS;
    }
    next_shard(task);
    return IDEM__STATE_DONE;
}

idem__state idem__list_query_ask(struct idem__task *task)
{
    const uint64_t *cursor = task->base.op->u.list.cursor;
    uint64_t limit = task->base.op->u.list.limit;

    idem__request_query(idem__task_out(task), &task->env->table,
                        (unsigned)cursor[IDEM__CURSOR_SHARD],
                        idem__walk_cursor(cursor), cursor[IDEM__CURSOR_SINCE],
                        limit < IDEM__HEADS_GET ? limit : IDEM__HEADS_GET);
    return idem__task_ask(task, IDEM__TARGET("Query"));
}

/* The index has no released records, and of the completed ones only failed outcomes. */
static bool index_serves(const struct idem__task *task)
{
    const struct idem_filter *filter = &task->base.op->u.list.filter;
    const unsigned ended =
        1u << IDEM_STATUS_COMPLETED | 1u << IDEM_STATUS_RELEASED;

    return task->env->table.index &&
           (filter->overdue ||
            ((filter->statuses != 0 || filter->failed_outcomes) &&
             (filter->statuses & ended) == 0));
}

idem__state idem__list_step(struct idem__task *task)
{
    if (!is_cursor(task->base.op->u.list.cursor)) {
        return idem__flight_fail_with(&task->base, IDEM_EINVALID,
                                      "place: not from a list of this table");
    }
    if (!idem__walk_prepare(task)) {
        return IDEM__STATE_DONE;
    }
    return index_serves(task) ? IDEM__STATE_LIST_QUERY : IDEM__STATE_LIST_SCAN;
}
