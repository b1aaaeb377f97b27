/* Redis under load, as people use it for idempotency keys: SET NX claims, and a
 * script that compares the owner records the result. */
#include "load.h"

#include <err.h>
#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number

const struct target target;

static const char script[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then "
    "redis.call('SET', KEYS[1], ARGV[2], 'PX', " TEXT(86400000) ") return 1 "
                                                                "end return 0";

struct shared {
    const char *path;
    char script_id[64];
    redisContext *redis;
};

struct caller {
    const struct shared *shared;
    redisContext *redis;
    char owner[32];
    unsigned long n;
};

static redisContext *dial(const char *path)
{
    redisContext *redis = redisConnectUnix(path);

    if (redis == NULL || redis->err != 0) {
        errx(1, "redis: %s: %s", path,
             redis == NULL ? "memory" : redis->errstr);
    }
    return redis;
}

static redisReply *checked(redisContext *redis, void *reply)
{
    redisReply *answer = reply;

    if (answer == NULL || answer->type == REDIS_REPLY_ERROR) {
        errx(1, "redis: %s", answer == NULL ? redis->errstr : answer->str);
    }
    return answer;
}

static void *open_shared(const char *where)
{
    struct shared *shared = calloc(1, sizeof(*shared));
    redisReply *reply;

    if (shared == NULL) {
        err(1, "redis");
    }
    shared->path = where;
    shared->redis = dial(where);
    reply = checked(shared->redis,
                    redisCommand(shared->redis, "SCRIPT LOAD %s", script));
    (void)snprintf(shared->script_id, sizeof(shared->script_id), "%s",
                   reply->str);
    freeReplyObject(reply);
    return shared;
}

static void close_shared(void *arg)
{
    struct shared *shared = arg;

    redisFree(shared->redis);
    free(shared);
}

static void clear(void *arg)
{
    struct shared *shared = arg;

    freeReplyObject(
        checked(shared->redis, redisCommand(shared->redis, "FLUSHALL SYNC")));
}

static void *connect_caller(void *shared)
{
    struct caller *caller = calloc(1, sizeof(*caller));

    if (caller == NULL) {
        err(1, "redis");
    }
    caller->shared = shared;
    caller->redis = dial(caller->shared->path);
    return caller;
}

static void disconnect(void *arg)
{
    struct caller *caller = arg;

    redisFree(caller->redis);
    free(caller);
}

static void run_new(void *arg, const char *key)
{
    struct caller *caller = arg;
    redisReply *reply;
    int len = snprintf(caller->owner, sizeof(caller->owner), "%lx-%p-%lx",
                       (unsigned long)getpid(), arg, caller->n++);

    reply =
        checked(caller->redis, redisCommand(caller->redis, "SET %b %b NX PX %d",
                                            key, (size_t)KEY_LEN, caller->owner,
                                            (size_t)len, LEASE_MS));
    if (reply->type != REDIS_REPLY_STATUS) {
        errx(1, "redis: %s: not claimed", key);
    }
    freeReplyObject(reply);
    reply = checked(caller->redis,
                    redisCommand(caller->redis, "EVALSHA %s 1 %b %b %b",
                                 caller->shared->script_id, key,
                                 (size_t)KEY_LEN, caller->owner, (size_t)len,
                                 result, (size_t)RESULT_LEN));
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer != 1) {
        errx(1, "redis: %s: not recorded", key);
    }
    freeReplyObject(reply);
}

static void run_replay(void *arg, const char *key)
{
    struct caller *caller = arg;
    redisReply *reply =
        checked(caller->redis,
                redisCommand(caller->redis, "GET %b", key, (size_t)KEY_LEN));

    if (reply->type != REDIS_REPLY_STRING || reply->len != RESULT_LEN ||
        memcmp(reply->str, result, 64) != 0) {
        errx(1, "redis: %s: another result", key);
    }
    freeReplyObject(reply);
}

/* ---- Many in flight from one thread ---- */

struct flight {
    char key[KEY_LEN + 1];
    char owner[32];
    int64_t start_ns;
    bool claimed;
};

static void append_claim(struct shared *shared, struct flight *flight,
                         uint64_t n)
{
    flight->start_ns = now_ns();
    flight->claimed = false;
    key_of((uint64_t)getpid() << 40 ^ (uint64_t)flight->start_ns, n,
           flight->key);
    (void)snprintf(flight->owner, sizeof(flight->owner), "%lx-%llx",
                   (unsigned long)getpid(), (unsigned long long)n);
    (void)redisAppendCommand(shared->redis, "SET %b %s NX PX %d", flight->key,
                             (size_t)KEY_LEN, flight->owner, LEASE_MS);
}

static void append_result(struct shared *shared, struct flight *flight)
{
    flight->claimed = true;
    (void)redisAppendCommand(shared->redis, "EVALSHA %s 1 %b %s %b",
                             shared->script_id, flight->key, (size_t)KEY_LEN,
                             flight->owner, result, (size_t)RESULT_LEN);
}

/* One connection answers in the order of the questions: a ring of flights. */
static void fly(void *arg, unsigned in_flight, int64_t from_ns,
                int64_t until_ns, struct times *times)
{
    struct shared *shared = arg;
    struct flight *flights = calloc(in_flight, sizeof(*flights));
    unsigned under_way = in_flight;
    uint64_t n = 0;
    unsigned at = 0;

    if (flights == NULL) {
        err(1, "redis");
    }
    clear(shared);
    for (; n < in_flight; n++) {
        append_claim(shared, &flights[n], n);
    }
    for (; under_way > 0; at = (at + 1) % in_flight) {
        struct flight *flight = &flights[at];
        void *answer = NULL;
        redisReply *reply;
        int64_t end_ns;

        if (flight->key[0] == '\0') {
            continue; /* Landed for good. */
        }
        (void)redisGetReply(shared->redis, &answer);
        end_ns = now_ns();
        reply = checked(shared->redis, answer);
        if (!flight->claimed) {
            if (reply->type != REDIS_REPLY_STATUS) {
                errx(1, "redis: %s: not claimed", flight->key);
            }
            append_result(shared, flight);
        } else {
            if (reply->type != REDIS_REPLY_INTEGER || reply->integer != 1) {
                errx(1, "redis: %s: not recorded", flight->key);
            }
            if (flight->start_ns >= from_ns && end_ns <= until_ns) {
                times_add(times, end_ns - flight->start_ns);
            }
            if (end_ns < until_ns) {
                append_claim(shared, flight, n++);
            } else {
                flight->key[0] = '\0';
                under_way--;
            }
        }
        freeReplyObject(reply);
    }
    free(flights);
}

/* ---- Filling ---- */

static void set_sync(redisContext *redis, const char *when)
{
    freeReplyObject(
        checked(redis, redisCommand(redis, "CONFIG SET appendfsync %s", when)));
}

static void fill(void *arg, uint64_t from, uint64_t count, size_t len)
{
    struct shared *shared = arg;
    redisContext *redis = shared->redis;
    char key[KEY_LEN + 1];
    uint64_t answered = 0;
    void *reply;
    uint64_t i;

    set_sync(redis, "no");
    for (i = 0; i < count; i++) {
        key_of(0, from + i, key);
        if (redisAppendCommand(redis, "SET %b %b PX %d", key, (size_t)KEY_LEN,
                               result, len, RETENTION_MS) != REDIS_OK) {
            errx(1, "redis: %s", redis->errstr);
        }
        while (i + 1 - answered >= (i + 1 < count ? 1000 : 1)) {
            if (redisGetReply(redis, &reply) != REDIS_OK) {
                errx(1, "redis: %s", redis->errstr);
            }
            freeReplyObject(checked(redis, reply));
            answered++;
        }
    }
    set_sync(redis, "always");
}

const struct target target = {
    .name = "redis",
    .open = open_shared,
    .close = close_shared,
    .clear = clear,
    .connect = connect_caller,
    .disconnect = disconnect,
    .run_new = run_new,
    .run_replay = run_replay,
    .fill = fill,
    .fly = fly,
};
