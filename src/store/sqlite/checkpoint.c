/* When the log is carried into the file.
 *
 * SQLite appends each commit to the log (PATH-wal), and a checkpoint copies its
 * pages into the file. The next commit begins the log anew if all of it was copied
 * and no reader is in it. A reader with an open transaction prevents both: the log
 * grows until that transaction ends, and each checkpoint meanwhile costs as much as
 * the log is long, because SQLite sorts its index first. So one that was refused is
 * tried again only after
 *
 *     max(CHECKPOINT_PAGES, log / 8)
 *
 * new pages: per page that costs the same, however long the log is, and a log that
 * may shrink again is an eighth longer at most.
 *
 * A log that is copied and still has readers is begun anew by nobody as long as one
 * of them is always there, and the readers of busy processes overlap. Readers that
 * come after the copy do not use the log, so it is enough to wait for those that
 * are there (SQLITE_CHECKPOINT_RESTART). RESTART_WAIT_MS outlasts readers that wait
 * for a processor, and not one with an open transaction. All writers wait
 * meanwhile: so it is done every RESTART_PAUSE_MS at most, and twice as seldom
 * after each time that was in vain. A process that lives for less never waits.
 *
 * The length at which a checkpoint was refused is noted in the lock file, at 256,
 * most significant byte first, for all processes: each `idem run` would try it once
 * more otherwise. It is a hint. What is longer than the log is of a log before.
 */
#include "base/bytes.h"
#include "base/crash.h"
#include "base/host.h"
#include "store/sqlite/store.h"

#include <limits.h>
#include <unistd.h>

enum {
    CHECKPOINT_PAGES = 2000,
    CLOSE_CHECKPOINT_PAGES = 100,
    CLOSE_WAIT_MS = 100,
    RESTART_WAIT_MS = 40,
    RESTART_PAUSE_MS = 400,
    RESTART_PAUSE_MAX_MS = 32000,
    NOTE_AT = 256,
    NOTE_LEN = 4
};

static int refused_at(const struct idem__lock *lock, int pages)
{
    uint8_t note[NOTE_LEN];
    uint32_t noted;

    if (pread(idem__lock_fd(lock), note, NOTE_LEN, NOTE_AT) !=
        (ssize_t)NOTE_LEN) {
        return 0;
    }
    noted = idem__get_u32(note);
    return noted <= (uint32_t)pages ? (int)noted : 0;
}

static void note_refused(const struct idem__lock *lock, int pages)
{
    uint8_t note[NOTE_LEN];

    idem__put_u32(note, (uint32_t)pages);
    (void)!pwrite(idem__lock_fd(lock), note, NOTE_LEN, NOTE_AT);
}

/* Whether a checkpoint that is due after @step pages is due now. */
static bool is_due(const struct idem__sqlite_store *store, int step)
{
    int pages = store->table.conn->wal_pages;
    int refused;

    if (pages < step) {
        return false;
    }
    refused = refused_at(store->lock, pages);
    if (refused == 0) {
        return true;
    }
    if (step < CHECKPOINT_PAGES) {
        step = CHECKPOINT_PAGES;
    }
    return pages - refused >= (refused / 8 > step ? refused / 8 : step);
}

/* A page that cannot be carried over now stays in the log, where it is as
 * durable. */
static void carry(struct idem__sqlite_store *store, int how)
{
    struct idem__conn *conn = store->table.conn;
    int rc = sqlite3_wal_checkpoint_v2(conn->db, NULL, how, NULL, NULL);

    if (rc == SQLITE_OK) {
        if (refused_at(store->lock, INT_MAX) != 0) {
            note_refused(store->lock, 0);
        }
        conn->wal_pages = 0;
    } else {
        note_refused(store->lock, conn->wal_pages);
    }
}

/* Whether the pause before the next wait for readers is over; the first one begins
 * with the first long log. */
static bool may_wait(struct idem__sqlite_store *store)
{
    struct idem__restart *restart = &store->restart;

    if (store->table.conn->wal_pages < CHECKPOINT_PAGES) {
        return false;
    }
    if (restart->pause_ms == 0) {
        restart->pause_ms = RESTART_PAUSE_MS;
        restart->next_ms = idem__mono_ms() + RESTART_PAUSE_MS;
    }
    return idem__mono_ms() >= restart->next_ms;
}

static void note_wait(struct idem__restart *restart, bool was_in_vain)
{
    if (!was_in_vain) {
        restart->pause_ms = RESTART_PAUSE_MS;
    } else if (restart->pause_ms < RESTART_PAUSE_MAX_MS) {
        restart->pause_ms *= 2;
    }
    restart->next_ms = idem__mono_ms() + restart->pause_ms;
}

void idem__sqlite_checkpoint(struct idem__sqlite_store *store)
{
    struct idem__conn *conn = store->table.conn;
    bool wait;

    if (conn == NULL) {
        return;
    }
    wait = may_wait(store);
    if (!wait && !is_due(store, CHECKPOINT_PAGES)) {
        return;
    }
    IDEM__CRASH_POINT("sqlite/checkpoint/before");
    idem__conn_patience(conn, wait ? RESTART_WAIT_MS : 0);
    carry(store, SQLITE_CHECKPOINT_RESTART);
    idem__conn_patience(conn, INT64_MAX);
    if (wait) {
        note_wait(&store->restart, conn->wal_pages != 0);
    }
    IDEM__CRASH_POINT("sqlite/checkpoint/after");
}

void idem__sqlite_tidy(struct idem__sqlite_store *store)
{
    struct idem__conn *conn = store->table.conn;
    bool count;
    bool long_log;

    if (conn == NULL || store->broken) {
        return;
    }
    count = idem__counters_left(&store->counters);
    /* On a full disk the blocks of the log are worth more than the time. */
    long_log = !store->reserve.lacking && is_due(store, CLOSE_CHECKPOINT_PAGES);
    if ((!count && !long_log) ||
        idem__lock_acquire(store->lock,
                           idem__mono_ms() + (count ? CLOSE_WAIT_MS : 0),
                           NULL) != 0) {
        return;
    }
    IDEM__CRASH_POINT("sqlite/tidy/locked");
    idem__conn_patience(conn, 0);
    if (count) {
        idem__counters_flush(&store->counters, conn);
        IDEM__CRASH_POINT("sqlite/tidy/counted");
    }
    if (long_log) {
        carry(store, SQLITE_CHECKPOINT_TRUNCATE);
        IDEM__CRASH_POINT("sqlite/tidy/carried");
    }
    idem__lock_release(store->lock);
}
