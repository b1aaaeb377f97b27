/* The life of a record, told once more. */
#include "rules.h"

#include <string.h>

static const int64_t released_retention = 24 * 3600 * 1000000LL;

/* ---- Time ---- */

int64_t later(int64_t at, int64_t by)
{
    return at > INT64_MAX - by ? INT64_MAX : at + by;
}

int64_t earlier(int64_t at, int64_t by)
{
    return at < INT64_MIN + by ? INT64_MIN : at - by;
}

static void set_span(const struct step *step, int64_t length, int64_t span[2])
{
    span[0] = later(step->now[0], length);
    span[1] = later(step->now[1], length);
}

static void set_open_expiry(struct step *step)
{
    struct state *s = &step->s;
    bool rerun = s->policy == IDEM_RERUN;

    s->expires[0] = rerun ? later(s->lease_end[0], s->retention) : IDEM_NEVER;
    s->expires[1] = rerun ? later(s->lease_end[1], s->retention) : IDEM_NEVER;
}

/* ---- Fences ---- */

bool fence_is(struct state *s, int64_t fence)
{
    if (s->fence_known) {
        return s->fence == fence;
    }
    if (fence < s->fence) {
        return false;
    }
    s->fence = fence;
    s->fence_known = true;
    return true;
}

static bool is_own(struct step *step)
{
    struct state *s = &step->s;

    return s->status != 0 && s->nonce == step->op->nonce &&
           fence_is(s, step->op->fence);
}

/* ---- Begin ---- */

static void new_attempt(struct step *step)
{
    const struct op *op = step->op;
    struct state *s = &step->s;

    s->status = IDEM_STATUS_IN_PROGRESS;
    s->attempts++;
    s->nonce = op->nonce;
    s->policy = (uint8_t)op->policy;
    s->lease = op->lease;
    s->retention = op->retention;
    s->boot = (uint16_t)op->boot;
    set_span(step, op->lease, s->lease_end);
    set_span(step, op->expect == 0 ? IDEM_NEVER : op->expect, s->overdue);
    set_open_expiry(step);
    s->content = WORD_NONE;
    s->text = WORD_NONE;
    s->resolved_by = WORD_NONE;
    s->by_lease = false;
    s->fence++;
    step->takeover = s->silent;
    step->answer = IDEM_STARTED;
}

static void start_life(struct step *step)
{
    struct state *s = &step->s;

    if (s->status != IDEM_STATUS_RELEASED || (step->guess & EXPIRED) != 0) {
        s->attempts = 0;
        s->silent = false;
    }
    new_attempt(step);
    s->fence_known = false; /* It may be the time. */
    s->first = true;
    s->chain = 0;
    s->print = step->op->print;
}

static void take_over(struct step *step)
{
    struct state *s = &step->s;

    if (s->first) {
        s->chain = s->fence_known ? s->fence : 0;
    }
    s->first = false;
    s->silent = true;
    new_attempt(step);
    s->fence_known = s->fence_known && !step->h->purged;
}

/* Its lease has the last word; until somebody knows better. */
static void close_record(struct step *step, enum idem_status status)
{
    struct state *s = &step->s;

    s->status = (uint8_t)status;
    s->by_lease = true;
    s->content = WORD_NONE;
    s->text = WORD_ANY;
    s->expires[0] = IDEM_NEVER;
    s->expires[1] = IDEM_NEVER;
    step->answer = (int)status; /* The verdict of the same name. */
}

static void begin_over(struct step *step)
{
    const struct op *op = step->op;
    struct state *s = &step->s;

    if (s->policy == IDEM_HOLD || op->policy == IDEM_HOLD) {
        close_record(step, IDEM_STATUS_UNKNOWN);
    } else if (op->cap != 0 && s->attempts >= op->cap) {
        close_record(step, IDEM_STATUS_FAILED);
    } else if ((step->guess & LOOKS) != 0) {
        step->answer = IDEM_BUSY;
        step->busy_for_none = true;
    } else {
        take_over(step);
    }
}

static void begin(struct step *step)
{
    const struct op *op = step->op;
    struct state *s = &step->s;
    bool looks = (step->guess & LOOKS) != 0;

    if (s->status != 0 && s->nonce == op->nonce) {
        step->answer = s->status; /* What an earlier copy of it did. */
        step->takeover = s->silent;
    } else if (s->status == 0 || s->status == IDEM_STATUS_RELEASED ||
               (step->guess & EXPIRED) != 0) {
        if (looks) {
            step->answer = IDEM_RELEASED;
        } else {
            start_life(step);
        }
    } else if (s->print != WORD_NONE && op->print != WORD_NONE &&
               s->print != op->print) {
        step->answer = IDEM_MISMATCH;
    } else if (looks && (step->guess & GONE) != 0 &&
               s->status == IDEM_STATUS_IN_PROGRESS) {
        step->answer = IDEM_RELEASED;
    } else if (s->status != IDEM_STATUS_IN_PROGRESS) {
        step->answer = s->status; /* REPLAY, FAILED, UNKNOWN. */
    } else if ((step->guess & OVER) == 0) {
        step->answer = IDEM_BUSY;
    } else {
        begin_over(step);
    }
}

/* ---- The verbs of an owner ---- */

static bool already_said(const struct step *step)
{
    const struct op *op = step->op;
    const struct state *s = &step->s;

    if (s->status != op->as || s->by_lease) {
        return false;
    }
    return s->status == IDEM_STATUS_RELEASED ||
           s->status == IDEM_STATUS_UNKNOWN ||
           (s->content == op->content && s->text == op->text);
}

static void record(struct step *step)
{
    const struct op *op = step->op;
    struct state *s = &step->s;

    s->status = (uint8_t)op->as;
    s->by_lease = false;
    s->content = op->content;
    s->text = op->text;
    s->boot = (uint16_t)op->boot;
    set_span(step,
             op->as == IDEM_STATUS_COMPLETED  ? s->retention
             : op->as == IDEM_STATUS_RELEASED ? released_retention
                                              : IDEM_NEVER,
             s->expires);
}

static void end(struct step *step)
{
    struct state *s = &step->s;

    if (!is_own(step)) {
        step->answer = ANSWER_LOST;
    } else if (already_said(step)) {
        step->answer = ANSWER_OK;
    } else if (s->status == IDEM_STATUS_IN_PROGRESS ||
               (s->by_lease && step->op->as != IDEM_STATUS_RELEASED)) {
        record(step);
        step->answer = ANSWER_OK;
    } else {
        step->answer = ANSWER_LOST;
    }
}

static void renew(struct step *step)
{
    const struct op *op = step->op;
    struct state *s = &step->s;
    int64_t end[2];
    int i;

    if (!is_own(step) || s->status != IDEM_STATUS_IN_PROGRESS) {
        step->answer = ANSWER_LOST;
        return;
    }
    if (op->lease != 0) {
        s->lease = op->lease;
    }
    set_span(step, s->lease, end);
    if (s->boot != op->boot) {
        s->boot = 0;
    }
    for (i = 0; i < 2; i++) {
        s->lease_end[i] = s->lease_end[i] > end[i] ? s->lease_end[i] : end[i];
    }
    set_open_expiry(step);
    step->answer = ANSWER_OK;
}

static void expire(struct step *step)
{
    struct state *s = &step->s;

    if (!is_own(step) || s->status != IDEM_STATUS_IN_PROGRESS) {
        step->answer = ANSWER_LOST;
        return;
    }
    step->answer = ANSWER_OK;
    if ((step->guess & OVER) == 0) {
        s->boot = (uint16_t)step->op->boot;
        set_span(step, 0, s->lease_end);
        set_open_expiry(step);
    }
}

/* ---- The operator's verbs ---- */

static void get(struct step *step)
{
    step->answer = step->s.status != 0 && (step->guess & EXPIRED) == 0
                       ? ANSWER_OK
                       : ANSWER_NOTFOUND;
}

static bool may_resolve(const struct step *step)
{
    const struct state *s = &step->s;

    return s->status == IDEM_STATUS_FAILED ||
           s->status == IDEM_STATUS_UNKNOWN ||
           (s->status == IDEM_STATUS_IN_PROGRESS &&
            ((step->guess & (OVER | LATE)) != 0 ||
             s->lease_end[0] == IDEM_NEVER));
}

static void resolve(struct step *step)
{
    const struct op *op = step->op;
    struct state *s = &step->s;
    bool same;

    step->answer = ANSWER_OK;
    if (s->status != 0 && s->nonce == op->nonce) {
        return;
    }
    if (s->status == 0 || (step->guess & EXPIRED) != 0) {
        step->answer = ANSWER_NOTFOUND;
        return;
    }
    same = (step->guess & SAME) != 0 && fence_is(s, op->fence);
    if (same && s->resolved_by == op->who && op->who != WORD_NONE &&
        already_said(step)) {
        return;
    }
    if (!same || !may_resolve(step)) {
        step->answer = same ? ANSWER_INVALID : ANSWER_LOST;
        return;
    }
    record(step);
    s->nonce = op->nonce;
    s->resolved_by = op->who;
    s->silent = false;
}

static void import(struct step *step)
{
    const struct op *op = step->op;
    struct state *s = &step->s;
    bool released = s->status == IDEM_STATUS_RELEASED && op->fence > s->fence;
    bool counts = s->status != 0 && !released && (step->guess & EXPIRED) == 0;
    int64_t found = s->status != 0 ? s->fence : 0;

    step->answer = ANSWER_OK;
    if (counts || (step->guess & LATE) != 0) {
        return; /* Late: the record that is brought is past its retention. */
    }
    step->added = true;
    memset(s, 0, sizeof(*s));
    s->status = (uint8_t)op->as;
    s->policy = (uint8_t)op->policy;
    s->attempts = (int32_t)op->attempts;
    s->nonce = op->nonce;
    s->content = op->content;
    s->text = op->text;
    s->print = op->print;
    s->retention = op->retention;
    s->fence = op->fence > found ? op->fence : found + 1;
    s->fence_known = true;
    s->first = true;
    s->lease = IDEM_NEVER;
    s->boot = (uint16_t)op->boot;
    set_span(step, IDEM_NEVER, s->lease_end);
    set_span(step, IDEM_NEVER, s->overdue);
    s->expires[0] = op->expires;
    s->expires[1] = op->expires;
}

static void purge(struct step *step)
{
    struct state *s = &step->s;
    struct state none;

    step->answer = ANSWER_OK;
    if (s->status == 0 || (step->guess & EXPIRED) == 0 ||
        (step->guess & FORGOTTEN) == 0) {
        return;
    }
    spec_start(&none);
    none.fence = s->fence;
    none.fence_known = s->fence_known;
    *s = none;
}

void decide(struct step *step)
{
    static void (*const verbs[])(struct step *) = {
        [VERB_BEGIN] = begin,   [VERB_END] = end,     [VERB_RENEW] = renew,
        [VERB_EXPIRE] = expire, [VERB_GET] = get,     [VERB_RESOLVE] = resolve,
        [VERB_IMPORT] = import, [VERB_PURGE] = purge,
    };

    verbs[step->op->verb](step);
}
