/* One step of the specification, where all that it depends on is known or
 * guessed. */
#ifndef HISTORY_RULES_H
#define HISTORY_RULES_H

#include "spec.h"

/* What cannot be told from a history. Each may be true, false or either. */
enum guess {
    EXPIRED = 1,    /* The record is past its retention. */
    OVER = 2,       /* Its lease is over. */
    LATE = 4,       /* It is past expect. */
    LOOKS = 8,      /* The begin looks on as a waiter. */
    GONE = 16,      /* What it waits for was released. */
    SAME = 32,      /* The fence that is meant is the one on record. */
    FORGOTTEN = 64, /* The purge came by here. */
    UNTOLD = 128    /* The begin has made this claim, and is not a copy. */
};

/* One step as it may have been. */
struct step {
    const struct history *h;
    const struct op *op;
    int64_t now[2]; /* When its store looked at the clock. */
    struct state s; /* As found, then as left behind. */
    unsigned open;  /* Guesses that may be true or false, */
    unsigned guess; /* and those that are taken for true. */
    int answer;
    bool busy_for_none; /* BUSY with nothing left. */
    bool takeover;
    bool added;
};

/* Takes the step: sets s, answer and what goes with it. */
void decide(struct step *step);

/* ---- For those who guess ---- */

/* @by after or before @at; IDEM_NEVER and its like stay what they are. */
int64_t later(int64_t at, int64_t by);
int64_t earlier(int64_t at, int64_t by);

/* False if the record's fence cannot be @fence; else it is, from now on. */
bool fence_is(struct state *s, int64_t fence);

#endif
