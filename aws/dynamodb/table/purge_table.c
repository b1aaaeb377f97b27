/* Purges a whole table, one page after the other, within a budget of units.
 *
 * Nobody knows the units of a page before it is done, so the purge rests after each page
 * until the budget has paid for it. A page that failed starts again where it began: it does
 * not find what it has deleted already, and leaves nothing out. */
#include "aws/dynamodb/store.h"
#include "aws/dynamodb/task/walk.h"
#include "base/host.h"
#include "core/error.h"
#include "queue/op.h"

#include <idem/dynamodb.h>
#include <idem/queue.h>

enum {
    TRIES_MAX = 8,
};

struct purge {
    struct idem_store *store;
    const struct idem_dynamodb_purge_options *options;
    uint64_t units_per_second;
    struct idem_dynamodb_purged *told;
    struct idem_queue *queue;
    struct idem_op *op;
    unsigned tries; /* Of the page, without a deletion. */
    bool stopped;
};

/* How many records the next page may delete. */
static uint64_t allowed(const struct purge *p)
{
    uint64_t max = p->options->max;
    uint64_t left = max == 0 ? IDEM__HEADS_GET : max - p->told->purged;

    return left < IDEM__HEADS_GET ? left : IDEM__HEADS_GET;
}

/* With a small budget a page is small, so that it does not take the units of many seconds
 * at once: a record takes about one. */
static void prepare_page(struct purge *p)
{
    struct idem_op *op = p->op;
    uint64_t *from = op->u.purge.from;

    op->u.purge.max = allowed(p);
    op->u.purge.purged = 0;
    from[IDEM__PURGE_LIMIT] = p->units_per_second < IDEM__HEADS_GET
                                  ? p->units_per_second
                                  : IDEM__HEADS_GET;
    from[IDEM__PURGE_READ] = 0;
    from[IDEM__PURGE_WRITE] = 0;
    from[IDEM__PURGE_THROTTLED] = 0;
    from[IDEM__PURGE_LOOKED] = 0;
}

static void count(struct purge *p)
{
    const uint64_t *from = p->op->u.purge.from;
    struct idem_dynamodb_purged *told = p->told;

    told->purged += p->op->u.purge.purged;
    if (p->op->error.code == 0) {
        told->looked += from[IDEM__PURGE_LOOKED];
    }
    told->throttled += from[IDEM__PURGE_THROTTLED];
    told->read_units += (double)from[IDEM__PURGE_READ] / 2;
    told->write_units += (double)from[IDEM__PURGE_WRITE] / 2;
}

/* True if the page may be tried again. A service that has not answered yet, not even with a
 * throttle, is unreachable: to try again would only delay the error. */
static bool may_try_again(const struct purge *p)
{
    return idem_error_kind(p->op->error.code) == IDEM_KIND_RETRY &&
           (p->told->looked > 0 || p->told->throttled > 0) &&
           p->tries < TRIES_MAX;
}

static int do_page(struct purge *p, struct idem_error *error)
{
    uint64_t began[IDEM_CURSOR_LEN];
    int rc;

    memcpy(began, p->op->u.purge.cursor, sizeof(began));
    prepare_page(p);
    rc = idem_queue_submit(p->queue, p->op, error);
    if (rc != 0) {
        return rc;
    }
    p->op = idem_queue_reap(p->queue, -1);
    count(p);
    p->tries =
        p->op->error.code == 0 || p->op->u.purge.purged > 0 ? 0 : p->tries + 1;
    if (p->op->error.code != 0) {
        memcpy(p->op->u.purge.cursor, began, sizeof(began));
        if (!may_try_again(p)) {
            *error = p->op->error;
            return error->code;
        }
    }
    return 0;
}

static bool is_over(const struct purge *p)
{
    return p->stopped || p->op->u.purge.done || allowed(p) == 0;
}

/* Rests until the time since @begun_ms has paid for the units of the page. */
static void rest(const struct purge *p, int64_t begun_ms)
{
    const struct idem_host *host = &p->store->options.host;
    const uint64_t *from = p->op->u.purge.from;
    uint64_t half_units = from[IDEM__PURGE_READ] + from[IDEM__PURGE_WRITE];
    int64_t left_ms = begun_ms +
                      (int64_t)(half_units * 500 / p->units_per_second) -
                      idem__mono_ms();

    if (left_ms > 0) {
        host->sleep(host->ctx, left_ms);
    }
}

static int run(struct purge *p, struct idem_error *error)
{
    int rc = 0;

    while (rc == 0 && !is_over(p)) {
        int64_t begun_ms = idem__mono_ms();

        rc = do_page(p, error);
        if (p->options->progress != NULL) {
            p->stopped = p->options->progress(p->options->ctx, p->told) != 0;
        }
        if (rc == 0 && !is_over(p)) {
            rest(p, begun_ms);
        }
    }
    p->told->done = p->op->u.purge.done;
    return rc;
}

int idem_dynamodb_purge(struct idem_store *store,
                        const struct idem_dynamodb_purge_options *options,
                        struct idem_dynamodb_purged *ret_purged,
                        struct idem_error *ret_error)
{
    const struct idem__dynamodb_store *own =
        (const struct idem__dynamodb_store *)store;
    struct purge p = {.store = store, .options = options, .told = ret_purged};
    struct idem_error error = {0};
    uint64_t parts;
    int rc;

    if (strcmp(store->ops->name, "dynamodb") != 0) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "purge: not a DynamoDB store");
    }
    if (options->size != sizeof(*options) ||
        ret_purged->size != sizeof(*ret_purged)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "purge: the size of the options or of the answer "
                           "is not set");
    }
    *ret_purged = (struct idem_dynamodb_purged)IDEM_DYNAMODB_PURGED_INIT;
    p.units_per_second = options->units_per_second == 0
                             ? IDEM_DYNAMODB_PURGE_UNITS
                             : options->units_per_second;
    p.op = idem__op_create(IDEM_OP_PURGE, 0);
    if (p.op == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    parts = __atomic_load_n(&own->parts_purged, __ATOMIC_RELAXED);
    rc = idem_queue_create(store, &p.queue, &error);
    if (rc == 0) {
        rc = run(&p, &error);
        ret_purged->parts =
            __atomic_load_n(&own->parts_purged, __ATOMIC_RELAXED) - parts;
    }
    idem_op_destroy(p.op);
    idem_queue_destroy(p.queue);
    if (rc != 0 && ret_error != NULL) {
        *ret_error = error;
    }
    return rc;
}
