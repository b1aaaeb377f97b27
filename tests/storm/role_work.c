/* Keys one after the other, with every verb that an owner has. */
#include "base/crash.h"
#include "worker.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    THREADS = 3,
    WAIT_MS = 200
};

/* Returns @rc. A lease that ran out is nobody's fault. */
static int told(const char *key, const char *doing, int rc,
                const struct idem_error *error)
{
    if (rc != 0 && rc != IDEM_ELOST) {
        worker_complain(key, doing, error);
    }
    return rc;
}

static void complete(struct worker *w, const char *key,
                     struct idem_attempt *attempt)
{
    struct idem_error error = {0};
    struct product product;
    int rc;

    worker_product(w, attempt, &product);
    rc = told(key, "complete",
              idem_complete(attempt, &product.outcome.result, &error), &error);
    if (rc == 0) {
        IDEM__CRASH_POINT("worker/completed");
        worker_ended(key, attempt, "A", product.id);
    } else if (rc == IDEM_ELOST) {
        worker_ended(key, attempt, "T", "");
    }
    worker_product_free(&product);
}

static void work(struct worker *w, const char *key,
                 struct idem_attempt *attempt)
{
    enum style style =
        w->style != STYLE_ANY ? w->style : (enum style)worker_random(w, STYLES);
    struct idem_error error = {0};

    worker_started(key, attempt);
    if (style == STYLE_RELEASE) {
        if (told(key, "release",
                 idem_release(attempt, idem_str("not today"), &error),
                 &error) == 0) {
            worker_ended(key, attempt, "L", "");
        }
        return;
    }
    if (style == STYLE_RENEW &&
        told(key, "renew", idem_renew(attempt, IDEM_LEASE_MIN_MS + 500, &error),
             &error) != 0) {
        return;
    }
    worker_effect(key, attempt);
    if (style == STYLE_EXPIRE && key[0] == 'r') {
        (void)told(key, "expire", idem_expire(attempt, &error), &error);
        return;
    }
    complete(w, key, attempt);
}

static void visit(struct worker *w, const char *key)
{
    struct idem_request request;
    struct idem_attempt *attempt;
    struct idem_error error = {0};

    worker_request(key, &request);
    if (w->style == STYLE_ANY && worker_random(w, 4) == 0) {
        request.wait_ms = WAIT_MS;
    }
    if (worker_random(w, 2) == 0) {
        request.input = idem_str("what was asked");
    }
    if (idem_begin(w->store, &request, &attempt, &error) != 0) {
        worker_complain(key, "begin", &error);
        return;
    }
    if (attempt->verdict == IDEM_STARTED) {
        work(w, key, attempt);
    } else {
        worker_note(key, attempt);
    }
    idem_attempt_destroy(attempt);
}

static void *visit_all(void *arg)
{
    struct worker *w = arg;
    size_t i;

    for (i = 0; i < w->keys_len; i++) {
        visit(w, w->keys[i]);
    }
    return NULL;
}

int role_work(struct worker *w)
{
    (void)visit_all(w);
    return 0;
}

int role_threads(struct worker *w)
{
    pthread_t threads[THREADS];
    struct worker own[THREADS];
    size_t i;

    for (i = 0; i < THREADS; i++) {
        own[i] = *w;
        own[i].random += i * 2;
        if (pthread_create(&threads[i], NULL, visit_all, &own[i]) != 0) {
            abort();
        }
    }
    for (i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return 0;
}
