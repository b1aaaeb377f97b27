/* Lists and purges read pages of rows.
 *
 * A list that may show completed records reads all records in the order of their ids. Any
 * other list, a list of expired records, and a purge read the index on (status, deadline,
 * id), status after status. */
#include "postgres/task.h"

#include "base/bytes.h"
#include "base/heap.h"
#include "contract/parts.h"
#include "core/error.h"

#include <idem/operator.h>

enum {
    LIST_PAGE = 200,
    ALL = 0x3e /* Statuses. */
};

/* The places in a cursor. */
enum {
    AT_STATUS = 0, /* A purge: index in expiring[]. A list: the status. */
    AT_DEADLINE,
    AT_HAS_ID,
    AT_ID,
    AT_END = AT_ID + IDEM_ID_LEN / 8,
};

enum {
    REST_TIMES = 2,
    REST_MAX_MS = 400,
    LIVELY_MS = 60000, /* A claim older than this is not in flight any more. */
};

static void put_place(uint64_t *cursor, const uint8_t *id, int64_t deadline_ms)
{
    size_t i;

    cursor[AT_DEADLINE] = (uint64_t)deadline_ms;
    cursor[AT_HAS_ID] = 1;
    for (i = 0; i < IDEM_ID_LEN / 8; i++) {
        cursor[AT_ID + i] = idem__get_u64(id + 8 * i);
    }
}

static void clear_place(uint64_t *cursor)
{
    memset(cursor + AT_DEADLINE, 0, (AT_END - AT_DEADLINE) * sizeof(cursor[0]));
}

static void get_place(const uint64_t *cursor, struct idem__pg_request *request)
{
    size_t i;

    request->from_start = cursor[AT_HAS_ID] == 0;
    request->numbers[1] =
        request->from_start ? -1 : (int64_t)cursor[AT_DEADLINE];
    for (i = 0; i < IDEM_ID_LEN / 8; i++) {
        idem__put_u64(request->id + 8 * i, cursor[AT_ID + i]);
    }
}

/* ---- Lists ---- */

/* Returns the stored statuses that the filter can let through. */
static unsigned wanted(const struct idem_filter *filter)
{
    unsigned asked = filter->statuses & ALL;

    if (filter->failed_outcomes) {
        asked |= 1u << IDEM_STATUS_COMPLETED;
    } else if (filter->statuses == 0) {
        asked = ALL;
    }
    if ((filter->statuses & 1u << IDEM_STATUS_RETRY) != 0) {
        asked |= 1u << IDEM_STATUS_IN_PROGRESS; /* It is stored as that. */
    }
    return filter->overdue ? asked & 1u << IDEM_STATUS_IN_PROGRESS : asked;
}

static bool index_serves(const struct idem_filter *filter)
{
    return filter->expired ||
           (wanted(filter) & 1u << IDEM_STATUS_COMPLETED) == 0;
}

/* Returns the first of @statuses after @after, or 0. */
static uint64_t next_status(unsigned statuses, uint64_t after)
{
    uint64_t status;

    for (status = after + 1; status <= IDEM_STATUS_RELEASED; status++) {
        if ((statuses & 1u << status) != 0) {
            return status;
        }
    }
    return 0;
}

static bool is_cursor(const uint64_t *cursor, const struct idem_filter *filter)
{
    uint64_t status = cursor[AT_STATUS];

    return cursor[AT_HAS_ID] <= 1 && cursor[AT_DEADLINE] <= INT64_MAX &&
           (index_serves(filter) ? status <= IDEM_STATUS_RELEASED
                                 : status == 0);
}

idem__state idem__pg_list(struct idem__pg_task *task)
{
    struct idem_op *op = task->base.op;
    const struct idem_filter *filter = &op->u.list.filter;
    uint64_t *cursor = op->u.list.cursor;
    struct idem__pg_request *request = idem__pg_ask(task, IDEM__PG_ASK_LIST);
    uint64_t limit = op->u.list.limit;

    if (!is_cursor(cursor, filter)) {
        return idem__flight_fail_with(&task->base, IDEM_EINVALID,
                                      "place: not one of a list of this store");
    }
    get_place(cursor, request);
    request->limit =
        limit == 0 || limit > LIST_PAGE ? LIST_PAGE : (int64_t)limit;
    if (!index_serves(filter)) {
        return IDEM__STATE_SEND;
    }
    if (cursor[AT_STATUS] == 0) {
        cursor[AT_STATUS] = next_status(wanted(filter), 0);
    }
    if (cursor[AT_STATUS] == 0) {
        op->u.list.now_ms = task->base.now->store_ms;
        op->u.list.done = true;
        return IDEM__STATE_DONE;
    }
    request->ask = IDEM__PG_ASK_LIST_STATUS;
    request->numbers[0] = (int64_t)cursor[AT_STATUS];
    request->numbers[2] =
        filter->expired ? task->base.now->store_ms : INT64_MAX;
    return IDEM__STATE_SEND;
}

/* Shows the rows of a page. False: the caller has had enough. */
static bool show(struct idem__pg_task *task)
{
    const PGresult *result = task->request.result;
    struct idem_op *op = task->base.op;
    int row;

    for (row = 0; row < PQntuples(result); row++) {
        struct idem__pg_row found;
        uint8_t id[IDEM_ID_LEN];
        int64_t deadline_ms = 0;
        int code;

        /* No key leads to a row without a valid id either. */
        if (!idem__pg_row_id(result, row, id)) {
            continue;
        }
        (void)idem__pg_row_deadline(result, row, &deadline_ms);
        put_place(op->u.list.cursor, id, deadline_ms);
        code = idem__pg_row_read(result, row, &found, NULL);
        if (!idem__verb_list_row(op, code, &found.record, task->base.now)) {
            return false;
        }
    }
    return true;
}

idem__state idem__pg_list_answered(struct idem__pg_task *task)
{
    struct idem_op *op = task->base.op;
    const struct idem_filter *filter = &op->u.list.filter;
    uint64_t *cursor = op->u.list.cursor;

    op->u.list.now_ms = task->base.now->store_ms;
    op->u.list.done = !show(task);
    if (!op->u.list.done &&
        PQntuples(task->request.result) < task->request.limit) {
        uint64_t status = index_serves(filter)
                              ? next_status(wanted(filter), cursor[AT_STATUS])
                              : 0;

        op->u.list.done = status == 0;
        if (status != 0) {
            cursor[AT_STATUS] = status;
            clear_place(cursor);
        }
    }
    return IDEM__STATE_DONE;
}

/* ---- Purges ---- */

/* The statuses that can expire. A purge goes on to the windows of limits after them. */
static const int64_t expiring[] = {
    IDEM_STATUS_COMPLETED, IDEM_STATUS_RELEASED,
    IDEM_STATUS_IN_PROGRESS, /* Under rerun, a retention after its lease. */
};

enum {
    EXPIRING = sizeof(expiring) / sizeof(expiring[0])
};

static int64_t sure_ms(const struct idem_now *now)
{
    return now->store_ms - now->store_err_ms - now->doubt_ms;
}

idem__state idem__pg_purge(struct idem__pg_task *task)
{
    struct idem_op *op = task->base.op;
    uint64_t *cursor = op->u.purge.cursor;
    struct idem__pg_request *request;

    op->u.purge.purged = 0;
    if (task->victims == NULL) {
        task->victims = idem__alloc(IDEM__PG_PAGE * sizeof(*task->victims));
    }
    if (task->victims == NULL) {
        return idem__flight_no_memory(&task->base);
    }
    if (cursor[AT_STATUS] >= EXPIRING) {
        return IDEM__STATE_PURGE_LIMITS;
    }
    task->purge_boot_ms = task->base.now->boot_ms;
    request = idem__pg_ask(task, IDEM__PG_ASK_LIST_STATUS);
    get_place(cursor, request);
    request->numbers[0] = expiring[cursor[AT_STATUS]];
    request->numbers[2] = sure_ms(task->base.now);
    request->limit = op->u.purge.max < IDEM__PG_PAGE ? (int64_t)op->u.purge.max
                                                     : IDEM__PG_PAGE;
    return IDEM__STATE_SEND;
}

/* Goes on to the next status after its last page. */
static idem__state leave_page(struct idem__pg_task *task)
{
    uint64_t *cursor = task->base.op->u.purge.cursor;

    if (task->last_page) {
        cursor[AT_STATUS]++;
        clear_place(cursor);
    }
    return IDEM__STATE_DONE;
}

idem__state idem__pg_purge_answered(struct idem__pg_task *task)
{
    const PGresult *result = task->request.result;
    int row;

    task->victims_len = 0;
    task->fence = 0;
    task->last_page = PQntuples(result) < task->request.limit;
    for (row = 0; row < PQntuples(result) && row < IDEM__PG_PAGE; row++) {
        struct idem__pg_row found;
        uint8_t id[IDEM_ID_LEN];
        int64_t deadline_ms = 0;

        if (!idem__pg_row_id(result, row, id)) {
            continue;
        }
        (void)idem__pg_row_deadline(result, row, &deadline_ms);
        put_place(task->base.op->u.purge.cursor, id, deadline_ms);
        /* Leave a record that cannot be trusted: a person may want to see it. */
        if (idem__pg_row_read(result, row, &found, NULL) == 0 &&
            idem__decide_expired(&found.record, task->base.now)) {
            struct idem__pg_victim *victim =
                &task->victims[task->victims_len++];

            memcpy(victim->id, id, sizeof(victim->id));
            memcpy(victim->tag, found.tag, sizeof(victim->tag));
            task->fence = found.record.fence > task->fence ? found.record.fence
                                                           : task->fence;
        }
    }
    if (task->victims_len == 0) {
        return leave_page(task);
    }
    return task->fence <= *task->env->known_floor ? IDEM__STATE_PURGE_GO
                                                  : IDEM__STATE_PURGE_RAISE;
}

/* Raises the fence floor before anything is deleted. A claim that began earlier may wait
 * for the record of another: if a purge deleted that record meanwhile, the claim would be
 * written with a fence that is not above the deleted one. PURGE_WAIT waits for those
 * claims.
 *
 * A fence is about the time at which it was given (decide_begin.c), so later pages have
 * greater ones. The first page raises the floor at least to a minute ago, which covers
 * most pages after it, and spares them both steps. */
idem__state idem__pg_purge_raise(struct idem__pg_task *task)
{
    struct idem__pg_request *request = idem__pg_ask(task, IDEM__PG_ASK_RAISE);
    int64_t old_ms = sure_ms(task->base.now) - LIVELY_MS;

    task->floor = task->fence;
    if (old_ms > 0 && (uint64_t)old_ms > task->floor) {
        task->floor = (uint64_t)old_ms;
    }
    request->numbers[0] = (int64_t)task->floor;
    return IDEM__STATE_SEND;
}

idem__state idem__pg_purge_raise_answered(struct idem__pg_task *task)
{
    int64_t number;

    if (idem__pg_number(task->request.result, 0, 0, &number) &&
        number - *task->env->purged_in <= 1) {
        *task->env->purged_in = number; /* Ours: no other has written since. */
    }
    return IDEM__STATE_PURGE_WAIT;
}

idem__state idem__pg_purge_wait_answered(struct idem__pg_task *task)
{
    *task->env->known_floor = task->floor > *task->env->known_floor
                                  ? task->floor
                                  : *task->env->known_floor;
    return IDEM__STATE_PURGE_GO;
}

idem__state idem__pg_purge_go(struct idem__pg_task *task)
{
    struct idem__pg_request *request = idem__pg_ask(task, IDEM__PG_ASK_PURGE);

    request->victims = task->victims;
    request->victims_len = task->victims_len;
    request->numbers[0] = (int64_t)task->fence;
    return IDEM__STATE_SEND;
}

/* Returns how long the purge rests. A slice keeps a processor of the server busy, so if
 * another transaction has written since the last slice, the purge rests for twice as long
 * as it worked, but not longer than REST_MAX_MS. */
static int64_t rest_after(struct idem__pg_task *task)
{
    int64_t took_ms = task->base.now->boot_ms - task->purge_boot_ms + 1;
    int64_t before = *task->env->purged_in;
    int64_t number = 0;

    if (!idem__pg_number(task->request.result, 0, 1, &number)) {
        return 0; /* The slice has written nothing. */
    }
    *task->env->purged_in = number;
    if (before == 0 || number - before <= 1) {
        return 0;
    }
    return took_ms > REST_MAX_MS / REST_TIMES ? REST_MAX_MS
                                              : took_ms * REST_TIMES;
}

idem__state idem__pg_purge_go_answered(struct idem__pg_task *task)
{
    int64_t purged = 0;
    int64_t floor = 0;

    if (!idem__pg_number(task->request.result, 0, 2, &floor) || floor < 0 ||
        (uint64_t)floor < task->fence) {
        /* After a failover this server lacks the raised floor, which the last one had
         * committed. PURGE has deleted nothing: raise the floor anew. */
        *task->env->known_floor = 0;
        return idem__flight_again(&task->base, IDEM__STATE_PURGE_RAISE,
                                  "the raised fence floor is not on record");
    }
    (void)idem__pg_number(task->request.result, 0, 0, &purged);
    task->base.op->u.purge.purged =
        purged < 0 || (size_t)purged > task->victims_len ? task->victims_len
                                                         : (uint64_t)purged;
    task->base.op->u.purge.rest_ms = rest_after(task);
    return leave_page(task);
}

idem__state idem__pg_purge_limits(struct idem__pg_task *task)
{
    struct idem__pg_request *request =
        idem__pg_ask(task, IDEM__PG_ASK_PURGE_LIMITS);

    request->numbers[0] = sure_ms(task->base.now);
    request->limit = IDEM__PG_PAGE;
    return IDEM__STATE_SEND;
}

idem__state idem__pg_purge_limits_answered(struct idem__pg_task *task)
{
    int64_t deleted = 0;

    (void)idem__pg_number(task->request.result, 0, 0, &deleted);
    task->base.op->u.purge.done = deleted < IDEM__PG_PAGE;
    if (task->base.op->u.purge.done) {
        task->base.op->u.purge.cursor[AT_STATUS] = 0;
    }
    return IDEM__STATE_DONE;
}
