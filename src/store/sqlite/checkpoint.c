/* Decides when the log is copied into the file.
 *
 * SQLite appends each commit to the log (PATH-wal), and a checkpoint copies its pages
 * into the file. The next commit starts the log from its beginning if all of it was
 * copied and no reader is in it. A reader with an open transaction prevents both: the log
 * grows until that transaction ends, and each checkpoint meanwhile costs as much as the
 * log is long, because SQLite sorts its index first. So a checkpoint that was refused is
 * tried again only after
 *
 *     max(CHECKPOINT_PAGES, log / 8)
 *
 * new pages: each page then costs the same, however long the log is, and a log that may
 * shrink again is an eighth longer at most.
 *
 * No commit restarts a log that is copied as long as a reader is in it, and the readers
 * of busy processes overlap, so that there is always one. Readers that come after the
 * copy do not use the log, so it is enough to wait for those that are there
 * (SQLITE_CHECKPOINT_RESTART). RESTART_WAIT_MS outlasts readers that wait for a
 * processor, but not a reader with an open transaction. All writers wait meanwhile, so a
 * store waits every RESTART_PAUSE_MS at most, and half as often after each wait that met
 * the same reader. A process that lives for less never waits.
 *
 * The pages of a large store lie far apart: to copy and flush them takes tens of
 * milliseconds, with the lock held. So a long log is first offered (struct
 * idem__group_ops: a chore) to a leader that hands leadership on, and copies the log
 * beside the next batches; only what they have written meanwhile is then copied under the
 * lock. SQLite allows one copy at a time, and writers beside it.
 *
 *     NONE -> OFFERED -> RUNNING -> DONE -> NONE
 *                 \---------------------------^   no leader took it: copied under the lock
 *
 * A lone caller has no other thread to leave the copy to. A log in which a reader was in
 * the way is not offered either.
 *
 * SQLite does not flush a copy that stops before the end of the log, and goes on from
 * there. If the flush at the end fails, the kernel may have dropped any page that was
 * copied since the last flush, and the next flush would succeed: so the log is copied
 * from its beginning again (copy_again()).
 *
 * A reader that begins anew as soon as it has ended is in the log at every look: SQLite
 * polls, with pauses, and the reader holds the same mark each time. So a checkpoint that
 * waits asks readers to keep out, for RESTART_WAIT_MS or until it is over. The end of
 * that time is in the lock file at 260, as the low 32 bits of CLOCK_MONOTONIC in
 * milliseconds, most significant byte first. A reader looks there before it begins, and
 * waits. A time that is further away is out of date, or of another boot.
 *
 * A wait that failed, but copied more of the log than the wait before, met other readers,
 * such as readers that wait for a processor: it is tried again after the same pause. If
 * it copied no more, the same reader is still there.
 *
 * The length at which a checkpoint was refused is noted in the lock file at 256, most
 * significant byte first, for all processes: otherwise each `idem run` would try it once
 * more. It is a hint. A note that is greater than the log is long is of an earlier
 * log. */
#include "base/bytes.h"
#include "base/crash.h"
#include "base/host.h"
#include "store/sqlite/store.h"

#include <limits.h>
#include <time.h>
#include <unistd.h>

enum {
    CHECKPOINT_PAGES = 2000,
    /* From this length on, the log is not left to a copy that runs. */
    COPY_PAGES_MAX = 8000,
    CLOSE_CHECKPOINT_PAGES = 100,
    CLOSE_WAIT_MS = 100,
    RESTART_WAIT_MS = 40,
    RESTART_PAUSE_MS = 400,
    RESTART_PAUSE_MAX_MS = 32000,
    KEEP_OUT_LOOK_US = 500,
    KEEP_OUT_AT = 260,
    REFUSED_AT = 256,
    NOTE_LEN = 4,

    /* Of SQLite's index of the log, https://sqlite.org/walformat.html. */
    SHM_REGION = 32768,
    SHM_FRAMES_AT = 16,   /* How many frames are in the log: 32 bits. */
    SHM_BACKFILL_AT = 96, /* How many frames were copied: 32 bits. */
    SHM_CHECKPOINT_LOCK = 1
};

/* A number in the lock file; 0: none. */
static uint32_t read_note(const struct idem__lock *lock, off_t at)
{
    uint8_t note[NOTE_LEN];

    return pread(idem__lock_fd(lock), note, NOTE_LEN, at) == (ssize_t)NOTE_LEN
               ? idem__get_u32(note)
               : 0;
}

static void write_note(const struct idem__lock *lock, off_t at, uint32_t number)
{
    uint8_t note[NOTE_LEN];

    idem__put_u32(note, number);
    (void)!pwrite(idem__lock_fd(lock), note, NOTE_LEN, at);
}

static int refused_at(const struct idem__lock *lock, int pages)
{
    uint32_t noted = read_note(lock, REFUSED_AT);

    return noted <= (uint32_t)pages ? (int)noted : 0;
}

/* True if a checkpoint that comes every @step pages is due now. */
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

static bool is_to_keep_out(const struct idem__lock *lock)
{
    uint32_t until = read_note(lock, KEEP_OUT_AT);

    return until != 0 &&
           until - (uint32_t)idem__mono_ms() - 1 < RESTART_WAIT_MS;
}

/* Waits for a bounded number of looks, whatever the note says and however often it is
 * written anew. */
void idem__sqlite_before_read(const struct idem__sqlite_store *store)
{
    const struct timespec look = {.tv_nsec = KEEP_OUT_LOOK_US * 1000L};
    const int most = RESTART_WAIT_MS * 1000 / KEEP_OUT_LOOK_US;
    int looks = 0;

    while (store->lock != NULL && looks++ < most &&
           is_to_keep_out(store->lock)) {
        (void)nanosleep(&look, NULL);
    }
}

static sqlite3_file *file_of(const struct idem__conn *conn)
{
    sqlite3_file *file = NULL;

    (void)sqlite3_file_control(conn->db, "main", SQLITE_FCNTL_FILE_POINTER,
                               &file);
    return file != NULL && file->pMethods != NULL ? file : NULL;
}

/* The 32 bits at @at of SQLite's index of the log; NULL: it has none. */
static uint32_t volatile *index_word(sqlite3_file *file, size_t at)
{
    void volatile *index = NULL;

    return file != NULL && file->pMethods->iVersion >= 2 &&
                   file->pMethods->xShmMap(file, 0, SHM_REGION, 0, &index) ==
                       SQLITE_OK &&
                   index != NULL
               ? (uint32_t volatile *)index + at / sizeof(uint32_t)
               : NULL;
}

uint32_t idem__sqlite_log_frames(const struct idem__conn *conn)
{
    uint32_t volatile *frames = index_word(file_of(conn), SHM_FRAMES_AT);

    return frames == NULL ? 0 : __atomic_load_n(frames, __ATOMIC_RELAXED);
}

/* Makes the next checkpoint copy all of the log. */
static void copy_again(const struct idem__conn *conn)
{
    sqlite3_file *file = file_of(conn);
    uint32_t volatile *copied = index_word(file, SHM_BACKFILL_AT);

    if (copied == NULL ||
        file->pMethods->xShmLock(file, SHM_CHECKPOINT_LOCK, 1,
                                 SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE) !=
            SQLITE_OK) {
        return;
    }
    __atomic_store_n(copied, 0, __ATOMIC_SEQ_CST);
    (void)file->pMethods->xShmLock(file, SHM_CHECKPOINT_LOCK, 1,
                                   SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
}

/* Copies the log into the file. A page that cannot be copied now stays in the log, where
 * it is as durable. SQLITE_BUSY: a reader is in the way, and *@ret_copied frames of the
 * log are copied. */
static int carry(struct idem__sqlite_store *store, int how, int *ret_copied)
{
    struct idem__conn *conn = store->table.conn;
    int rc = sqlite3_wal_checkpoint_v2(conn->db, NULL, how, NULL, ret_copied);

    if (rc == SQLITE_OK) {
        if (refused_at(store->lock, INT_MAX) != 0) {
            write_note(store->lock, REFUSED_AT, 0);
        }
        conn->wal_pages = 0;
    } else {
        if (idem__sqlite_is_io(rc)) {
            copy_again(conn);
        }
        write_note(store->lock, REFUSED_AT, (uint32_t)conn->wal_pages);
    }
    return rc;
}

/* True if the pause before the next wait for readers is over. The first pause begins with
 * the first long log. */
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

static void note_wait(struct idem__restart *restart, bool was_fruitless,
                      int copied)
{
    if (!was_fruitless || copied != restart->copied) {
        restart->pause_ms = RESTART_PAUSE_MS;
    } else if (restart->pause_ms < RESTART_PAUSE_MAX_MS) {
        restart->pause_ms *= 2;
    }
    restart->copied = copied;
    restart->next_ms = idem__mono_ms() + restart->pause_ms;
}

static bool move_copy(struct idem__sqlite_store *store, enum idem__copy from,
                      enum idem__copy to)
{
    int expected = (int)from;

    return __atomic_compare_exchange_n(&store->copy, &expected, (int)to, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* True if the log is left to a leader that copies it beside the writers, or may do so. */
static bool is_left_to_others(struct idem__sqlite_store *store)
{
    int pages = store->table.conn->wal_pages;

    switch (__atomic_load_n(&store->copy, __ATOMIC_ACQUIRE)) {
    case IDEM__COPY_NONE:
        return refused_at(store->lock, pages) == 0 &&
               move_copy(store, IDEM__COPY_NONE, IDEM__COPY_OFFERED);
    case IDEM__COPY_OFFERED:
        /* No leader has taken it since: take the offer back, and copy under the lock. */
        return !move_copy(store, IDEM__COPY_OFFERED, IDEM__COPY_NONE);
    case IDEM__COPY_RUNNING:
        return pages < COPY_PAGES_MAX;
    default:
        (void)move_copy(store, IDEM__COPY_DONE, IDEM__COPY_NONE);
        return false;
    }
}

bool idem__sqlite_take_copy(struct idem_store *base)
{
    return move_copy((struct idem__sqlite_store *)base, IDEM__COPY_OFFERED,
                     IDEM__COPY_RUNNING);
}

/* Flushes the file. SQLite flushes it only with the last page of the log, and finds most
 * of it flushed then. */
static int flush_file(struct idem__conn *conn)
{
    sqlite3_file *file = file_of(conn);

    return file == NULL ? SQLITE_OK
                        : file->pMethods->xSync(file, SQLITE_SYNC_NORMAL |
                                                          SQLITE_SYNC_DATAONLY);
}

void idem__sqlite_copy(struct idem_store *base)
{
    struct idem__sqlite_store *store = (struct idem__sqlite_store *)base;
    struct idem_error error;
    struct idem__conn *conn =
        idem__readers_take(store, /* wait= */ false, &error);

    if (conn != NULL) {
        int rc =
            sqlite3_wal_checkpoint_v2(conn->db, NULL, SQLITE_CHECKPOINT_PASSIVE,
                                      NULL, NULL);

        rc = rc == SQLITE_OK ? flush_file(conn) : rc;
        if (idem__sqlite_is_io(rc)) {
            copy_again(conn);
        }
        idem__readers_give(store, conn);
    }
    (void)move_copy(store, IDEM__COPY_RUNNING, IDEM__COPY_DONE);
}

void idem__sqlite_checkpoint(struct idem__sqlite_store *store)
{
    struct idem__conn *conn = store->table.conn;
    bool wait;
    int copied;
    int rc;

    if (conn == NULL) {
        return;
    }
    wait = may_wait(store);
    if (!wait && !is_due(store, CHECKPOINT_PAGES)) {
        return;
    }
    if (is_left_to_others(store)) {
        return;
    }
    IDEM__CRASH_POINT("sqlite/checkpoint/before");
    idem__conn_patience(conn, 0);
    rc = carry(store, SQLITE_CHECKPOINT_RESTART, &copied);
    /* A reader is in the way, and it is time to wait for it: keep new readers out
     * meanwhile. */
    if (wait && (rc & 0xff) == SQLITE_BUSY) {
        write_note(store->lock, KEEP_OUT_AT,
                   (uint32_t)(idem__mono_ms() + RESTART_WAIT_MS));
        idem__conn_patience(conn, RESTART_WAIT_MS);
        rc = carry(store, SQLITE_CHECKPOINT_RESTART, &copied);
        write_note(store->lock, KEEP_OUT_AT, 0);
        note_wait(&store->restart, rc != SQLITE_OK, copied);
    }
    idem__conn_patience(conn, INT64_MAX);
    IDEM__CRASH_POINT("sqlite/checkpoint/after");
}

/* From now on a log that is emptied keeps its blocks for the next process, unless it has
 * many: log_vfs.c. */
static void keep_blocks(const struct idem__conn *conn)
{
    int keep = 1;

    (void)sqlite3_file_control(conn->db, "main", SQLITE_FCNTL_PERSIST_WAL,
                               &keep);
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
    /* On a full disk leave the log as it is: other programs could take the blocks that an
     * emptied log frees. */
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
        keep_blocks(conn);
        (void)carry(store, SQLITE_CHECKPOINT_TRUNCATE, NULL);
        IDEM__CRASH_POINT("sqlite/tidy/carried");
    }
    idem__lock_release(store->lock);
}
