/* One thread that renews leases: real processes, stopped and killed, and real time. */
#include "test.h"

#include <idem/renewer.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct idem_attempt *begin(struct idem_store *store, const char *key)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;

    request.key = idem_str(key);
    request.on_expired_lease = IDEM_RERUN;
    request.lease_ms = 9000; /* A busy machine renews it seconds late. */
    assert_ok(idem_begin(store, &request, &attempt, &why));
    return attempt;
}

static enum idem_verdict look(struct idem_store *store, const char *key)
{
    struct idem_attempt *attempt = begin(store, key);
    enum idem_verdict verdict = attempt->verdict;

    idem_attempt_destroy(attempt);
    return verdict;
}

/* Owns two keys until one of them is lost; then 0 if it is told so of that one. */
static int own(const char *url, int ready)
{
    struct idem_renewer *renewer;
    struct idem_attempt *attempts[2];
    struct idem_store *store;

    assert_ok(idem_open(url, NULL, &store, &why));
    assert_ok(idem_renewer_create(&renewer, &why));
    attempts[0] = begin(store, "a");
    attempts[1] = begin(store, "b");
    assert_ok(idem_renewer_add(renewer, attempts[0], &why));
    assert_ok(idem_renewer_add(renewer, attempts[1], &why));
    assert_int_equal(write(ready, "", 1), 1);
    /* After a stop the lease is over by its own count, and comes back with the next
     * renewal where nobody has taken over. */
    for (;;) {
        (void)usleep(50000);
        if (idem_attempt_lease_left_ms(attempts[0]) > 0) {
            continue;
        }
        if (idem_renewer_remove(renewer, attempts[0]) == IDEM_ELOST) {
            break;
        }
        assert_ok(idem_renewer_add(renewer, attempts[0], &why));
        (void)sleep(1);
    }
    assert_int_equal(idem_attempt_lease_left_ms(attempts[0]), 0);
    assert_ok(idem_renewer_remove(renewer, attempts[1]));
    assert_ok(idem_complete(attempts[1], NULL, &why));
    idem_attempt_destroy(attempts[0]);
    idem_attempt_destroy(attempts[1]);
    idem_renewer_destroy(renewer);
    idem_close(store);
    return 0;
}

static pid_t start(const char *url)
{
    int pipes[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    if (pid == 0) {
        _exit(own(url, pipes[1]));
    }
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    return pid;
}

/* A store that no earlier run of this test has left a lock file of. */
static void url_of(char url[64])
{
    char folder[] = "renewer-XXXXXX";

    assert_non_null(mkdtemp(folder));
    (void)snprintf(url, 64, "sqlite:%s/idem.db", folder);
}

/* A lease of nine seconds is there after ten; once its owner is dead it is over. */
TEST(renewer, keepsLeasesWhileItsProcessLives)
{
    struct idem_store *store;
    char url[64];
    pid_t pid;

    url_of(url);
    pid = start(url);
    assert_ok(idem_open(url, NULL, &store, &why));
    (void)sleep(10);
    assert_int_equal(look(store, "a"), IDEM_BUSY);
    assert_int_equal(look(store, "b"), IDEM_BUSY);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    while (look(store, "a") == IDEM_BUSY) {
        (void)usleep(100000);
    }
    idem_close(store);
}

/* An owner that was stopped past its leases is told of the one that another has taken
 * over, and goes on with the one that nobody has. */
TEST(renewer, marksWhatIsLost)
{
    struct idem_store *store;
    char url[64];
    int status;
    pid_t pid;

    url_of(url);
    pid = start(url);
    assert_ok(idem_open(url, NULL, &store, &why));
    assert_int_equal(kill(pid, SIGSTOP), 0);
    while (look(store, "a") == IDEM_BUSY) {
        (void)usleep(100000);
    }
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(look(store, "b"), IDEM_REPLAY);
    idem_close(store);
}

/* What has no lease is refused, and what was not added is not removed. */
TEST(renewer, takesWhatIsStarted)
{
    struct idem_renewer *renewer;
    struct idem_attempt *attempt;
    struct idem_attempt *other;
    struct idem_store *store;

    assert_ok(idem_open("memory:", NULL, &store, &why));
    assert_ok(idem_renewer_create(&renewer, &why));
    attempt = begin(store, "k");
    other = begin(store, "k");
    assert_code(IDEM_EINVALID, idem_renewer_remove(renewer, attempt));
    assert_code(IDEM_EINVALID, idem_renewer_add(renewer, other, &why));
    assert_ok(idem_renewer_add(renewer, attempt, &why));
    idem_renewer_destroy(renewer);
    idem_renewer_destroy(NULL);
    idem_attempt_destroy(attempt);
    idem_attempt_destroy(other);
    idem_close(store);
}
