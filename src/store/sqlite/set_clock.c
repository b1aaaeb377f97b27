/* Sets the store's time back, where it ran ahead.
 *
 * Store time never goes back by itself, so a clock that was ahead when a host
 * booted, and was said to be right, is followed for good. A person who knows
 * better sets it back to the clock of this host. That gives nothing away:
 *
 * - fences: the floor is raised to the time that is left, and each new life has a
 *   fence above the floor.
 * - leases: one of this boot is counted by the boot clock, which nobody sets; the
 *   end of any other is at most a lease from now.
 * - memory: what ended "later than now" is kept for a whole retention from now.
 *
 * The clock comes first, then the records, in transactions of bounded size. The
 * other way round a record would for a while be kept until a retention from now by
 * a clock that is still ahead, and whoever came then, after a death in between,
 * would find it over. This way it is kept for too long at worst, and no lease of
 * another boot is waited for longer than its length and half an hour. A run
 * that was begun and not finished is finished by another call.
 */
#include "base/heap.h"
#include "base/host.h"
#include "core/decide.h"
#include "core/error.h"
#include "store/sqlite/store.h"

#include <idem/sqlite.h>

enum {
    COLUMN_ID = 6,
    PAGE_ROWS = 500
};

struct setting {
    struct idem__sqlite_store *store;
    struct idem_error *error;
    struct idem_clock_reading reading;
    struct idem_now now; /* From then on. */
    int64_t from_ms;
    int64_t seq; /* Of the row that was looked at last. */
    size_t len;  /* Those of the page that must change. */
    uint8_t ids[PAGE_ROWS][IDEM_ID_LEN];
};

static struct idem__conn *conn_of(const struct setting *s)
{
    return s->store->table.conn;
}

static int fail(const struct setting *s, int sqlite_rc)
{
    return idem__conn_fail(conn_of(s), sqlite_rc, "set the clock", s->error);
}

static void look_at(struct setting *s, sqlite3_stmt *stmt)
{
    const void *id = sqlite3_column_blob(stmt, COLUMN_ID);
    struct idem_decision decision;
    struct idem_record record;

    if (sqlite3_column_bytes(stmt, COLUMN_ID) != IDEM_ID_LEN ||
        idem__row_decode(stmt, id, &record, NULL) != 0) {
        return; /* A record that cannot be trusted is left as it is. */
    }
    idem__decide_clock_back(&record, &s->now, &decision);
    if (decision.change != IDEM_CHANGE_NONE) {
        memcpy(s->ids[s->len++], id, IDEM_ID_LEN);
    }
}

/* Looks at the next rows. *@ret_more: there were any. 0 or a code. */
static int look_at_page(struct setting *s, bool *ret_more)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn_of(s), IDEM__SQL_WALK_ALL);
    int rc;

    s->len = 0;
    *ret_more = false;
    (void)sqlite3_bind_int64(stmt, 1, s->seq);
    (void)sqlite3_bind_int64(stmt, 2, PAGE_ROWS);
    while ((rc = idem__conn_step(conn_of(s), stmt)) == SQLITE_ROW) {
        s->seq = sqlite3_column_int64(stmt, 0);
        *ret_more = true;
        look_at(s, stmt);
    }
    idem__conn_reset(conn_of(s), IDEM__SQL_WALK_ALL);
    return rc == SQLITE_DONE ? 0 : fail(s, rc);
}

static int change(struct setting *s, const uint8_t id[IDEM_ID_LEN])
{
    struct idem_table table = idem__sqlite_table_of(&s->store->table);
    struct idem_decision decision;
    struct idem_record record;
    int rc =
        table.load(table.ctx, id, /* with_bodies= */ false, &record, s->error);

    if (rc < 0) {
        return rc;
    }
    idem__decide_clock_back(&record, &s->now, &decision);
    return table.save(table.ctx, &decision, s->error);
}

static int change_page(struct setting *s)
{
    int rc = 0;
    size_t i;

    for (i = 0; i < s->len && rc == 0; i++) {
        rc = change(s, s->ids[i]);
    }
    idem__sqlite_table_reset(&s->store->table);
    return rc;
}

static int save_clock(struct setting *s)
{
    struct idem__sqlite_clock *clock = &s->store->clock;
    int rc;

    if (clock->fence_floor < (uint64_t)s->from_ms) {
        clock->fence_floor = (uint64_t)s->from_ms;
    }
    idem__clock_set(clock, &s->reading, s->now.store_ms);
    rc = idem__clock_save(clock, conn_of(s), &s->now);
    rc = rc == SQLITE_OK ? idem__sqlite_purge_forget(conn_of(s)) : rc;
    return rc == SQLITE_OK ? 0 : fail(s, rc);
}

/* Runs @work in a transaction of its own. 0 or a code. */
static int in_transaction(struct setting *s, int (*work)(struct setting *s))
{
    int rc = idem__conn_run(conn_of(s), IDEM__SQL_BEGIN);

    if (rc != SQLITE_OK) {
        return fail(s, rc);
    }
    rc = work(s);
    if (rc == 0) {
        rc = idem__conn_run(conn_of(s), IDEM__SQL_COMMIT);
        rc = rc == SQLITE_OK ? 0 : fail(s, rc);
    }
    if (rc != 0) {
        (void)idem__conn_run(conn_of(s), IDEM__SQL_ROLLBACK);
    }
    return rc;
}

/* How new the store is must not be noted as later than the store will say. */
static int lower_note(const struct setting *s)
{
    return idem__seen_set(s->store->lock, s->now.store_ms) != 0
               ? idem__error(s->error, IDEM_EUNAVAILABLE,
                             "the store's lock file cannot be written; nothing "
                             "was changed")
               : idem__making_accept(s->store, s->error);
}

static int set_time(struct setting *s)
{
    int rc = lower_note(s);

    return rc == 0 ? in_transaction(s, save_clock) : rc;
}

static int set_records(struct setting *s)
{
    bool more = true;
    int rc = 0;

    while (rc == 0 && more) {
        rc = look_at_page(s, &more);
        if (rc == 0 && s->len > 0) {
            rc = in_transaction(s, change_page);
            idem__sqlite_checkpoint(s->store);
        }
    }
    return rc;
}

/* From when to when? */
static int read_times(struct setting *s)
{
    struct idem__sqlite_store *store = s->store;
    const struct idem_host *host = &store->base.options.host;
    bool save;
    int rc = idem__clock_load(&store->clock, conn_of(s), /* writer= */ true);

    if (rc != SQLITE_OK) {
        return fail(s, rc);
    }
    rc = idem__clock_now(&store->clock, host, &s->now, &save, s->error);
    if (rc == 0 && host->clock(host->ctx, &s->reading) != 0) {
        rc = idem__error(s->error, IDEM_EUNAVAILABLE, "cannot read the clock");
    }
    s->from_ms = s->now.store_ms;
    if (s->reading.wall_ms < s->from_ms) {
        s->now.store_ms = s->reading.wall_ms > 1 ? s->reading.wall_ms : 1;
    }
    s->now.doubt_ms = 0;
    return rc;
}

static int set_locked(struct setting *s)
{
    struct idem__sqlite_store *store = s->store;
    int64_t deadline_ms =
        idem__time_add(idem__mono_ms(), store->base.options.timeout_ms);
    int rc = idem__lock_acquire(store->lock, deadline_ms, s->error);

    if (rc != 0) {
        return rc;
    }
    rc = read_times(s);
    if (rc != 0) {
        goto done;
    }
    if (s->now.store_ms < s->from_ms) {
        rc = set_time(s);
    }
    if (rc != 0) {
        goto done;
    }
    /* Even where the time is right: records may be left of a call that died. */
    rc = set_records(s);
done:
    idem__lock_release(store->lock);
    return rc;
}

int idem_sqlite_set_clock(const char *path,
                          const struct idem_open_options *options,
                          int64_t *ret_from_ms, int64_t *ret_to_ms,
                          struct idem_error *ret_error)
{
    struct idem_open_options ours = IDEM_OPEN_OPTIONS_INIT;
    struct idem_store *store;
    struct setting *s;
    int rc;

    if (options != NULL) {
        ours = *options;
    }
    ours.flags |= IDEM_OPEN_NO_CREATE;
    s = idem__zalloc(sizeof(*s));
    if (s == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    s->error = ret_error;
    rc = idem_sqlite_open(path, &ours, &store, ret_error);
    if (rc != 0) {
        goto done;
    }
    s->store = (struct idem__sqlite_store *)store;
    rc = set_locked(s);
    idem_close(store);
    if (rc != 0) {
        goto done;
    }
    *ret_from_ms = s->from_ms;
    *ret_to_ms = s->now.store_ms;
done:
    idem__free(s);
    return rc;
}
