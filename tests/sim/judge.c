/* What the judges share. */
#include "judge.h"

#include "ledger.h"
#include "table.h"

/* How long a lease of another boot still counts after its end: the manual. */
enum {
    EMBEDDED_MARGIN_MS = 5000,
    REMOTE_MARGIN_MS = 2000
};

void expect(const struct judged *j, bool holds, const char *id,
            const char *what)
{
    const struct view *b = j->before;

    if (holds) {
        return;
    }
    violate(j->w, id,
            "%s (verb %d, code %d, verdict %d, found status %d fence %llu, "
            "writes status %d fence %llu)",
            what, (int)j->op->verb, j->code, (int)j->op->verdict,
            b->exists ? (int)b->status : 0,
            (unsigned long long)(b->exists ? b->fence : 0),
            j->after != NULL ? (int)j->after->status : 0,
            (unsigned long long)(j->after != NULL ? j->after->fence : 0));
}

bool may_be_past(const struct judged *j, int64_t ms)
{
    return ms != IDEM_NEVER && j->f->sure_ms >= ms;
}

bool must_be_past(const struct judged *j, int64_t ms)
{
    return ms != IDEM_NEVER && j->f->sure_ms - 2 * j->f->now.store_err_ms >= ms;
}

void judge_gone(const struct judged *j)
{
    expect(j, !j->before->exists || ledger_may_be_gone(j->w, j->f->key), "I13",
           "a record is taken for gone too early by true time");
}

static int64_t margin_ms(const struct judged *j)
{
    return j->w->config.mode == EMBEDDED ? EMBEDDED_MARGIN_MS
                                         : REMOTE_MARGIN_MS;
}

static bool same_boot(const struct judged *j)
{
    return memcmp(j->before->boot_id, j->f->now.boot_id, 16) == 0;
}

/* That of a record that is to be run again is its pause, if it has one. */
static bool lease_over(const struct judged *j, int64_t store_ms)
{
    const struct view *b = j->before;

    if (b->retry && b->lease_ms == 0) {
        return true;
    }
    if (b->lease_end_ms == IDEM_NEVER) {
        return false;
    }
    if (same_boot(j)) {
        return j->f->now.boot_ms >= b->lease_end_boot_ms;
    }
    return store_ms >= b->lease_end_ms + margin_ms(j);
}

bool lease_may_be_over(const struct judged *j)
{
    return lease_over(j, j->f->truth_ms);
}

bool lease_must_be_over(const struct judged *j)
{
    return lease_over(j, j->f->truth_ms - 2 * j->f->now.store_err_ms);
}

bool is_own(const struct judged *j)
{
    return j->before->exists && j->before->fence == j->op->fence &&
           memcmp(j->before->nonce, j->op->nonce, 16) == 0;
}

static int64_t after_ms(int64_t ms, int64_t more)
{
    return more >= IDEM_NEVER - ms ? IDEM_NEVER : ms + more;
}

void judge_lease(const struct judged *j, int64_t lease_ms)
{
    const struct idem_now *now = &j->f->now;
    const struct view *a = j->after;
    int64_t truth = j->f->truth_ms;
    int64_t longest = after_ms(truth + 2 * now->store_err_ms, lease_ms);

    expect(j, memcmp(a->boot_id, now->boot_id, 16) == 0, "I9",
           "a lease is counted on another host's boot clock");
    expect(j, a->lease_end_boot_ms >= after_ms(now->boot_ms, lease_ms), "I9",
           "a lease ends too early by the boot clock");
    if (j->f->by_wall) {
        return;
    }
    expect(j, a->lease_end_ms >= after_ms(truth, lease_ms), "I9",
           "a lease ends before its owner believes that it does");
    if (j->op->verb == IDEM_OP_BEGIN || a->retry) {
        expect(j, a->lease_end_ms <= longest, "I21", "a lease is too long");
    }
}

void judge_open(const struct judged *j)
{
    const struct view *a = j->after;
    int64_t end_ms = a->policy == IDEM_HOLD
                         ? IDEM_NEVER
                         : after_ms(a->lease_end_ms, a->retention_ms);

    expect(j, a->expires_ms == end_ms, "I15",
           "work in progress is forgotten at the wrong time");
}

static bool a_doubt(const struct judged *j)
{
    return ledger_silent(j->f->key, j->before->fence);
}

void judge_again(const struct judged *j, const struct idem_outcome *said)
{
    const struct view *b = j->before;
    const struct view *a = j->after;

    expect(j, a->status == IDEM_STATUS_IN_PROGRESS && a->retry && !a->by_lease,
           "I15", "what is to be run again is not recorded so");
    expect(j, a->content == content_of(&said->result), "I7",
           "what is to be run again has another result than was given");
    expect(j, a->policy == b->policy, "I15",
           "what is to be run again has another policy");
}

void judge_given_up(const struct judged *j)
{
    const struct view *a = j->after;
    int64_t truth = j->f->truth_ms;

    if (a->policy == IDEM_HOLD || a->retention_ms == IDEM_NEVER) {
        expect(j, a->expires_ms == IDEM_NEVER, "I15",
               "work that was given up is forgotten");
        return;
    }
    expect(j,
           a->expires_ms >= after_ms(truth, a->retention_ms) &&
               a->expires_ms <= after_ms(truth + 2 * j->f->now.store_err_ms,
                                         a->retention_ms),
           "I15", "work that was given up is forgotten at the wrong time");
}

/* Nothing happened, and that is soon forgotten; but not that an attempt before may
 * have done the work. */
static int64_t released_ms(const struct judged *j)
{
    bool doubt = j->op->verb == IDEM_OP_END && a_doubt(j);
    int64_t kept_ms = j->before->retention_ms;

    return doubt && kept_ms > DAY_MS ? kept_ms : DAY_MS;
}

void judge_outcome(const struct judged *j, const struct idem_outcome *outcome)
{
    const struct view *a = j->after;
    int64_t kept_ms = IDEM_NEVER;
    int64_t truth = j->f->truth_ms;
    int64_t slack = 2 * j->f->now.store_err_ms;

    expect(j, a->status == outcome->status && !a->retry, "I15",
           "what is recorded is not what was said");
    expect(j, a->content == content_of(&outcome->result), "I7",
           "another result is recorded than was given");
    if (a->status == IDEM_STATUS_COMPLETED) {
        kept_ms = j->before->retention_ms;
    } else if (a->status == IDEM_STATUS_RELEASED) {
        kept_ms = released_ms(j);
    }
    expect(j, a->expires_ms >= after_ms(truth, kept_ms), "I13",
           "the retention ends too early");
    expect(j, a->expires_ms <= after_ms(truth + slack, kept_ms), "I13",
           "the retention ends too late");
}

/* An owner's verbs, and a person's, leave these as they are. */
static void judge_rest(const struct judged *j)
{
    const struct view *b = j->before;
    const struct view *a = j->after;

    if (a == NULL || j->op->verb == IDEM_OP_BEGIN) {
        return;
    }
    expect(j, !a->times_back, "I21", "a time goes behind an earlier one");
    expect(j,
           a->fence == b->fence + (j->op->verb == IDEM_OP_RESOLVE &&
                                   b->resolved_by != 0),
           "I2", "a verb changes the fence");
    expect(j, a->attempts == b->attempts, "I16",
           "a verb changes how often work was started");
    expect(j,
           (j->op->verb != IDEM_OP_RENEW && j->op->verb != IDEM_OP_EXPIRE) ||
               (a->content == b->content && a->failures == b->failures),
           "I7", "a verb changes what the last try came to");
    expect(j, a->fingerprint == (a->reopened ? 0 : b->fingerprint), "I11",
           "a verb changes the fingerprint");
    expect(j, a->policy == b->policy && a->retention_ms == b->retention_ms,
           "I5", "a verb changes policy or retention");
}

/* Bytes that were changed behind the library's back. */
static bool judge_flipped(const struct judged *j)
{
    bool corrupt = j->code == IDEM_ECORRUPT;

    if (j->f->flipped) {
        expect(j, corrupt && j->after == NULL, "I19",
               "a damaged record is written over");
        return true;
    }
    if (j->f->body_flipped) {
        return corrupt; /* If not, whoever is given the result compares. */
    }
    expect(j, !corrupt, "I19",
           "a record that nobody touched is answered CORRUPT");
    return false;
}

void judge(struct world *w, const struct flight *f)
{
    struct judged j = {
        .w = w,
        .f = f,
        .op = f->copy,
        .before = &f->before,
        .after = f->saved ? &f->next.view : NULL,
        .code = f->copy->error.code,
    };

    if (judge_flipped(&j) || j.code == IDEM_EFULL) {
        return;
    }
    switch (f->copy->verb) {
    case IDEM_OP_BEGIN:
        judge_begin(&j);
        break;
    case IDEM_OP_END:
        judge_end(&j);
        break;
    case IDEM_OP_RENEW:
        judge_renew(&j);
        break;
    case IDEM_OP_EXPIRE:
        judge_expire(&j);
        break;
    case IDEM_OP_RESOLVE:
        judge_resolve(&j);
        break;
    case IDEM_OP_IMPORT:
        judge_import(&j);
        return;
    case IDEM_OP_GET:
        judge_get(&j);
        break;
    default:
        break; /* No others are asked for here. */
    }
    judge_rest(&j);
}
