/* Marks a store as restored from a copy.
 *
 * All of it happens under the lock: no caller may claim anything in a store that is
 * marked only in part. Other callers wait meanwhile, or are told that the store is busy.
 * The work is done in transactions of bounded size, so that memory and log stay small. If
 * a run dies, another call finishes it: a record that was changed is not changed again,
 * and the fences are raised last.
 *
 * The fences issued since the copy was made are unknown, but no fence of a store is above
 * its time in microseconds: a new life has the time in milliseconds or one more than an
 * earlier fence, and no commit takes less than a microsecond. So new fences start above
 * that. If the copy has higher fences, from an import or an earlier mark, they start
 * above those plus one for each microsecond since. */
#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "store/sqlite/store.h"

#include <idem/sqlite.h>
#include <stdio.h>
#include <time.h>

#define US_PER_MS 1000
#define FENCE_MAX                                                              \
    ((uint64_t)INT64_MAX / 2) /* The highest value that a clock row may hold. */

struct restore {
    struct idem__pass pass;
    struct idem_sqlite_restored told;
    struct idem_now now;
    char note[160];
    uint64_t fence; /* The highest fence on record. */
};

/* ---- Is the copy whole? ---- */

/* A log of the lost file beside the copy mixes two databases, so check the file first. */
static int check_file(const struct idem__pass *pass)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(pass->store->table.conn->db,
                                "PRAGMA integrity_check(1)", -1, &stmt, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
    }
    if (rc != SQLITE_ROW) {
        rc = idem__pass_fail(pass, rc);
    } else if (strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") != 0) {
        rc = idem__error(pass->error, IDEM_ECORRUPT,
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

static int draw(const struct restore *r, uint8_t *ret_bytes, size_t len)
{
    const struct idem_host *host = &r->pass.store->base.options.host;

    return host->random(host->ctx, ret_bytes, len) == 0
               ? 0
               : idem__error(r->pass.error, IDEM_EUNAVAILABLE,
                             "cannot read random bytes");
}

static void look_at(struct restore *r, const struct idem_record *record)
{
    if (record->fence > r->fence) {
        r->fence = record->fence;
    }
    newest(&r->told.known_ms, record->started_ms);
    newest(&r->told.known_ms, record->ended_ms);
}

static int decide(struct idem__pass *pass, const struct idem_record *record,
                  bool writes, struct idem_decision *ret_decision)
{
    struct restore *r = (struct restore *)pass;
    uint8_t nonce[16] = {0};
    int rc;

    if (record == NULL) {
        r->told.corrupt++;
        return 0;
    }
    if (!writes) {
        look_at(r, record);
        idem__decide_restored(record, nonce, idem_str(r->note), &r->now,
                              ret_decision);
        return 0;
    }
    rc = draw(r, nonce, sizeof(nonce));
    if (rc != 0) {
        return rc;
    }
    idem__decide_restored(record, nonce, idem_str(r->note), &r->now,
                          ret_decision);
    if (ret_decision->code != 0) {
        return idem__error(pass->error, ret_decision->code, "%s",
                           ret_decision->text);
    }
    if (record->status == IDEM_STATUS_IN_PROGRESS) {
        r->told.unknown++;
    } else {
        r->told.cut_off++;
    }
    return 0;
}

/* ---- Fences ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A floor above every fence that may have been issued. */
static uint64_t new_floor(const struct restore *r)
{
    int64_t found_ms = r->pass.store->found_ms;
    uint64_t known = (uint64_t)found_ms * US_PER_MS;
    uint64_t since = (uint64_t)(r->now.store_ms - found_ms + 1) * US_PER_MS;

    known = larger(known, larger(r->fence, r->pass.store->clock.fence_floor));
    return known < FENCE_MAX - since ? known + since : FENCE_MAX;
}

static int bind_row(sqlite3_stmt *stmt, const struct idem_sqlite_restored *told)
{
    (void)sqlite3_bind_int64(stmt, 2, told->known_ms);
    (void)sqlite3_bind_int64(stmt, 3, told->marked_ms);
    (void)sqlite3_bind_int64(stmt, 4, (sqlite3_int64)told->fence);
    return sqlite3_bind_blob(stmt, 1, told->id, sizeof(told->id),
                             SQLITE_STATIC);
}

/* Only files that were restored have the table. */
static int add_row(struct restore *r)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db = r->pass.store->table.conn->db;
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
                                "VALUES (NULL, ?1, ?2, ?3, ?4)",
                                -1, &stmt, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = bind_row(stmt, &r->told);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
    }
    r->told.times = (uint64_t)sqlite3_last_insert_rowid(db);
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int raise_fences(struct idem__pass *pass)
{
    struct restore *r = (struct restore *)pass;
    struct idem__sqlite_clock *clock = &pass->store->clock;
    int rc;

    r->told.fence = new_floor(r);
    clock->fence_floor = r->told.fence;
    rc = add_row(r);
    if (rc == SQLITE_OK) {
        rc = idem__clock_save(clock, pass->store->table.conn, &r->now);
    }
    return rc == SQLITE_OK ? 0 : idem__pass_fail(pass, rc);
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
    struct idem__sqlite_store *store = r->pass.store;
    bool save;
    int rc =
        idem__clock_load(&store->clock, store->table.conn, /* writer= */ true);

    if (rc != SQLITE_OK) {
        return idem__pass_fail(&r->pass, rc);
    }
    rc = draw(r, r->told.id, sizeof(r->told.id));
    if (rc != 0) {
        return rc;
    }
    rc = idem__clock_now(&store->clock, &store->base.options.host, &r->now,
                         &save, r->pass.error);
    r->told.marked_ms = r->now.store_ms;
    r->told.known_ms = store->found_ms;
    make_note(r);
    return rc;
}

static int mark(struct restore *r)
{
    struct idem__sqlite_store *store = r->pass.store;
    int rc = check_file(&r->pass);

    if (rc != 0) {
        return rc;
    }
    rc = read_clock(r);
    if (rc != 0) {
        return rc;
    }
    rc = idem__pass_run(&r->pass);
    if (rc != 0) {
        return rc;
    }
    rc = idem__pass_commit(&r->pass, raise_fences);
    if (rc != 0) {
        return rc;
    }
    /* The lock file accepts the store only now that all of it is marked. */
    if (idem__seen_set(store->lock, idem__clock_sure_ms(&r->now)) != 0 ||
        idem__making_accept(store, r->pass.error) != 0) {
        return idem__error(r->pass.error, IDEM_EUNKNOWN,
                           "the store is marked, but its lock file cannot be "
                           "written: mark it again once it can");
    }
    (void)sqlite3_wal_checkpoint_v2(store->table.conn->db, NULL,
                                    SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return 0;
}

static int mark_locked(struct idem__sqlite_store *store, struct restore *r)
{
    int rc = idem__sqlite_lock(store, r->pass.error);

    if (rc == 0) {
        r->pass.store = store;
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
    r->pass.doing = "mark the store as restored";
    r->pass.decide = decide;
    r->pass.progress = progress;
    r->pass.ctx = ctx;
    r->pass.error = ret_error;
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
