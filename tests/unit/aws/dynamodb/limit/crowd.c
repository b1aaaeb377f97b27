/* A rate limit in a table that many callers ask, request by request in a random order:
 * some are lost, applied twice, or once more much later, and callers die. */
#include "base/heap.h"
#include "limit/limit.h"
#include "sample.h"
#include "test.h"
#include "wire.h"

#include <stdlib.h>

enum {
    SEEDS = 24,
    MAX = 150,      /* Entries are moved, six times. */
    IDS = 200,      /* Requests, each asked about ... */
    ASKS = 3 * IDS, /* ... three times, and again where it is not known. */
    CALLERS = 12,
    LATE = 8, /* Copies of requests that are still on their way. */
};

struct caller {
    struct idem__task task;
    struct idem_op op;
    bool is_busy;
    bool was_admitted; /* Somebody had heard so when it began. */
    unsigned id;
};

struct late {
    char target[64];
    struct idem__buffer body;
};

struct crowd {
    struct table table;
    struct idem__task_env env;
    struct idem_now now;
    struct caller callers[CALLERS];
    struct late late[LATE];
    uint64_t random;
    bool mixed; /* Each caller has one of two numbers. */
    unsigned asked;
    unsigned again[ASKS]; /* Not known, or its caller died. */
    unsigned again_len;
    bool heard[IDS];
    struct idem_limited answers[IDS];
    unsigned fates[FATES];
};

static unsigned any(struct crowd *crowd, unsigned n)
{
    crowd->random ^= crowd->random << 13;
    crowd->random ^= crowd->random >> 7;
    crowd->random ^= crowd->random << 17;
    return (unsigned)((crowd->random >> 20) % n);
}

static int no_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    memset(buf, 1, len);
    return 0;
}

static void set_up(struct crowd *crowd, unsigned seed)
{
    unsigned i;

    memset(crowd, 0, sizeof(*crowd));
    table_init(&crowd->table, "table");
    (void)strcpy(crowd->env.table.name, "table");
    crowd->env.base.host.random = no_random;
    crowd->now = sample_now();
    crowd->now.store_ms = LIMIT_AT_MS;
    crowd->random = 88172645463325252ULL + 7919 * seed;
    crowd->mixed = seed % 3 == 0;
    for (i = 0; i < CALLERS; i++) {
        idem__task_init(&crowd->callers[i].task, &crowd->env);
    }
}

static void tear_down(struct crowd *crowd)
{
    unsigned i;

    for (i = 0; i < CALLERS; i++) {
        idem__task_free(&crowd->callers[i].task);
    }
    for (i = 0; i < LATE; i++) {
        idem__buffer_free(&crowd->late[i].body);
    }
    table_finish(&crowd->table);
}

static void begin(struct crowd *crowd, struct caller *caller)
{
    struct idem_limit_request *limit = &caller->op.u.limit.limit;
    char name[16];

    if (crowd->again_len > 0 && any(crowd, 2) == 0) {
        caller->id = crowd->again[--crowd->again_len];
    } else if (crowd->asked < ASKS) {
        caller->id = (crowd->asked++ * 7 + any(crowd, 5)) % IDS;
    } else {
        return;
    }
    memset(&caller->op, 0, sizeof(caller->op));
    caller->op.verb = IDEM_OP_LIMIT;
    *limit = sample_limit();
    (void)snprintf(name, sizeof(name), "r%u", caller->id);
    limit->request = idem_str(name);
    limit->max = crowd->mixed && any(crowd, 2) == 0 ? 100 : MAX;
    assert_ok(idem__limit_ids(limit, caller->op.u.limit.window,
                              caller->op.u.limit.request));
    caller->is_busy = true;
    caller->was_admitted =
        crowd->heard[caller->id] && crowd->answers[caller->id].admitted;
    caller->task.base.op = &caller->op;
    idem__flight_start(&caller->task.base, &crowd->now);
}

/* Whoever asks about a request hears what was said first. A smaller number may refuse
 * what a greater one admits later. */
static void hear(struct crowd *crowd, struct caller *caller)
{
    const struct idem_limited *answer = &caller->op.u.limit.answer;
    struct idem_limited *first = &crowd->answers[caller->id];

    if (!answer->admitted && caller->op.u.limit.limit.max < MAX) {
        assert_false(caller->was_admitted);
        crowd->again[crowd->again_len++] = caller->id;
        assert_true(crowd->again_len < ASKS);
        return;
    }
    if (crowd->heard[caller->id]) {
        assert_int_equal(answer->admitted, first->admitted);
        assert_int_equal(answer->remaining, first->remaining);
    }
    crowd->heard[caller->id] = true;
    *first = *answer;
}

static void end(struct crowd *crowd, struct caller *caller)
{
    int code = caller->op.error.code;

    caller->is_busy = false;
    idem__task_reset(&caller->task);
    if (code == 0) {
        hear(crowd, caller);
        return;
    }
    assert_true(code == IDEM_EUNAVAILABLE || code == IDEM_EUNKNOWN);
    crowd->again[crowd->again_len++] = caller->id;
    assert_true(crowd->again_len < ASKS);
}

/* A copy of the request stays on its way, or one of before arrives. */
static void play_late(struct crowd *crowd,
                      const struct idem__aws_request *request)
{
    struct late *late = &crowd->late[any(crowd, LATE)];
    struct idem__buffer answer = {.len = 0};

    if (late->body.len > 0) {
        (void)table_apply(&crowd->table, late->target,
                          idem__buffer_slice(&late->body), &answer);
        late->body.len = 0;
    } else if (strstr(request->target, "Get") == NULL) {
        (void)snprintf(late->target, sizeof(late->target), "%s",
                       request->target);
        idem__buffer_add(&late->body, request->body.base, request->body.len);
    }
    idem__buffer_free(&answer);
}

static void step(struct crowd *crowd, struct caller *caller)
{
    struct idem__task *task = &caller->task;
    enum fate fate = any(crowd, 8) == 0 ? (enum fate)any(crowd, FATES) : 0;

    if (!caller->is_busy) {
        begin(crowd, caller);
    } else if (task->base.next == IDEM__FLIGHT_DONE) {
        end(crowd, caller);
    } else if (any(crowd, 60) == 0) {
        /* It dies: nobody hears what it would have said. */
        idem__task_free(task);
        memset(task, 0, sizeof(*task));
        idem__task_init(task, &crowd->env);
        caller->is_busy = false;
        crowd->again[crowd->again_len++] = caller->id;
        assert_true(crowd->again_len < ASKS);
    } else if (task->base.next == IDEM__FLIGHT_PAUSE) {
        idem__flight_resume(&task->base, &crowd->now);
    } else {
        if (any(crowd, 12) == 0) {
            play_late(crowd, &task->request);
        }
        crowd->fates[fate]++;
        wire_carry(&crowd->table, &task->request, fate);
        idem__flight_answered(&task->base, &crowd->now);
    }
}

static bool goes_on(const struct crowd *crowd)
{
    unsigned busy = 0;
    unsigned i;

    for (i = 0; i < CALLERS; i++) {
        busy += crowd->callers[i].is_busy;
    }
    return busy > 0 || crowd->asked < ASKS || crowd->again_len > 0;
}

/* Exactly the limit, each with another remaining count. */
static void check(struct crowd *crowd, unsigned *moved)
{
    bool left[MAX] = {false};
    unsigned admitted = 0;
    unsigned i;

    for (i = 0; i < IDS; i++) {
        const struct idem_limited *answer = &crowd->answers[i];

        if (!crowd->heard[i]) {
            continue;
        }
        if (!answer->admitted) {
            assert_int_equal(answer->remaining, 0);
            continue;
        }
        admitted++;
        assert_true(answer->remaining < MAX);
        if (!crowd->mixed) {
            assert_false(left[answer->remaining]);
            left[answer->remaining] = true;
        }
    }
    assert_int_equal(admitted, MAX);
    *moved += (unsigned)table_len(&crowd->table) - 1;
}

TEST(crowd, getsExactlyTheLimit)
{
    static struct crowd crowd;
    unsigned moved = 0;
    unsigned seed;

    for (seed = 1; seed <= SEEDS; seed++) {
        unsigned i;

        set_up(&crowd, seed);
        while (goes_on(&crowd)) {
            step(&crowd, &crowd.callers[any(&crowd, CALLERS)]);
        }
        check(&crowd, &moved);
        for (i = 0; i < FATES; i++) {
            assert_true(crowd.fates[i] > 0);
        }
        tear_down(&crowd);
    }
    assert_true(moved > SEEDS * (MAX / 2));
}
