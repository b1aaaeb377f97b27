/* Going through a journal, as a replay, a list and a catch-up do. */
#ifndef IDEM_JOURNAL_REPLAY_H
#define IDEM_JOURNAL_REPLAY_H

#include "journal/directory.h"

/* One look around: a replay where there is a store, else a list. */
struct idem__round {
    struct idem_journal *journal;
    struct idem_store *store;
    struct idem_slice store_url; /* Only for it; empty: for all. */
    const uint8_t *id;           /* Likewise; NULL. */
    idem_journal_fn *each;
    void *ctx;
};

enum {
    IDEM__ROUND_PREFIX_MAX = IDEM__ENTRY_STORE_LEN + 1 + IDEM__ENTRY_ID_LEN
};

/* How the bases of names begin that the round is about: of those for a store, and
 * where it is about a record too, of those about it. */
int idem__round_prefix(const struct idem__round *round,
                       char ret_prefix[IDEM__ROUND_PREFIX_MAX + 1]);

bool idem__round_is_due(const struct idem__round *round, const char *name);

/* Replays or shows the file @name; what @each answered, or 0. */
int idem__round_look_at(const struct idem__round *round, const char *name);

#endif
