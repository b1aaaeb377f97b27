/* One step of the specification, in which everything that it depends on is known or
 * guessed. */
#ifndef HISTORY_RULES_H
#define HISTORY_RULES_H

#include "spec.h"

/* Facts that a history does not tell. Each may be true, false or open. */
enum guess {
    EXPIRED = 1,    /* The record is past its retention. */
    OVER = 2,       /* Its lease is over. */
    LATE = 4,       /* It is past expect. */
    LOOKS = 8,      /* The begin only looks, as a waiter. */
    GONE = 16,      /* The attempt that it waits for was released. */
    SAME = 32,      /* The fence of the call is the one on record. */
    FORGOTTEN = 64, /* The purge met this key. */
    UNTOLD = 128    /* The begin has made this claim, and is not a copy. */
};

/* One step as it may have been. */
struct step {
    const struct history *h;
    const struct op *op;
    int64_t now[2]; /* When its store read the clock. */
    struct state s; /* Before the step, then after it. */
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

/* @by after or before @at; IDEM_NEVER and times without an end do not change. */
int64_t later(int64_t at, int64_t by);
int64_t earlier(int64_t at, int64_t by);

/* False: the fence of the record cannot be @fence. True: from now on it is. */
bool fence_is(struct state *s, int64_t fence);

#endif
