/* The mark of a store that is moved, in the row of the clock. */
#include "core/move.h"

#include "store/sqlite/store.h"

static int save(struct idem__sqlite_store *store, const struct idem_op *op,
                const struct idem_now *now)
{
    struct idem__sqlite_clock *clock = &store->clock;
    struct idem__conn *conn = store->table.conn;
    sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_MARK_SAVE);
    struct idem_now raised = *now;

    (void)sqlite3_bind_text(stmt, 1, clock->mark, -1, SQLITE_STATIC);
    if (clock->fence_floor < op->u.move.fence_floor) {
        clock->fence_floor = op->u.move.fence_floor;
    }
    if (raised.store_ms < op->u.move.store_ms) {
        struct idem_clock_reading reading = {.boot_ms = now->boot_ms};

        memcpy(reading.boot_id, now->boot_id, sizeof(reading.boot_id));
        raised.store_ms = op->u.move.store_ms;
        raised.doubt_ms = 0;
        idem__clock_set(clock, &reading, raised.store_ms);
    }
    return idem__conn_run(conn, IDEM__SQL_MARK_SAVE) != SQLITE_OK
               ? sqlite3_errcode(conn->db)
               : idem__clock_save(clock, conn, &raised);
}

bool idem__sqlite_move(struct idem__sqlite_store *store, struct idem_op *op,
                       const struct idem_now *now)
{
    int rc;

    if (!idem__move_run(op, store->clock.mark, now)) {
        return false;
    }
    rc = save(store, op, now);
    if (rc != SQLITE_OK) {
        store->table.sqlite_rc = rc;
        (void)idem__conn_fail(store->table.conn, rc, "mark the store",
                              &op->error);
        return false;
    }
    return true;
}
