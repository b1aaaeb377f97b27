/* A long log is copied into the file while others write on. */
#include "claims.h"
#include "db.h"
#include "temp.h"
#include "test.h"
#include "threads.h"

#include <errno.h>
#include <fcntl.h>
#include <idem/sqlite.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CALLERS = 8,
    RESULT_LEN = 1 << 16,
    OPS_MAX = 200, /* Of each caller: many long logs. */
    WAIT_MS = 5000,
    TRIES = 4, /* Times WAIT_MS, where everybody stands still. */
};

static char path[300];
static struct stat database;
static int ended;     /* Operations; atomic. */
static int copies;    /* Flushes of the database that were looked at; atomic. */
static int overtaken; /* And beside which an operation ended; atomic. */
static int fails;     /* The next flush of the log fails; atomic. */
static bool breaks;   /* The next flush of the database fails. */
static bool broke;    /* It did, and there was none since. */
static uint32_t taken; /* For copied, when the next one came. */

static bool is_database(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_ino == database.st_ino &&
           st.st_dev == database.st_dev;
}

/* How much of the log SQLite takes for copied. The file stays open: to close it
 * would drop the locks that SQLite has there. */
static uint32_t copied(void)
{
    static int fd = -1;
    char name[320];
    uint32_t frames;

    if (fd < 0) {
        (void)snprintf(name, sizeof(name), "%s-shm", path);
        fd = open(name, O_RDONLY | O_CLOEXEC);
    }
    assert_int_equal(pread(fd, &frames, sizeof(frames), 96), sizeof(frames));
    return frames;
}

/* In the place of the C library's, for SQLite: a flush of the database returns when
 * an operation has ended beside it, or nobody can end one. */
int fdatasync(int fd)
{
    int before = __atomic_load_n(&ended, __ATOMIC_ACQUIRE);
    long long until_ms = now_ms() + WAIT_MS;

    if (breaks && is_database(fd)) {
        breaks = false;
        broke = true;
        errno = EIO;
        return -1;
    }
    if (broke && is_database(fd)) {
        broke = false;
        taken = copied();
    }
    if (database.st_ino != 0 && is_database(fd) &&
        __atomic_load_n(&overtaken, __ATOMIC_ACQUIRE) == 0 &&
        __atomic_fetch_add(&copies, 1, __ATOMIC_ACQ_REL) < TRIES) {
        while (now_ms() < until_ms &&
               __atomic_load_n(&ended, __ATOMIC_ACQUIRE) == before) {
            sleep_ms(1);
        }
        if (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) != before) {
            (void)__atomic_fetch_add(&overtaken, 1, __ATOMIC_ACQ_REL);
            /* Then the log fails beside the copy. */
            __atomic_store_n(&fails, 1, __ATOMIC_RELEASE);
            sleep_ms(100);
        }
    } else if (database.st_ino != 0 && !is_database(fd) &&
               __atomic_exchange_n(&fails, 0, __ATOMIC_ACQ_REL) == 1) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}

struct crowd {
    struct idem_store *store;
    int codes[CALLERS];
};

/* One operation: its result is 16 pages of the log, and some more. */
static int write_one(struct idem_store *store, size_t caller, int n)
{
    static const char result[RESULT_LEN];
    struct idem_result done = {.bytes = idem_bytes(result, RESULT_LEN)};
    struct idem_request request;
    struct idem_attempt *attempt;
    struct idem_error error;
    char key[32];
    int rc;

    (void)snprintf(key, sizeof(key), "%zu-%d", caller, n);
    request = claim(key);
    rc = idem_begin(store, &request, &attempt, &error);
    if (rc == 0) {
        rc = idem_complete(attempt, &done, &error);
        idem_attempt_destroy(attempt);
        (void)__atomic_fetch_add(&ended, 1, __ATOMIC_ACQ_REL);
    }
    return rc;
}

static void write_often(void *ctx, size_t i)
{
    struct crowd *crowd = ctx;
    int n;

    for (n = 0; n < OPS_MAX && crowd->codes[i] == 0 &&
                __atomic_load_n(&overtaken, __ATOMIC_ACQUIRE) == 0;
         n++) {
        crowd->codes[i] = write_one(crowd->store, i, n);
    }
}

/* A store at @path, and which file that is. */
static struct idem_store *open_new(const char *name)
{
    struct idem_store *store;

    (void)snprintf(path, sizeof(path), "%s", temp_path(name));
    store = db_store(path, 60000);
    assert_int_equal(stat(path, &database), 0);
    return store;
}

/* Nobody waits until the pages of a long log are on the disk; and a commit that
 * fails meanwhile is settled after the copy, so that each operation succeeds. */
TEST(copying, letsWritersGoOn)
{
    struct crowd crowd = {.store = open_new("copied.db")};
    size_t i;

    threads_run(CALLERS, write_often, &crowd);
    database.st_ino = 0;
    for (i = 0; i < CALLERS; i++) {
        assert_code(IDEM_OK, crowd.codes[i]);
    }
    assert_int_equal(overtaken, 1);
    idem_close(crowd.store);
}

/* Pages that were copied while a reader was in the way may be lost if the flush
 * fails that comes when it has gone: then all are copied once more. */
TEST(copying, beginsAnewWhenTheFlushFails)
{
    struct idem_store *store = open_new("again.db");
    sqlite3 *reader = db_open(path);
    int n;

    copies = TRIES; /* No flush waits. */
    assert_ok(write_one(store, 0, 0));
    db_run(reader, "BEGIN; SELECT count(*) FROM idem_record");
    for (n = 1; n < OPS_MAX; n++) {
        assert_ok(write_one(store, 0, n));
    }
    assert_true(copied() > 0);
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    breaks = true;
    for (; n < 3 * OPS_MAX && breaks; n++) {
        assert_ok(write_one(store, 0, n));
    }
    assert_false(breaks);
    /* The same operation may have copied all anew, where the machine is slow. */
    assert_int_equal(broke ? copied() : taken, 0);
    idem_close(store);
    temp_remove();
}
