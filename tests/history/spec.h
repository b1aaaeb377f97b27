/* The sequential specification: what one operation after the other does to one
 * key. Written from docs/specification.md, and from nothing else. */
#ifndef HISTORY_SPEC_H
#define HISTORY_SPEC_H

#include "history.h"

/* What is on record of a key. Of time only intervals are known; of a fence that
 * nobody was told of, that it is not lower than this. All bytes count. */
struct state {
    int64_t lease_end[2]; /* Not before [0], not after [1]; IDEM_NEVER. */
    int64_t expires[2];
    int64_t overdue[2];
    int64_t lease; /* As long as it was asked for. */
    int64_t retention;
    int64_t fence;
    int64_t chain; /* Fence of the first attempt since which there were only
                      takeovers; 0: not known. */
    word nonce;
    word content;
    word text;
    word print;
    word resolved_by; /* The newest change is this person's. */
    int32_t attempts;
    int32_t retried;  /* Of these, how many no cap counts. */
    int32_t failures; /* Ended with a retry since a person decided. */
    uint8_t status;   /* 0: there is no record. As it is shown: also RETRY. */
    uint8_t policy;
    bool fence_known;
    bool first;     /* This attempt is the first of its chain. */
    bool by_lease;  /* Its lease made it unknown or failed. */
    bool silent;    /* An attempt before may have done the work. */
    bool reopened;  /* To be run again, because a person said so. */
    bool paused;    /* To be run again, but not before lease_end. */
    bool decided;   /* The newest change is a person's. */
    bool unused[5]; /* For all bytes to count there is no padding. */
    uint16_t boot;  /* In which its times were set; 0: not known. */
};

enum {
    SPEC_MAX = 16 /* Outcomes of one step. */
};

/* A text of the store's own. */
#define WORD_ANY UINT32_MAX

/* Nothing was ever on record. */
void spec_start(struct state *state);

/* Every state that @op may leave behind when it finds @state and is answered as
 * it was. An @op without an answer is done when its store's clock shows @latest
 * at most, and leaves only states that differ from @state. Returns how many there
 * are. */
unsigned spec_step(const struct history *h, const struct state *state,
                   const struct op *op, int64_t latest,
                   struct state next[SPEC_MAX]);

/* One line for people. */
void spec_describe(const struct history *h, const struct state *state,
                   char buf[256]);

#endif
