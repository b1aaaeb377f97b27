/* Sets the store's time back after it ran ahead.
 *
 * Store time never goes back by itself, so if a clock that counted as synchronized was
 * ahead when a host booted, the store follows it for good. A person who knows better sets
 * it back to the clock of this host. That breaks no promise:
 *
 * - fences: the floor is raised to the time that the store had, and each new life has a
 *   fence above the floor.
 * - leases: the boot clock, which nobody can set, counts a lease of this boot; any other
 *   ends at most a lease length from now.
 * - memory: a record that ended "later than now" is kept for a whole retention from now.
 *
 * The clock comes first, then the records, in transactions of bounded size. In the other
 * order a clock that is still ahead would judge records whose retention already counts
 * from the true time: if this process died in between, the next caller would find them
 * expired. This way a record is kept for too long at worst, and a caller waits for a
 * lease of another boot no longer than its length and half an hour. If a run dies,
 * another call finishes it. */
#include "base/heap.h"
#include "base/host.h"
#include "core/decide.h"
#include "core/error.h"
#include "store/sqlite/store.h"

#include <idem/sqlite.h>

struct setting {
    struct idem__pass pass;
    struct idem_clock_reading reading;
    struct idem_now now; /* The store's time after the change. */
    int64_t from_ms;
};

/* A record that cannot be trusted is left as it is. */
static int decide(struct idem__pass *pass, const struct idem_record *record,
                  bool writes, struct idem_decision *ret_decision)
{
    (void)writes;
    if (record != NULL) {
        idem__decide_clock_back(record, &((struct setting *)pass)->now,
                                ret_decision);
    }
    return 0;
}

static int save_clock(struct idem__pass *pass)
{
    struct setting *s = (struct setting *)pass;
    struct idem__sqlite_clock *clock = &pass->store->clock;
    struct idem__conn *conn = pass->store->table.conn;
    int rc;

    if (clock->fence_floor < (uint64_t)s->from_ms) {
        clock->fence_floor = (uint64_t)s->from_ms;
    }
    idem__clock_set(clock, &s->reading, s->now.store_ms);
    rc = idem__clock_save(clock, conn, &s->now);
    rc = rc == SQLITE_OK ? idem__sqlite_purge_forget(conn) : rc;
    return rc == SQLITE_OK ? 0 : idem__pass_fail(pass, rc);
}

/* Set the note first: if it were later than the store's new time, the store would pass
 * for an older copy. */
static int set_time(struct setting *s)
{
    struct idem__sqlite_store *store = s->pass.store;
    int rc;

    if (idem__seen_set(store->lock, s->now.store_ms) != 0) {
        return idem__error(s->pass.error, IDEM_EUNAVAILABLE,
                           "the store's lock file cannot be written; nothing "
                           "was changed");
    }
    rc = idem__making_accept(store, s->pass.error);
    return rc == 0 ? idem__pass_commit(&s->pass, save_clock) : rc;
}

/* Reads the time of the store, and the time to set. */
static int read_times(struct setting *s)
{
    struct idem__sqlite_store *store = s->pass.store;
    const struct idem_host *host = &store->base.options.host;
    bool save;
    int rc =
        idem__clock_load(&store->clock, store->table.conn, /* writer= */ true);

    if (rc != SQLITE_OK) {
        return idem__pass_fail(&s->pass, rc);
    }
    rc = idem__clock_now(&store->clock, host, &s->now, &save, s->pass.error);
    if (rc == 0 && host->clock(host->ctx, &s->reading) != 0) {
        rc = idem__error(s->pass.error, IDEM_EUNAVAILABLE,
                         "cannot read the clock");
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
    int rc = idem__sqlite_lock(s->pass.store, s->pass.error);

    if (rc != 0) {
        return rc;
    }
    rc = read_times(s);
    if (rc != 0) {
        goto done;
    }
    if (s->now.store_ms < s->from_ms) {
        rc = set_time(s);
        if (rc != 0) {
            goto done;
        }
    }
    /* Pass over the records even if the time is right: a call that died may have left
     * some. */
    rc = idem__pass_run(&s->pass);

done:
    idem__lock_release(s->pass.store->lock);
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
    s->pass.error = ret_error;
    s->pass.doing = "set the clock";
    s->pass.decide = decide;
    rc = idem_sqlite_open(path, &ours, &store, ret_error);
    if (rc != 0) {
        goto done;
    }
    s->pass.store = (struct idem__sqlite_store *)store;
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
