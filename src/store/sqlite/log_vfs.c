/* A VFS for SQLite, on top of the system's own, that writes each commit to the log in one
 * call.
 *
 * SQLite writes each frame of the log in two pieces, its head and its page: eight calls
 * for a commit of four pages. This VFS gathers adjacent pieces, and writes them together:
 *
 *     SQLite on the log                    the gathered pieces
 *     writes to its end                    grow
 *     writes elsewhere, or more than fits  are written; the new piece starts anew
 *     flushes, reads, sizes, truncates     are written first
 *     takes or releases the write lock     are dropped
 *
 * With synchronous = FULL, SQLite flushes the log before it publishes the frames of a
 * commit in its index. So gathered frames are always of a transaction that no reader has
 * seen: if they cannot be written, the flush fails and with it the commit, and a process
 * that dies loses nothing else. Nothing is gathered with any other setting, nor between a
 * flush and the end of the transaction: on a disk without the trait
 * SQLITE_IOCAP_POWERSAFE_OVERWRITE SQLite publishes some of what it writes there.
 *
 * When a connection begins to read, SQLite moves one of four marks to the last frame: it
 * locks the mark, writes it, and unlocks it. For a transaction that lasts a moment an
 * older mark serves as well: it only keeps a checkpoint, meanwhile, from copying the
 * frames after it. So while a mark is less than NEAR_FRAMES old, a writer is told that
 * the marks are in use (SQLITE_BUSY), and takes one as it is, which saves two calls for
 * each commit. Readers move a mark each time, because the log must be copied to its end
 * even while there are always readers.
 *
 * Frames that are left when the writer releases its lock are of a transaction that was
 * rolled back. They must not be written any more, because other writers use that place.
 *
 * Growing a file costs the file system two to four times as much as writing over its
 * blocks. Processes that live for one operation empty the log every few commits, and
 * would grow it each time. So a short log that SQLite truncates keeps its blocks: only
 * its header is overwritten, without which none of its frames counts. This needs no more
 * order than the truncation does: whether or not the new header survives a power cut, all
 * of the log was copied and flushed before. The frames are never cut off in part, because
 * the rest would be an older state. */
#include "store/sqlite/store.h"

enum {
    GATHER_MAX = 64 * 1024, /* 15 pages. */
    KEPT_MAX = 1 << 20,     /* The longest empty log that keeps its blocks. */
    NEAR_FRAMES = 32,

    /* https://sqlite.org/walformat.html, 2.3, and fileformat2.html, 4.1. */
    WRITE_LOCK = 0,
    CHECKPOINT_LOCK = 1,
    MARK_LOCKS = 4, /* Of the marks 1 to 4. */
    MARKS = 4,
    LOG_HEADER = 32,

    /* Places in the index: walformat.html, 2.1 and 2.2; in words of 32 bits. */
    INDEX_LEN = 32768,
    FRAMES_WORD = 4,
    MARK_WORDS = 26
};

/* The file of the system's VFS follows ours in memory. */
struct file {
    sqlite3_file base;
    sqlite3_io_methods methods;
    sqlite3_file *real;

    /* A database and its log point to each other. */
    struct file *log;      /* NULL: the log is not open, or this is a log. */
    struct file *database; /* NULL: this is not a log. */
    bool is_full;          /* Of a database: its commits flush the log. */
    bool keeps_log;        /* Its log keeps its blocks when it is emptied. */
    bool only_reads;       /* Its connection only reads. */
    bool checkpoints;      /* Its connection copies the log now. */

    /* Of a log: */
    bool is_flushed; /* Since the write lock was taken. */
    uint8_t *bytes;  /* GATHER_MAX; NULL: none were needed yet. */
    size_t len;      /* Gathered bytes that are not written yet, ... */
    int64_t at;      /* ... and their place in the file. */
};

static sqlite3_vfs *system_vfs;

static sqlite3_file *real(sqlite3_file *file)
{
    return ((struct file *)file)->real;
}

/* ---- What is gathered ---------------------------------------------------- */

/* Writes the gathered bytes, and drops them even if that fails: SQLite then rolls the
 * transaction back. */
static int write_out(sqlite3_file *file)
{
    struct file *f = (struct file *)file;
    size_t len = f->len;

    f->len = 0;
    return len == 0
               ? SQLITE_OK
               : f->real->pMethods->xWrite(f->real, f->bytes, (int)len, f->at);
}

/* True if pieces may be gathered. Without memory they are written as they come. The
 * memory is SQLite's, like that of its cache. */
static bool may_gather(struct file *f)
{
    if (f->database == NULL || !f->database->is_full || f->is_flushed) {
        return false;
    }
    if (f->bytes == NULL) {
        f->bytes = sqlite3_malloc(GATHER_MAX);
    }
    return f->bytes != NULL;
}

static int gather(sqlite3_file *file, const void *bytes, size_t len, int64_t at)
{
    struct file *f = (struct file *)file;

    if (at != f->at + (int64_t)f->len || len > GATHER_MAX - f->len) {
        int rc = write_out(file);

        if (rc != SQLITE_OK) {
            return rc;
        }
        f->at = at;
    }
    memcpy(f->bytes + f->len, bytes, len);
    f->len += len;
    return SQLITE_OK;
}

/* ---- A file -------------------------------------------------------------- */

static int file_close(sqlite3_file *file)
{
    struct file *f = (struct file *)file;

    sqlite3_free(f->bytes);
    if (f->database != NULL) {
        f->database->log = NULL;
    }
    return f->real->pMethods->xClose(f->real);
}

static int file_read(sqlite3_file *file, void *buf, int len, sqlite3_int64 at)
{
    int rc = write_out(file);

    return rc != SQLITE_OK
               ? rc
               : real(file)->pMethods->xRead(real(file), buf, len, at);
}

static int file_write(sqlite3_file *file, const void *buf, int len,
                      sqlite3_int64 at)
{
    int rc;

    if (may_gather((struct file *)file) && len <= GATHER_MAX) {
        return gather(file, buf, (size_t)len, at);
    }
    rc = write_out(file);
    return rc != SQLITE_OK
               ? rc
               : real(file)->pMethods->xWrite(real(file), buf, len, at);
}

/* True if an emptied log may keep its length. */
static bool is_kept(const struct file *f)
{
    sqlite3_int64 len = 0;

    return f->database != NULL && f->database->keeps_log &&
           f->real->pMethods->xFileSize(f->real, &len) == SQLITE_OK &&
           len > LOG_HEADER && len <= KEPT_MAX;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 len)
{
    static const uint8_t no_header[LOG_HEADER];
    int rc = write_out(file);

    if (rc == SQLITE_OK && len == 0 && is_kept((struct file *)file)) {
        return real(file)->pMethods->xWrite(real(file), no_header, LOG_HEADER,
                                            0);
    }
    return rc != SQLITE_OK ? rc
                           : real(file)->pMethods->xTruncate(real(file), len);
}

static int file_sync(sqlite3_file *file, int flags)
{
    int rc = write_out(file);

    ((struct file *)file)->is_flushed = true;
    return rc != SQLITE_OK ? rc
                           : real(file)->pMethods->xSync(real(file), flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_len)
{
    int rc = write_out(file);

    return rc != SQLITE_OK
               ? rc
               : real(file)->pMethods->xFileSize(real(file), ret_len);
}

static int file_lock(sqlite3_file *file, int level)
{
    return real(file)->pMethods->xLock(real(file), level);
}

static int file_unlock(sqlite3_file *file, int level)
{
    return real(file)->pMethods->xUnlock(real(file), level);
}

static int file_check_lock(sqlite3_file *file, int *ret_held)
{
    return real(file)->pMethods->xCheckReservedLock(real(file), ret_held);
}

/* SQLite passes each PRAGMA to the file of the database first: its name and its value. */
static int file_control(sqlite3_file *file, int op, void *arg)
{
    if (op == SQLITE_FCNTL_PERSIST_WAL && *(const int *)arg > 0) {
        ((struct file *)file)->keeps_log = true;
    }
    if (op == SQLITE_FCNTL_PRAGMA) {
        const char *const *pragma = arg;

        if (strcmp(pragma[1], "synchronous") == 0 && pragma[2] != NULL) {
            ((struct file *)file)->is_full = strcmp(pragma[2], "FULL") == 0;
        } else if (strcmp(pragma[1], "query_only") == 0) {
            ((struct file *)file)->only_reads = true;
        }
    }
    return real(file)->pMethods->xFileControl(real(file), op, arg);
}

static int file_sector_size(sqlite3_file *file)
{
    return real(file)->pMethods->xSectorSize(real(file));
}

static int file_traits(sqlite3_file *file)
{
    return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

static int file_shm_map(sqlite3_file *file, int region, int size, int extend,
                        void volatile **ret_map)
{
    return real(file)->pMethods->xShmMap(real(file), region, size, extend,
                                         ret_map);
}

static uint32_t word_of(const void volatile *index, size_t at)
{
    return __atomic_load_n((const uint32_t volatile *)index + at,
                           __ATOMIC_RELAXED);
}

/* True if a mark is less than NEAR_FRAMES older than the last frame. */
static bool has_near_mark(sqlite3_file *file)
{
    void volatile *index = NULL;
    uint32_t frames;
    size_t i;

    if (real(file)->pMethods->xShmMap(real(file), 0, INDEX_LEN, 0, &index) !=
            SQLITE_OK ||
        index == NULL) {
        return false;
    }
    frames = word_of(index, FRAMES_WORD);
    for (i = 0; i < MARKS; i++) {
        uint32_t mark = word_of(index, MARK_WORDS + i);

        if (mark <= frames && frames - mark < NEAR_FRAMES) {
            return true;
        }
    }
    return false;
}

/* True if a writer is to read at a mark as it is. SQLite also locks marks when it copies
 * the log or rebuilds the index, which must not be refused. */
static bool leaves_mark(sqlite3_file *file, int at, int n, int flags)
{
    const struct file *f = (struct file *)file;

    return at >= MARK_LOCKS && n == 1 &&
           flags == (SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE) &&
           !f->only_reads && !f->checkpoints && has_near_mark(file);
}

static int file_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
    struct file *f = (struct file *)file;
    struct file *log = f->log;
    int rc;

    if (leaves_mark(file, at, n, flags)) {
        return SQLITE_BUSY;
    }
    if (log != NULL && at == WRITE_LOCK) {
        /* The lock is taken: a new transaction begins. It is released: gathered frames
         * that are left were rolled back. */
        log->len = 0;
        log->is_flushed = false;
    }
    rc = real(file)->pMethods->xShmLock(real(file), at, n, flags);
    if (at == CHECKPOINT_LOCK && rc == SQLITE_OK) {
        f->checkpoints = (flags & SQLITE_SHM_LOCK) != 0;
    }
    return rc;
}

static void file_shm_barrier(sqlite3_file *file)
{
    real(file)->pMethods->xShmBarrier(real(file));
}

static int file_shm_unmap(sqlite3_file *file, int delete_it)
{
    return real(file)->pMethods->xShmUnmap(real(file), delete_it);
}

/* Version 3 would add files that are mapped into memory, which conn.c turns off. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_traits,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

/* ---- The file system ----------------------------------------------------- */

static void set_up(struct file *f, const char *name, int flags)
{
    f->methods = methods;
    if (f->real->pMethods->iVersion < 2) {
        f->methods.iVersion = 1; /* It has no shared memory, and so no log. */
    }
    f->base.pMethods = &f->methods;
    if ((flags & SQLITE_OPEN_WAL) != 0) {
        f->database = (struct file *)sqlite3_database_file_object(name);
        f->database->log = f;
    }
}

/* True if the log has commits: then its header was flushed before them, and its directory
 * with that first flush. */
static bool has_commits(const char *name)
{
    struct stat st;

    return stat(name, &st) == 0 && st.st_size > LOG_HEADER;
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file,
                    int flags, int *ret_flags)
{
    struct file *f = (struct file *)file;
    int rc;

    (void)vfs;
    if ((flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) == 0) {
        return system_vfs->xOpen(system_vfs, name, file, flags, ret_flags);
    }
    /* After its own first flush each process flushes the directory of a log that it may
     * have created. For a log with commits that was done before. */
    if ((flags & SQLITE_OPEN_WAL) != 0 && has_commits(name)) {
        flags &= ~SQLITE_OPEN_CREATE;
    }
    memset(f, 0, sizeof(*f));
    f->real = (sqlite3_file *)(f + 1);
    f->real->pMethods = NULL;
    rc = system_vfs->xOpen(system_vfs, name, f->real, flags, ret_flags);
    if (f->real->pMethods != NULL) {
        set_up(f, name, flags);
    }
    return rc;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int flush)
{
    (void)vfs;
    return system_vfs->xDelete(system_vfs, name, flush);
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags,
                      int *ret_yes)
{
    (void)vfs;
    return system_vfs->xAccess(system_vfs, name, flags, ret_yes);
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int len, char *ret)
{
    (void)vfs;
    return system_vfs->xFullPathname(system_vfs, name, len, ret);
}

static int vfs_random(sqlite3_vfs *vfs, int len, char *ret_bytes)
{
    (void)vfs;
    return system_vfs->xRandomness(system_vfs, len, ret_bytes);
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return system_vfs->xSleep(system_vfs, us);
}

static int vfs_time(sqlite3_vfs *vfs, double *ret_days)
{
    (void)vfs;
    return system_vfs->xCurrentTime(system_vfs, ret_days);
}

static int vfs_error(sqlite3_vfs *vfs, int len, char *ret_text)
{
    (void)vfs;
    return system_vfs->xGetLastError(system_vfs, len, ret_text);
}

/* It has no functions that load extensions: our connections do not allow that. */
static sqlite3_vfs log_vfs = {
    .iVersion = 1,
    .zName = "idem-log",
    .xOpen = vfs_open,
    .xDelete = vfs_delete,
    .xAccess = vfs_access,
    .xFullPathname = vfs_full_path,
    .xRandomness = vfs_random,
    .xSleep = vfs_sleep,
    .xCurrentTime = vfs_time,
    .xGetLastError = vfs_error,
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

const char *idem__log_vfs_begin(void)
{
    (void)pthread_mutex_lock(&mutex);
    if (system_vfs == NULL) {
        system_vfs = sqlite3_vfs_find(NULL);
        if (system_vfs == NULL) {
            return NULL;
        }
        /* Set these only once: other threads open logs by them without the mutex. */
        log_vfs.szOsFile = (int)sizeof(struct file) + system_vfs->szOsFile;
        log_vfs.mxPathname = system_vfs->mxPathname;
    }
    return sqlite3_vfs_register(&log_vfs, /* makeDflt= */ 0) == SQLITE_OK
               ? log_vfs.zName
               : NULL;
}

void idem__log_vfs_end(void)
{
    (void)sqlite3_vfs_unregister(&log_vfs);
    (void)pthread_mutex_unlock(&mutex);
}
