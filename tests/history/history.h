/* Histories: what was asked of a store, what it answered, and when.
 *
 * A history is text with one event on each line, so that a harness in any language can
 * write one. A process that dies leaves calls without an answer: they may have been done, or
 * are done later, or never.
 *
 *     history NAME [early=MS] [late=MS] [clock=none]
 *     call ID TIME KEY VERB [name=value ...]
 *     ret  ID TIME ANSWER [name=value ...]
 *
 * TIME is in milliseconds, with up to three decimals, on one clock that all of the history
 * shares and that never goes back. Of two events at the same time neither was before the
 * other. Lines may come in any order. check skips an empty line, one that begins with "#",
 * and a last line without its newline (its writer was killed).
 *
 * "history" begins another one. It states how wrong the store may be about time: the store
 * may take a lease or retention for over "early" before its end, and for running until
 * "late" after it (1 and 1). With late=never it may do so for ever, and only its own answers
 * tell what is overdue. With clock=none nothing is known, and both may end at any time. If
 * the store's time is not TIME, each event has it as store=MS. If the host of the store was
 * booted meanwhile, each call has the boot in which it was made (boot=N): a time that was
 * set in one boot may be over at any time in another.
 *
 *     VERB      fields of the call                    answers
 *     begin     policy=rerun|hold lease=MS|never      STARTED REPLAY FAILED
 *               retention=MS|never cap=N print=WORD   UNKNOWN MISMATCH BUSY
 *               expect=MS wait=1 run=1 join=FENCE     RELEASED
 *     complete  nonce=WORD fence=N                    OK LOST
 *     fail        content=WORD text=WORD
 *     release   nonce=WORD fence=N                    OK LOST
 *     unknown
 *     retry     nonce=WORD fence=N budget=N pause=MS  OK LOST
 *                 content=WORD text=WORD
 *     renew     nonce=WORD fence=N lease=MS|never     OK LOST
 *     expire    nonce=WORD fence=N                    OK LOST
 *     get                                             OK NOTFOUND
 *     resolve   fence=N as=STATUS who=WORD            OK LOST NOTFOUND INVALID
 *                 content=WORD text=WORD force=1
 *     import    fence=N as=STATUS nonce=WORD          OK
 *                 attempts=N policy= retention=
 *                 content= text= print= expires=TIME
 *     purge     (KEY is "-": all keys)                OK
 *
 * The answer to any of them may be NOTHING: nothing was done; or "?", which tells as much as
 * no answer. The fields of an answer, each of which may be left out:
 *
 *     fence=N attempts=N status=STATUS policy= content=WORD text=WORD
 *     takeover=0|1 left=MS|never added=0|1 join=FENCE
 *
 * - WORD stands for a value: equal words for equal values. content and text are what is
 *   recorded; to leave such a field out, and an empty value, are the same.
 * - nonce= names the attempt. Its begin has it, or is known by its own ID; each end of the
 *   attempt repeats it. A copy of a request that may be applied once more is a call of its
 *   own without an answer, with the same nonce.
 * - wait=1: the begin waits for another's attempt, as idem_begin() does; run=1: and then
 *   starts the work itself. join= is the fence that it saw first, if that is known.
 * - as=retry: the person reopens the record. force=1: the person overrules a live owner.
 */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H

#include "words.h"

#include <idem.h>
#include <stdio.h>

enum verb {
    VERB_BEGIN,
    VERB_END, /* complete, fail, release, unknown, retry: op.as. */
    VERB_RENEW,
    VERB_EXPIRE,
    VERB_GET,
    VERB_RESOLVE,
    VERB_IMPORT,
    VERB_PURGE,
};

/* The answer of a begin is its enum idem_verdict. */
enum {
    ANSWER_NONE = 0, /* The call may be done at any time, or never. */
    ANSWER_OK = 16,
    ANSWER_LOST,
    ANSWER_NOTFOUND,
    ANSWER_INVALID,
    ANSWER_NOTHING,
};

/* The members that an answer shows; -1 or WORD_NONE: it does not. */
struct shown {
    int64_t fence;
    int64_t attempts;
    int64_t status;
    int64_t policy;
    int64_t takeover;
    int64_t added;
    int64_t left; /* Microseconds; IDEM_NEVER. */
    word content;
    word text;
};

/* One call. Times are in microseconds. */
struct op {
    word id;
    word key; /* WORD_NONE: all of them. */
    enum verb verb;
    int answer;
    unsigned line;      /* Of the call, */
    unsigned line_back; /* and of the answer. */
    int64_t call, back; /* back: INT64_MAX without an answer. */
    int64_t store_call, store_back;

    word nonce;
    word content, text, print, who;
    int64_t as; /* enum idem_status. */
    int64_t policy;
    int64_t lease, retention, expect, expires;
    int64_t fence, join, cap, attempts;
    int64_t wait, run;
    int64_t budget, pause;
    int64_t force;
    int64_t boot; /* 0: not known. */
    struct shown shown;
};

struct history {
    word name;
    bool no_clock;
    bool purged;         /* Some key's fence may jump. */
    int64_t early, late; /* Microseconds. */
    struct op *ops;      /* In the order of their calls. */
    size_t len;
    size_t cap;
    struct words words;
};

void history_init(struct history *h);
void history_finish(struct history *h);

/* The source of histories. */
struct reader {
    FILE *file;
    const char *path; /* For messages. */
    unsigned line;
    char *text;
    size_t text_cap;
    bool pending; /* text is the line that begins the next one. */
};

/* Reads up to the next "history" line or the end, into an empty @h. With @merge it skips
 * "history" lines. 1: a history was read; 0: there are no more; -1: an error, which was
 * printed to stderr. */
int history_read(struct history *h, struct reader *reader, bool merge);

/* Call it when all of @h was read: it removes the calls that were not done, and sorts. */
void history_seal(struct history *h);

#endif
