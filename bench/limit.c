/* Decisions of a rate limit: by idem through a queue, and by Redis with a script
 * that keeps the ids of a window in a hash.
 *
 *     bench-limit idem URL | redis SOCKET  WHAT MAX DEPTH MS SEED
 *
 * WHAT is "new" (each request is another one, and admitted; a window that is full
 * is followed by another), "again" (retries of requests that were admitted) or
 * "full" (each request is another one, and refused). DEPTH decisions are asked for
 * at a time, from one thread, for MS milliseconds; with MS 0 as many as MAX, or
 * 256 if that is less. Once what has to be there is there, a line on stdout says
 * "ready", and a line on stdin lets it go on. Prints how many decisions there were
 * in how many microseconds. */
#include "load.h"

#include <err.h>
#include <idem.h>
#include <idem/limit.h>
#include <idem/queue.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef WITH_REDIS
#include <hiredis/hiredis.h>
#endif

struct work {
    const char *what;
    uint64_t max;
    size_t depth;
    unsigned seed;
    int64_t at_ms;
    uint64_t n; /* Asked for so far. */
};

/* The next request, as the names of its window and of itself. */
static void next_names(struct work *work, char subject[64], char request[64])
{
    uint64_t n = work->n++;

    if (strcmp(work->what, "again") == 0) {
        n %= work->max;
    }
    (void)snprintf(subject, 64, "user-%u-%llu", work->seed,
                   strcmp(work->what, "full") == 0
                       ? 0
                       : (unsigned long long)(n / work->max));
    (void)snprintf(request, 64, "request-%016llx", (unsigned long long)n);
}

/* Whether what was answered is what the kind of work asks for. */
static void check(const struct work *work, bool admitted)
{
    if (admitted == (strcmp(work->what, "full") == 0)) {
        errx(1, "%s: %s", work->what, admitted ? "admitted" : "refused");
    }
}

/* ---- idem ---- */

struct mine {
    struct idem_store *store;
    struct idem_queue *queue;
};

static void *open_idem(const char *url)
{
    struct mine *mine = calloc(1, sizeof(*mine));
    struct idem_error error;

    if (mine == NULL || idem_open(url, NULL, &mine->store, &error) != 0 ||
        idem_queue_create(mine->store, &mine->queue, &error) != 0) {
        errx(1, "idem: %s", mine == NULL ? "memory" : error.text);
    }
    return mine;
}

static void ask_idem(void *arg, struct work *work)
{
    struct mine *mine = arg;
    struct idem_limit_request limit = IDEM_LIMIT_INIT;
    struct idem_error error;
    struct idem_op *op;
    char subject[64];
    char request[64];

    next_names(work, subject, request);
    limit.name = idem_str("bench");
    limit.subject = idem_str(subject);
    limit.request = idem_str(request);
    limit.at_ms = work->at_ms;
    limit.per_ms = IDEM_LIMIT_DAY;
    limit.max = work->max;
    if (idem_op_limit(&limit, &op, &error) != 0 ||
        idem_queue_submit(mine->queue, op, &error) != 0) {
        errx(1, "idem: %s", error.text);
    }
}

static bool hear_idem(void *arg)
{
    struct mine *mine = arg;
    struct idem_op *op = idem_queue_reap(mine->queue, -1);
    const struct idem_limited *limited = idem_op_limited(op);
    bool admitted;

    if (limited == NULL) {
        errx(1, "idem: %s", idem_op_error(op)->text);
    }
    admitted = limited->admitted;
    idem_op_destroy(op);
    return admitted;
}

static void close_idem(void *arg)
{
    struct mine *mine = arg;

    idem_queue_destroy(mine->queue);
    idem_close(mine->store);
    free(mine);
}

/* ---- Redis ---- */

#ifdef WITH_REDIS

/* The entry of the request, if there is one; else what is left after it, or -1. */
static const char script[] =
    "local e = redis.call('HGET', KEYS[1], ARGV[1]) "
    "if e then return tonumber(e) end "
    "local n = redis.call('HLEN', KEYS[1]) "
    "local m = tonumber(ARGV[2]) "
    "if n >= m then return -1 end "
    "redis.call('HSET', KEYS[1], ARGV[1], m - n - 1) "
    "if n == 0 then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end "
    "return m - n - 1";

struct theirs {
    redisContext *redis;
    char script_id[64];
};

static void *open_redis(const char *socket)
{
    struct theirs *theirs = calloc(1, sizeof(*theirs));
    redisReply *reply;

    if (theirs == NULL) {
        err(1, "redis");
    }
    theirs->redis = redisConnectUnix(socket);
    if (theirs->redis == NULL || theirs->redis->err != 0) {
        errx(1, "redis: %s", socket);
    }
    reply = redisCommand(theirs->redis, "SCRIPT LOAD %s", script);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING) {
        if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
            errx(1, "redis: the script");
        }
    }
    (void)snprintf(theirs->script_id, sizeof(theirs->script_id), "%s",
                   reply->str);
    freeReplyObject(reply);
    return theirs;
}

static void ask_redis(void *arg, struct work *work)
{
    struct theirs *theirs = arg;
    char subject[64];
    char request[64];

    next_names(work, subject, request);
    if (redisAppendCommand(theirs->redis,
                           "EVALSHA %s 1 limit:%s %s %llu 172800000",
                           theirs->script_id, subject, request,
                           (unsigned long long)work->max) != REDIS_OK) {
        errx(1, "redis: %s", theirs->redis->errstr);
    }
}

static bool hear_redis(void *arg)
{
    struct theirs *theirs = arg;
    redisReply *reply;
    bool admitted;
    void *got;

    if (redisGetReply(theirs->redis, &got) != REDIS_OK) {
        errx(1, "redis: %s", theirs->redis->errstr);
    }
    reply = got;
    if (reply->type != REDIS_REPLY_INTEGER) {
        errx(1, "redis: %s", reply->str);
    }
    admitted = reply->integer >= 0;
    freeReplyObject(reply);
    return admitted;
}

static void close_redis(void *arg)
{
    struct theirs *theirs = arg;

    redisFree(theirs->redis);
    free(theirs);
}

#endif

/* ---- Both ---- */

static const struct side {
    const char *name;
    void *(*open)(const char *place);
    void (*ask)(void *side, struct work *work);
    bool (*hear)(void *side);
    void (*close)(void *side);
} sides[] = {
    {"idem", open_idem, ask_idem, hear_idem, close_idem},
#ifdef WITH_REDIS
    {"redis", open_redis, ask_redis, hear_redis, close_redis},
#endif
};

static const struct side *find_side(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        if (strcmp(sides[i].name, name) == 0) {
            return &sides[i];
        }
    }
    errx(1, "%s: it was not there when this was built", name);
}

/* Asks until @until_ns, or @most times. How often. */
static uint64_t run(const struct side *side, void *open, struct work *work,
                    int64_t until_ns, uint64_t most)
{
    uint64_t asked = 0;
    uint64_t heard = 0;

    while (heard < asked || (asked < most && now_ns() < until_ns)) {
        while (asked - heard < work->depth && asked < most &&
               now_ns() < until_ns) {
            side->ask(open, work);
            asked++;
        }
        if (heard < asked) {
            check(work, side->hear(open));
            heard++;
        }
    }
    return heard;
}

int main(int argc, char **argv)
{
    const struct side *side;
    struct work work = {0};
    struct timespec now;
    int64_t started_ns;
    uint64_t n;
    void *open;

    if (argc != 8) {
        errx(1, "seven arguments");
    }
    side = find_side(argv[1]);
    work.what = argv[3];
    work.max = strtoull(argv[4], NULL, 10);
    work.depth = strtoul(argv[5], NULL, 10);
    work.seed = (unsigned)strtoul(argv[7], NULL, 10);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    work.at_ms = (int64_t)now.tv_sec * 1000;
    open = side->open(argv[2]);
    if (strcmp(work.what, "new") != 0) { /* What is retried, or stands there. */
        struct work first = work;

        first.what = "new";
        first.depth = 64;
        (void)run(side, open, &first, INT64_MAX, work.max);
        work.n = strcmp(work.what, "full") == 0 ? work.max : 0;
    }
    (void)puts("ready");
    (void)fflush(stdout);
    (void)getchar();
    started_ns = now_ns();
    if (strcmp(argv[6], "0") == 0) {
        n = run(side, open, &work, INT64_MAX, work.max < 256 ? work.max : 256);
    } else {
        n = run(side, open, &work,
                started_ns + strtoll(argv[6], NULL, 10) * 1000000, UINT64_MAX);
    }
    (void)printf("%llu %lld\n", (unsigned long long)n,
                 (long long)(now_ns() - started_ns) / 1000);
    side->close(open);
    return 0;
}
