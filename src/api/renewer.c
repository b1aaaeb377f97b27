/* Runs one thread that renews the leases of all attempts that were added. */
#include "base/heap.h"
#include "base/host.h"
#include "base/process.h"
#include "core/error.h"

#include <idem/renewer.h>

#define PAUSE_MIN_MS 200 /* Between two renewals of an attempt. */

struct entry {
    struct entry *next;
    struct idem_attempt *attempt;
    int64_t due_ms; /* By idem__mono_ms(); IDEM_NEVER. */
    bool lost;
};

struct idem_renewer {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* Signals that entries, busy or ends changed. */
    pthread_t thread;
    struct entry *entries;
    struct entry *busy; /* The thread renews it without the mutex; remove()
                           waits for that. */
    bool ends;
};

/* The next renewal is due after a third of what is left of the lease, so that a store
 * that does not answer is asked more often the closer the end is. */
static void schedule(struct entry *entry)
{
    int64_t left_ms = idem_attempt_lease_left_ms(entry->attempt);
    int64_t pause_ms = left_ms / 3 > PAUSE_MIN_MS ? left_ms / 3 : PAUSE_MIN_MS;

    entry->due_ms = entry->lost || left_ms == IDEM_NEVER
                        ? IDEM_NEVER
                        : idem__time_add(idem__mono_ms(), pause_ms);
}

static struct entry *first_due(struct idem_renewer *renewer)
{
    struct entry *first = renewer->entries;
    struct entry *entry;

    for (entry = first; entry != NULL; entry = entry->next) {
        if (entry->due_ms < first->due_ms) {
            first = entry;
        }
    }
    return first;
}

static void wait_until(struct idem_renewer *renewer, int64_t ms)
{
    struct timespec until = {
        .tv_sec = (time_t)(ms / 1000),
        .tv_nsec = (long)(ms % 1000) * 1000000,
    };

    if (ms == IDEM_NEVER) {
        (void)pthread_cond_wait(&renewer->changed, &renewer->mutex);
    } else {
        (void)pthread_cond_timedwait(&renewer->changed, &renewer->mutex,
                                     &until);
    }
}

static void renew(struct idem_renewer *renewer, struct entry *entry)
{
    int rc;

    renewer->busy = entry;
    (void)pthread_mutex_unlock(&renewer->mutex);
    rc = idem_renew(entry->attempt, /* lease_ms= */ 0, /* ret_error= */ NULL);
    (void)pthread_mutex_lock(&renewer->mutex);
    renewer->busy = NULL;
    entry->lost = rc == IDEM_ELOST;
    schedule(entry);
    (void)pthread_cond_broadcast(&renewer->changed);
}

static void *run(void *arg)
{
    struct idem_renewer *renewer = arg;

    (void)pthread_mutex_lock(&renewer->mutex);
    while (!renewer->ends) {
        struct entry *entry = first_due(renewer);

        if (entry != NULL && entry->due_ms <= idem__mono_ms()) {
            renew(renewer, entry);
        } else {
            wait_until(renewer, entry == NULL ? IDEM_NEVER : entry->due_ms);
        }
    }
    (void)pthread_mutex_unlock(&renewer->mutex);
    return NULL;
}

static void finish(struct idem_renewer *renewer)
{
    (void)pthread_cond_destroy(&renewer->changed);
    (void)pthread_mutex_destroy(&renewer->mutex);
    idem__free(renewer);
}

int idem_renewer_create(struct idem_renewer **ret_renewer,
                        struct idem_error *ret_error)
{
    struct idem_renewer *renewer = idem__zalloc(sizeof(*renewer));
    pthread_condattr_t attr;

    if (renewer == NULL || pthread_condattr_init(&attr) != 0) {
        idem__free(renewer);
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&renewer->mutex, NULL);
    (void)pthread_cond_init(&renewer->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    if (idem__thread_start(&renewer->thread, run, renewer) != 0) {
        finish(renewer);
        return idem__error(
            ret_error, IDEM_EFULL,
            "cannot start the thread that renews leases: too many threads");
    }
    *ret_renewer = renewer;
    return 0;
}

int idem_renewer_add(struct idem_renewer *renewer, struct idem_attempt *attempt,
                     struct idem_error *ret_error)
{
    struct entry *entry;

    if (attempt->verdict != IDEM_STARTED) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "only an attempt that is STARTED has a lease");
    }
    entry = idem__zalloc(sizeof(*entry));
    if (entry == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    entry->attempt = attempt;
    schedule(entry);
    (void)pthread_mutex_lock(&renewer->mutex);
    entry->next = renewer->entries;
    renewer->entries = entry;
    (void)pthread_cond_broadcast(&renewer->changed);
    (void)pthread_mutex_unlock(&renewer->mutex);
    return 0;
}

int idem_renewer_remove(struct idem_renewer *renewer,
                        const struct idem_attempt *attempt)
{
    struct entry **at = &renewer->entries;
    struct entry *entry;
    int rc = IDEM_EINVALID;

    (void)pthread_mutex_lock(&renewer->mutex);
    /* The thread uses the attempt without the mutex, and the caller may destroy it once
     * this returns. */
    while (renewer->busy != NULL && renewer->busy->attempt == attempt) {
        (void)pthread_cond_wait(&renewer->changed, &renewer->mutex);
    }
    while (*at != NULL && (*at)->attempt != attempt) {
        at = &(*at)->next;
    }
    entry = *at;
    if (entry != NULL) {
        *at = entry->next;
        rc = entry->lost ? IDEM_ELOST : 0;
    }
    (void)pthread_mutex_unlock(&renewer->mutex);
    idem__free(entry);
    return rc;
}

void idem_renewer_destroy(struct idem_renewer *renewer)
{
    struct entry *entry;

    if (renewer == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&renewer->mutex);
    renewer->ends = true;
    (void)pthread_cond_broadcast(&renewer->changed);
    (void)pthread_mutex_unlock(&renewer->mutex);
    (void)pthread_join(renewer->thread, NULL);
    while (renewer->entries != NULL) {
        entry = renewer->entries;
        renewer->entries = entry->next;
        idem__free(entry);
    }
    finish(renewer);
}
