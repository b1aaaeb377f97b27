/* The sequential specification: the effects of operations on one key, one after the other.
 * It was written from docs/specification.md, and from nothing else. */
#ifndef HISTORY_SPEC_H
#define HISTORY_SPEC_H

#include "history.h"

/* The record of a key. Its times are known as intervals only; a fence that no caller was
 * told is known only to be no lower than this. All bytes count. */
struct state {
    int64_t lease_end[2]; /* Not before [0], not after [1]; IDEM_NEVER. */
    int64_t expires[2];
    int64_t overdue[2];
    int64_t lease; /* The length that the call asked for. */
    int64_t retention;
    int64_t fence;
    int64_t chain; /* Fence of the first attempt since which there were only
                      takeovers; 0: not known. */
    word nonce;
    word content;
    word text;
    word print;
    word resolved_by; /* The person that made the newest change. */
    int32_t attempts;
    int32_t retried;  /* Those of them that no cap counts. */
    int32_t failures; /* Ended with a retry since a person decided. */
    uint8_t status;   /* 0: there is no record. As shown, so it may be RETRY. */
    uint8_t policy;
    bool fence_known;
    bool first;     /* This attempt is the first of its chain. */
    bool by_lease;  /* Its lease made it unknown or failed. */
    bool silent;    /* An attempt before may have done the work. */
    bool reopened;  /* To be run again, because a person decided so. */
    bool paused;    /* To be run again, but not before lease_end. */
    bool decided;   /* The newest change is a person's. */
    bool unused[5]; /* For all bytes to count there is no padding. */
    uint16_t boot;  /* In which its times were set; 0: not known. */
};

enum {
    SPEC_MAX = 16 /* Outcomes of one step. */
};

/* A text that the store wrote itself. */
#define WORD_ANY UINT32_MAX

/* Sets @state to a key that never had a record. */
void spec_start(struct state *state);

/* Finds every state that @op may leave when it meets @state and gets the answer that it got.
 * An @op without an answer is done when its store's clock shows @latest at most, and leaves
 * only states that differ from @state. Returns how many states there are. */
unsigned spec_step(const struct history *h, const struct state *state,
                   const struct op *op, int64_t latest,
                   struct state next[SPEC_MAX]);

/* Describes @state in one line for people. */
void spec_describe(const struct history *h, const struct state *state,
                   char buf[256]);

#endif
