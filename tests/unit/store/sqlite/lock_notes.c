/* A store knows itself: what may lie in its place, and what becomes of a handle
 * whose file is taken away. */
#include "store/sqlite/store.h"

#include "claims.h"
#include "db.h"
#include "temp.h"
#include "test.h"
#include "threads.h"
#include "vfs.h"

#include <idem/sqlite.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint8_t one[16] = "the first store";
static const uint8_t two[16] = "another store.";

static void name_beside(const char *path, const char *suffix, char name[600])
{
    (void)snprintf(name, 600, "%s%s", path, suffix);
}

static void remove_all(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-lock",
                                           "-reserve"};
    char name[600];

    EACH(suffix, suffixes) {
        name_beside(path, *suffix, name);
        (void)unlink(name);
    }
}

static int open_at(const char *path, struct idem_store **ret_store)
{
    return idem_sqlite_open(path, NULL, ret_store, &why);
}

static void open_and_close(const char *path)
{
    struct idem_store *store;

    assert_ok(open_at(path, &store));
    idem_close(store);
}

/* ---- What the two files say ---- */

/* The lock file of @path, for its note. */
static struct idem__lock *lock_of(const char *path)
{
    const struct idem__share share = {0600, (uid_t)-1, (gid_t)-1};
    struct idem__lock *lock;
    char name[600];

    name_beside(path, "-lock", name);
    assert_ok(idem__lock_open(name, &share, &lock, &why));
    return lock;
}

static void note(const char *path, enum idem__made made, const uint8_t *id)
{
    struct idem__lock *lock = lock_of(path);

    if (made == IDEM__MADE_DAMAGED) {
        if (id != NULL) {
            assert_ok(idem__identity_write(lock, IDEM__MADE_PENDING, id, &why));
        }
        assert_int_equal(pwrite(idem__lock_fd(lock), "x", 1, 194), 1);
    } else if (made != IDEM__MADE_NONE) {
        assert_ok(idem__identity_write(lock, made, id, &why));
    }
    idem__lock_close(lock);
}

static struct idem__identity noted(const char *path)
{
    struct idem__lock *lock = lock_of(path);
    struct idem__identity identity;

    idem__identity_read(lock, &identity);
    idem__lock_close(lock);
    return identity;
}

enum database {
    MISSING,
    EMPTY,
    ONE /* With the id of the first store. */
};

static void put_database(const char *path, enum database what)
{
    char name[600];
    FILE *f;

    remove_all(path);
    if (what == EMPTY) {
        f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(chmod(path, 0600), 0);
    } else if (what != MISSING) {
        open_and_close(path);
        db_run_at(path, "UPDATE idem_clock SET store_id = "
                        "CAST('the first store' || char(0) AS BLOB)");
    }
    name_beside(path, "-lock", name);
    (void)unlink(name);
}

#define NONE IDEM__MADE_NONE, NULL
#define PENDING(id) IDEM__MADE_PENDING, id
#define DONE(id) IDEM__MADE_DONE, id
#define DAMAGED IDEM__MADE_DAMAGED, NULL
#define TORN(id) IDEM__MADE_DAMAGED, id /* After "pending". */

/* What is there, what the lock file knows, and what opening it answers; and with
 * which id it goes on, NULL: any. */
static const struct {
    enum database database;
    enum idem__made made;
    const uint8_t *id;
    int want;
    const uint8_t *want_id;
} rows[] = {
    {MISSING, NONE, 0, NULL},
    {MISSING, PENDING(two), 0, two},
    {MISSING, DONE(two), IDEM_ECONFIG, two},
    {MISSING, DAMAGED, IDEM_ECONFIG, NULL},
    {EMPTY, NONE, 0, NULL},
    {EMPTY, PENDING(two), 0, two},
    {EMPTY, DONE(two), IDEM_ECONFIG, two},
    {EMPTY, DAMAGED, IDEM_ECONFIG, NULL},
    {ONE, NONE, IDEM_ECONFIG, NULL},
    {ONE, PENDING(one), 0, one},
    {ONE, PENDING(two), IDEM_ECONFIG, two},
    {ONE, DONE(one), 0, one},
    {ONE, DONE(two), IDEM_ECONFIG, two},
    {ONE, DAMAGED, IDEM_ECONFIG, NULL},
    {MISSING, TORN(one), IDEM_ECONFIG, NULL},
    {EMPTY, TORN(one), IDEM_ECONFIG, NULL},
    {ONE, TORN(one), 0, one},
    {ONE, TORN(two), IDEM_ECONFIG, two},
};

static void expect_known(const char *path, const uint8_t *id, size_t row)
{
    struct idem_sqlite_info info = IDEM_SQLITE_INFO_INIT;
    struct idem__identity identity = noted(path);
    struct idem_store *store;

    assert_ok(open_at(path, &store));
    assert_ok(idem_sqlite_inspect(store, &info, &why));
    idem_close(store);
    if (identity.made != IDEM__MADE_DONE || info.is_other ||
        memcmp(identity.id, info.id, 16) != 0 ||
        (id != NULL && memcmp(id, info.id, 16) != 0)) {
        fail_with("row %zu: the store does not know itself", row);
    }
}

/* A store is made, made on with, or known; or else it is left as it is. */
TEST(open, knowsWhatWasMadeHere)
{
    struct idem_store *store;
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        const char *path = temp_path("known.db");
        int rc;

        put_database(path, rows[i].database);
        note(path, rows[i].made, rows[i].id);
        rc = open_at(path, &store);
        if (rc != rows[i].want) {
            fail_with("row %zu: %s: %s", i, idem_error_name(rc), why.text);
        }
        if (rc == 0) {
            idem_close(store);
            expect_known(path, rows[i].want_id, i);
        } else {
            assert_int_equal(noted(path).made, rows[i].made);
            assert_int_equal(access(path, F_OK),
                             rows[i].database == MISSING ? -1 : 0);
        }
        remove_all(path);
    }
}

/* A note of "pending" that was torn is none: nothing had been made. */
TEST(open, beginsAnewAfterATornNote)
{
    const char *path = temp_path("torn.db");
    struct idem__lock *lock;

    put_database(path, EMPTY);
    lock = lock_of(path);
    assert_int_equal(pwrite(idem__lock_fd(lock), "IDEMSTOR", 8, 128), 8);
    idem__lock_close(lock);
    open_and_close(path);
    expect_known(path, NULL, 0);
}

/* Whatever is there, a person can accept it; where nothing is, only as a loss. */
TEST(open, takesWhatAPersonAccepts)
{
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem_sqlite_restored restored = IDEM_SQLITE_RESTORED_INIT;
        const char *path = temp_path("accepted.db");
        bool nothing = rows[i].database == MISSING || rows[i].database == EMPTY;

        put_database(path, rows[i].database);
        note(path, rows[i].made, rows[i].id);
        if (nothing) {
            assert_int_not_equal(idem_sqlite_mark_restored(path, NULL, NULL,
                                                           &restored, &why),
                                 0);
            assert_ok(
                idem_sqlite_accept_loss(path, NULL, NULL, &restored, &why));
        } else {
            assert_ok(
                idem_sqlite_mark_restored(path, NULL, NULL, &restored, &why));
        }
        expect_known(path, NULL, i);
        remove_all(path);
    }
}

/* A file of two names is refused under either. */
TEST(open, refusesASecondName)
{
    const char *path = temp_path("named.db");
    const char *other = temp_path("second.db");
    struct idem_store *store;

    open_and_close(path);
    assert_int_equal(link(path, other), 0);
    assert_code(IDEM_ECONFIG, open_at(path, &store));
    assert_why("2 hard links");
    assert_code(IDEM_ECONFIG, open_at(other, &store));
    assert_int_equal(unlink(other), 0);
    open_and_close(path);
}

/* ---- Under an open handle ---- */

struct held {
    const char *path;
    struct idem_store *store;
    struct idem_attempt *attempt;
};

static struct held hold(void)
{
    struct held held = {.path = temp_path("held.db")};
    struct idem_request request = claim("begun");

    assert_ok(open_at(held.path, &held.store));
    assert_ok(idem_begin(held.store, &request, &held.attempt, &why));
    return held;
}

static int try_claim(const struct held *held, const char *key)
{
    struct idem_request request = claim(key);
    struct idem_attempt *attempt;
    int rc = idem_begin(held->store, &request, &attempt, &why);

    if (rc == 0) {
        idem_attempt_destroy(attempt);
    }
    return rc;
}

/* Neither claims nor ends, for this reason; once @restore has been, both. */
static void expect_refused(struct held *held, const char *reason)
{
    assert_code(IDEM_ECONFIG, try_claim(held, "while it is away"));
    assert_why(reason);
    assert_code(IDEM_ECONFIG, idem_complete(held->attempt, NULL, &why));
    assert_why(reason);
}

static void expect_taken(struct held *held)
{
    assert_ok(try_claim(held, "while it is there"));
    assert_ok(idem_complete(held->attempt, NULL, &why));
}

static void let_go(struct held *held)
{
    idem_attempt_destroy(held->attempt);
    idem_close(held->store);
}

TEST(handle, noticesADeletion)
{
    struct held held = hold();

    assert_int_equal(unlink(held.path), 0);
    expect_refused(&held, "deleted");
    let_go(&held);
}

TEST(handle, noticesARename)
{
    struct held held = hold();
    const char *away = temp_path("away.db");

    assert_int_equal(rename(held.path, away), 0);
    expect_refused(&held, "renamed");
    assert_int_equal(rename(away, held.path), 0);
    expect_taken(&held);
    let_go(&held);
}

/* A look at the lock file serves this process for a moment. */
static void wait_for_a_look(void)
{
    sleep_ms(2);
}

/* Before anything is written: a claim that it refuses is not made. */
TEST(handle, noticesADeletedLockFile)
{
    struct held held = hold();
    struct idem_answer *answer;
    char name[600];

    name_beside(held.path, "-lock", name);
    assert_int_equal(unlink(name), 0);
    wait_for_a_look();
    expect_refused(&held, "lock file was deleted");
    assert_code(IDEM_ENOTFOUND,
                idem_get(held.store, idem_str(""), idem_str("while it is away"),
                         &answer, &why));
    let_go(&held);
}

/* Every directory above the file counts. */
TEST(handle, noticesARenameFarAbove)
{
    const char *top = temp_path("top");
    const char *away = temp_path("top.away");
    char place[600];
    struct held held = {.path = place};
    struct idem_request request = claim("begun");

    assert_int_equal(mkdir(top, 0700), 0);
    name_beside(top, "/below", place);
    assert_int_equal(mkdir(place, 0700), 0);
    name_beside(top, "/below/held.db", place);
    assert_ok(open_at(held.path, &held.store));
    assert_ok(idem_begin(held.store, &request, &held.attempt, &why));
    assert_int_equal(rename(top, away), 0);
    expect_refused(&held, "renamed");
    assert_int_equal(rename(away, top), 0);
    expect_taken(&held);
    let_go(&held);
}

/* The words in the lock file are mapped: one that was truncated gets its room, and
 * its note, back. */
TEST(handle, survivesATruncatedLockFile)
{
    struct held held = hold();
    char name[600];

    name_beside(held.path, "-lock", name);
    assert_int_equal(truncate(name, 0), 0);
    wait_for_a_look();
    expect_taken(&held);
    assert_int_equal(truncate(name, 100), 0);
    wait_for_a_look();
    let_go(&held);
    assert_code(IDEM_ECONFIG, open_at(held.path, &held.store));

    held = hold();
    name_beside(held.path, "-lock", name);
    assert_int_equal(truncate(name, 0), 0);
    wait_for_a_look();
    expect_taken(&held);
    let_go(&held);
    open_and_close(held.path);
}

/* The file that goes while a commit is flushed. */
static const char *going;

static int unlink_at_flush(enum vfs_file file, enum vfs_call call, int64_t at,
                           const void *data, size_t len)
{
    (void)at;
    (void)data;
    (void)len;
    if (going != NULL && file == VFS_WAL && call == VFS_SYNC) {
        (void)unlink(going);
        going = NULL;
    }
    return SQLITE_OK;
}

/* A commit to a file that went meanwhile is told as a failure, and so is one beside a
 * lock file or to a log that others do not open. */
TEST(handle, noticesADeletionUnderTheCommit)
{
    static const struct {
        const char *suffix;
        const char *reason;
    } files[] = {
        {"", "the store was deleted"},
        {"-lock", "lock file was deleted"},
        {"-wal", "another file has replaced the store's log"},
    };
    char name[600];

    vfs_install(unlink_at_flush);
    EACH(lost, files) {
        struct held held = hold();

        name_beside(held.path, lost->suffix, name);
        going = name;
        assert_code(IDEM_ECONFIG, idem_complete(held.attempt, NULL, &why));
        assert_why(lost->reason);
        let_go(&held);

        held = hold();
        name_beside(held.path, lost->suffix, name);
        going = name;
        assert_code(IDEM_ECONFIG, try_claim(&held, "new"));
        assert_why(lost->reason);
        let_go(&held);
    }
}

/* ---- After a fork ---- */

/* A child's lock is its own: what a thread of its parent held at the fork is held
 * in the parent's memory alone. */
TEST(fork, givesAChildALockOfItsOwn)
{
    const char *path = temp_path("forked.db");
    struct idem__lock *lock;
    int status = 0;
    int gate[2];
    pid_t child;

    open_and_close(path);
    lock = lock_of(path);
    assert_int_equal(pipe(gate), 0);
    assert_ok(idem__lock_acquire(lock, IDEM_NEVER / 4, &why));
    child = fork();
    if (child == 0) {
        struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
        struct idem_store *store;
        char c;

        options.timeout_ms = 3000;
        _exit(read(gate[0], &c, 1) == 1 &&
                      idem_sqlite_open(path, &options, &store, NULL) == 0
                  ? 0
                  : 1);
    }
    idem__lock_release(lock);
    assert_int_equal(write(gate[1], "", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    idem__lock_close(lock);
    (void)close(gate[0]);
    (void)close(gate[1]);
}
