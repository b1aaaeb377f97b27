/* Whether a store is open: a mark that lives as long as the store and its queues.
 *
 * A program that closes a store before its queues has a mistake, which shall be a
 * sentence and not a fault in memory that was freed. */
#include "queue/liveness.h"

#include "base/heap.h"
#include "base/process.h"
#include "core/error.h"

struct idem_liveness {
    long pid;       /* That opened the store. */
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
    if (liveness->pid == idem__process()) {
        return 0;
    }
    return idem__error(error, IDEM_EINVALID,
                       "the store was opened by process %ld and this is its "
                       "child: open it anew after fork()",
                       liveness->pid);
}
