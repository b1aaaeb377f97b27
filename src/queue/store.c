/* Manages the head of every store, and the mark that shows whether it is open. */
#include "base/heap.h"
#include "base/host.h"
#include "base/process.h"
#include "core/error.h"
#include "queue/queue.h"

#include <assert.h>

enum {
    TIMEOUT_MAX_MS = 3600 * 1000,
    QUEUE_MAX = 1 << 20,
};

static int check_timeout(int64_t timeout_ms, struct idem_error *error)
{
    return timeout_ms >= 1 && timeout_ms <= TIMEOUT_MAX_MS
               ? 0
               : idem__error(error, IDEM_EINVALID,
                             "options: timeout_ms must be 1 to %d",
                             TIMEOUT_MAX_MS);
}

static int check_options(const struct idem_open_options *options,
                         struct idem_error *error)
{
    const unsigned flags = IDEM_OPEN_THREAD | IDEM_OPEN_READONLY |
                           IDEM_OPEN_NO_CREATE | IDEM_OPEN_BUDGETS;

    if (options->size != sizeof(*options)) {
        return idem__error(error, IDEM_EINVALID,
                           "options: begin with IDEM_OPEN_OPTIONS_INIT");
    }
    if ((options->flags & ~flags) != 0) {
        return idem__error(error, IDEM_EINVALID, "options: unknown flag");
    }
    if (check_timeout(options->timeout_ms, error) != 0) {
        return IDEM_EINVALID;
    }
    if (options->queue_max < 1 || options->queue_max > QUEUE_MAX) {
        return idem__error(error, IDEM_EINVALID,
                           "options: queue_max must be 1 to %d", QUEUE_MAX);
    }
    if (options->result_max > IDEM_RESULT_MAX) {
        return idem__error(error, IDEM_EINVALID,
                           "options: result_max must be at most %ld",
                           IDEM_RESULT_MAX);
    }
    return 0;
}

int idem__store_init(struct idem_store *store, const struct idem_store_ops *ops,
                     const struct idem_open_options *options,
                     struct idem_error *ret_error)
{
    static const struct idem_open_options standard = IDEM_OPEN_OPTIONS_INIT;
    int rc;

    if (options == NULL) {
        options = &standard;
    }
    assert(ops->name != NULL &&
           (ops->submit != NULL || ops->submit_all != NULL));
    assert(ops->cancel != NULL && ops->drive != NULL && ops->close != NULL);
    rc = check_options(options, ret_error);
    if (rc != 0) {
        return rc;
    }
    memset(store, 0, sizeof(*store));
    store->ops = ops;
    store->options = *options;
    store->lease_min_ms = IDEM_LEASE_MIN_MS;
    store->pid = idem__process();
    store->liveness = idem__liveness_create();
    if (store->liveness == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    /* A caller with its own sleep hook polls with it, so it needs no waiters to wake
     * it. */
    if (options->host.sleep == NULL) {
        store->waiters = idem__waiters_create();
        if (store->waiters == NULL) {
            idem__store_finish(store);
            return idem__error_plain(ret_error, IDEM_ENOMEM);
        }
    }
    idem__host_default(&store->options.host);
    return 0;
}

void idem__store_finish(struct idem_store *store)
{
    idem__waiters_destroy(store->waiters);
    store->waiters = NULL;
    idem__liveness_end(store->liveness);
    store->liveness = NULL;
}

const char *idem_store_url(const struct idem_store *store)
{
    return store->url;
}

bool idem_store_is_remote(const struct idem_store *store)
{
    return store->remote;
}

int idem_store_set_timeout(struct idem_store *store, int64_t timeout_ms,
                           struct idem_error *ret_error)
{
    int rc = check_timeout(timeout_ms, ret_error);

    if (rc == 0) {
        store->options.timeout_ms = timeout_ms;
    }
    return rc;
}

int64_t idem_store_lease_min_ms(const struct idem_store *store)
{
    return store->lease_min_ms;
}

int idem__store_check(const struct idem_store *store, struct idem_error *error)
{
    return idem__liveness_check(store->liveness, error);
}

/* ---- Liveness ---- */

/* The liveness is a mark that lives as long as the store and its queues.
 *
 * A program that closes a store before its queues has a defect. It must get an error
 * for it, and not a fault in freed memory.
 */

struct idem_liveness {
    long pid;       /* Of the process that opened the store. */
    unsigned users; /* The store and its queues; atomic. */
    bool closed;    /* Atomic. */
};

struct idem_liveness *idem__liveness_create(void)
{
    struct idem_liveness *liveness = idem__zalloc(sizeof(*liveness));

    if (liveness != NULL) {
        liveness->pid = idem__process();
        liveness->users = 1;
    }
    return liveness;
}

struct idem_liveness *idem__liveness_hold(struct idem_liveness *liveness)
{
    (void)__atomic_fetch_add(&liveness->users, 1, __ATOMIC_RELAXED);
    return liveness;
}

void idem__liveness_drop(struct idem_liveness *liveness)
{
    if (__atomic_sub_fetch(&liveness->users, 1, __ATOMIC_ACQ_REL) == 0) {
        idem__free(liveness);
    }
}

void idem__liveness_end(struct idem_liveness *liveness)
{
    if (liveness != NULL) {
        __atomic_store_n(&liveness->closed, true, __ATOMIC_RELEASE);
        idem__liveness_drop(liveness);
    }
}

bool idem__liveness_is_closed(const struct idem_liveness *liveness)
{
    return __atomic_load_n(&liveness->closed, __ATOMIC_ACQUIRE);
}

int idem__liveness_check(const struct idem_liveness *liveness,
                         struct idem_error *error)
{
    if (idem__liveness_is_closed(liveness)) {
        return idem__error(error, IDEM_EINVALID,
                           "the store of this queue was closed: destroy its "
                           "queues before idem_close()");
    }
    /* The child of a fork() has copies of locks and connections that its parent still
     * uses, so it must touch none of them. */
    if (liveness->pid == idem__process()) {
        return 0;
    }
    return idem__error(error, IDEM_EINVALID,
                       "the store was opened by process %ld and this is its "
                       "child: open it anew after fork()",
                       liveness->pid);
}
