/* Reports facts about the file to operators, and sets the mark of a store that is
 * moved. */
#include "core/error.h"
#include "core/move.h"
#include "store/sqlite/store.h"

#include <idem/sqlite.h>
#include <stdio.h>
#include <sys/stat.h>

static uint64_t file_len(const char *path, const char *suffix)
{
    char name[IDEM__PATH_MAX + 8];
    struct stat st;

    (void)snprintf(name, sizeof(name), "%s%s", path, suffix);
    return stat(name, &st) == 0 ? (uint64_t)st.st_size : 0;
}

int idem_sqlite_disable_memory_count(void)
{
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK
               ? 0
               : IDEM_EINVALID;
}

static const char numbers_sql[] =
    "SELECT page_size, page_count, freelist_count, idem_clock.schema, last_ms,"
    " (SELECT count(*) FROM sqlite_schema WHERE name = 'idem_restore')"
    " FROM pragma_page_size, pragma_page_count, pragma_freelist_count,"
    " idem_clock";

/* Reads a row of numbers. SQLITE_OK, or a result code. */
static int read_numbers(struct idem__conn *conn, const char *sql,
                        int64_t *ret_numbers, int len)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(conn->db, sql, -1, &stmt, NULL);
    int i;

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
    }
    for (i = 0; rc == SQLITE_ROW && i < len; i++) {
        ret_numbers[i] = sqlite3_column_int64(stmt, i);
    }
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int count_records(struct idem__conn *conn, uint64_t *counts)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(
        conn->db,
        "SELECT status, count(*) FROM idem_record WHERE status <> 0 "
        "GROUP BY status UNION ALL "
        "SELECT 1, count(*) FROM idem_record WHERE " IDEM__NOT_IN_INDEX,
        -1, &stmt, NULL);

    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        int status = sqlite3_column_int(stmt, 0);

        if (status >= 0 && status <= IDEM_STATUS_RELEASED) {
            counts[status] += (uint64_t)sqlite3_column_int64(stmt, 1);
        }
        rc = SQLITE_OK;
    }
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int read_info(struct idem__conn *conn, bool count,
                     struct idem_sqlite_info *info, struct idem_error *error)
{
    int64_t numbers[6] = {0};
    int64_t restores[2] = {0};
    int rc = read_numbers(conn, numbers_sql, numbers, 6);

    if (rc == SQLITE_OK && count) {
        rc = count_records(conn, info->records);
    }
    /* Only files that were restored have the table. */
    if (rc == SQLITE_OK && numbers[5] > 0) {
        rc = read_numbers(conn,
                          "SELECT count(*), max(marked_ms) FROM idem_restore",
                          restores, 2);
    }
    if (rc != SQLITE_OK) {
        return idem__conn_fail(conn, rc, "read the store", error);
    }
    info->page_size = (uint64_t)numbers[0];
    info->pages = (uint64_t)numbers[1];
    info->pages_free = (uint64_t)numbers[2];
    info->schema = (unsigned)numbers[3];
    info->known_ms = numbers[4];
    info->restores = (uint64_t)restores[0];
    info->restored_ms = restores[1];
    return 0;
}

static int read_identity(const struct idem__sqlite_store *store,
                         struct idem__conn *conn, struct idem_sqlite_info *info,
                         struct idem_error *error)
{
    struct idem__identity noted;
    bool has = false;
    int rc;

    if (store->of_application) {
        return 0; /* It needs no lock file, and has no id. */
    }
    idem__identity_read(store->lock, &noted);
    rc = idem__schema_load_id(conn, &has, info->id, error);
    info->is_other = !has || memcmp(noted.id, info->id, sizeof(info->id)) != 0;
    return rc;
}

int idem__sqlite_inspect(struct idem_store *store, bool count,
                         struct idem_sqlite_info *ret_info,
                         struct idem_error *ret_error)
{
    struct idem__sqlite_store *s = (struct idem__sqlite_store *)store;
    struct idem_sqlite_info info = IDEM_SQLITE_INFO_INIT;
    struct idem__conn *conn;
    int64_t seen_ms;
    int rc;

    if (ret_info->size != sizeof(*ret_info)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "info: begin with IDEM_SQLITE_INFO_INIT");
    }
    rc = idem__sqlite_reader(store, &conn, ret_error);
    if (rc != 0) {
        return rc;
    }
    /* Read the note first: if it were read after later commits, it could be later than
     * the time read from the file. */
    seen_ms = s->of_application ? INT64_MIN : idem__seen_ms(s->lock);
    info.of_application = s->of_application;
    rc = read_info(conn, count, &info, ret_error);
    if (rc == 0) {
        rc = read_identity(s, conn, &info, ret_error);
    }
    idem__readers_give(s, conn);
    if (rc != 0) {
        return rc;
    }
    info.is_copy = seen_ms > info.known_ms;
    info.path = s->path;
    info.file_len = file_len(s->path, "");
    info.wal_len = file_len(s->path, "-wal");
    *ret_info = info;
    return 0;
}

int idem_sqlite_inspect(struct idem_store *store,
                        struct idem_sqlite_info *ret_info,
                        struct idem_error *ret_error)
{
    return idem__sqlite_inspect(store, /* count= */ true, ret_info, ret_error);
}

static int read_clock(struct idem__sqlite_store *store, struct idem__conn *conn,
                      int64_t *ret_jump_ms, int64_t *ret_doubt_ms,
                      struct idem_error *error)
{
    struct idem__sqlite_clock clock;
    struct idem_now now;
    bool moved;
    int rc;

    idem__clock_init(&clock);
    rc = idem__clock_load(&clock, conn, /* writer= */ false);
    if (rc != SQLITE_OK) {
        rc = idem__conn_fail(conn, rc, "read the clock", error);
    } else if (idem__clock_peek(&clock, &store->base.options.host, &now,
                                &moved) != 0) {
        rc = idem__error(error, IDEM_EUNAVAILABLE, "cannot read the clock");
    } else {
        *ret_jump_ms = clock.anchor.jump_ms;
        *ret_doubt_ms = now.doubt_ms;
    }
    idem__clock_finish(&clock);
    return rc;
}

int idem_sqlite_clock(struct idem_store *store, int64_t *ret_jump_ms,
                      int64_t *ret_doubt_ms, struct idem_error *ret_error)
{
    struct idem__sqlite_store *s = (struct idem__sqlite_store *)store;
    struct idem__conn *conn;
    int rc = idem__sqlite_reader(store, &conn, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = read_clock(s, conn, ret_jump_ms, ret_doubt_ms, ret_error);
    idem__readers_give(s, conn);
    return rc;
}

/* ---- The mark of a store that is moved, in the row of the clock ---- */

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
        return idem__sqlite_write_failed(&store->table, op, rc,
                                         "mark the store");
    }
    /* A store that was left must not answer from memory either. */
    store->table.ends_replays = true;
    return true;
}
