/* Which file systems are trusted, and how the options of a store are read. */
#include "store/sqlite/filesystem.h"

#include "store/sqlite/place.h"
#include "temp.h"
#include "test.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ROW(43) By number where that is enough, by name where it is not. */
TEST(filesystem, isKnownByNumberOrName)
{
    static const struct {
        unsigned long magic;
        const char *name;
        enum idem__trust want;
    } rows[] = {
        {0xef53, NULL, IDEM__TRUST_LOCAL},
        {0x58465342, NULL, IDEM__TRUST_LOCAL},
        {0x9123683e, NULL, IDEM__TRUST_LOCAL},
        {0x01021994, NULL, IDEM__TRUST_LOCAL},
        {0x6969, NULL, IDEM__TRUST_NETWORK},
        {0xff534d42, NULL, IDEM__TRUST_NETWORK},
        {0xfe534d42, NULL, IDEM__TRUST_NETWORK},
        {0x01021997, NULL, IDEM__TRUST_NETWORK},
        {0x00c36400, NULL, IDEM__TRUST_NETWORK},
        {0x0bd00bd0, NULL, IDEM__TRUST_NETWORK},
        {0x7461636f, NULL, IDEM__TRUST_NETWORK},
        /* FUSE. */
        {0x65735546, NULL, IDEM__TRUST_UNKNOWN},
        {0x65735546, "fuseblk", IDEM__TRUST_UNKNOWN},
        {0x65735546, "fuse.mergerfs", IDEM__TRUST_UNKNOWN},
        {0x65735546, "fuse.sshfs", IDEM__TRUST_NETWORK},
        {0x65735546, "fuse.s3fs", IDEM__TRUST_NETWORK},
        {0x65735546, "fuse.JuiceFS", IDEM__TRUST_NETWORK},
        {0x65735546, "fuse.gcsfuse", IDEM__TRUST_NETWORK},
        {0x65735546, "fuse.grpcfuse", IDEM__TRUST_NETWORK},
        {0x65735546, "mountpoint-s3", IDEM__TRUST_NETWORK},
        {0x65735546, "https://there/dav", IDEM__TRUST_NETWORK},
        {0x65735546, "virtiofs", IDEM__TRUST_NETWORK},
        /* An overlay, and one that nobody has heard of. */
        {0x794c7630, "overlay", IDEM__TRUST_UNKNOWN},
        {0x12345678, "new", IDEM__TRUST_UNKNOWN},
        {0x12345678, "fakeowner", IDEM__TRUST_NETWORK},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        if (idem__filesystem_trust(rows[i].magic, rows[i].name) !=
            rows[i].want) {
            fail_with("row %zu: %s", i, rows[i].name);
        }
    }
}

/* ROW(43) On a disk of ours another process sees our lock; it leaves no child to
 * wait for. */
TEST(filesystem, isTestedByAnotherProcess)
{
    const char *path;
    int fd, closed;

    if (test_under("thread") || test_under("valgrind")) {
        test_skip("neither knows a child that shares our memory");
    }
    if (test_under("qemu")) {
        test_skip("qemu refuses a clone() that ends without a signal");
    }
    path = temp_path("lock");
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_ok(idem__lock_test_file(fd, &why));
    assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
    (void)close(fd);
    closed = fd;
    assert_code(IDEM_ECONFIG, idem__lock_test_file(closed, &why));
    temp_remove();
}

/* Behind the "?" stand options, each at most as often as makes sense. */
TEST(place, readsItsOptions)
{
    static const struct {
        const char *text;
        int want;
        const char *path;
        gid_t gid;
        bool network;
    } rows[] = {
        {"/a/b", IDEM_OK, "/a/b", (gid_t)-1, false},
        {"/a?group=0", IDEM_OK, "/a", 0, false},
        {"/a?network=yes", IDEM_OK, "/a", (gid_t)-1, true},
        {"/a?group=7&network=yes", IDEM_OK, "/a", 7, true},
        {"/a?network=yes&group=7", IDEM_OK, "/a", 7, true},
        {"/a?", IDEM_EINVALID, NULL, 0, false},
        {"/a?group=", IDEM_EINVALID, NULL, 0, false},
        {"/a?network=", IDEM_EINVALID, NULL, 0, false},
        {"/a?network=no", IDEM_EINVALID, NULL, 0, false},
        {"/a?networks=yes", IDEM_EINVALID, NULL, 0, false},
        {"/a?network=yes&", IDEM_EINVALID, NULL, 0, false},
        {"/a?&network=yes", IDEM_EINVALID, NULL, 0, false},
        {"/a?network=yes?group=7", IDEM_EINVALID, NULL, 0, false},
        {"/a?group=no-such-group-here", IDEM_ECONFIG, NULL, 0, false},
    };
    struct idem__place place;

    EACH(row, rows) {
        int rc = idem__path_split(row->text, &place, &why);

        if (rc != row->want) {
            fail_with("%s: %s", row->text, idem_error_name(rc));
        }
        if (rc == 0) {
            assert_string_equal(place.path, row->path);
            assert_true(place.gid == row->gid);
            assert_int_equal(place.network, row->network);
        }
    }
}
