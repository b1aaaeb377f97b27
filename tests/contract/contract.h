/* Shared by the tests of the contract. They run unchanged on every store; the argument of
 * the program names the store. */
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

/* Opens f->store again, with f->options, which the caller may have changed. */
void open_again(struct fixture *f);
void finish(struct fixture *f);

/* Tests on a struct fixture *f that is open. */
#define TEST_VIRTUAL(suite, condition)                                         \
    TEST_WITH(suite, condition, struct fixture, f, open_virtual, finish)
#define TEST_REAL(suite, condition)                                            \
    TEST_WITH(suite, condition, struct fixture, f, open_real, finish)

/* The URL of the store; valid until the next call. */
const char *url_of(const struct fixture *f);

/* The differences that stores may have. */
struct traits {
    const char *name;
    const char *layout; /* Another library's, and its settings; NULL: ours. */
    bool durable;       /* It outlives its handle, and so can have several. */
    bool file;          /* It is an SQLite file. */
    bool postgres;      /* It is a schema of a PostgreSQL server. */
    bool at_once;       /* submit() answers: nothing ever waits in the store. */
    bool unordered;     /* A list does not know which record came last. */
    bool
        forgets_fences; /* Of records that were purged, or deleted by their TTL. */
    bool keeps_counters;   /* Longer than its handle. */
    int64_t purge_lag_ms;  /* A record is kept that long after its retention. */
    int64_t other_boot_ms; /* A lease of another boot counts that much more. */
};

const struct traits *traits(void);

/* traits()->durable. */
bool is_durable(void);

/* Makes another place for a store, for use as f->path. */
const char *new_place(const char *name);

/* Opens another handle on the same store with @options. For a store that is not durable this
 * is f->store itself. Call handle_close() when done. */
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

/* Returns how many records idem_list() shows for @filter (NULL: all). */
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

/* Writes @bytes, as many as there were, in place of the part. */
void stored_write(struct fixture *f, const char *key, enum part part,
                  const uint8_t *bytes, size_t len);

/* Run a statement on a store that is an SQLite file; the second returns its number. */
void stored_sql(struct fixture *f, const char *sql);
int64_t stored_number(struct fixture *f, const char *sql);

#endif
