/* Every way in which one step may have gone: each guess that a history leaves open. */
#include "rules.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum {
    ATTEMPTS_KEPT = 8 /* Past attempts that a record remembers. */
};

void spec_start(struct state *state)
{
    static_assert(sizeof(*state) == 3 * 16 + 4 * 8 + 8 * 4 + 16, "no padding");

    memset(state, 0, sizeof(*state));
    state->fence_known = true;
}

/* ---- Unknown facts ---- */

/* Whether the times of the record can be compared with this clock. */
static bool clock_known(const struct step *step)
{
    return !step->h->no_clock && step->op->boot != 0 &&
           step->op->boot == step->s.boot;
}

/* Whether the end in @span may be past, and whether it may be to come. */
static unsigned may_be(const struct step *step, bool known,
                       const int64_t span[2], enum guess past)
{
    if (span[0] != IDEM_NEVER && !known) {
        return past;
    }
    if (later(step->now[1], step->h->early) < span[0] ||
        span[0] == IDEM_NEVER) {
        return 0; /* Certainly to come. */
    }
    return earlier(step->now[0], step->h->late) < span[1] ? past : past << 16;
}

/* Narrows @span, after the end was seen to be past, or to come. */
static void narrow(const struct step *step, int64_t span[2], bool past)
{
    int64_t least = earlier(step->now[0], step->h->late);
    int64_t most = later(step->now[1], step->h->early);

    if (!clock_known(step)) {
        return;
    }
    if (past && span[1] > most) {
        span[1] = most;
    } else if (!past && span[0] < least) {
        span[0] = least;
    }
}

/* Returns the fence of the first attempt of the chain; 0: not known. */
static int64_t chain_of(const struct state *s)
{
    return !s->first ? s->chain : s->fence_known ? s->fence : 0;
}

/* Whether the attempt that a waiter joined may be from before this chain. */
static unsigned may_be_gone(const struct state *s, const struct op *op)
{
    int64_t chain = chain_of(s);

    if (op->join == 0 || chain == 0 || s->attempts > ATTEMPTS_KEPT) {
        return GONE;
    }
    return chain > op->join ? GONE << 16 : 0;
}

/* The guesses on which each verb depends. */
static const unsigned looked_at[] = {
    [VERB_BEGIN] = EXPIRED | OVER | LOOKS | GONE | UNTOLD,
    [VERB_END] = 0,
    [VERB_RENEW] = 0,
    [VERB_EXPIRE] = OVER,
    [VERB_GET] = EXPIRED,
    [VERB_RESOLVE] = EXPIRED | OVER | LATE | SAME,
    [VERB_IMPORT] = EXPIRED | LATE,
    [VERB_PURGE] = EXPIRED | FORGOTTEN,
};

/* Returns the guesses that may be true, and in the upper half those that must be. */
static unsigned possible(const struct step *step)
{
    const struct op *op = step->op;
    const struct state *s = &step->s;
    int64_t brought[2] = {op->expires, op->expires};
    bool known = clock_known(step);
    unsigned may = FORGOTTEN;

    if (s->status != 0) {
        may |= may_be(step, known, s->expires, EXPIRED);
    }
    if (s->status == IDEM_STATUS_IN_PROGRESS || s->paused) {
        may |= may_be(step, known, s->lease_end, OVER);
    }
    if (op->verb == VERB_IMPORT) {
        may |= may_be(step, !step->h->no_clock && op->boot != 0, brought, LATE);
    } else if (s->status == IDEM_STATUS_IN_PROGRESS) {
        may |= may_be(step, known && step->h->late != IDEM_NEVER, s->overdue,
                      LATE);
    }
    if (op->join != 0 && !op->run) {
        may |= LOOKS << 16 | may_be_gone(s, op);
    } else if (op->wait) {
        may |= LOOKS | may_be_gone(s, op);
    }
    may |= s->fence_known ? SAME << 16 : SAME;
    may |= s->by_lease && s->nonce == op->nonce ? UNTOLD : 0;
    return may & (looked_at[op->verb] | looked_at[op->verb] << 16);
}

/* Narrows the times of the record by the guesses about them. */
static void narrow_to_guess(struct step *step)
{
    if ((step->open & EXPIRED) != 0) {
        narrow(step, step->s.expires, (step->guess & EXPIRED) != 0);
    }
    if ((step->open & OVER) != 0) {
        narrow(step, step->s.lease_end, (step->guess & OVER) != 0);
    }
}

/* ---- Answers ---- */

static bool fits(int64_t shown, int64_t is)
{
    return shown < 0 || shown == is;
}

static bool word_fits(word shown, word is)
{
    return shown == is || is == WORD_ANY;
}

/* BUSY shows how long the lease still runs, and so when it ends. */
static bool left_fits(struct step *step)
{
    struct state *s = &step->s;
    int64_t left = step->op->shown.left;
    int64_t least;
    int64_t most;

    if (left < 0 || step->answer != IDEM_BUSY) {
        return true;
    }
    if (step->busy_for_none || left == IDEM_NEVER) {
        return step->busy_for_none ? left == 0 : s->lease_end[1] == IDEM_NEVER;
    }
    if (!clock_known(step)) {
        return true;
    }
    least = earlier(later(step->now[0], left), step->h->late);
    most = later(later(step->now[1], left), step->h->early);
    s->lease_end[0] = s->lease_end[0] > least ? s->lease_end[0] : least;
    s->lease_end[1] = s->lease_end[1] < most ? s->lease_end[1] : most;
    return s->lease_end[0] <= s->lease_end[1];
}

/* Whether the result of the step fits the answer that the caller got. */
static bool answered_so(struct step *step)
{
    const struct op *op = step->op;
    const struct shown *shown = &op->shown;
    struct state *s = &step->s;
    bool replays = op->answer == IDEM_REPLAY ||
                   (op->verb == VERB_GET && op->answer == ANSWER_OK);

    if (op->answer != step->answer || !left_fits(step) ||
        !fits(shown->added, step->added)) {
        return false;
    }
    if (s->status == 0) {
        return fits(shown->fence, 0);
    }
    if (shown->fence >= 0 && !fence_is(s, shown->fence)) {
        return false;
    }
    if (step->answer == IDEM_STARTED && s->attempts <= ATTEMPTS_KEPT &&
        !fits(shown->takeover, step->takeover)) {
        return false;
    }
    if (replays && s->status == IDEM_STATUS_COMPLETED &&
        shown->content != s->content) {
        return false;
    }
    return fits(shown->attempts, s->attempts) &&
           fits(shown->status, s->status) && fits(shown->policy, s->policy) &&
           (shown->content == WORD_NONE ||
            word_fits(shown->content, s->content)) &&
           (shown->text == WORD_NONE || word_fits(shown->text, s->text));
}

static bool is_new(const struct state *found, unsigned n,
                   const struct state *state)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        if (memcmp(&found[i], state, sizeof(*state)) == 0) {
            return false;
        }
    }
    return true;
}

static bool fits_op(struct step *step, const struct state *found)
{
    if (step->op->answer == ANSWER_NONE) {
        return memcmp(&step->s, found, sizeof(*found)) != 0;
    }
    return answered_so(step);
}

unsigned spec_step(const struct history *h, const struct state *state,
                   const struct op *op, int64_t latest,
                   struct state next[SPEC_MAX])
{
    int64_t back = op->answer == ANSWER_NONE ? latest : op->store_back;
    struct step step = {.h = h,
                        .op = op,
                        .now = {op->store_call, back},
                        .s = *state};
    unsigned must = possible(&step);
    unsigned chosen;
    unsigned n = 0;

    step.open = must & 0xffff;
    must >>= 16;
    chosen = step.open;
    for (;;) {
        step.guess = chosen | must;
        step.s = *state;
        step.answer = 0;
        step.busy_for_none = step.takeover = step.added = false;
        narrow_to_guess(&step);
        decide(&step);
        if (fits_op(&step, state) && is_new(next, n, &step.s)) {
            assert(n < SPEC_MAX);
            next[n++] = step.s;
        }
        if (chosen == 0) {
            return n;
        }
        chosen = (chosen - 1) & step.open; /* The next subset. */
    }
}

void spec_describe(const struct history *h, const struct state *s,
                   char buf[256])
{
    int len;

    if (s->status == 0) {
        (void)snprintf(buf, 256, "no record");
        return;
    }
    len = snprintf(buf, 256, "%s%s, %sfence %" PRId64 ", attempts %d, %s, %s",
                   idem_status_name((enum idem_status)s->status),
                   s->by_lease ? " by its lease" : "",
                   s->fence_known ? "" : "at least ", s->fence,
                   (int)s->attempts, s->policy == IDEM_HOLD ? "hold" : "rerun",
                   words_text(&h->words, s->nonce));
    if (s->content != WORD_NONE && s->content != WORD_ANY) {
        len += snprintf(buf + len, 256 - (size_t)len, ", content %s",
                        words_text(&h->words, s->content));
    }
    if (s->status == IDEM_STATUS_IN_PROGRESS && s->lease_end[1] < INT64_MAX) {
        (void)snprintf(buf + len, 256 - (size_t)len, ", lease to %.3f ... %.3f",
                       (double)s->lease_end[0] / 1e3,
                       (double)s->lease_end[1] / 1e3);
    }
}
