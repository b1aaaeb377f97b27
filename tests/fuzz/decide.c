/* The pure decisions: any record that a store could hold, any request, any moment.
 *
 * - What is written next could be stored, keeps its identity, and its fence never
 *   falls; a new attempt has a greater one than any before it.
 * - A claim gets the verdict of the table in docs/specification.md, and only the
 *   owner, or a person who saw the fence, changes what is there.
 * - The same request again, on what the first one left, changes nothing more and
 *   is answered as before: the answer may have been lost.
 */
#include "contract/store.h"
#include "core/decide.h"
#include "core/identity.h"
#include "core/record.h"
#include "fuzz.h"

#include <idem/operator.h>

struct case_of {
    struct idem_record record;
    const struct idem_record *found; /* The record, or NULL. */
    struct idem_record import;
    struct idem_op op;
    struct idem_now now;
};

/* ---- The input ---- */

static void take_outcome(struct tape *tape, struct idem_outcome *outcome)
{
    static const enum idem_status ends[] = {
        IDEM_STATUS_COMPLETED, IDEM_STATUS_FAILED, IDEM_STATUS_UNKNOWN,
        IDEM_STATUS_RELEASED,  IDEM_STATUS_RETRY,
    };

    outcome->status = ends[take_up_to(tape, 4)];
    outcome->result.not_kept = take_bool(tape);
    if (!outcome->result.not_kept) {
        outcome->result.bytes = take_bytes(tape, 256);
    }
    outcome->result.content_type = take_bytes(tape, 255);
    outcome->result.meta = take_bytes(tape, 256);
    outcome->text = take_bytes(tape, 256);
    if (outcome->status == IDEM_STATUS_RETRY) {
        outcome->failures_max = take_up_to(tape, 3);
        outcome->retry_after_ms = take_up_to(tape, 255) * 1000;
    }
}

static int64_t take_lease(struct tape *tape)
{
    int64_t ms = take_ms(tape);

    if (ms == IDEM_NEVER) {
        return ms;
    }
    ms = ms < IDEM_LEASE_MIN_MS ? IDEM_LEASE_MIN_MS : ms;
    return ms > IDEM_DURATION_MAX_MS ? IDEM_DURATION_MAX_MS : ms;
}

static void take_request(struct tape *tape, const struct case_of *c,
                         struct idem_request *request)
{
    static const struct idem_request init = IDEM_REQUEST_INIT;
    static const uint8_t other[IDEM_FINGERPRINT_LEN] = {1, 'o', 't', 'h', 'e'};
    unsigned flags = take_u8(tape);

    *request = init;
    request->scope = c->record.scope;
    request->key = c->record.key;
    request->on_expired_lease = (flags & 1) != 0 ? IDEM_RERUN : IDEM_HOLD;
    request->owner = take_bytes(tape, IDEM_OWNER_MAX);
    if ((flags & 2) != 0) {
        request->fingerprint = c->record.fingerprint;
    } else if ((flags & 4) != 0) {
        request->fingerprint = idem_bytes(other, sizeof(other));
    }
    request->input = take_bytes(tape, 256);
    request->lease_ms = take_lease(tape);
    request->retention_ms =
        (flags & 8) != 0 ? IDEM_NEVER : IDEM_DURATION_MAX_MS;
    request->expect_ms = (flags & 16) != 0 ? 1000 : 0;
    request->attempts_max = (flags & 32) != 0 ? take_up_to(tape, 5) : 0;
    request->join_fence =
        (flags & 64) != 0 ? c->record.fence - 1 + take_up_to(tape, 2) : 0;
}

static void take_op(struct tape *tape, struct case_of *c)
{
    static const enum idem_verb verbs[] = {IDEM_OP_BEGIN,  IDEM_OP_BEGIN,
                                           IDEM_OP_BEGIN,  IDEM_OP_END,
                                           IDEM_OP_RENEW,  IDEM_OP_EXPIRE,
                                           IDEM_OP_IMPORT, IDEM_OP_RESOLVE};
    struct idem_op *op = &c->op;
    unsigned flags = take_u8(tape);

    op->verb = verbs[take_up_to(tape, 7)];
    op->scope = c->record.scope;
    op->key = c->record.key;
    memcpy(op->id, c->record.id, IDEM_ID_LEN);
    memcpy(op->nonce, c->record.nonce, 16);
    op->nonce[3] ^= (flags & 1) != 0 ? 1 : 0;
    op->has_nonce = true;
    op->fence = c->record.fence + ((flags & 6) == 6 ? 1 : 0);
    switch (op->verb) {
    case IDEM_OP_BEGIN:
        op->fence = (flags & 8) != 0 ? op->fence : 0;
        take_request(tape, c, &op->u.begin);
        break;
    case IDEM_OP_END:
        take_outcome(tape, &op->u.end);
        break;
    case IDEM_OP_RENEW:
        op->u.renew.lease_ms = take_bool(tape) ? 0 : take_lease(tape);
        break;
    case IDEM_OP_IMPORT:
        take_record(tape, &c->import);
        c->import.fence = c->import.fence / 4 + 1;
        c->import.scope = c->record.scope;
        c->import.key = c->record.key;
        memcpy(c->import.id, c->record.id, IDEM_ID_LEN);
        op->u.import.record = &c->import;
        break;
    case IDEM_OP_RESOLVE:
        take_outcome(tape, &op->u.resolve.outcome);
        if (op->u.resolve.outcome.status == IDEM_STATUS_UNKNOWN) {
            op->u.resolve.outcome.status = IDEM_STATUS_RELEASED;
        }
        op->u.resolve.who = take_bytes(tape, IDEM_OWNER_MAX);
        op->u.resolve.flags = (flags & 8) != 0 ? IDEM_RESOLVE_FORCE : 0;
        break;
    default:
        break;
    }
}

/* ---- What must come of it ---- */

static void decide(const struct idem_record *found, const struct case_of *c,
                   struct idem_decision *d)
{
    static void (*const decides[])(const struct idem_record *,
                                   const struct idem_op *,
                                   const struct idem_now *,
                                   struct idem_decision *) = {
        [IDEM_OP_BEGIN] = idem__decide_begin,
        [IDEM_OP_END] = idem__decide_end,
        [IDEM_OP_RENEW] = idem__decide_renew,
        [IDEM_OP_EXPIRE] = idem__decide_expire,
        [IDEM_OP_IMPORT] = idem__decide_import,
        [IDEM_OP_RESOLVE] = idem__decide_resolve,
    };

    memset(d, 0x5a, sizeof(*d));
    decides[c->op.verb](found, &c->op, &c->now, d);
}

static bool knows_boot(const struct case_of *c)
{
    static const uint8_t none[16];

    return memcmp(c->now.boot_id, none, sizeof(none)) != 0;
}

/* Without a doubt, by the clocks that there are. */
static bool lease_is_over(const struct case_of *c)
{
    const struct idem_record *r = c->found;
    __int128 end = r->lease_end_ms;

    if (r->lease_end_ms == IDEM_NEVER) {
        return false;
    }
    if (memcmp(r->boot_id, c->now.boot_id, 16) == 0 && knows_boot(c)) {
        return c->now.boot_ms >= r->lease_end_boot_ms;
    }
    end += c->now.margin_ms;
    if (end > IDEM_NEVER) {
        end = IDEM_NEVER;
    }
    return c->now.store_ms - c->now.store_err_ms >= end;
}

static bool is_expired(const struct case_of *c)
{
    return c->found->expires_ms != IDEM_NEVER &&
           c->now.store_ms - c->now.store_err_ms >= c->found->expires_ms;
}

static bool is_own(const struct case_of *c)
{
    return c->found != NULL && memcmp(c->found->nonce, c->op.nonce, 16) == 0;
}

/* True if @r is to be run again, and there is no pause before that, or it is over. */
static bool may_run_again(const struct case_of *c)
{
    return c->found->retry && (c->found->lease_ms == 0 || lease_is_over(c));
}

/* What the record says to a claim that is not its own, by the table of the
 * specification; STARTED stands for a new life or a takeover. */
static enum idem_verdict verdict_of(const struct case_of *c)
{
    const struct idem_request *request = &c->op.u.begin;
    const struct idem_record *r = c->found;
    struct idem_slice fingerprint = request->fingerprint;

    if (r == NULL || r->status == IDEM_STATUS_RELEASED || is_expired(c)) {
        return IDEM_STARTED;
    }
    if (fingerprint.len > 0 && r->fingerprint.len > 0 &&
        !same_bytes(fingerprint, r->fingerprint)) {
        return IDEM_MISMATCH;
    }
    if (r->status != IDEM_STATUS_IN_PROGRESS) {
        return (enum idem_verdict)r->status;
    }
    if (may_run_again(c)) {
        return IDEM_STARTED;
    }
    if (r->retry || !lease_is_over(c)) {
        return IDEM_BUSY;
    }
    if (r->on_expired_lease != IDEM_RERUN ||
        request->on_expired_lease != IDEM_RERUN) {
        return IDEM_UNKNOWN;
    }
    if (request->attempts_max != 0 &&
        r->attempts - r->retried >= request->attempts_max) {
        return IDEM_FAILED;
    }
    return IDEM_STARTED;
}

static void check_begin(const struct case_of *c, const struct idem_decision *d)
{
    enum idem_verdict verdict = verdict_of(c);
    const struct idem_record *r = c->found;

    must(d->code == 0);
    if (is_own(c) && r->by_lease && c->op.fence != 0) {
        must(d->verdict == IDEM_STARTED && d->change == IDEM_CHANGE_REPLACE);
        must(d->next.status == IDEM_STATUS_IN_PROGRESS && !d->next.retry &&
             !d->next.by_lease && d->next.fence == r->fence);
        must(d->next.attempts == r->attempts && d->next.retried == r->retried);
        must(d->next.result_len == 0 && !d->next.result.not_kept);
        return;
    }
    if (is_own(c)) {
        must(d->change == IDEM_CHANGE_NONE);
        must(d->verdict ==
             (r->retry ? IDEM_BUSY : (enum idem_verdict)r->status));
        return;
    }
    if (c->op.u.begin.join_fence != 0) {
        /* Nothing is ever started; of what was there before it may be told that
         * it is gone. */
        must(d->verdict != IDEM_STARTED);
        must(verdict == IDEM_STARTED || d->verdict == verdict ||
             d->verdict == IDEM_RELEASED);
    } else {
        must(d->verdict == verdict);
    }
    if (d->verdict == IDEM_BUSY) {
        must((d->lease_left_ms > 0) ==
             (r->retry ? !may_run_again(c) : !lease_is_over(c)));
    }
    if (d->verdict != IDEM_STARTED) {
        /* Only the end of a lease is ever noted on the way, and that it cannot
         * be as late as it is. */
        must(d->change == IDEM_CHANGE_NONE ||
             (d->verdict == IDEM_BUSY && d->next.fence == r->fence &&
              d->next.status == r->status &&
              d->next.lease_end_ms < r->lease_end_ms) ||
             (r->status == IDEM_STATUS_IN_PROGRESS && lease_is_over(c) &&
              d->next.by_lease && d->next.fence == r->fence));
        return;
    }
    must(d->change != IDEM_CHANGE_NONE);
    must(d->next.status == IDEM_STATUS_IN_PROGRESS);
    must(memcmp(d->next.nonce, c->op.nonce, 16) == 0);
    must(d->next.fence > c->now.fence_floor);
    must(r == NULL || d->next.fence > r->fence);
    must(d->next.attempts >= 1 &&
         (d->next.attempts == 1 || d->next.attempts >= r->attempts));
    if (d->set_result) {
        must(d->next.result_len == 0 && !d->next.result.not_kept);
    }
    if (r != NULL && r->status == IDEM_STATUS_IN_PROGRESS && !is_expired(c)) {
        must(d->set_result == idem__is_reopened(r));
        must(d->next.failures == r->failures);
        must(d->takeover && d->next.history[0].fence == r->fence);
        must(d->next.history[0].end ==
             (r->retry ? IDEM_PAST_RETRIED : IDEM_PAST_TAKEN_OVER));
        must(d->next.in_doubt == r->fence);
    }
}

/* The status that the end gives a record with so many @failures. */
static enum idem_status end_of(const struct case_of *c, uint32_t failures)
{
    const struct idem_outcome *end = &c->op.u.end;

    return end->status == IDEM_STATUS_RETRY && end->failures_max > 0 &&
                   failures >= end->failures_max
               ? IDEM_STATUS_FAILED
               : end->status;
}

static void check_owner(const struct case_of *c, const struct idem_decision *d)
{
    const struct idem_record *r = c->found;
    bool own = is_own(c) && r->fence == c->op.fence;

    must(d->code == 0 || d->code == IDEM_ELOST);
    must(own || d->code == IDEM_ELOST);
    if (d->change == IDEM_CHANGE_NONE) {
        return;
    }
    must(own && d->next.fence == r->fence);
    must(d->next.attempts == r->attempts);
    must(memcmp(d->next.nonce, r->nonce, 16) == 0);
    if (c->op.verb == IDEM_OP_END) {
        must((r->status == IDEM_STATUS_IN_PROGRESS && !r->retry) ||
             (r->by_lease && c->op.u.end.status != IDEM_STATUS_RELEASED));
        must(idem_record_status(&d->next) == end_of(c, d->next.failures) &&
             !d->next.by_lease);
        must(d->next.failures ==
             r->failures + (c->op.u.end.status == IDEM_STATUS_RETRY));
        return;
    }
    must(r->status == IDEM_STATUS_IN_PROGRESS && !r->retry &&
         d->next.status == r->status && !d->next.retry);
    if (c->op.verb == IDEM_OP_RENEW) {
        /* Or what no right clock can have written is mended. */
        must(d->next.lease_end_ms >= r->lease_end_ms ||
             d->next.lease_end_ms - r->lease_ms >
                 c->now.store_ms + c->now.store_err_ms);
    }
}

static void check_import(const struct case_of *c, const struct idem_decision *d)
{
    const struct idem_record *r = c->found;
    bool gives_way = r == NULL || is_expired(c) ||
                     (r->status == IDEM_STATUS_RELEASED &&
                      c->op.u.import.record->fence > r->fence);

    must(d->code == 0);
    must(gives_way || d->change == IDEM_CHANGE_NONE);
    must(d->change == IDEM_CHANGE_NONE ||
         d->next.status == c->op.u.import.record->status);
}

static void check_resolve(const struct case_of *c,
                          const struct idem_decision *d)
{
    const struct idem_record *r = c->found;
    bool reopens = c->op.u.resolve.outcome.status == IDEM_STATUS_RETRY;

    must(d->code == 0 || d->code == IDEM_ENOTFOUND || d->code == IDEM_ELOST ||
         d->code == IDEM_EINVALID);
    if (d->change == IDEM_CHANGE_NONE) {
        return;
    }
    must(r->fence == c->op.fence &&
         d->next.fence == r->fence + idem__is_decided(r));
    must(d->next.history[0].was == r->status);
    must(r->status == IDEM_STATUS_FAILED || r->status == IDEM_STATUS_UNKNOWN ||
         (reopens && r->status == IDEM_STATUS_COMPLETED) ||
         (!reopens && idem__is_decided(r)) ||
         (r->status == IDEM_STATUS_IN_PROGRESS &&
          (lease_is_over(c) || r->lease_end_ms == IDEM_NEVER ||
           (r->retry && (!reopens || !idem__is_reopened(r))) ||
           (!reopens && c->op.u.resolve.flags == IDEM_RESOLVE_FORCE))));
    must(idem_record_status(&d->next) == c->op.u.resolve.outcome.status);
    must(d->next.failures == 0);
    must(!is_own(c) && d->next.history[0].end ==
                           (reopens ? IDEM_PAST_REOPENED : IDEM_PAST_RESOLVED));
    must(!reopens ||
         (d->next.expires_ms == IDEM_NEVER && d->next.fingerprint.len == 0));
}

/* What is written can be read again, and is about the same key. */
static void check_next(const struct case_of *c, const struct idem_decision *d,
                       struct idem_record *ret_stored)
{
    static uint8_t head[IDEM_HEAD_MAX];
    const struct idem_record *next = &d->next;
    size_t len;

    must((d->change == IDEM_CHANGE_INSERT) == (c->found == NULL));
    must(idem__record_fault(next) == NULL);
    must(memcmp(next->id, c->record.id, IDEM_ID_LEN) == 0);
    must(same_bytes(next->scope, c->record.scope));
    must(same_bytes(next->key, c->record.key));
    must(c->found == NULL || next->fence >= c->found->fence);
    must(next->status == IDEM_STATUS_IN_PROGRESS ||
         next->status == IDEM_STATUS_COMPLETED ||
         next->status == IDEM_STATUS_RELEASED ||
         next->expires_ms == IDEM_NEVER || c->op.verb == IDEM_OP_IMPORT);
    must(idem__record_encode(next, head, sizeof(head), &len) == 0);
    must(idem__record_decode(next->id, idem_bytes(head, len), ret_stored,
                             NULL) == 0);
    ret_stored->scope = next->scope;
    ret_stored->key = next->key;
}

static void again(const struct case_of *c, const struct idem_decision *first,
                  const struct idem_record *stored)
{
    static struct idem_decision second;

    decide(stored, c, &second);
    must(second.code == 0);
    if (c->op.verb == IDEM_OP_RENEW) {
        must(second.next.lease_end_ms == stored->lease_end_ms);
        must(!knows_boot(c) || stored->lease_end_ms == IDEM_NEVER ||
             second.next.lease_end_boot_ms == stored->lease_end_boot_ms);
        return;
    }
    must(second.change == IDEM_CHANGE_NONE);
    if (c->op.verb == IDEM_OP_BEGIN && first->verdict == IDEM_STARTED) {
        must(second.verdict == IDEM_STARTED);
        must(second.takeover == first->takeover);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct idem_decision d;
    struct tape tape = tape_of(data, len);
    struct case_of c = {.found = NULL};
    struct idem_record stored;

    take_now(&tape, &c.now);
    take_record(&tape, &c.record);
    /* No store takes in greater ones. */
    c.record.fence = c.record.fence / 4 + 1;
    c.now.fence_floor = c.now.fence_floor / 4;
    if (take_u8(&tape) % 8 != 0) {
        c.found = &c.record;
    }
    take_op(&tape, &c);

    decide(c.found, &c, &d);
    must((d.code == 0) == (d.text[0] == '\0'));
    must(d.code == 0 || d.change == IDEM_CHANGE_NONE);
    (c.op.verb == IDEM_OP_BEGIN     ? check_begin
     : c.op.verb == IDEM_OP_IMPORT  ? check_import
     : c.op.verb == IDEM_OP_RESOLVE ? check_resolve
                                    : check_owner)(&c, &d);
    if (d.change != IDEM_CHANGE_NONE) {
        check_next(&c, &d, &stored);
        again(&c, &d, &stored);
    }
    return 0;
}
