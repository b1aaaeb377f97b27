/* What the tests of the journal share: a store, a journal, what is in it. */
#ifndef UNIT_JOURNAL_LIB_H
#define UNIT_JOURNAL_LIB_H

#include "test.h"

#include <idem/journal.h>

/* A store of one test, and a journal for it. */
struct place {
    const char *directory; /* Of the journal. */
    char url[600];
    struct idem_store *store;
    struct idem_journal *journal;
};

void place_open(struct place *p);
void place_close(struct place *p);

/* A test on a struct place *p that is open. */
#define TEST_PLACE(suite, condition)                                           \
    TEST_WITH(suite, condition, struct place, p, place_open, place_close)

/* A claim of @key in the empty scope, which is STARTED. */
struct idem_attempt *started(struct place *p, const char *key);

/* Completed with @text. */
struct idem_outcome completed(const char *text);

/* Holds the entry of @outcome for @attempt. */
struct idem_journal_entry *hold(struct place *p,
                                const struct idem_attempt *attempt,
                                const struct idem_outcome *outcome);

/* The same, and lets go of it: the name of its file, until the next. */
const char *put(struct place *p, const struct idem_attempt *attempt,
                const struct idem_outcome *outcome);

/* Completes @key with "receipt 7", which only the journal knows. */
const char *put_key(struct place *p, const char *key);

/* The record of @key; until the test asks for another, or ends. */
const struct idem_record *record_of(struct place *p, const char *key);

/* @key is completed with @text. */
void assert_completed(struct place *p, const char *key, const char *text);

/* What was reported of the entries, in their order. */
struct told {
    unsigned len;
    unsigned by_state[IDEM_JOURNAL_DAMAGED + 1];
    struct {
        enum idem_journal_state state;
        int code;
        enum idem_status status;
        char name[80];
        char key[64];
        char result[64];
    } of[32];
};
struct told replay(struct place *p, const struct idem_journal_filter *filter);
struct told list(struct place *p, const struct idem_journal_filter *filter);

/* A replay, or a list, reports @n entries in @state and no others. */
void assert_replay(struct place *p, enum idem_journal_state state, unsigned n);
void assert_list(struct place *p, enum idem_journal_state state, unsigned n);

/* How many files of the journal have names that end in @ending. */
unsigned files(const struct place *p, const char *ending);

/* There are @n of them, and no others. */
void assert_files(const struct place *p, const char *ending, unsigned n);

/* The bytes of the file @name of the journal. */
struct idem_slice read_entry(struct place *p, const char *name, void *buf,
                             size_t size);

/* Changes the file @name of the journal: cut to @len bytes (negative: not), then
 * the byte at @at turned over (negative: none). */
void damage(struct place *p, const char *name, long len, long at);

#endif
