/* Commits that reach the log by one write each: what is gathered is written in time, or
 * not at all. And logs that keep their blocks. */
#include "db.h"
#include "temp.h"
#include "test.h"
#include "vfs.h"

#include "store/sqlite/store.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    ROWS =
        60 /* Of a page each: more than the cache holds and than is gathered. */
};

/* ---- What reaches the log ---- */

static struct {
    long writes;
    size_t len;
    bool flushed; /* After the last write. */
    int fails;    /* The SQLite result of the next write. */
} seen;

static int see(enum vfs_file file, enum vfs_call call, int64_t at,
               const void *data, size_t len)
{
    int rc = SQLITE_OK;

    (void)at;
    (void)data;
    if (file == VFS_WAL && call == VFS_WRITE) {
        rc = seen.fails;
        seen.fails = SQLITE_OK;
        seen.writes++;
        seen.len += len;
    }
    if (file == VFS_WAL && (call == VFS_WRITE || call == VFS_SYNC)) {
        seen.flushed = call == VFS_SYNC;
    }
    return rc;
}

static void look(void)
{
    memset(&seen, 0, sizeof(seen));
    vfs_install(see);
}

/* ---- Databases ---- */

static sqlite3 *open_at(const char *path, const char *synchronous)
{
    char sql[200];
    sqlite3 *db;
    int rc =
        sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                        idem__log_vfs_begin());

    idem__log_vfs_end();
    assert_int_equal(rc, SQLITE_OK);
    (void)snprintf(sql, sizeof(sql),
                   "PRAGMA journal_mode = WAL; PRAGMA synchronous = %s; "
                   "PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = 10;"
                   "CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, b)",
                   synchronous);
    db_run(db, sql);
    return db;
}

static void insert(sqlite3 *db, int from, int to)
{
    char sql[200];

    (void)snprintf(sql, sizeof(sql),
                   "WITH RECURSIVE i (n) AS (SELECT %d UNION ALL SELECT n + 1 "
                   "FROM i WHERE n < %d) INSERT INTO t SELECT n, "
                   "CAST(printf('%%03500d', n) AS BLOB) FROM i",
                   from, to);
    db_run(db, sql);
}

/* As another process sees it, and one that comes after a crash. */
static void assert_holds(const char *path, int rows)
{
    char copy[600];
    char command[4000];

    (void)snprintf(copy, sizeof(copy), "%s.copy", path);
    (void)snprintf(command, sizeof(command),
                   "rm -f '%s'* && cp '%s' '%s' && cp '%s-wal' '%s-wal'", copy,
                   path, copy, path, copy);
    assert_int_equal(system(command), 0);
    assert_int_equal(db_number_at(path, "SELECT count(*) FROM t"), rows);
    assert_int_equal(db_number_at(copy, "SELECT count(*) FROM t"), rows);
    assert_int_equal(
        db_number_at(copy, "SELECT count(*) FROM t WHERE CAST(b AS TEXT) + 0 "
                           "NOT IN (n, n + 1000)"),
        0);
    assert_int_equal(db_number_at(copy, "SELECT count(*) FROM "
                                        "pragma_integrity_check WHERE "
                                        "integrity_check <> 'ok'"),
                     0);
}

/* ---- Marks of readers ---- */

/* A word of SQLite's index of the log: the number of frames, or a mark of readers. */
static uint32_t index_word(sqlite3 *db, size_t word)
{
    void volatile *index = NULL;
    sqlite3_file *file = NULL;

    (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    assert_int_equal(file->pMethods->xShmMap(file, 0, 32768, 0, &index),
                     SQLITE_OK);
    return ((const uint32_t volatile *)index)[word];
}

static uint32_t frames_of(sqlite3 *db)
{
    return index_word(db, 4);
}

/* How many frames the log has after the newest mark. */
static uint32_t frames_after_mark(sqlite3 *db)
{
    uint32_t frames = frames_of(db);
    uint32_t least = frames;
    size_t i;

    for (i = 26; i < 30; i++) {
        uint32_t mark = index_word(db, i);

        if (mark <= frames && frames - mark < least) {
            least = frames - mark;
        }
    }
    return least;
}

/* ---- Tests ---- */

/* The frames of a commit are one write, and then flushed. */
TEST(commit, isOneWrite)
{
    sqlite3 *db = open_at(temp_path("one.db"), "FULL");

    insert(db, 1, 1);
    look();
    insert(db, 2, 6);
    assert_int_equal(seen.writes, 1);
    assert_true(seen.len > 5 * 4096 && seen.len % (4096 + 24) == 0);
    assert_true(seen.flushed);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A late write that fails fails the commit, which leaves nothing. */
TEST(commit, failsWithItsWrite)
{
    static const int results[] = {SQLITE_FULL, SQLITE_IOERR_WRITE};
    const char *path = temp_path("fails.db");
    sqlite3 *db = open_at(path, "FULL");

    (void)sqlite3_extended_result_codes(db, 1);
    insert(db, 1, 5);
    EACH(result, results) {
        look();
        seen.fails = *result;
        assert_int_equal(sqlite3_exec(db, "DELETE FROM t", NULL, NULL, NULL),
                         *result);
        assert_holds(path, 5);
    }
    insert(db, 6, 6);
    assert_holds(path, 6);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A transaction that the cache cannot hold reads its own frames again, writes over
 * them, and is whole after its commit. */
TEST(commit, isWholeAfterASpill)
{
    const char *path = temp_path("spilled.db");
    sqlite3 *db = open_at(path, "FULL");

    db_run(db, "BEGIN");
    insert(db, 1, ROWS);
    db_run(db, "UPDATE t SET b = CAST(printf('%03500d', n + 1000) AS BLOB)");
    assert_int_equal(db_number(db, "SELECT count(*) FROM t WHERE "
                                   "CAST(b AS TEXT) + 0 = n + 1000"),
                     ROWS);
    db_run(db, "COMMIT");
    assert_holds(path, ROWS);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Frames of a transaction that was rolled back are not written into the frames of
 * another process. The log was copied, and is not begun anew while somebody reads it: so
 * the rollback reads nothing there. */
TEST(commit, writesNothingThatWasRolledBack)
{
    const char *path = temp_path("rolled-back.db");
    sqlite3 *db = open_at(path, "FULL");
    sqlite3 *other = open_at(path, "FULL");
    sqlite3 *reader = db_open(path);
    int rows;

    for (rows = 12; rows < 24; rows++) {
        db_run(db, "DELETE FROM t");
        db_run(reader, "BEGIN; SELECT count(*) FROM t");
        db_run(db, "PRAGMA wal_checkpoint(PASSIVE); BEGIN");
        insert(db, 1, rows);
        db_run(db, "ROLLBACK");
        db_run(reader, "COMMIT");
        insert(other, 1, ROWS);
        db_run(db, "DELETE FROM t WHERE n = 1");
        assert_holds(path, ROWS - 1);
    }
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* On a disk that may change what lies beside a write SQLite repeats the last frame, and
 * writes the rest of it when it has flushed. */
TEST(commit, isWrittenAfterItsFlush)
{
    const char *path = temp_path("plain.db");
    sqlite3 *db;
    int n;

    vfs_plain(true);
    db = open_at(path, "FULL");
    for (n = 1; n < 20; n++) {
        insert(db, n, n);
        assert_holds(path, n);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    vfs_plain(false);
}

/* A writer moves the mark of where it reads now and then, and a reader each time. */
TEST(mark, isMovedNowAndThen)
{
    enum {
        COMMITS = 100
    };
    const char *path = temp_path("mark.db");
    sqlite3 *db = open_at(path, "FULL");
    sqlite3 *reader = open_at(path, "FULL");
    uint32_t before = 0;
    int moved = 0;
    int i;

    db_run(reader, "PRAGMA query_only = ON");
    for (i = 1; i <= COMMITS; i++) {
        uint32_t after;

        insert(db, i, i);
        after = frames_after_mark(db);
        moved += after <= before;
        before = after;
        assert_true(after < 32 + 10);
    }
    assert_between(moved, 1, COMMITS / 4);
    assert_true(before > 0);
    assert_int_equal(db_number(reader, "SELECT count(*) FROM t"), COMMITS);
    assert_int_equal(frames_after_mark(db), 0);
    assert_holds(path, COMMITS);
    (void)sqlite3_close(reader);
    (void)sqlite3_close(db);
}

/* While a writer reads at an old mark, the log is copied up to the mark, and no further;
 * then all of it. */
TEST(mark, holdsACopyBack)
{
    const char *path = temp_path("copied.db");
    sqlite3 *db = open_at(path, "FULL");
    sqlite3 *other = open_at(path, "FULL");
    int frames;
    int copied;

    insert(db, 1, 1);
    db_run(db, "BEGIN IMMEDIATE");
    assert_int_equal(db_number(db, "SELECT count(*) FROM t"), 1);
    assert_true(frames_after_mark(db) > 0);
    assert_int_equal(sqlite3_wal_checkpoint_v2(other, NULL,
                                               SQLITE_CHECKPOINT_PASSIVE,
                                               &frames, &copied),
                     SQLITE_OK);
    assert_int_equal(frames - copied, (int)frames_after_mark(db));
    insert(db, 2, 2);
    db_run(db, "COMMIT");
    assert_int_equal(sqlite3_wal_checkpoint_v2(other, NULL,
                                               SQLITE_CHECKPOINT_RESTART,
                                               &frames, &copied),
                     SQLITE_OK);
    assert_int_equal(frames, copied);
    insert(db, 3, 3);
    assert_holds(path, 3);
    (void)sqlite3_close(other);
    (void)sqlite3_close(db);
}

/* Commits that do not flush are in the log when they are over all the same. */
TEST(commit, isWrittenWithoutAFlush)
{
    const char *path = temp_path("normal.db");
    sqlite3 *db = open_at(path, "FULL");

    db_run(db, "PRAGMA synchronous = NORMAL");
    insert(db, 1, 5);
    assert_holds(path, 5);
    db_run(db, "PRAGMA synchronous = FULL");
    look();
    insert(db, 6, 6);
    assert_int_equal(seen.writes, 1);
    assert_holds(path, 6);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- A log that is emptied ---- */

static long log_len(const char *path)
{
    char name[600];
    struct stat st;

    (void)snprintf(name, sizeof(name), "%s-wal", path);
    assert_int_equal(stat(name, &st), 0);
    return (long)st.st_size;
}

static void keep(sqlite3 *db)
{
    int on = 1;

    (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
}

/* A short log keeps its blocks, and none of its frames counts any more: not even those
 * that the next log does not reach. */
TEST(emptied, keepsItsBlocksAndNoFrame)
{
    static const uint8_t none[32];
    const char *path = temp_path("kept.db");
    sqlite3 *db = open_at(path, "FULL");
    uint8_t header[32];
    long len;

    insert(db, 1, ROWS);
    db_run(db, "UPDATE t SET b = CAST(printf('%03500d', n + 1000) AS BLOB)");
    len = log_len(path);
    keep(db);
    db_run(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert_int_equal(log_len(path), len);
    file_read(path, "-wal", 0, header, sizeof(header));
    assert_memory_equal(header, none, sizeof(none));
    assert_holds(path, ROWS);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);

    db = open_at(path, "FULL");
    db_run(db, "DELETE FROM t WHERE n > 10");
    assert_int_equal(log_len(path), len);
    assert_holds(path, 10);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A long one is truncated, and so is one whose connection does not ask for more. */
TEST(emptied, isTruncatedWhereItIsLong)
{
    const char *path = temp_path("long.db");
    sqlite3 *db = open_at(path, "FULL");

    insert(db, 1, ROWS);
    db_run(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert_int_equal(log_len(path), 0);
    keep(db);
    insert(db, ROWS + 1, 10 * ROWS);
    assert_true(log_len(path) > 1 << 20);
    db_run(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert_int_equal(log_len(path), 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- The directory of a log ---- */

static int (*open_directory)(const char *name, int *ret_fd);
static long directories;

static int count_directory(const char *name, int *ret_fd)
{
    directories++;
    return open_directory(name, ret_fd);
}

/* The process that makes the log flushes its name; later ones find commits in it. */
TEST(directory, isFlushedWithANewLogAlone)
{
    const char *path = temp_path("named.db");
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    sqlite3_syscall_ptr before = vfs->xGetSystemCall(vfs, "openDirectory");
    sqlite3 *first = open_at(path, "FULL");
    sqlite3 *db;

    memcpy(&open_directory, &before, sizeof(before));
    (void)vfs->xSetSystemCall(vfs, "openDirectory",
                              (sqlite3_syscall_ptr)count_directory);
    db = open_at(path, "FULL");
    insert(db, 1, 1);
    assert_int_equal(directories, 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(sqlite3_close(first), SQLITE_OK); /* The log is gone. */

    db = open_at(path, "FULL");
    insert(db, 2, 2);
    assert_int_equal(directories, 1);
    (void)vfs->xSetSystemCall(vfs, "openDirectory", before);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    temp_remove();
}
