/* Waiters of one process: none of them is refused for the lock, and none takes it
 * only to look. */
#include "store/sqlite/store.h"

#include "claims.h"
#include "db.h"
#include "temp.h"
#include "test.h"
#include "queue/queue.h"
#include "threads.h"

#include <idem/sqlite.h>
#include <fcntl.h>
#include <idem/queue.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TIMEOUT_MS = 100, /* Of a store: whoever does not wait is refused then. */
    PATIENCE_MS = 60000,
    NEXT_AT = 512 /* Where the lock file has the next ticket. */
};

static char lock_path[400];

static struct idem_store *open_new(const char *name)
{
    const char *path = temp_path(name);

    (void)snprintf(lock_path, sizeof(lock_path), "%s-lock", path);
    return db_store(path, TIMEOUT_MS);
}

/* A process that has the lock for @ms. To close a descriptor of the lock file in
 * this one would let the store's own go. */
static pid_t hog(long ms)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    int ends[2];
    pid_t pid;
    char byte;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        int fd = open(lock_path, O_RDWR);

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (fcntl(fd, F_SETLKW, &range) != 0 || write(ends[1], "h", 1) != 1) {
            _exit(1);
        }
        sleep_ms(ms);
        _exit(0);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return pid;
}

static void end(pid_t pid, int signal_number)
{
    int status;

    if (signal_number != 0) {
        (void)kill(pid, signal_number);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* Others hold the lock for longer than the store's timeout: who waits comes to its
 * turn, and who does not is refused. */
TEST(waiters, waitForTheLockToo)
{
    struct idem_store *store = open_new("lock.db");
    struct idem_request request = claim("new");
    struct idem_attempt *attempt;
    pid_t pid = hog(10LL * TIMEOUT_MS);

    assert_code(IDEM_EUNAVAILABLE, idem_begin(store, &request, &attempt, &why));
    request.wait_ms = PATIENCE_MS;
    expect(store, &request, IDEM_STARTED);
    end(pid, 0);
    idem_close(store);
}

/* A wait that ends before the lock was to be had says so. */
TEST(waiters, areToldWhyTheyWaitedInVain)
{
    struct idem_store *store = open_new("vain.db");
    struct idem_request request = claim("new");
    struct idem_attempt *attempt;
    pid_t pid = hog(PATIENCE_MS);
    long long since_ms = now_ms();

    request.wait_ms = 5LL * TIMEOUT_MS;
    assert_code(IDEM_EUNAVAILABLE, idem_begin(store, &request, &attempt, &why));
    assert_true(now_ms() - since_ms >= request.wait_ms);
    assert_non_null(strstr(why.text, "other processes held its lock"));
    end(pid, SIGKILL);
    idem_close(store);
}

/* A wait for an attempt in flight needs no lock: with that held by another all the
 * time, its looks are answered. */
TEST(waiters, lookWithoutTheLock)
{
    struct idem_store *store = open_new("look.db");
    struct idem_request request = claim("k");
    pid_t pid;

    expect(store, &request, IDEM_STARTED);
    pid = hog(PATIENCE_MS);
    request.wait_ms = 5LL * TIMEOUT_MS;
    expect(store, &request, IDEM_BUSY);
    end(pid, SIGKILL);
    idem_close(store);
}

static uint64_t changes(const struct idem_store *store, const char *key)
{
    uint8_t id[IDEM_ID_LEN];

    assert_ok(idem_id(idem_str(""), idem_str(key), id));
    return idem__waiters_mark(store->waiters, id);
}

/* Whatever changes a record wakes those who wait for it in this process: its end, but
 * also a claim, a renewal and an early end of its lease. */
TEST(waiters, areWokenByEachChange)
{
    struct idem_store *store = open_new("changes.db");
    struct idem_request request = claim("k");
    uint64_t before = changes(store, "k");
    struct idem_attempt *attempt = begin(store, &request, IDEM_STARTED);

    assert_true(changes(store, "k") > before);
    before = changes(store, "k");
    assert_ok(idem_renew(attempt, 0, &why));
    assert_true(changes(store, "k") > before);
    before = changes(store, "k");
    assert_ok(idem_expire(attempt, &why));
    assert_true(changes(store, "k") > before);
    expect(store, &request, IDEM_UNKNOWN);
    before = changes(store, "k");
    expect(store, &request, IDEM_UNKNOWN);
    assert_int_equal(changes(store, "k"), before);
    idem_close(store);
}

static uint32_t tickets(const struct idem__sqlite_store *store)
{
    uint32_t next = 0;

    assert_int_equal(pread(idem__lock_fd(store->lock), &next, sizeof(next),
                           NEXT_AT),
                     sizeof(next));
    return next;
}

struct look {
    struct idem_store *store;
    struct idem_request request;
    bool answered; /* Atomic. */
};

static void look(void *ctx)
{
    struct look *look = ctx;
    struct idem_queue *queue;
    struct idem_op *op;

    assert_ok(idem_queue_create(look->store, &queue, &why));
    assert_ok(idem_op_begin(&look->request, &op, &why));
    assert_ok(idem_queue_submit(queue, op, &why));
    op = idem_queue_reap(queue, PATIENCE_MS);
    assert_ok(idem_op_code(op));
    assert_int_equal(idem_op_verdict(op), IDEM_BUSY);
    __atomic_store_n(&look->answered, true, __ATOMIC_RELEASE);
    idem_op_destroy(op);
    idem_queue_destroy(queue);
}

/* While all connections that read are in use a waiter waits for one of them, and
 * does not go to those who write. */
TEST(waiters, waitForAReader)
{
    struct look looks = {.store = open_new("readers.db"),
                         .request = claim("k")};
    struct idem__sqlite_store *store = (struct idem__sqlite_store *)looks.store;
    struct idem__conn *taken[IDEM__READERS_MAX];
    struct idem_attempt *owner =
        begin(looks.store, &looks.request, IDEM_STARTED);
    struct thread *thread;
    uint32_t before;

    looks.request.join_fence = owner->fence;
    EACH(one, taken) {
        *one = idem__readers_take(store, /* wait= */ true, &why);
        assert_non_null(*one);
    }
    before = tickets(store);
    thread = thread_start(look, &looks);
    sleep_ms(100);
    assert_false(__atomic_load_n(&looks.answered, __ATOMIC_ACQUIRE));
    EACH(one, taken) {
        idem__readers_give(store, *one);
    }
    thread_join(thread);
    assert_int_equal(tickets(store), before);
    idem_close(looks.store);
}
