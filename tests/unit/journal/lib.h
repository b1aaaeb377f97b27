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

/* Puts @outcome for @attempt and lets go of it: the name of its file. */
const char *put(struct place *p, const struct idem_attempt *attempt,
                const struct idem_outcome *outcome);

/* The status of @key, and its result as text where it has one. */
enum idem_status status_of(struct place *p, const char *key,
                           char ret_result[64]);

/* What was reported of the entries, in their order. */
struct told {
    unsigned len;
    unsigned by_state[IDEM_JOURNAL_NEWER + 1];
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

/* How many files of @directory have names that end in @ending. */
unsigned files(const char *directory, const char *ending);

/* Changes the file @name of the journal: cut to @len bytes (negative: not), then
 * the byte at @at turned over (negative: none). */
void damage(struct place *p, const char *name, long len, long at);

#endif
