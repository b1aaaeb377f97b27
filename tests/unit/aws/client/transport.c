/* Tests of the client's threads, waits and memory; what it makes of answers is in
 * tests/integration/aws_transport.py. */
#include "aws/client/transport.h"

#include "base/host.h"
#include "heap.h"
#include "server.h"
#include "test.h"
#include "threads.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 30000,
    LOST_MS = 60000 /* So long a wait lasts that nothing ends. */
};

/* ---- A server that gives back each body, or says nothing ---------------- */

struct echo {
    bool silent;
    struct server *server;
    struct idem__aws_endpoint endpoint;
};

static void answer(void *ctx, int fd, const char *request,
                   struct idem_slice body)
{
    struct echo *echo = ctx;
    char head[80];

    (void)request;
    if (!echo->silent) {
        snprintf(head, sizeof(head),
                 "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", body.len);
        (void)send(fd, head, strlen(head), MSG_NOSIGNAL | MSG_MORE);
        (void)send(fd, body.base, body.len, MSG_NOSIGNAL);
    }
}

static void echo_open(struct echo *echo, bool silent)
{
    struct idem__aws_endpoint_options options = {.service = "dynamodb",
                                                 .service_env = "DYNAMODB"};
    char url[64];
    int port;

    echo->silent = silent;
    echo->server = server_start(answer, echo, &port);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
    options.url = idem_str(url);
    assert_ok(idem__aws_endpoint_resolve(&options, &idem__aws_env_process,
                                         &echo->endpoint, &why));
}

/* ---- A client ---------------------------------------------------------- */

static struct idem__aws_credentials credentials = {.access_key = "AKID",
                                                   .secret_key = "secret",
                                                   .expires_ms = IDEM_NEVER};

static int provide(struct idem__aws_provider *provider, int64_t now_ms,
                   const struct idem__aws_credentials **ret,
                   struct idem_error *ret_error)
{
    (void)provider;
    (void)now_ms;
    (void)ret_error;
    *ret = &credentials;
    return 0;
}

static struct idem__aws_provider provider = {.name = "a test", .get = provide};

static struct idem__aws_client *client_open(size_t connections)
{
    struct idem__aws_options options = {.provider = &provider,
                                        .connections_max = connections};
    struct idem__aws_client *client = NULL;

    assert_ok(idem__aws_client_open(&options, &client, &why));
    return client;
}

static struct idem__aws_request request_to(const struct echo *server,
                                           const char *body, int64_t timeout_ms)
{
    struct idem__aws_request request = {
        .endpoint = &server->endpoint,
        .target = "Test.Echo",
        .body = idem_str(body),
        .deadline_ms = idem__mono_ms() + timeout_ms,
    };

    return request;
}

/* Works until @request is done. */
static void drive(struct idem__aws_client *client,
                  struct idem__aws_request *request)
{
    struct idem__aws_request *done = NULL;

    while (done == NULL) {
        idem__aws_work(client);
        done = idem__aws_reap(client);
        if (done == NULL) {
            idem__aws_wait(client, idem__mono_ms() + LOST_MS);
        }
    }
    assert_ptr_equal(done, request);
}

/* ---- Using it ---------------------------------------------------------- */

/* Credentials that take until the deadline of the request has passed, by @late_ms. */
static int64_t late_ms;
static int64_t deadline_ms;

static int provide_late(struct idem__aws_provider *self, int64_t now,
                        const struct idem__aws_credentials **ret,
                        struct idem_error *ret_error)
{
    while (idem__mono_ms() < deadline_ms + late_ms) {
        sleep_ms(1);
    }
    return provide(self, now, ret, ret_error);
}

/* A request whose deadline passes while it is made ready ends at once, as one that
 * had no answer: not without a limit, and not as one for which there is no memory. */
TEST(client, mindsADeadlineThatPassesMeanwhile)
{
    struct echo server;
    struct idem__aws_provider slow = {.name = "a slow one",
                                      .get = provide_late};
    struct idem__aws_options options = {.provider = &slow};
    struct idem__aws_client *client = NULL;
    struct idem__aws_request request;

    echo_open(&server, /* silent= */ true);
    assert_ok(idem__aws_client_open(&options, &client, &why));
    for (late_ms = 0; late_ms < 3; late_ms++) {
        int64_t started_ms = idem__mono_ms();

        request = request_to(&server, "late", 30);
        deadline_ms = request.deadline_ms;
        idem__aws_submit(client, &request);
        drive(client, &request);
        assert_int_not_equal(request.outcome, IDEM__AWS_ANSWERED);
        assert_int_not_equal(request.error.code, IDEM_ENOMEM);
        assert_true(idem__mono_ms() - started_ms < PATIENCE_MS);
        idem__aws_request_finish(&request);
    }
    idem__aws_client_close(client);
    server_stop(server.server);
}

static size_t open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        n++;
    }
    (void)closedir(dir);
    return n;
}

/* Closed clients leave no descriptor behind. */
TEST(client, closesItsDescriptors)
{
    struct echo server;
    struct idem__aws_client *client = client_open(0);
    struct idem__aws_request request;
    size_t before;
    unsigned i;

    idem__aws_client_close(client); /* The first sets libcurl up. */
    before = open_files();
    for (i = 0; i < 20; i++) {
        client = client_open(0);
        echo_open(&server, /* silent= */ i % 2 == 1);
        request = request_to(&server, "x", i % 2 == 1 ? 20 : 5000);
        idem__aws_submit(client, &request);
        drive(client, &request);
        idem__aws_request_finish(&request);
        idem__aws_client_close(client);
        server_stop(server.server);
    }
    assert_int_equal(open_files(), before);
}

static bool readable(const struct idem__aws_client *client)
{
    struct pollfd fd = {.fd = idem__aws_fd(client), .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

/* A foreign event loop needs the descriptor and the time that is due. */
TEST(client, fitsAForeignEventLoop)
{
    struct echo server, silent;
    struct idem__aws_client *client = client_open(0);
    struct idem__aws_request requests[9];
    unsigned done = 0, polls = 0;
    size_t i;

    echo_open(&server, /* silent= */ false);
    echo_open(&silent, /* silent= */ true);
    for (i = 0; i < COUNT(requests); i++) {
        requests[i] = i == 0 ? request_to(&silent, "late", 150)
                             : request_to(&server, "body", PATIENCE_MS);
        idem__aws_submit(client, &requests[i]);
    }
    while (done < COUNT(requests)) {
        struct pollfd fd = {.fd = idem__aws_fd(client), .events = POLLIN};
        int64_t left = idem__aws_due_ms(client) - idem__mono_ms();
        struct idem__aws_request *request;

        (void)poll(&fd, 1, left < 0 ? 0 : left > 5000 ? 5000 : (int)left);
        idem__aws_work(client);
        while ((request = idem__aws_reap(client)) != NULL) {
            assert_int_equal(request->outcome, request == &requests[0]
                                                   ? IDEM__AWS_NO_ANSWER
                                                   : IDEM__AWS_ANSWERED);
            done++;
        }
        polls++;
    }
    /* It slept in between, and did not spin; not for a wake either. */
    assert_between(polls, 2, 200);
    idem__aws_wake(client);
    assert_true(readable(client));
    idem__aws_work(client);
    assert_false(readable(client));
    assert_int_equal(idem__aws_due_ms(client), IDEM_NEVER);
    for (i = 0; i < COUNT(requests); i++) {
        idem__aws_request_finish(&requests[i]);
    }
    idem__aws_client_close(client);
    server_stop(server.server);
    server_stop(silent.server);
}

/* ---- Waiting ----------------------------------------------------------- */

static void wake_later(void *ctx)
{
    sleep_ms(50);
    idem__aws_wake(ctx);
}

/* A wake ends the wait that is under way, or the next one, and only that. */
TEST(wait, isEndedByAWake)
{
    struct idem__aws_client *client = client_open(0);
    struct thread *thread;
    int64_t began = idem__mono_ms();

    idem__aws_wake(client);
    idem__aws_wake(client);
    idem__aws_wait(client, began + LOST_MS);
    assert_true(idem__mono_ms() - began < PATIENCE_MS);

    began = idem__mono_ms();
    idem__aws_wait(client, began + 100);
    assert_true(idem__mono_ms() - began >= 99);

    began = idem__mono_ms();
    thread = thread_start(wake_later, client);
    idem__aws_wait(client, began + LOST_MS);
    assert_between(idem__mono_ms() - began, 49, PATIENCE_MS);
    thread_join(thread);
    idem__aws_client_close(client);
}

enum {
    WAKES = 1000
};

/* One thread waits, one wakes it once each time, one works meanwhile. */
struct race {
    struct idem__aws_client *client;
    int waits; /* Atomic: how often it has set out to wait. */
};

static void race_wake(void *ctx)
{
    struct race *race = ctx;
    int i;

    for (i = 1; i <= WAKES; i++) {
        while (__atomic_load_n(&race->waits, __ATOMIC_ACQUIRE) < i) {
            (void)sched_yield();
        }
        idem__aws_wake(race->client);
    }
}

static void race_work(void *ctx)
{
    struct race *race = ctx;

    while (__atomic_load_n(&race->waits, __ATOMIC_ACQUIRE) <= WAKES) {
        idem__aws_work(race->client);
    }
}

/* No wake is lost to a work() that takes it back at the same moment. */
TEST(wait, losesNoWake)
{
    struct race race = {.client = client_open(0)};
    struct thread *waker = thread_start(race_wake, &race);
    struct thread *worker = thread_start(race_work, &race);
    int64_t longest_ms = 0;
    int i;

    for (i = 1; i <= WAKES && longest_ms < LOST_MS; i++) {
        int64_t began = idem__mono_ms();
        int64_t took_ms;

        __atomic_store_n(&race.waits, i, __ATOMIC_RELEASE);
        /* The wake comes now before the wait has begun, now during it. */
        if (i % 2 == 1) {
            (void)sched_yield();
        }
        idem__aws_wait(race.client, began + LOST_MS);
        took_ms = idem__mono_ms() - began;
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
    }
    __atomic_store_n(&race.waits, WAKES + 1, __ATOMIC_RELEASE);
    thread_join(waker);
    thread_join(worker);
    assert_true(longest_ms < LOST_MS);
    idem__aws_client_close(race.client);
}

struct shared {
    struct idem__aws_client *client;
    struct idem__aws_request *request;
    pthread_mutex_t mutex;
    bool work;
};

static void submit_later(void *ctx)
{
    struct shared *shared = ctx;

    sleep_ms(50);
    (void)pthread_mutex_lock(&shared->mutex);
    idem__aws_submit(shared->client, shared->request);
    if (shared->work) {
        idem__aws_work(shared->client);
    }
    (void)pthread_mutex_unlock(&shared->mutex);
}

/* A wait hears of a request that another thread submits meanwhile, and of the time
 * when that one, already sent, has to be given up. */
TEST(wait, hearsOfNewRequests)
{
    struct echo silent;
    struct idem__aws_client *client = client_open(0);
    struct idem__aws_request request;
    struct shared shared = {.client = client, .request = &request};
    struct thread *thread;
    int64_t began;

    assert_int_equal(pthread_mutex_init(&shared.mutex, NULL), 0);
    echo_open(&silent, /* silent= */ true);
    request = request_to(&silent, "x", 5000);
    began = idem__mono_ms();
    thread = thread_start(submit_later, &shared);
    idem__aws_wait(client, began + LOST_MS);
    assert_between(idem__mono_ms() - began, 49, PATIENCE_MS);
    thread_join(thread);
    idem__aws_abort(client, &request);
    assert_ptr_equal(idem__aws_reap(client), &request);

    began = idem__mono_ms();
    request = request_to(&silent, "x", 300);
    shared.work = true;
    thread = thread_start(submit_later, &shared);
    while (idem__aws_reap(client) == NULL) {
        idem__aws_wait(client, began + LOST_MS);
        (void)pthread_mutex_lock(&shared.mutex);
        idem__aws_work(client);
        (void)pthread_mutex_unlock(&shared.mutex);
        assert_true(idem__mono_ms() - began < PATIENCE_MS);
    }
    assert_between(idem__mono_ms() - began, 290, PATIENCE_MS);
    thread_join(thread);
    (void)pthread_mutex_destroy(&shared.mutex);
    idem__aws_client_close(client);
    server_stop(silent.server);
}

/* ---- Signals ----------------------------------------------------------- */

/* What the clock, which is read in the middle of work(), saw. */
struct seen_signals {
    struct idem_host host; /* The system's. */
    bool raise;
    unsigned blocked;
    unsigned open;
};

static int look_at_signals(void *ctx, struct idem_clock_reading *ret_reading)
{
    struct seen_signals *seen = ctx;
    sigset_t mask;

    (void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
    if (sigismember(&mask, SIGTERM) == 1) {
        seen->blocked++;
    } else {
        seen->open++;
    }
    if (seen->raise) {
        (void)pthread_kill(pthread_self(), SIGPIPE);
    }
    return seen->host.clock(seen->host.ctx, ret_reading);
}

static void ask_once(struct seen_signals *seen, const char *url)
{
    struct idem__aws_endpoint_options where = {
        .service = "dynamodb",
        .service_env = "DYNAMODB",
        .region = idem_str("x-1"),
        .url = idem_str(url),
    };
    struct idem__aws_options options = {
        .provider = &provider,
        .host = {.ctx = seen, .clock = look_at_signals},
    };
    struct echo server;
    struct idem__aws_client *client = NULL;
    struct idem__aws_request request;

    assert_ok(idem__aws_endpoint_resolve(&where, &idem__aws_env_process,
                                         &server.endpoint, &why));
    assert_ok(idem__aws_client_open(&options, &client, &why));
    request = request_to(&server, "x", PATIENCE_MS);
    idem__aws_submit(client, &request);
    drive(client, &request);
    assert_int_equal(request.outcome, IDEM__AWS_NOT_SENT);
    idem__aws_client_close(client);
}

/* Where TLS is used signals are blocked while libcurl works, a SIGPIPE of that time
 * is taken back, and the mask is the caller's again afterwards. */
TEST(client, keepsSignalsOutOfTls)
{
    struct seen_signals seen = {.raise = true};
    sigset_t before, after;
    int number;

    idem__host_default(&seen.host);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    ask_once(&seen, "https://127.0.0.1:1");
    assert_true(seen.blocked > 0);
    assert_int_equal(seen.open, 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    for (number = 1; number < NSIG; number++) {
        assert_int_equal(sigismember(&before, number),
                         sigismember(&after, number));
    }

    seen.raise = false;
    ask_once(&seen, "http://127.0.0.1:1");
    assert_true(seen.open > 0);
}

/* ---- Memory ------------------------------------------------------------ */

/* Without memory for the n-th block, opening fails or the request ends as not sent
 * or, when it was, as unknown; nothing is lost, and the next one works. */
static void without_memory(bool on)
{
    struct echo server;
    struct idem__aws_options options = {.provider = &provider};
    char token[] = "a token";
    bool failed = true;
    long n;

    strcpy(credentials.token, token);
    echo_open(&server, /* silent= */ false);
    for (n = 0; failed; n++) {
        struct idem__aws_client *client = NULL;
        struct idem__aws_request request =
            request_to(&server, "body", PATIENCE_MS);
        int rc;

        heap_fail(n, on);
        rc = idem__aws_client_open(&options, &client, &why);
        if (rc == 0) {
            idem__aws_submit(client, &request);
            drive(client, &request);
        }
        failed = heap_fail_never();
        if (rc != 0) {
            assert_code(IDEM_ENOMEM, rc);
            assert_true(failed);
            continue;
        }
        if (request.outcome == IDEM__AWS_ANSWERED) {
            assert_false(failed);
        } else {
            assert_true(failed);
            assert_int_equal(request.error.code, IDEM_ENOMEM);
        }
        request.deadline_ms = idem__mono_ms() + PATIENCE_MS;
        idem__aws_submit(client, &request);
        drive(client, &request);
        assert_int_equal(request.outcome, IDEM__AWS_ANSWERED);
        idem__aws_request_finish(&request);
        idem__aws_client_close(client);
    }
    assert_true(n > 3);
    credentials.token[0] = '\0';
    server_stop(server.server);
}

TEST(nomem, isSurvivedOnce)
{
    without_memory(/* on= */ false);
}

TEST(nomem, isSurvivedFromThereOn)
{
    without_memory(/* on= */ true);
}
