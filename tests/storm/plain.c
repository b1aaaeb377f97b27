/* The control: the same work without idem, as a careful script would do it, with
 * a lock file that one caller at a time holds and a file that says "done".
 *
 *     plain DIRECTORY LEDGER LEN KEY...
 */
#include "base/crash.h"
#include "ledger.h"
#include "product.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    PRODUCT_MAX = 1 << 16
};

static void replay(const char *key, int done)
{
    static char product[PRODUCT_MAX];
    ssize_t len = read(done, product, sizeof(product));
    char id[PRODUCT_ID] = "";

    if (len >= 0 && product_check(product, (size_t)len, id)) {
        ledger_note(/* durable= */ false, "R %s 0 %ld %s", key, (long)getpid(),
                    id);
    } else {
        ledger_note(/* durable= */ false, "X %s 0 %ld", key, (long)getpid());
    }
}

static void work(const char *path, const char *key, size_t len)
{
    static char product[PRODUCT_MAX];
    char id[PRODUCT_ID];
    int done;

    product_id(0, id);
    ledger_note(/* durable= */ true, "E %s 0 %ld", key, (long)getpid());
    IDEM__CRASH_POINT("plain/after-effect");
    len = product_make(id, len, product, sizeof(product));
    done = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (done < 0 || write(done, product, len / 2) != (ssize_t)(len / 2)) {
        abort();
    }
    IDEM__CRASH_POINT("plain/half-written");
    if (write(done, product + len / 2, len - len / 2) < 0 || fsync(done) != 0) {
        abort();
    }
    (void)close(done);
    ledger_note(/* durable= */ true, "A %s 0 %ld %s", key, (long)getpid(), id);
}

static void once(const char *directory, const char *key, size_t len)
{
    char path[512];
    int lock;
    int done;

    (void)snprintf(path, sizeof(path), "%s/%s.lock", directory, key);
    lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX) != 0) {
        abort();
    }
    (void)snprintf(path, sizeof(path), "%s/%s.done", directory, key);
    done = open(path, O_RDONLY | O_CLOEXEC);
    if (done >= 0) {
        replay(key, done);
        (void)close(done);
    } else {
        work(path, key, len);
    }
    (void)close(lock);
}

int main(int argc, char **argv)
{
    int i;

    if (argc < 5) {
        return 2;
    }
    ledger_open(argv[2]);
    for (i = 4; i < argc; i++) {
        once(argv[1], argv[i], strtoul(argv[3], NULL, 10));
    }
    return 0;
}
