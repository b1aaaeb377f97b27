/* Purges a whole table: segments at the same time, within a budget of units.
 *
 * Each segment has one op in flight, which is one page. A page that failed starts again
 * where it began: it does not find what it has deleted already, and leaves nothing out. */
#include "aws/dynamodb/store.h"
#include "aws/dynamodb/table/table.h"
#include "aws/dynamodb/task/walk.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "queue/op.h"

#include <idem/dynamodb.h>
#include <idem/queue.h>

enum {
    SEGMENTS = 8,
    SEGMENTS_MAX = 64,
    TRIES_MAX = 8,
    REST_MS = 100, /* The longest wait, so that progress is shown meanwhile. */
};

struct segment {
    struct idem_op *op;
    uint64_t page[IDEM_CURSOR_LEN]; /* Where its page began. */
    unsigned tries;                 /* Of that page, without a deletion. */
    bool busy;
    bool done;
};

struct purge {
    struct idem_store *store;
    const struct idem_dynamodb_purge_options *options;
    struct idem_dynamodb_purged *told;
    struct idem_error *error;
    struct idem_queue *queue;
    struct idem__budget budget; /* In half units. */
    uint64_t promised;          /* Records that pages in flight may delete. */
    struct segment segments[SEGMENTS_MAX];
    size_t segments_len;
    size_t busy;
    bool stopped;
};

/* ---- Beginning pages ---- */

/* How many records one more page may delete. */
static uint64_t allowed(const struct purge *p)
{
    uint64_t max = p->options->max;
    uint64_t taken = p->told->purged + p->promised;

    if (max == 0) {
        return IDEM__HEADS_GET;
    }
    return max <= taken                    ? 0
           : max - taken < IDEM__HEADS_GET ? max - taken
                                           : IDEM__HEADS_GET;
}

static bool is_over(const struct purge *p)
{
    return p->stopped || p->error->code != 0;
}

/* The ms after which the next page may begin. */
static int64_t wait_ms(struct purge *p)
{
    return idem__budget_wait_ms(&p->budget, idem__mono_ms());
}

/* Items of the next page. With a small budget a page is small, so that it does not take the
 * units of many seconds at once: a record takes about one. */
static uint64_t page_limit(const struct purge *p, uint64_t records)
{
    uint64_t most = p->options->units_per_second;

    most = most < IDEM__HEADS_GET ? most : IDEM__HEADS_GET;
    return records >= most ? most : records;
}

static void begin(struct purge *p, struct segment *s, uint64_t records)
{
    struct idem_op *op = s->op;
    uint64_t *from = op->u.purge.from;

    memcpy(s->page, op->u.purge.cursor, sizeof(s->page));
    op->u.purge.max = records;
    op->u.purge.purged = 0;
    from[IDEM__PURGE_LIMIT] = page_limit(p, records);
    from[IDEM__PURGE_READ] = 0;
    from[IDEM__PURGE_WRITE] = 0;
    from[IDEM__PURGE_THROTTLED] = 0;
    from[IDEM__PURGE_LOOKED] = 0;
    if (idem_queue_submit(p->queue, op, p->error) == 0) {
        s->busy = true;
        p->busy++;
        p->promised += records;
    }
}

/* Begins a page in each segment that may. Returns the ms after which more may begin. */
static int64_t begin_all(struct purge *p)
{
    size_t i;

    for (i = 0; i < p->segments_len && !is_over(p); i++) {
        struct segment *s = &p->segments[i];
        uint64_t records = allowed(p);
        int64_t ms;

        if (s->busy || s->done || records == 0) {
            continue;
        }
        ms = wait_ms(p);
        if (ms > 0) {
            return ms;
        }
        begin(p, s, records);
    }
    return IDEM_NEVER;
}

/* ---- Taking answers ---- */

static void count(struct purge *p, const struct segment *s)
{
    const uint64_t *from = s->op->u.purge.from;
    struct idem_dynamodb_purged *told = p->told;

    told->purged += s->op->u.purge.purged;
    if (s->op->error.code == 0) {
        told->looked += from[IDEM__PURGE_LOOKED];
    }
    told->throttled += from[IDEM__PURGE_THROTTLED];
    told->read_units += (double)from[IDEM__PURGE_READ] / 2;
    told->write_units += (double)from[IDEM__PURGE_WRITE] / 2;
    idem__budget_use(&p->budget, (double)(from[IDEM__PURGE_READ] +
                                          from[IDEM__PURGE_WRITE]));
    if (from[IDEM__PURGE_THROTTLED] > 0) {
        idem__budget_throttled(&p->budget, idem__mono_ms());
    }
}

static void take_answer(struct purge *p, struct segment *s)
{
    struct idem_op *op = s->op;

    s->busy = false;
    p->busy--;
    p->promised -= op->u.purge.max;
    count(p, s);
    if (op->error.code == 0) {
        s->tries = 0;
        s->done = op->u.purge.done;
    } else {
        s->tries = op->u.purge.purged > 0 ? 0 : s->tries + 1;
        memcpy(op->u.purge.cursor, s->page, sizeof(s->page));
        /* A service that has not answered yet, not even with a throttle, is unreachable: to
         * try the page again would only delay the error. */
        if (idem_error_kind(op->error.code) != IDEM_KIND_RETRY ||
            (p->told->looked == 0 && p->told->throttled == 0) ||
            s->tries == TRIES_MAX) {
            *p->error = op->error;
        }
    }
    if (p->options->progress != NULL && !p->stopped) {
        p->stopped = p->options->progress(p->options->ctx, p->told) != 0;
    }
}

static bool work(struct purge *p)
{
    const struct idem_host *host = &p->store->options.host;
    int64_t ms = begin_all(p);
    struct idem_op *op;

    if (p->busy == 0) {
        if (ms == IDEM_NEVER || is_over(p)) {
            return false;
        }
        host->sleep(host->ctx, ms < REST_MS ? ms : REST_MS);
        return true;
    }
    op = idem_queue_reap(p->queue, ms == IDEM_NEVER ? -1
                                   : ms < REST_MS   ? ms
                                                    : REST_MS);
    if (op != NULL) {
        take_answer(p, idem_op_user(op));
    }
    return true;
}

/* ---- The purge ---- */

static int make_segments(struct purge *p, uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        struct segment *s = &p->segments[i];

        s->op = idem__op_create(IDEM_OP_PURGE, 0);
        if (s->op == NULL) {
            return idem__error_plain(p->error, IDEM_ENOMEM);
        }
        p->segments_len++;
        idem_op_set_user(s->op, s);
        s->op->u.purge.from[IDEM__PURGE_SEGMENT] = i;
        s->op->u.purge.from[IDEM__PURGE_SEGMENTS] = n;
    }
    return 0;
}

static bool all_done(const struct purge *p)
{
    size_t i;

    for (i = 0; i < p->segments_len; i++) {
        if (!p->segments[i].done) {
            return false;
        }
    }
    return true;
}

static void run(struct purge *p)
{
    struct idem__dynamodb_store *store =
        (struct idem__dynamodb_store *)p->store;
    uint64_t parts = __atomic_load_n(&store->parts_purged, __ATOMIC_RELAXED);
    uint64_t segments = p->options->segments;

    if (make_segments(p, segments == 0 ? SEGMENTS : segments) == 0 &&
        idem_queue_create(p->store, &p->queue, p->error) == 0) {
        idem__budget_init(&p->budget, 2 * p->options->units_per_second,
                          idem__mono_ms());
        while (work(p)) {
        }
        p->told->parts =
            __atomic_load_n(&store->parts_purged, __ATOMIC_RELAXED) - parts;
        p->told->done = all_done(p);
    }
}

static void finish(struct purge *p)
{
    size_t i;

    for (i = 0; i < p->segments_len; i++) {
        idem_op_destroy(p->segments[i].op);
    }
    idem_queue_destroy(p->queue);
    idem__free(p);
}

int idem_dynamodb_purge(struct idem_store *store,
                        const struct idem_dynamodb_purge_options *options,
                        struct idem_dynamodb_purged *ret_purged,
                        struct idem_error *ret_error)
{
    struct idem_dynamodb_purge_options settings = *options;
    struct idem_error error = {0};
    struct purge *p;

    if (strcmp(store->ops->name, "dynamodb") != 0) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "purge: not a DynamoDB store");
    }
    if (options->size != sizeof(*options) ||
        ret_purged->size != sizeof(*ret_purged) ||
        options->segments > SEGMENTS_MAX) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "purge: the size of the options or of the answer "
                           "is not set, or segments is above %d",
                           SEGMENTS_MAX);
    }
    p = idem__zalloc(sizeof(*p));
    if (p == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    if (settings.units_per_second == 0) {
        settings.units_per_second = IDEM_DYNAMODB_PURGE_UNITS;
    }
    *ret_purged = (struct idem_dynamodb_purged)IDEM_DYNAMODB_PURGED_INIT;
    p->store = store;
    p->options = &settings;
    p->told = ret_purged;
    p->error = &error;
    run(p);
    finish(p);
    if (error.code != 0 && ret_error != NULL) {
        *ret_error = error;
    }
    return error.code;
}

/* ---- The budget ---- */

enum {
    SECOND_MS = 1000,
    RECOVERY =
        10,    /* Seconds in which the pace recovers from 0 to the full one. */
    LEAST = 1, /* Units in a second: the purge never stands still. */
    WAIT_MAX_MS = 60 * 1000,
};

void idem__budget_init(struct idem__budget *budget, uint64_t units_per_second,
                       int64_t now_ms)
{
    budget->full = (double)(units_per_second == 0 ? LEAST : units_per_second);
    budget->pace = budget->full;
    budget->left = 0;
    budget->used = 0;
    budget->used_from_ms = now_ms;
    budget->at_ms = now_ms;
}

void idem__budget_use(struct idem__budget *budget, double units)
{
    budget->left -= units;
    budget->used += units;
}

void idem__budget_throttled(struct idem__budget *budget, int64_t now_ms)
{
    double ms = (double)(now_ms - budget->used_from_ms);
    double measured = budget->used * SECOND_MS / (ms < 1 ? 1 : ms);

    if (ms < SECOND_MS && budget->pace < budget->full) {
        return; /* The pace was halved less than a second ago. */
    }
    /* A purge that is slower than its budget was throttled at the pace it had, and not at
     * that of the budget: halve the former. */
    if (measured > 0 && measured < budget->pace) {
        budget->pace = measured;
    }
    budget->pace /= 2;
    if (budget->pace < LEAST) {
        budget->pace = LEAST;
    }
    budget->used = 0;
    budget->used_from_ms = now_ms;
}

int64_t idem__budget_wait_ms(struct idem__budget *budget, int64_t now_ms)
{
    double seconds = (double)(now_ms - budget->at_ms) / SECOND_MS;
    double wait;

    budget->at_ms = now_ms;
    budget->left += seconds * budget->pace;
    budget->pace += seconds * budget->full / RECOVERY;
    if (budget->pace > budget->full) {
        budget->pace = budget->full;
    }
    if (budget->left > budget->pace) {
        budget->left = budget->pace;
    }
    if (budget->left >= 0) {
        return 0;
    }
    wait = -budget->left * SECOND_MS / budget->pace;
    return wait >= WAIT_MAX_MS ? WAIT_MAX_MS : (int64_t)wait + 1;
}
