/* The life of a record, written a second time. */
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

    if (s->attempts == 0 || s->retention < op->retention) {
        s->retention = op->retention; /* The longest in this life. */
    }
    s->status = IDEM_STATUS_IN_PROGRESS;
    s->reopened = false;
    s->paused = false;
    s->attempts++;
    s->nonce = op->nonce;
    s->policy = (uint8_t)op->policy;
    s->lease = op->lease;
    s->boot = (uint16_t)op->boot;
    set_span(step, op->lease, s->lease_end);
    set_span(step, op->expect == 0 ? IDEM_NEVER : op->expect, s->overdue);
    set_open_expiry(step);
    s->content = WORD_NONE;
    s->text = WORD_NONE;
    s->resolved_by = WORD_NONE;
    s->decided = false;
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
        s->retried = 0;
        s->failures = 0;
        s->silent = false;
    } else {
        s->retried = s->silent ? s->retried + 1 : s->attempts;
    }
    new_attempt(step);
    s->fence_known = false; /* A fence may jump to the time. */
    s->first = true;
    s->chain = 0;
    s->print = step->op->print;
}

/* The next attempt has another fence, in the same chain. */
static void go_on(struct state *s)
{
    if (s->first) {
        s->chain = s->fence_known ? s->fence : 0;
    }
    s->first = false;
}

static void take_over(struct step *step)
{
    struct state *s = &step->s;

    go_on(s);
    s->silent = true;
    new_attempt(step);
    s->fence_known = s->fence_known && !step->h->purged;
}

/* The end of the lease decides, until an owner or a person corrects that. */
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
    } else if (op->cap != 0 && s->attempts - s->retried >= op->cap) {
        close_record(step, IDEM_STATUS_FAILED);
    } else if ((step->guess & LOOKS) != 0) {
        step->answer = IDEM_BUSY;
        step->busy_for_none = true;
    } else {
        take_over(step);
    }
}

/* Runs the work again, because its attempt or a person decided so: policy, cap and lease do
 * not count, only the pause does. */
static void run_again(struct step *step)
{
    struct state *s = &step->s;

    if (s->paused && (step->guess & OVER) == 0) {
        step->answer = IDEM_BUSY;
        return;
    }
    if ((step->guess & LOOKS) != 0) {
        step->answer = IDEM_BUSY;
        step->busy_for_none = true;
        return;
    }
    if (s->reopened) {
        s->print = step->op->print;
    }
    take_over(step);
}

/* The lease ended the attempt before its caller got the answer. */
static void take_back(struct step *step)
{
    struct state *s = &step->s;
    int64_t fence = s->fence;
    int32_t attempts = s->attempts;

    new_attempt(step);
    s->fence = fence;
    s->attempts = attempts;
}

static void begin(struct step *step)
{
    const struct op *op = step->op;
    struct state *s = &step->s;
    bool looks = (step->guess & LOOKS) != 0;

    if (s->status != 0 && s->nonce == op->nonce && s->by_lease &&
        (step->guess & UNTOLD) != 0) {
        take_back(step);
    } else if (s->status != 0 && s->nonce == op->nonce) {
        /* An earlier copy of this call did that. */
        step->answer = s->status == IDEM_STATUS_RETRY ? IDEM_BUSY : s->status;
        step->busy_for_none = s->status == IDEM_STATUS_RETRY &&
                              !(s->paused && (step->guess & OVER) == 0);
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
               (s->status == IDEM_STATUS_IN_PROGRESS ||
                s->status == IDEM_STATUS_RETRY)) {
        step->answer = IDEM_RELEASED;
    } else if (s->status == IDEM_STATUS_RETRY) {
        run_again(step);
    } else if (s->status != IDEM_STATUS_IN_PROGRESS) {
        step->answer = s->status; /* REPLAY, FAILED, UNKNOWN. */
    } else if ((step->guess & OVER) == 0) {
        step->answer = IDEM_BUSY;
    } else {
        begin_over(step);
    }
}

/* ---- The verbs of an owner ---- */

/* Whether this retry uses up the budget, so that a person must decide. */
static bool uses_up(const struct op *op, int32_t failures)
{
    return op->as == IDEM_STATUS_RETRY && op->budget != 0 &&
           failures >= op->budget;
}

static bool already_said(const struct step *step)
{
    const struct op *op = step->op;
    const struct state *s = &step->s;
    bool failed = s->status == IDEM_STATUS_FAILED && uses_up(op, s->failures);

    if ((s->status != op->as && !failed) || s->by_lease) {
        return false;
    }
    return s->status == IDEM_STATUS_RELEASED ||
           s->status == IDEM_STATUS_UNKNOWN || s->status == IDEM_STATUS_RETRY ||
           (s->content == op->content && s->text == op->text);
}

/* Returns how long the record stays after its end. */
static int64_t kept_for(const struct step *step)
{
    const struct state *s = &step->s;
    bool doubt = s->silent && s->retention > released_retention;

    switch (s->status) {
    case IDEM_STATUS_COMPLETED:
        return s->retention;
    case IDEM_STATUS_RELEASED:
        return doubt ? s->retention : released_retention;
    case IDEM_STATUS_RETRY:
        return s->policy == IDEM_RERUN && !s->reopened ? s->retention
                                                       : IDEM_NEVER;
    default:
        return IDEM_NEVER;
    }
}

static void record(struct step *step)
{
    const struct op *op = step->op;
    struct state *s = &step->s;

    s->status = uses_up(op, s->failures) ? IDEM_STATUS_FAILED : (uint8_t)op->as;
    s->by_lease = false;
    s->content = op->content;
    s->text = op->text;
    s->boot = (uint16_t)op->boot;
    s->paused = s->status == IDEM_STATUS_RETRY && op->pause > 0;
    if (s->paused) {
        set_span(step, op->pause, s->lease_end);
        set_open_expiry(step);
    } else {
        set_span(step, kept_for(step), s->expires);
    }
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
        bool retries = step->op->as == IDEM_STATUS_RETRY;

        s->retried += retries;
        s->failures += retries;
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

    if (step->op->as == IDEM_STATUS_RETRY) {
        if (s->status == IDEM_STATUS_COMPLETED) {
            return true;
        }
        if (s->status == IDEM_STATUS_RETRY) {
            return !s->reopened;
        }
    }
    if (step->op->as != IDEM_STATUS_RETRY && s->decided &&
        (s->status == IDEM_STATUS_COMPLETED ||
         s->status == IDEM_STATUS_RELEASED)) {
        return true; /* A person may correct a person. */
    }
    return s->status == IDEM_STATUS_FAILED ||
           s->status == IDEM_STATUS_UNKNOWN || s->status == IDEM_STATUS_RETRY ||
           (s->status == IDEM_STATUS_IN_PROGRESS &&
            ((step->guess & OVER) != 0 || s->lease_end[0] == IDEM_NEVER ||
             (step->op->force != 0 && step->op->as != IDEM_STATUS_RETRY)));
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
    if (s->decided) {
        go_on(s);
        s->fence++;
    }
    s->silent = false;
    s->failures = 0;
    s->reopened = op->as == IDEM_STATUS_RETRY;
    record(step);
    s->nonce = op->nonce;
    s->resolved_by = op->who;
    s->decided = true;
    if (s->reopened) {
        s->retried = s->attempts;
        s->print = WORD_NONE;
    }
}

static void import(struct step *step)
{
    const struct op *op = step->op;
    struct state *s = &step->s;
    bool released = s->status == IDEM_STATUS_RELEASED && op->fence > s->fence;
    bool counts = s->status != 0 && !released && (step->guess & EXPIRED) == 0;
    int64_t found = s->status != 0 ? s->fence : 0;
    bool doubt = released && s->silent && (step->guess & EXPIRED) == 0;
    int64_t retention = doubt ? s->retention : 0;

    step->answer = ANSWER_OK;
    if (counts || (step->guess & LATE) != 0) {
        return; /* Too late: the imported record is past its retention. */
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
    s->silent = doubt;
    s->retention = op->retention > retention ? op->retention : retention;
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
