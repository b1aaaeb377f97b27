/* Answers ops for which a read is enough, without the lock. */
#include "core/error.h"
#include "store/sqlite/store.h"

#include <idem/queue.h>

bool idem__sqlite_reads_only(const struct idem__sqlite_store *store)
{
    return (store->base.options.flags & IDEM_OPEN_READONLY) != 0;
}

/* Store time for a read. The anchor that this process knows may be of an earlier boot:
 * then the file has the newer one, or a writer must make it. Without @conn, for an answer
 * from memory, the file is not read. */
static int peek_clock(struct idem__sqlite_store *store, struct idem__conn *conn,
                      struct idem_now *ret_now, bool *ret_moved)
{
    const struct idem_host *host = &store->base.options.host;
    int rc = idem__clock_peek(&store->clock, host, ret_now, ret_moved);

    if (rc == 0 && *ret_moved && conn != NULL &&
        idem__clock_load(&store->clock, conn, /* writer= */ false) ==
            SQLITE_OK) {
        rc = idem__clock_peek(&store->clock, host, ret_now, ret_moved);
    }
    return rc;
}

/* One snapshot of the file, for all ops and everything that they read. */
struct view {
    struct idem__sqlite_store *store;
    struct idem__sqlite_table table;
    bool several;
    bool begun;
    bool has_time; /* The next two are set. */
    struct idem_now now;
    bool moved;
    bool has_generation;
    uint64_t generation;
    /* The generation is older than the view: records that it reads may be kept. */
    bool keeps;
};

/* Take it before anything is answered from memory and, if a record is to be kept,
 * before the view opens: it must be older than the records read. */
static uint64_t view_generation(struct view *view)
{
    if (!view->has_generation) {
        view->generation = idem__files_generation(view->store);
        view->has_generation = true;
    }
    return view->generation;
}

/* True if @op is from a waiter that looks again: nearly always it changes nothing, and a
 * thousand of them must not stand in line with the writers. */
static bool is_waiter(const struct idem_op *op)
{
    return op->verb == IDEM_OP_BEGIN &&
           (op->u.begin.join_fence != 0 ||
            (op->u.begin.flags & IDEM_WAIT_THEN_RUN) != 0);
}

/* True if the reads of @op need a transaction. For several ops it saves SQLite's locks. A
 * limit and a waiter read more than one row, from one snapshot. For a claim, the
 * statement on its row keeps the snapshot, and a claim without a row needs the writer
 * anyway. */
static bool needs_transaction(const struct view *view, const struct idem_op *op)
{
    return view->several || op->verb == IDEM_OP_LIMIT ||
           (op->verb == IDEM_OP_BEGIN && op->u.begin.join_fence != 0);
}

/* Opens the view. False: no connection, or no transaction. With @wait it waits for a
 * connection, or opens one. Without it, only a waiter waits, and only for a connection
 * that others use: it does not wait for the lock that opening another one takes. */
static bool view_open(struct view *view, struct idem_op *op, bool wait)
{
    struct idem__sqlite_store *store = view->store;
    struct idem__conn *conn = view->table.conn;
    int rc;

    if (conn != NULL) {
        return true;
    }
    view->keeps = view->has_generation;
    conn = idem__readers_take(store, wait, &op->error);
    if (conn == NULL && is_waiter(op)) {
        conn = idem__readers_await(store);
    }
    if (conn == NULL) {
        return false;
    }
    idem__sqlite_before_read(store);
    if (needs_transaction(view, op)) {
        rc = idem__conn_run(conn, IDEM__SQL_READ);
        if (rc != SQLITE_OK) {
            (void)idem__conn_fail(conn, rc, "read the store", &op->error);
            idem__readers_give(store, conn);
            return false;
        }
        view->begun = true;
    }
    view->table.conn = conn;
    return true;
}

static void view_close(struct view *view)
{
    struct idem__conn *conn = view->table.conn;

    if (conn == NULL) {
        return;
    }
    if (view->begun && idem__conn_run(conn, IDEM__SQL_COMMIT) != SQLITE_OK) {
        (void)idem__conn_run(conn, IDEM__SQL_ROLLBACK);
    }
    idem__readers_give(view->store, conn);
}

static int view_clock(struct view *view)
{
    struct idem__conn *conn = view->table.conn;
    int rc = 0;

    if (!view->has_time) {
        rc = peek_clock(view->store, conn, &view->now, &view->moved);
        view->has_time = rc == 0 && (conn != NULL || !view->moved);
    }
    return rc;
}

/* After a move neither a replay nor a claim would know of later changes in the new
 * store, so both are refused. 0 or a code. */
static int view_mark(struct view *view, struct idem_error *error)
{
    struct idem__conn *conn = view->table.conn;
    int rc = idem__clock_mark(conn);

    view->now.mark = conn->mark;
    return rc == SQLITE_OK
               ? 0
               : idem__conn_fail(conn, rc, "read the store's mark", error);
}

/* Loads the record, and the mark from the same snapshot. A later load of the bodies needs
 * no mark. */
static int load_with_mark(void *ctx, const uint8_t *id, bool with_bodies,
                          struct idem_record *ret_record,
                          struct idem_error *ret_error)
{
    struct view *view = ctx;
    struct idem_table records = idem__sqlite_table_of(&view->table);
    int rc = records.load(records.ctx, id, with_bodies, ret_record, ret_error);
    int mark_rc = 0;

    if (!with_bodies && (rc == 1 || (rc == 0 && view->begun))) {
        mark_rc = view_mark(view, ret_error);
    }
    return mark_rc != 0 ? mark_rc : rc;
}

/* Answers @op from memory, without SQLite, by the state of the record now. */
static bool recall(struct view *view, struct idem_op *op)
{
    struct idem__sqlite_store *store = view->store;

    if (store->replays == NULL || op->verb != IDEM_OP_BEGIN) {
        return false;
    }
    if (!idem__replays_has(store->replays, op->id)) {
        if (idem__replays_asked(store->replays, op->id)) {
            (void)view_generation(view);
        }
        return false;
    }
    return idem__generation_is_settled(view_generation(view)) &&
           view_clock(view) == 0 && !view->moved &&
           idem__replays_answer(store->replays, op, view->generation,
                                &view->now);
}

/* Keeps the answer of @op for the next caller. */
static void remember(struct view *view, const struct idem_op *op)
{
    struct idem__sqlite_store *store = view->store;

    if (view->keeps && op->error.code == 0 && op->verdict == IDEM_REPLAY) {
        idem__replays_keep(store->replays, op, view->generation,
                           idem__files_generation(store), IDEM_NEVER);
    }
}

/* Answers @op on the caller's thread if a read is enough. */
static bool look(struct view *view, struct idem_op *op)
{
    struct idem__sqlite_store *store = view->store;
    bool must = op->verb == IDEM_OP_GET || op->verb == IDEM_OP_LIST ||
                op->verb == IDEM_OP_COUNT ||
                (op->verb == IDEM_OP_BEGIN && idem__sqlite_reads_only(store));
    struct idem_table records = idem__sqlite_table_of(&view->table);
    struct idem_table marked = {.load = load_with_mark, .ctx = view};
    struct idem__conn *conn;
    bool answered = true;

    if (!must && op->verb != IDEM_OP_BEGIN && op->verb != IDEM_OP_LIMIT) {
        return false;
    }
    if (!view_open(view, op, must)) {
        /* A claim can still be made under the lock, where the error shows again. */
        return must;
    }
    conn = view->table.conn;
    if (op->verb == IDEM_OP_COUNT && store->of_application) {
        (void)idem__op_fail(op, IDEM_ENOTFOUND,
                            "an application's database keeps no counters");
    } else if (op->verb == IDEM_OP_COUNT) {
        idem__counters_answer(&store->counters, conn, op);
    } else if (view_clock(view) != 0) {
        (void)idem__op_fail(op, IDEM_EUNAVAILABLE,
                            "cannot read the clock; nothing was done");
    } else if (op->verb == IDEM_OP_LIST) {
        idem__sqlite_list(conn, op, &view->now);
        view->has_time = false; /* It may have taken long. */
    } else if (op->verb == IDEM_OP_GET) {
        answered = idem__table_peek(&records, op, &view->now);
    } else if (op->verb == IDEM_OP_LIMIT) {
        /* Where the mark cannot be read, the writer says what is wrong. */
        answered = !view->moved && view_mark(view, &op->error) == 0 &&
                   idem__sqlite_limit_peek(conn, op, &view->now);
    } else {
        answered =
            (must || !view->moved) && idem__table_peek(&marked, op, &view->now);
        if (answered) {
            remember(view, op);
        }
    }
    idem__sqlite_table_reset(&view->table);
    return answered;
}

/* If nearly all claims are new, reading first is in vain: then only the write
 * transaction reads. */
static bool is_worth_a_peek(struct idem__sqlite_store *store,
                            const struct idem_op *op)
{
    return (op->verb != IDEM_OP_BEGIN && op->verb != IDEM_OP_LIMIT) ||
           idem__sqlite_reads_only(store) || is_waiter(op) ||
           __atomic_load_n(&store->new_in_a_row, __ATOMIC_RELAXED) <
               IDEM__NEW_IN_A_ROW;
}

void idem__sqlite_peek(struct idem__sqlite_store *store, struct idem_op **ops,
                       size_t *n)
{
    struct view view = {.store = store, .several = *n > 1};
    struct idem_op *answered = NULL;
    struct idem_op **end = &answered;
    size_t left = 0;
    size_t i;

    for (i = 0; i < *n; i++) {
        struct idem_op *op = ops[i];

        if (recall(&view, op) ||
            (is_worth_a_peek(store, op) && look(&view, op))) {
            idem__counters_note(&store->counters, op);
            op->next = NULL;
            *end = op;
            end = &op->next;
        } else {
            ops[left++] = op;
        }
    }
    view_close(&view);
    idem__op_answer_all(answered);
    *n = left;
}

bool idem__sqlite_answer_alone(struct idem__sqlite_store *store,
                               struct idem_op *op)
{
    struct view view = {.store = store};
    bool answered = look(&view, op);

    view_close(&view);
    return answered;
}
