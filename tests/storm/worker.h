/* A program on libidem, as it is killed: what its roles share. */
#ifndef STORM_WORKER_H
#define STORM_WORKER_H

#include "product.h"

#include <idem.h>
#include <stdint.h>

/* What an owner does besides completing its work. */
enum style {
    STYLE_ANY,     /* One of these by chance; most complete. */
    STYLE_RELEASE, /* Instead: before the effect, nothing has happened. */
    STYLE_RENEW,   /* Before the effect. */
    STYLE_EXPIRE,  /* Instead: after the effect, for another to take over. */
    STYLE_COMPLETE,
    STYLES = 8, /* The others complete too. */
};

struct worker {
    enum style style;
    struct idem_store *store; /* NULL: it opens the file itself. */
    const char *path;         /* Of the store's file. */
    uint64_t random;          /* State. */
    size_t len;               /* Of a product. */
    char **keys;              /* NULL at the end. */
    size_t keys_len;
};

uint64_t worker_random(struct worker *w, uint64_t below);

/* The request for @key, whose first letter is the policy: h or r. */
void worker_request(const char *key, struct idem_request *ret_request);

/* Notes that @attempt is STARTED. */
void worker_started(const char *key, const struct idem_attempt *attempt);

/* Its effect, unless its lease is over. */
void worker_effect(const char *key, const struct idem_attempt *attempt);

/* Notes what came of its end: A, L or T of ledger.h, with the product's @id. */
void worker_ended(const char *key, const struct idem_attempt *attempt,
                  const char *what, const char *id);

/* Notes what came of a begin that is not STARTED. */
void worker_note(const char *key, const struct idem_attempt *attempt);

/* What the work of @attempt made, and its outcome. */
struct product {
    char id[PRODUCT_ID];
    char *bytes;
    struct idem_outcome outcome;
};

void worker_product(const struct worker *w, const struct idem_attempt *attempt,
                    struct product *ret_product);
void worker_product_free(struct product *product);

/* Says what went wrong, where that cannot be: the storm only kills. */
void worker_complain(const char *key, const char *doing,
                     const struct idem_error *error);

/* ---- The roles: an exit status ---- */

int role_work(struct worker *w);    /* One key after the other. */
int role_threads(struct worker *w); /* The same in three threads. */
int role_batch(struct worker *w);   /* All keys at once, through a queue. */
int role_chain(struct worker *w);   /* Each with the end of the last. */
int role_abandon(struct worker *w); /* Gives up before the answer comes. */
int role_purge(struct worker *w);   /* Short retentions, and purges. */
int role_open(struct worker *w);    /* No more than that. */
int role_leave(struct worker *w);   /* Begins all keys, and ends none. */

/* ---- These open the file themselves ---- */

int role_in(struct worker *w);      /* In transactions of its own. */
int role_restore(struct worker *w); /* Marks the store as put back. */

#endif
