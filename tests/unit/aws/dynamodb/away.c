/* A store whose table cannot be reached: every claim is refused, and after a while
 * without asking. One whose table is late, or throttles some keys and not others. */
#include "store/remote/remote.h"
#include "base/host.h"
#include "claims.h"
#include "server.h"
#include "test.h"
#include "threads.h"

#include <idem/dynamodb.h>
#include <idem/queue.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    AT_ONCE = 50,
    TRIED_MAX = 200, /* By then it is asked for ever. */
    QUEUE_MAX = 4096,
    PLACES = 64,      /* Requests that a store sends at once, ... */
    CONNECTIONS = 32, /* ... of which so many are on their way. */
};

static struct idem_store *open_at(int port, int64_t timeout_ms,
                                  size_t queue_max)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_store *store = NULL;
    char url[128];
    int rc;

    assert_int_equal(setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1), 0);
    assert_int_equal(setenv("AWS_SECRET_ACCESS_KEY", "secret", 1), 0);
    (void)snprintf(url, sizeof(url),
                   "dynamodb://idem?region=eu-west-1&endpoint="
                   "http://127.0.0.1:%d&clock=host&cache=30s",
                   port);
    options.timeout_ms = timeout_ms;
    options.queue_max = queue_max;
    rc = idem_open(url, &options, &store, &why);
    if (rc == IDEM_ECONFIG) {
        test_skip(why.text);
    }
    assert_ok(rc);
    return store;
}

static struct idem_store *open_away(void)
{
    return open_at(closed_port(), 2000, QUEUE_MAX);
}

/* An attempt of another process, by its token. */
static struct idem_attempt *attempt_in(struct idem_store *store)
{
    struct idem_request request = claim("mine");
    char token[IDEM_TOKEN_MAX];

    assert_ok(
        idem_attempt_token(begin(open_memory(NULL), &request, IDEM_STARTED),
                           token));
    return by_token(store, token);
}

/* What an owner has to say is always asked: it failed, but not by the breaker. */
static void assert_asked(int code)
{
    assert_int_equal(code, IDEM_EUNAVAILABLE);
    assert_null(strstr(why.text, "has not answered for"));
}

/* Claims until one is refused at once: the claim that is let through now and then is not
 * due at that moment, so that the next verb is not that one. */
static void come_to_a_refusal(struct idem_store *store)
{
    struct idem_request request = claim("k");
    struct idem_attempt *attempt;

    do {
        assert_int_equal(idem_begin(store, &request, &attempt, &why),
                         IDEM_EUNAVAILABLE);
    } while (strstr(why.text, "has not answered for") == NULL);
}

/* ROW(24) While the service is away, claims fail, each after some tries; and soon
 * at once, but for one now and then. Nothing is ever started. */
TEST(away, isNotAskedForEver)
{
    struct idem_store *store = open_away();
    struct idem_attempt *mine;
    int64_t began_ms = idem__mono_ms();
    unsigned tried = 0;
    unsigned at_once = 0;

    while (tried < TRIED_MAX && at_once < AT_ONCE) {
        struct idem_request request = claim("k");
        struct idem_attempt *attempt = NULL;

        assert_int_equal(idem_begin(store, &request, &attempt, &why),
                         IDEM_EUNAVAILABLE);
        assert_null(attempt);
        if (strstr(why.text, "has not answered for") != NULL) {
            assert_true(idem__mono_ms() - began_ms >= IDEM__BREAKER_AWAY_MS);
            assert_non_null(strstr(why.text, "DynamoDB (http://"));
            at_once++;
            (void)usleep(20000);
        } else {
            tried++;
        }
    }
    assert_true(tried > 0);
    assert_int_equal(at_once, AT_ONCE);

    mine = attempt_in(store);
    come_to_a_refusal(store);
    assert_asked(idem_renew(mine, 30000, &why));
    come_to_a_refusal(store);
    assert_asked(idem_expire(mine, &why));
    come_to_a_refusal(store);
    assert_asked(
        idem_complete(mine, &(struct idem_result){.not_kept = true}, &why));
    idem_close(store);
}

/* "cache=" of the URL is that of the handle. */
TEST(away, keepsRecordsForAsLongAsItsUrlSays)
{
    struct idem_store *store = open_away();

    assert_int_equal(((struct idem__remote *)store)->cache_ms, 30000);
    idem_close(store);
}

/* ---- A service that is late ---- */

/* Answers every request with an empty object, but claims only when it is let;
 * those of keys that begin with "hot" it may throttle. */
struct late {
    struct server *server;
    int port;
    pthread_mutex_t mutex;
    pthread_cond_t change;
    bool claimed;
    bool let;
    bool released;
    bool throttles;
    size_t throttled;
    size_t held; /* Claims that wait for let. */
};

/* True: it is throttled. */
static bool take_request(struct late *late, const char *head)
{
    bool throttled;

    (void)pthread_mutex_lock(&late->mutex);
    throttled = late->throttles && strstr(head, "{\"S\":\"hot") != NULL;
    late->throttled += throttled ? 1 : 0;
    if (!throttled && strstr(head, "PutItem") != NULL &&
        strstr(head, "{\"S\":\"in_progress\"}") != NULL) {
        late->claimed = true;
        late->held++;
        (void)pthread_cond_broadcast(&late->change);
        while (!late->let) {
            (void)pthread_cond_wait(&late->change, &late->mutex);
        }
        late->held--;
    }
    if (strstr(head, "{\"S\":\"released\"}") != NULL) {
        late->released = true;
        (void)pthread_cond_broadcast(&late->change);
    }
    (void)pthread_mutex_unlock(&late->mutex);
    return throttled;
}

static void answer(void *ctx, int fd, const char *request,
                   struct idem_slice body)
{
    static const char done[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                               "Content-Type: application/x-amz-json-1.0"
                               "\r\n\r\n{}";
    static const char throttled[] =
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n"
        "Content-Type: application/x-amz-json-1.0\r\n\r\n"
        "{\"__type\":\"com.amazonaws.dynamodb.v20120810"
        "#ProvisionedThroughputExceededException\",\"message\":\"hot\"}";
    const char *text = take_request(ctx, request) ? throttled : done;

    (void)body;
    (void)send(fd, text, strlen(text), MSG_NOSIGNAL);
}

static void start_late(struct late *late)
{
    memset(late, 0, sizeof(*late));
    (void)pthread_mutex_init(&late->mutex, NULL);
    (void)pthread_cond_init(&late->change, NULL);
    late->server = server_start(answer, late, &late->port);
}

/* A claim whose caller does not wait for it any more, and which is made after all,
 * is given back: nobody would ever end it. */
TEST(late, claimIsGivenBack)
{
    struct late late;
    struct idem_request request = claim("k");
    struct idem_queue *queue;
    struct idem_store *store;
    struct idem_op *op;
    unsigned looks;

    start_late(&late);
    store = open_at(late.port, 20000, QUEUE_MAX);
    assert_ok(idem_queue_create(store, &queue, &why));
    assert_ok(idem_op_begin(&request, &op, &why));
    assert_ok(idem_queue_submit(queue, op, &why));
    (void)pthread_mutex_lock(&late.mutex);
    while (!late.claimed) {
        (void)pthread_mutex_unlock(&late.mutex);
        assert_null(idem_queue_reap(queue, 10));
        (void)pthread_mutex_lock(&late.mutex);
    }
    (void)pthread_mutex_unlock(&late.mutex);
    idem_queue_destroy(queue); /* Its caller goes away. */

    (void)pthread_mutex_lock(&late.mutex);
    late.let = true;
    (void)pthread_cond_broadcast(&late.change);
    (void)pthread_mutex_unlock(&late.mutex);
    for (looks = 0;
         looks < 1000 && !__atomic_load_n(&late.released, __ATOMIC_ACQUIRE);
         looks++) {
        struct idem_answer *answer = NULL;

        /* Any caller drives the store. */
        (void)idem_get(store, idem_str(""), idem_str("other"), &answer, &why);
        idem_answer_destroy(answer);
        (void)usleep(2000);
    }
    assert_true(__atomic_load_n(&late.released, __ATOMIC_ACQUIRE));
    idem_close(store);
    server_stop(late.server);
}

/* ---- A hot partition ---- */

static void set(struct late *late, bool throttles, bool let)
{
    (void)pthread_mutex_lock(&late->mutex);
    late->throttles = throttles;
    late->let = let;
    (void)pthread_cond_broadcast(&late->change);
    (void)pthread_mutex_unlock(&late->mutex);
}

static size_t read_count(struct late *late, const size_t *count)
{
    size_t n;

    (void)pthread_mutex_lock(&late->mutex);
    n = *count;
    (void)pthread_mutex_unlock(&late->mutex);
    return n;
}

static struct idem_queue *open_queue(struct late *late, int64_t timeout_ms,
                                     size_t queue_max,
                                     struct idem_store **ret_store)
{
    struct idem_queue *queue;

    start_late(late);
    set(late, true, true);
    *ret_store = open_at(late->port, timeout_ms, queue_max);
    assert_ok(idem_queue_create(*ret_store, &queue, &why));
    return queue;
}

/* The user of ops of "hot" keys. */
static char hot_mark;

/* Begins "@kind@n". */
static int submit(struct idem_queue *queue, const char *kind, size_t n)
{
    struct idem_request request = claim(numbered(kind, n));
    struct idem_op *op;
    int rc;

    assert_ok(idem_op_begin(&request, &op, &why));
    idem_op_set_user(op, strcmp(kind, "hot") == 0 ? &hot_mark : NULL);
    rc = idem_queue_submit(queue, op, &why);
    if (rc != 0) {
        idem_op_destroy(op);
    }
    return rc;
}

static void submit_all(struct idem_queue *queue, const char *kind, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        assert_ok(submit(queue, kind, i));
    }
}

/* Takes the next answer, which is that the attempt has started; true: of "hot". */
static bool reap_started(struct idem_queue *queue)
{
    struct idem_op *op = idem_queue_reap(queue, -1);
    bool hot;

    assert_non_null(op);
    assert_ok(idem_op_code(op));
    assert_int_equal(idem_op_verdict(op), IDEM_STARTED);
    hot = idem_op_user(op) == &hot_mark;
    idem_op_destroy(op);
    return hot;
}

static void close_queue(struct late *late, struct idem_store *store,
                        struct idem_queue *queue)
{
    idem_queue_destroy(queue);
    idem_close(store);
    server_stop(late->server);
}

/* While all requests for some keys are throttled, other keys that came later are
 * answered; and then so are these. */
TEST(hot, otherKeysAreAnswered)
{
    enum {
        HOT = 200,
        OTHERS = 20
    };
    struct late late;
    struct idem_store *store;
    struct idem_queue *queue = open_queue(&late, 60000, QUEUE_MAX, &store);
    size_t i;

    submit_all(queue, "hot", HOT);
    submit_all(queue, "other", OTHERS);
    for (i = 0; i < OTHERS; i++) {
        assert_false(reap_started(queue));
    }
    /* The last of them may still be on their way. */
    assert_true(read_count(&late, &late.throttled) >= HOT - CONNECTIONS);
    set(&late, false, true);
    for (i = 0; i < HOT; i++) {
        assert_true(reap_started(queue));
    }
    assert_null(idem_queue_reap(queue, -1));
    close_queue(&late, store, queue);
}

/* Places that become free go in turn to tasks that were paused and to ops that
 * have not begun. */
TEST(hot, takesTurnsWithNewOps)
{
    enum {
        HOT = 300,
        OTHERS = 600,
        LOOK_AT = 200, /* Answers for hot keys; about as many have come for */
        FEWEST = 120,  /* others by then, give or take the places. */
        MOST = 450
    };
    struct late late;
    struct idem_store *store;
    struct idem_queue *queue = open_queue(&late, 60000, QUEUE_MAX, &store);
    int64_t until_ms;
    size_t answered;
    size_t hot = 0;

    set(&late, true, false);
    submit_all(queue, "hot", HOT);
    while (read_count(&late, &late.throttled) < HOT) {
        assert_null(idem_queue_reap(queue, 10));
    }
    submit_all(queue, "other", OTHERS);
    while (read_count(&late, &late.held) < CONNECTIONS) {
        assert_null(idem_queue_reap(queue, 10));
    }
    until_ms = idem__mono_ms() + 500; /* All pauses are over by then. */
    while (idem__mono_ms() < until_ms) {
        assert_null(idem_queue_reap(queue, 50));
    }
    set(&late, false, true);
    for (answered = 0; hot < LOOK_AT; answered++) {
        hot += reap_started(queue) ? 1 : 0;
    }
    assert_between(answered - hot, FEWEST, MOST);
    for (; answered < HOT + OTHERS; answered++) {
        (void)reap_started(queue);
    }
    assert_null(idem_queue_reap(queue, -1));
    close_queue(&late, store, queue);
}

/* Ops that are throttled for good fail when their time is over, each of them. */
TEST(hot, opsEndAtTheirDeadline)
{
    enum {
        HOT = 100
    };
    struct late late;
    struct idem_store *store;
    struct idem_queue *queue = open_queue(&late, 1000, QUEUE_MAX, &store);
    size_t i;

    submit_all(queue, "hot", HOT);
    for (i = 0; i < HOT; i++) {
        struct idem_op *op = idem_queue_reap(queue, -1);

        assert_non_null(op);
        /* On a machine that stood still an answer may be missing. */
        assert_true(idem_op_code(op) == IDEM_EUNAVAILABLE ||
                    idem_op_code(op) == IDEM_EUNKNOWN);
        idem_op_destroy(op);
    }
    assert_null(idem_queue_reap(queue, -1));
    close_queue(&late, store, queue);
}

/* Ops that pause count as queued: their number is bounded by queue_max. */
TEST(hot, pausedOpsAreBounded)
{
    enum {
        QUEUED = 10
    };
    struct late late;
    struct idem_store *store;
    struct idem_queue *queue = open_queue(&late, 60000, QUEUED, &store);
    size_t taken = 0;
    size_t i;

    while (taken < PLACES + QUEUED) {
        if (submit(queue, "hot", taken) == 0) {
            taken++;
        } else {
            assert_null(idem_queue_reap(queue, 10));
        }
    }
    for (i = 0; i < 10; i++) {
        assert_int_equal(submit(queue, "hot", taken), IDEM_EUNAVAILABLE);
        assert_null(idem_queue_reap(queue, 10));
    }
    set(&late, false, true);
    for (i = 0; i < taken; i++) {
        assert_true(reap_started(queue));
    }
    close_queue(&late, store, queue);
}

struct asking {
    struct idem_store *store;
    bool done; /* Atomic. */
};

static void ask_often(void *ctx)
{
    struct asking *asking = ctx;
    struct idem_error error;
    unsigned i;

    for (i = 0; i < 20; i++) {
        struct idem_answer *answer = NULL;

        (void)idem_get(asking->store, idem_str(""), idem_str("k"), &answer,
                       &error);
        idem_answer_destroy(answer);
    }
    __atomic_store_n(&asking->done, true, __ATOMIC_RELEASE);
}

/* Any thread may look at a store while another one works; tools/sanitize thread sees to
 * that. What is told never goes back. */
TEST(inspect, mayBeCalledBesideOperations)
{
    struct idem_dynamodb_info info = IDEM_DYNAMODB_INFO_INIT;
    struct asking asking = {.done = false};
    struct thread *thread;
    uint64_t before = 0;

    asking.store = open_at(closed_port(), 200, QUEUE_MAX);
    thread = thread_start(ask_often, &asking);
    while (!__atomic_load_n(&asking.done, __ATOMIC_ACQUIRE)) {
        assert_ok(idem_dynamodb_inspect(asking.store, &info, &why));
        assert_true(info.requests >= before);
        before = info.requests;
    }
    thread_join(thread);
    assert_ok(idem_dynamodb_inspect(asking.store, &info, &why));
    assert_true(info.requests > 0);
    idem_close(asking.store);
}
