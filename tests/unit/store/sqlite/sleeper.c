/* A child that outlives its parent, with all of its descriptors, keeps no lock of
 * a store. */
#include "claims.h"
#include "db.h"
#include "temp.h"
#include "test.h"
#include "vfs.h"

#include <fcntl.h>
#include <signal.h>
#include <idem/sqlite.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the owner of the locks tells us before it is killed. */
static int told[2];

static void sleep_for_ever(void)
{
    for (;;) {
        (void)pause();
    }
}

/* In the middle of a commit, with all locks held, the program starts a child. */
static int fork_in_flush(enum vfs_file file, enum vfs_call call, int64_t at,
                         const void *data, size_t len)
{
    pid_t sleeper;

    (void)file;
    (void)at;
    (void)data;
    (void)len;
    if (call != VFS_SYNC) {
        return SQLITE_OK;
    }
    sleeper = fork();
    if (sleeper != 0) {
        (void)!write(told[1], &sleeper, sizeof(sleeper));
    }
    sleep_for_ever();
    return SQLITE_OK;
}

/* In a child: never comes back. The flock is the control. */
static void own(const char *path, const char *control)
{
    struct idem_store *store = db_store(path, 5000);
    struct idem_request request = claim("k");
    int fd = open(control, O_RDWR | O_CREAT, 0600);

    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        _exit(1);
    }
    idem_close(store);
    vfs_install(fork_in_flush);
    expect(db_store(path, 5000), &request, IDEM_STARTED);
    _exit(2);
}

/* True if @pid has a file open whose name ends so. */
static bool has_open(pid_t pid, const char *ending)
{
    int fd;

    for (fd = 0; fd < 64; fd++) {
        char name[64];
        char target[400] = "";
        ssize_t len;

        (void)snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)pid, fd);
        len = readlink(name, target, sizeof(target) - 1);
        if (len > (ssize_t)strlen(ending) &&
            strcmp(target + len - strlen(ending), ending) == 0) {
            return true;
        }
    }
    return false;
}

/* The locks are those of a process, and go with it, at once; a flock stays for as
 * long as anybody has the descriptor. */
TEST(sleeper, keepsNoLockOfItsDeadParent)
{
    const char *path = temp_path("sleeper.db");
    const char *control = temp_path("control");
    struct idem_request request = claim("another");
    struct idem_store *store;
    pid_t sleeper;
    pid_t owner;
    int fd;

    idem_close(db_store(path, 5000));
    assert_int_equal(pipe(told), 0);
    (void)fflush(NULL);
    owner = fork();
    if (owner == 0) {
        own(path, control);
    }
    assert_int_equal(read(told[0], &sleeper, sizeof(sleeper)), sizeof(sleeper));
    assert_int_equal(kill(owner, SIGKILL), 0);
    assert_int_equal(waitpid(owner, NULL, 0), owner);

    assert_true(has_open(sleeper, "sleeper.db-lock"));
    assert_true(has_open(sleeper, "sleeper.db"));
    assert_true(has_open(sleeper, "sleeper.db-wal"));
    fd = open(control, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
    (void)close(fd);

    store = db_store(path, 5000);
    expect(store, &request, IDEM_STARTED);
    idem_close(store);
    assert_int_equal(kill(sleeper, 0), 0);
    assert_int_equal(kill(sleeper, SIGKILL), 0);
    temp_remove();
}
