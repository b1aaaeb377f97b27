/* Purges: delete records past their retention, and parts of bodies that no head names.
 *
 * One op takes one page of the table: it scans the page, without the bytes of bodies; reads
 * the heads of the old parts in it, strongly; and deletes. A part is an orphan if it is
 * older than any op that may still write a head for it, and no head that was read after it
 * names it. A writer that writes the part again meanwhile (to record an outcome from a
 * journal, say) gives it another "made", and a deletion is conditional on "made".
 *
 *     PURGE -> PURGE_SCAN -> PURGE_HEADS -> PURGE_RECORDS -> PURGE_ORPHANS -> DONE
 *                                             |    ^            |    ^
 *                     its head PURGE_RECORD <-+    |            v    |
 *               its result DELETE_PARTS, then      |         PURGE_ORPHAN
 *                          PURGE_INPUT             |
 *                its input DELETE_PARTS, then      |
 *                          PURGE_NEXT -------------+
 */
#include "aws/dynamodb/task/walk.h"
#include "core/error.h"

enum {
    ORPHAN_MS = 24 * 3600 * 1000,
};

/* ---- The bill ---- */

/* A ConsumedCapacity in half units, the least that a read takes. A batch has a list of
 * them, one for each table. */
static uint64_t half_units(json_object *consumed)
{
    json_object *units = NULL;
    uint64_t sum = 0;
    double number;
    size_t n;
    size_t i;

    if (json_object_is_type(consumed, json_type_array)) {
        n = json_object_array_length(consumed);
        for (i = 0; i < n; i++) {
            sum += half_units(json_object_array_get_idx(consumed, i));
        }
        return sum;
    }
    if (!json_object_is_type(consumed, json_type_object) ||
        !json_object_object_get_ex(consumed, "CapacityUnits", &units)) {
        return 0;
    }
    number = json_object_get_double(units);
    return number > 0 && number < 1e9 ? (uint64_t)(2 * number + 0.5) : 0;
}

static bool writes(const struct idem__aws_request *request)
{
    return strcmp(request->target, IDEM__TARGET("DeleteItem")) == 0 ||
           strcmp(request->target, IDEM__TARGET("BatchWriteItem")) == 0;
}

/* True if the service did not do all of a batch. */
static bool has_undone(json_object *body)
{
    json_object *undone = NULL;

    return (json_object_object_get_ex(body, "UnprocessedKeys", &undone) ||
            json_object_object_get_ex(body, "UnprocessedItems", &undone)) &&
           json_object_object_length(undone) > 0;
}

void idem__purge_bill(struct idem__task *task,
                      const struct idem__answer *answer)
{
    uint64_t *from = task->base.op->u.purge.from;
    json_object *consumed = NULL;

    if (answer->said == IDEM__SAID_NOT_APPLIED && answer->sent) {
        from[IDEM__PURGE_THROTTLED]++;
    } else if (answer->said == IDEM__SAID_REFUSED) {
        /* The service bills a refused write, but its answer does not say so. */
        from[IDEM__PURGE_WRITE] += 2;
    } else if (answer->said == IDEM__SAID_OK && answer->body != NULL) {
        (void)json_object_object_get_ex(answer->body, "ConsumedCapacity",
                                        &consumed);
        from[writes(&task->request) ? IDEM__PURGE_WRITE : IDEM__PURGE_READ] +=
            half_units(consumed);
        from[IDEM__PURGE_THROTTLED] += has_undone(answer->body);
    }
}

/* ---- Deleting orphans ---- */

static idem__state page_done(struct idem__task *task)
{
    task->base.op->u.purge.done =
        task->base.op->u.purge.cursor[IDEM__CURSOR_LEN] == 0;
    return IDEM__STATE_DONE;
}

/* REFUSED: the part was written again meanwhile, or is gone. The purge leaves it alone. */
idem__state idem__purge_orphan_answered(struct idem__task *task,
                                        struct idem__answer *answer)
{
    if (answer->said != IDEM__SAID_OK && answer->said != IDEM__SAID_REFUSED) {
        return idem__task_retry(task, answer, IDEM__STATE_PURGE_ORPHAN);
    }
    if (answer->said == IDEM__SAID_OK && task->env->parts_purged != NULL) {
        (void)__atomic_fetch_add(task->env->parts_purged, 1, __ATOMIC_RELAXED);
    }
    task->walk->at++;
    return IDEM__STATE_PURGE_ORPHANS;
}

idem__state idem__purge_orphan_ask(struct idem__task *task)
{
    const struct idem__orphan *orphan = &task->walk->orphans[task->walk->at];

    idem__request_part_delete(idem__task_out(task), &task->env->table,
                              idem_str(orphan->name), orphan->made_ms);
    return idem__task_ask(task, IDEM__TARGET("DeleteItem"));
}

/* Goes to the next orphan of the page. */
idem__state idem__purge_orphans_step(struct idem__task *task)
{
    struct idem__walk *walk = task->walk;

    while (walk->at < walk->orphans_len && walk->orphans[walk->at].named) {
        walk->at++;
    }
    return walk->at == walk->orphans_len ? page_done(task)
                                         : IDEM__STATE_PURGE_ORPHAN;
}

/* ---- Deleting records ---- */

idem__state idem__purge_next_step(struct idem__task *task)
{
    task->walk->at++;
    return IDEM__STATE_PURGE_RECORDS;
}

idem__state idem__purge_input_step(struct idem__task *task)
{
    const struct idem__victim *victim = &task->walk->victims[task->walk->at];

    return idem__bodies_remove(task, victim->id, 'i', &victim->input,
                               IDEM__STATE_PURGE_NEXT);
}

/* REFUSED: the record changed meanwhile, or is gone. The purge leaves it alone. If it is
 * gone because the answer to an earlier copy was lost, its parts are orphans now. */
idem__state idem__purge_record_answered(struct idem__task *task,
                                        struct idem__answer *answer)
{
    const struct idem__victim *victim = &task->walk->victims[task->walk->at];

    if (answer->said == IDEM__SAID_REFUSED) {
        return IDEM__STATE_PURGE_NEXT;
    }
    if (answer->said != IDEM__SAID_OK) {
        return idem__task_retry(task, answer, IDEM__STATE_PURGE_RECORD);
    }
    task->base.op->u.purge.purged++;
    return idem__bodies_remove(task, victim->id, 'r', &victim->result,
                               IDEM__STATE_PURGE_INPUT);
}

/* Deletes the head before its parts, because a reader that finds a head must find its
 * bodies. If the purge dies in between, the parts are orphans. */
idem__state idem__purge_record_ask(struct idem__task *task)
{
    struct idem__walk *walk = task->walk;
    const struct idem__victim *victim = &walk->victims[walk->at];
    const uint8_t *head = walk->memory.base + victim->head_at;

    idem__request_delete(idem__task_out(task), &task->env->table, victim->id,
                         idem_bytes(head + victim->head_len, victim->key_len),
                         idem_bytes(head, victim->head_len));
    return idem__task_ask(task, IDEM__TARGET("DeleteItem"));
}

/* Goes to the next record of the page, and after the last one to its orphans. */
idem__state idem__purge_records_step(struct idem__task *task)
{
    struct idem__walk *walk = task->walk;

    if (walk->at < walk->victims_len) {
        return IDEM__STATE_PURGE_RECORD;
    }
    walk->at = 0;
    return IDEM__STATE_PURGE_ORPHANS;
}

/* ---- Finding orphans ---- */

static void mark_named(struct idem__walk *walk, const struct idem__item *item,
                       bool readable)
{
    size_t i;

    for (i = 0; i < walk->orphans_len; i++) {
        struct idem__orphan *orphan = &walk->orphans[i];
        const struct idem__body *body =
            orphan->kind == 'r' ? &item->result : &item->input;

        if (memcmp(orphan->id, item->record.id, IDEM_ID_LEN) != 0) {
            continue;
        }
        /* Nobody knows which parts a damaged head names: keep all of its record. */
        orphan->named = orphan->named || !readable ||
                        (body->place == IDEM__PLACE_APART &&
                         memcmp(body->tag, orphan->tag, IDEM__TAG_LEN) == 0);
    }
}

idem__state idem__purge_heads_answered(struct idem__task *task,
                                       struct idem__answer *answer)
{
    struct idem__walk *walk = task->walk;
    json_object *list;
    size_t n;
    size_t i;

    if (idem__task_under_table(task, answer->body, "UnprocessedKeys") != NULL) {
        return idem__task_busy(task, false, "read the records",
                               IDEM__STATE_PURGE_HEADS);
    }
    list = idem__task_under_table(task, answer->body, "Responses");
    if (!json_object_is_type(list, json_type_array)) {
        return idem__flight_fail_with(&task->base, IDEM_ECORRUPT,
                                      "DynamoDB: malformed answer");
    }
    n = json_object_array_length(list);
    for (i = 0; i < n; i++) {
        struct idem_error error;
        int rc = idem__task_read(task, json_object_array_get_idx(list, i), NULL,
                                 &error);

        if (rc == IDEM_ENOMEM) {
            return idem__flight_fail(&task->base, &error);
        }
        mark_named(walk, &task->found, rc == 0);
    }
    return IDEM__STATE_PURGE_RECORDS;
}

static void want_head(struct idem__walk *walk, const uint8_t id[IDEM_ID_LEN])
{
    size_t i;

    for (i = 0; i < walk->ids_len; i++) {
        if (memcmp(walk->ids[i], id, IDEM_ID_LEN) == 0) {
            return;
        }
    }
    memcpy(walk->ids[walk->ids_len++], id, IDEM_ID_LEN);
}

/* True if @object is a part. If it is old enough to be an orphan, this notes it, and the
 * head that may name it. */
static bool take_part(struct idem__walk *walk, json_object *object,
                      const struct idem_now *now)
{
    struct idem__orphan *orphan = &walk->orphans[walk->orphans_len];
    int64_t latest_ms = now->store_ms - now->store_err_ms - ORPHAN_MS;
    struct idem_slice name;

    if (idem__json_attribute(object, "id", "S", &name) != 1 ||
        name.len >= sizeof(orphan->name) ||
        !idem__part_name_read(name, orphan->id, &orphan->kind, orphan->tag)) {
        return false;
    }
    orphan->made_ms = idem__walk_number(object, "made");
    if (orphan->made_ms != 0 && latest_ms > 0 &&
        orphan->made_ms < (uint64_t)latest_ms) {
        memcpy(orphan->name, name.base, name.len);
        orphan->name[name.len] = '\0';
        orphan->named = false;
        want_head(walk, orphan->id);
        walk->orphans_len++;
    }
    return true;
}

/* ---- A page ---- */

/* A purge deletes no record sooner than DynamoDB may: with the record its fence is
 * forgotten (IDEM__TTL_GUARD_MS). */
static bool may_go(const struct idem_record *record, const struct idem_now *now)
{
    struct idem_record later = *record;

    later.expires_ms = idem__item_ttl_ms(record);
    return idem__decide_expired(&later, now);
}

static void take_victim(struct idem__walk *walk, const struct idem__item *item)
{
    struct idem__victim *victim = &walk->victims[walk->victims_len++];

    memcpy(victim->id, item->record.id, IDEM_ID_LEN);
    victim->head_at = walk->memory.len;
    victim->head_len = item->head.len;
    idem__buffer_add(&walk->memory, item->head.base, item->head.len);
    victim->key_len = item->record.key.len;
    idem__buffer_add(&walk->memory, item->record.key.base, victim->key_len);
    victim->result = item->result;
    victim->input = item->input;
}

/* False: memory ran out. */
static bool take_item(struct idem__task *task, json_object *object)
{
    struct idem_error error;
    int rc;

    if (idem__layout_of(&task->env->table)->parts &&
        take_part(task->walk, object, task->base.now)) {
        return true;
    }
    rc = idem__task_read(task, object, NULL, &error);
    if (rc == 0 && may_go(&task->found.record, task->base.now)) {
        take_victim(task->walk, &task->found);
    }
    return rc != IDEM_ENOMEM;
}

/* Ends the page at @object, because the op may delete no more records. The next page begins
 * after it. */
static void cut_page(struct idem__task *task, json_object *object)
{
    uint64_t *cursor = task->base.op->u.purge.cursor;
    struct idem_slice name;

    if (idem__json_attribute(object, idem__layout_key(&task->env->table), "S",
                             &name) == 1 &&
        name.len > 0 &&
        name.len <= (IDEM_CURSOR_LEN - IDEM__CURSOR_NAME) * sizeof(*cursor)) {
        memcpy(cursor + IDEM__CURSOR_NAME, name.base, name.len);
        cursor[IDEM__CURSOR_LEN] = name.len;
    }
}

static void count_looked(struct idem__task *task, json_object *body)
{
    json_object *scanned = NULL;

    if (json_object_object_get_ex(body, "ScannedCount", &scanned)) {
        task->base.op->u.purge.from[IDEM__PURGE_LOOKED] +=
            (uint64_t)json_object_get_int(scanned);
    }
}

idem__state idem__purge_scan_answered(struct idem__task *task,
                                      struct idem__answer *answer)
{
    struct idem__walk *walk = task->walk;
    idem__state other;
    bool fits = true;
    json_object *list;
    size_t n;
    size_t i;

    other =
        idem__walk_page(task, answer, task->base.op->u.purge.cursor, &list, &n);
    if (other != IDEM__STATE_NONE) {
        return other;
    }
    count_looked(task, answer->body);
    for (i = 0; i < n && fits; i++) {
        json_object *object = json_object_array_get_idx(list, i);

        fits = take_item(task, object);
        if (walk->victims_len == task->base.op->u.purge.max && i + 1 < n) {
            cut_page(task, object);
            break;
        }
    }
    if (!fits || walk->memory.failed) {
        return idem__flight_no_memory(&task->base);
    }
    return walk->ids_len > 0 ? IDEM__STATE_PURGE_HEADS
                             : IDEM__STATE_PURGE_RECORDS;
}

idem__state idem__purge_scan_ask(struct idem__task *task)
{
    uint64_t limit = task->base.op->u.purge.from[IDEM__PURGE_LIMIT];

    return idem__task_ask(
        task,
        idem__request_sweep(idem__task_out(task), &task->env->table,
                            idem__walk_cursor(task->base.op->u.purge.cursor),
                            limit == 0 || limit > IDEM__HEADS_GET
                                ? IDEM__HEADS_GET
                                : limit));
}

idem__state idem__purge_step(struct idem__task *task)
{
    return idem__walk_prepare(task) ? IDEM__STATE_PURGE_SCAN : IDEM__STATE_DONE;
}
