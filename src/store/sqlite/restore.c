/* A file that was put back from a copy is marked as such.
 *
 * All of it happens under the lock: nobody may claim anything in a store that is
 * marked in part. Other callers wait meanwhile, or are told that it is busy. It
 * is done in transactions of bounded size, so that memory and log stay small. A
 * run that was begun and not finished is finished by another call: a record
 * that was changed is not changed again, and the new fences come last.
 *
 * The fences that were given out since the copy was made are not known, but no
 * fence of a store is above its time in microseconds: a new life has the time in
 * milliseconds or one more than a fence before it, and no commit takes less than
 * a microsecond. So from here on they are counted from there. Where the copy has
 * higher ones, from an import or an earlier mark, one is added for each
 * microsecond since.
 */
#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "store/sqlite/store.h"

#include <idem/sqlite.h>
#include <stdio.h>
#include <time.h>

enum {
    COLUMN_ID = 6,
    PAGE_ROWS = 500
};
#define US_PER_MS 1000
#define FENCE_MAX                                                              \
    ((uint64_t)INT64_MAX / 2) /* The values that a clock row may
                                               hold. */

struct restore {
    struct idem__sqlite_store *store;
    idem_sqlite_progress_fn *progress;
    void *ctx;
    struct idem_error *error;
    struct idem_sqlite_restored told;
    struct idem_now now;
    char note[160];
    uint64_t fence;   /* The highest that is on record. */
    int64_t seq;      /* Of the row that was looked at last. */
    uint64_t rows;    /* That were looked at. */
    size_t turns_len; /* Those of the page that must change. */
    uint8_t turns[PAGE_ROWS][IDEM_ID_LEN];
};

static struct idem__conn *conn_of(const struct restore *r)
{
    return r->store->table.conn;
}

static int fail(const struct restore *r, int sqlite_rc)
{
    return idem__conn_fail(conn_of(r), sqlite_rc, "mark the store as restored",
                           r->error);
}

/* ---- Is the copy whole? ---- */

/* A log of the lost file beside the copy makes one database of two. */
static int check_file(const struct restore *r)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(conn_of(r)->db, "PRAGMA integrity_check(1)", -1,
                                &stmt, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
    }
    if (rc != SQLITE_ROW) {
        rc = fail(r, rc);
    } else if (strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") != 0) {
        rc = idem__error(r->error, IDEM_ECORRUPT,
                         "the file is damaged; nothing was marked: %.150s",
                         (const char *)sqlite3_column_text(stmt, 0));
    } else {
        rc = 0;
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* ---- Records ---- */

static void newest(int64_t *known_ms, int64_t ms)
{
    if (ms > *known_ms && ms != IDEM_NEVER) {
        *known_ms = ms;
    }
}

static void decide(const struct restore *r, const struct idem_record *record,
                   const uint8_t nonce[16], struct idem_decision *ret_decision)
{
    idem__decide_restored(record, nonce, idem_str(r->note), &r->now,
                          ret_decision);
}

static void look_at(struct restore *r, sqlite3_stmt *stmt)
{
    static const uint8_t no_nonce[16];
    const void *id = sqlite3_column_blob(stmt, COLUMN_ID);
    struct idem_decision decision;
    struct idem_record record;

    if (sqlite3_column_bytes(stmt, COLUMN_ID) != IDEM_ID_LEN ||
        idem__row_decode(stmt, id, &record, NULL) != 0) {
        r->told.corrupt++;
        return;
    }
    if (record.fence > r->fence) {
        r->fence = record.fence;
    }
    newest(&r->told.known_ms, record.started_ms);
    newest(&r->told.known_ms, record.ended_ms);
    decide(r, &record, no_nonce, &decision);
    if (decision.change != IDEM_CHANGE_NONE) {
        memcpy(r->turns[r->turns_len++], id, IDEM_ID_LEN);
    }
}

/* Looks at the next rows. *@ret_more: there were any. 0 or a code. */
static int look_at_page(struct restore *r, bool *ret_more)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn_of(r), IDEM__SQL_WALK_ALL);
    uint64_t before = r->rows;
    int rc;

    r->turns_len = 0;
    (void)sqlite3_bind_int64(stmt, 1, r->seq);
    (void)sqlite3_bind_int64(stmt, 2, PAGE_ROWS);
    while ((rc = idem__conn_step(conn_of(r), stmt)) == SQLITE_ROW) {
        r->seq = sqlite3_column_int64(stmt, 0);
        r->rows++;
        look_at(r, stmt);
    }
    idem__conn_reset(conn_of(r), IDEM__SQL_WALK_ALL);
    *ret_more = r->rows > before;
    return rc == SQLITE_DONE ? 0 : fail(r, rc);
}

/* In a transaction. 0 or a code. */
static int turn_one(struct restore *r, const uint8_t id[IDEM_ID_LEN])
{
    const struct idem_host *host = &r->store->base.options.host;
    struct idem_table table = idem__sqlite_table_of(&r->store->table);
    struct idem_decision decision;
    struct idem_record record;
    uint8_t nonce[16];
    int rc;

    if (host->random(host->ctx, nonce, sizeof(nonce)) != 0) {
        return idem__error(r->error, IDEM_EUNAVAILABLE,
                           "cannot read random bytes");
    }
    rc = table.load(table.ctx, id, /* with_bodies= */ false, &record, r->error);
    if (rc < 0) {
        return rc;
    }
    decide(r, &record, nonce, &decision);
    if (decision.code != 0) {
        return idem__error(r->error, decision.code, "%s", decision.text);
    }
    rc = table.save(table.ctx, &decision, r->error);
    if (rc == 0 && record.status == IDEM_STATUS_IN_PROGRESS) {
        r->told.unknown++;
    } else if (rc == 0) {
        r->told.cut_off++;
    }
    return rc;
}

static int turn_all(struct restore *r)
{
    int rc = 0;
    size_t i;

    for (i = 0; i < r->turns_len && rc == 0; i++) {
        rc = turn_one(r, r->turns[i]);
        IDEM__CRASH_POINT("sqlite/restore/turned");
    }
    idem__sqlite_table_reset(&r->store->table);
    return rc;
}

/* Runs @work in a transaction of its own. 0 or a code. */
static int in_transaction(struct restore *r, int (*work)(struct restore *r))
{
    int rc = idem__conn_run(conn_of(r), IDEM__SQL_BEGIN);

    if (rc != SQLITE_OK) {
        return fail(r, rc);
    }
    rc = work(r);
    if (rc == 0) {
        IDEM__CRASH_POINT("sqlite/restore/before-commit");
        rc = idem__conn_run(conn_of(r), IDEM__SQL_COMMIT);
        rc = rc == SQLITE_OK ? 0 : fail(r, rc);
    }
    if (rc != 0) {
        (void)idem__conn_run(conn_of(r), IDEM__SQL_ROLLBACK);
    }
    IDEM__CRASH_POINT("sqlite/restore/committed");
    return rc;
}

static int mark_records(struct restore *r)
{
    bool more = true;
    int rc = 0;

    while (rc == 0 && more) {
        rc = look_at_page(r, &more);
        if (rc == 0 && r->turns_len > 0) {
            rc = in_transaction(r, turn_all);
            idem__sqlite_checkpoint(r->store);
        }
        if (rc == 0 && more && r->progress != NULL) {
            r->progress(r->ctx, r->rows);
        }
    }
    return rc;
}

/* ---- Fences ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Above every fence that may have been given out. */
static uint64_t new_floor(const struct restore *r)
{
    int64_t found_ms = r->store->found_ms;
    uint64_t known = (uint64_t)found_ms * US_PER_MS;
    uint64_t since = (uint64_t)(r->now.store_ms - found_ms + 1) * US_PER_MS;

    known = larger(known, larger(r->fence, r->store->clock.fence_floor));
    return known < FENCE_MAX - since ? known + since : FENCE_MAX;
}

static int bind_row(sqlite3_stmt *stmt, const struct restore *r)
{
    const struct idem_sqlite_restored *told = &r->told;
    int rc =
        sqlite3_bind_blob(stmt, 1, told->id, sizeof(told->id), SQLITE_STATIC);

    rc = rc != SQLITE_OK ? rc : sqlite3_bind_int64(stmt, 2, told->known_ms);
    rc = rc != SQLITE_OK ? rc : sqlite3_bind_int64(stmt, 3, told->marked_ms);
    return rc != SQLITE_OK
               ? rc
               : sqlite3_bind_int64(stmt, 4, (sqlite3_int64)told->fence);
}

/* The table is in those files alone that were ever put back. */
static int add_row(struct restore *r)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db = conn_of(r)->db;
    int rc = sqlite3_exec(db,
                          "CREATE TABLE IF NOT EXISTS idem_restore ("
                          "  n INTEGER PRIMARY KEY,"
                          "  id BLOB NOT NULL,"
                          "  known_ms INTEGER NOT NULL,"
                          "  marked_ms INTEGER NOT NULL,"
                          "  fence INTEGER NOT NULL"
                          ") STRICT",
                          NULL, NULL, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_prepare_v2(db,
                                "INSERT INTO idem_restore "
                                "VALUES (NULL, ?1, ?2, ?3, ?4) RETURNING n",
                                -1, &stmt, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = bind_row(stmt, r);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
    }
    if (rc == SQLITE_ROW) {
        r->told.times = (uint64_t)sqlite3_column_int64(stmt, 0);
        rc = sqlite3_step(stmt);
    }
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int raise_fences(struct restore *r)
{
    struct idem__sqlite_clock *clock = &r->store->clock;
    int rc;

    r->told.fence = new_floor(r);
    clock->fence_floor = r->told.fence;
    rc = add_row(r);
    if (rc == SQLITE_OK) {
        rc = idem__clock_save(clock, conn_of(r), &r->now);
    }
    return rc == SQLITE_OK ? 0 : fail(r, rc);
}

/* ---- All of it ---- */

static void make_note(struct restore *r)
{
    time_t seconds = (time_t)(r->told.known_ms / 1000);
    char text[32] = "";
    struct tm tm;

    if (gmtime_r(&seconds, &tm) != NULL) {
        (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    (void)snprintf(
        r->note, sizeof(r->note),
        "the store was restored from a copy of about %s, which does not have "
        "its outcome",
        text);
}

static int read_clock(struct restore *r)
{
    struct idem__sqlite_store *store = r->store;
    const struct idem_host *host = &store->base.options.host;
    bool save;
    int rc = idem__clock_load(&store->clock, conn_of(r), /* writer= */ true);

    if (rc != SQLITE_OK) {
        return fail(r, rc);
    }
    if (host->random(host->ctx, r->told.id, sizeof(r->told.id)) != 0) {
        return idem__error(r->error, IDEM_EUNAVAILABLE,
                           "cannot read random bytes");
    }
    rc = idem__clock_now(&store->clock, host, &r->now, &save, r->error);
    r->told.marked_ms = r->now.store_ms;
    r->told.known_ms = store->found_ms;
    make_note(r);
    return rc;
}

static int mark(struct restore *r)
{
    int rc = check_file(r);

    if (rc != 0) {
        return rc;
    }
    rc = read_clock(r);
    if (rc != 0) {
        return rc;
    }
    rc = mark_records(r);
    if (rc != 0) {
        return rc;
    }
    rc = in_transaction(r, raise_fences);
    if (rc != 0) {
        return rc;
    }
    if (idem__seen_set(r->store->lock, idem__clock_sure_ms(&r->now)) != 0 ||
        idem__making_accept(r->store, r->error) != 0) {
        return idem__error(r->error, IDEM_EUNKNOWN,
                           "the store is marked, but its lock file cannot be "
                           "written: mark it again once it can");
    }
    (void)sqlite3_wal_checkpoint_v2(conn_of(r)->db, NULL,
                                    SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return 0;
}

static int mark_locked(struct idem__sqlite_store *store, struct restore *r)
{
    int64_t deadline_ms =
        idem__time_add(idem__mono_ms(), store->base.options.timeout_ms);
    int rc = idem__lock_acquire(store->lock, deadline_ms, r->error);

    if (rc == 0) {
        r->store = store;
        rc = mark(r);
        idem__lock_release(store->lock);
    }
    return rc;
}

static int restore(const char *path, bool may_lose,
                   idem_sqlite_progress_fn *progress, void *ctx,
                   struct idem_sqlite_restored *ret_restored,
                   struct idem_error *ret_error)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem__sqlite_store *store;
    struct restore *r;
    int rc;

    if (ret_restored->size != sizeof(*ret_restored)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "restored: begin with IDEM_SQLITE_RESTORED_INIT");
    }
    r = idem__zalloc(sizeof(*r));
    if (r == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    r->progress = progress;
    r->ctx = ctx;
    r->error = ret_error;
    r->told.size = sizeof(r->told);
    options.flags = may_lose ? 0 : IDEM_OPEN_NO_CREATE;
    rc = idem__sqlite_open_copy(path, &options, may_lose, &store, ret_error);
    if (rc != 0) {
        goto done;
    }
    rc = mark_locked(store, r);
    idem_close(&store->base);
    if (rc != 0) {
        goto done;
    }
    *ret_restored = r->told;
done:
    idem__free(r);
    return rc;
}

int idem_sqlite_mark_restored(const char *path,
                              idem_sqlite_progress_fn *progress, void *ctx,
                              struct idem_sqlite_restored *ret_restored,
                              struct idem_error *ret_error)
{
    return restore(path, /* may_lose= */ false, progress, ctx, ret_restored,
                   ret_error);
}

int idem_sqlite_accept_loss(const char *path, idem_sqlite_progress_fn *progress,
                            void *ctx,
                            struct idem_sqlite_restored *ret_restored,
                            struct idem_error *ret_error)
{
    return restore(path, /* may_lose= */ true, progress, ctx, ret_restored,
                   ret_error);
}
