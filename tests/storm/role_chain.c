/* Keys one after the other, each claimed with the end of the one before. */
#include "worker.h"

/* What is at work; attempt is NULL where nothing is. */
struct link {
    const char *key;
    struct idem_attempt *attempt;
    bool given_up; /* It was released by its token: its end is LOST. */
};

/* Somebody who has the token says that nothing happened. */
static void give_up(struct worker *w, struct link *link)
{
    struct idem_error error = {0};
    struct idem_attempt *other;
    char token[IDEM_TOKEN_MAX];
    int rc = idem_attempt_token(link->attempt, token);

    if (rc == 0) {
        rc = idem_attempt_from_token(w->store, token, &other, &error);
    }
    if (rc == 0) {
        rc = idem_release(other, idem_str("not today"), &error);
        idem_attempt_destroy(other);
    }
    link->given_up = rc == 0;
    if (rc != 0 && rc != IDEM_ELOST) {
        worker_complain(link->key, "release", &error);
    }
}

static struct idem_attempt *begin(struct worker *w,
                                  const struct idem_request *request)
{
    struct idem_error error = {0};
    struct idem_attempt *attempt = NULL;

    if (idem_begin(w->store, request, &attempt, &error) != 0) {
        worker_complain(request->key.base, "begin", &error);
        return NULL;
    }
    return attempt;
}

/* What came of the end of @link is in its record, whatever the claim came to. */
static void note_end(const struct link *link, int rc, const char *id,
                     const struct idem_error *error)
{
    bool ended =
        idem_record_status(link->attempt->record) == IDEM_STATUS_COMPLETED;

    if (ended || (rc == IDEM_ELOST && !link->given_up)) {
        worker_ended(link->key, link->attempt, ended ? "A" : "T",
                     ended ? id : "");
    }
    if (rc != 0 && rc != IDEM_ELOST) {
        worker_complain(link->key, "next", error);
    }
}

/* Ends @link and claims the next key, or, without one, only ends it. */
static struct idem_attempt *go_on(struct worker *w, struct link *link,
                                  const struct idem_request *request)
{
    struct idem_error error = {0};
    struct idem_attempt *next = NULL;
    struct product product;
    int rc;

    worker_product(w, link->attempt, &product);
    rc = request != NULL ? idem_next(link->attempt, &product.outcome, request,
                                     &next, &error)
                         : idem_end(link->attempt, &product.outcome, &error);
    note_end(link, rc, product.id, &error);
    worker_product_free(&product);
    idem_attempt_destroy(link->attempt);
    link->attempt = NULL;
    return rc != 0 && request != NULL ? begin(w, request) : next;
}

static void work(struct worker *w, struct link *link)
{
    if (link->attempt->verdict != IDEM_STARTED) {
        worker_note(link->key, link->attempt);
        idem_attempt_destroy(link->attempt);
        link->attempt = NULL;
        return;
    }
    worker_started(link->key, link->attempt);
    link->given_up = false;
    if (worker_random(w, 3) == 0) {
        give_up(w, link);
    }
    if (!link->given_up) {
        worker_effect(link->key, link->attempt);
    }
}

int role_chain(struct worker *w)
{
    struct idem_request request;
    struct link link = {.attempt = NULL};
    size_t i;

    for (i = 0; i < w->keys_len; i++) {
        worker_request(w->keys[i], &request);
        link.attempt = link.attempt != NULL ? go_on(w, &link, &request)
                                            : begin(w, &request);
        link.key = w->keys[i];
        if (link.attempt != NULL) {
            work(w, &link);
        }
    }
    if (link.attempt != NULL) {
        (void)go_on(w, &link, /* request= */ NULL);
    }
    return 0;
}
