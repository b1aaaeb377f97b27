/* What the tests of the contract share. They run unchanged on every store; the
 * program's argument names it. */
#ifndef CONTRACT_H
#define CONTRACT_H

#include "claims.h"
#include "host.h"
#include "test.h"

/* A store under test, on a host of its own. */
struct fixture {
    struct host host;
    struct idem_open_options options;
    struct idem_store *store;
    const char *path; /* Of its file, or what names its table; NULL: none. */
};

/* An empty store on virtual clocks. Waiters poll, and each poll passes time. */
void open_virtual(struct fixture *f);

/* An empty store on the system's clocks. */
void open_real(struct fixture *f);

/* Opens f->store with f->options, which the caller has changed since. */
void open_again(struct fixture *f);
void finish(struct fixture *f);

/* Tests on a struct fixture *f that is open. */
#define TEST_VIRTUAL(suite, condition)                                         \
    TEST_WITH(suite, condition, struct fixture, f, open_virtual, finish)
#define TEST_REAL(suite, condition)                                            \
    TEST_WITH(suite, condition, struct fixture, f, open_real, finish)

/* Where it is; valid until the next call. */
const char *url_of(const struct fixture *f);

/* What stores may differ in. */
struct traits {
    const char *name;
    const char *layout; /* Of a table that is not ours, and its settings; NULL:
                             none. */
    bool durable;       /* It outlives its handle, and so can have several. */
    bool file;          /* It is an SQLite file. */
    bool postgres;      /* It is a schema of a PostgreSQL server. */
    bool at_once;       /* submit() answers: nothing ever waits in the store. */
    bool unordered;     /* A list does not know which record came last. */
    bool forgets_fences;   /* Of what was purged, or deleted by its ttl. */
    bool keeps_counters;   /* Longer than its handle. */
    int64_t purge_lag_ms;  /* A record is kept that long after its retention. */
    int64_t other_boot_ms; /* A lease of another boot counts that much more. */
};

const struct traits *traits(void);

/* traits()->durable. */
bool is_durable(void);

/* Another place for a store, which may be used for f->path. */
const char *new_place(const char *name);

/* Another handle on the same store with @options: its own where the store is
 * durable, else the same. handle_close() when done. */
struct idem_store *handle_open(struct fixture *f,
                               const struct idem_open_options *options);
void handle_close(struct fixture *f, struct idem_store *store);

/* ---- Requests and what they meet ---- */

/* Calls one of complete, fail, release, unknown, renew, by number. */
enum {
    VERBS = 5
};
int call_verb(int verb, struct idem_attempt *attempt);

/* Of @key in the empty scope, which must be there. */
enum idem_status status_of(struct idem_store *store, const char *key);
uint64_t fence_of(struct idem_store *store, const char *key);

/* How many records idem_list() shows for @filter (NULL: all). */
size_t count(struct idem_store *store, const struct idem_filter *filter);

/* The store's time. */
int64_t store_ms(struct idem_store *store);

/* ---- What lies stored ---- */

enum part {
    HEAD,
    RESULT,
    INPUT
};

/* Copies a part of @key's stored record to @buf, at most @cap bytes. */
size_t stored_read(struct fixture *f, const char *key, enum part part,
                   uint8_t *buf, size_t cap);

/* Puts @bytes, as many as there were, in its place. */
void stored_write(struct fixture *f, const char *key, enum part part,
                  const uint8_t *bytes, size_t len);

/* A statement on a store that is an SQLite file, and one that gives a number. */
void stored_sql(struct fixture *f, const char *sql);
int64_t stored_number(struct fixture *f, const char *sql);

#endif
