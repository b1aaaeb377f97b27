/* Decides a claim, given the record on the key. */
#include "core/decide.h"

#include "base/host.h"
#include "core/identity.h"
#include "core/slice.h"

#include <stdio.h>

/* A fence is the store's time, raised above every fence that this key, or a purged record,
 * has had. */
static uint64_t next_fence(const struct idem_record *found,
                           const struct idem_now *now)
{
    uint64_t fence = now->store_ms > 0 ? (uint64_t)now->store_ms : 1;

    if (found != NULL && fence <= found->fence) {
        fence = found->fence + 1;
    }
    /* A purged record leaves no fence to count on from; no purged fence is above the
     * floor. */
    return fence <= now->fence_floor ? now->fence_floor + 1 : fence;
}

/* Sets the members of a claim that come from the caller and the clock. */
static void set_attempt(struct idem_record *next, const struct idem_op *op,
                        const struct idem_now *now)
{
    const struct idem_request *request = &op->u.begin;

    /* A wrap to 0 would make a record that no reader accepts (idem__record_fault()). */
    next->attempts += next->attempts < UINT32_MAX ? 1 : 0;
    next->status = IDEM_STATUS_IN_PROGRESS;
    next->by_lease = false;
    next->retry = false;
    next->owner = request->owner;
    next->traceparent = request->traceparent;
    /* From here on only the holder of this nonce may end or renew the attempt; an earlier
     * owner of the key gets LOST (decide_end.c). */
    memcpy(next->nonce, op->nonce, sizeof(next->nonce));
    next->on_expired_lease = request->on_expired_lease;
    /* The longest retention of the life counts: no caller shortens the memory that another
     * one was promised. */
    if (next->retention_ms < request->retention_ms) {
        next->retention_ms = request->retention_ms;
    }
    next->started_ms = idem__not_before(next, now->store_ms);
    next->ended_ms = 0;
    next->expected_ms = request->expect_ms > 0
                            ? idem__time_add(now->store_ms, request->expect_ms)
                            : 0;
    /* The lease comes last, because the expiry follows from the policy and the retention
     * above. */
    idem__lease_set(next, request->lease_ms, now);
}

static void clear_outcome(struct idem_decision *decision)
{
    idem__result_clear(&decision->next);
    decision->set_result = true;
}

static int set_input(struct idem_decision *decision, struct idem_slice input)
{
    struct idem_record *next = &decision->next;

    next->input = input;
    next->input_len = input.len;
    /* An empty input is written as well: the one of an earlier life must not stay with the
     * record. */
    decision->set_input = true;
    return idem__body_digest(input, next->input_digest);
}

static void started(struct idem_decision *decision, int rc)
{
    if (rc != 0) {
        idem__refuse(decision, rc, "%s", idem_error_text(rc));
        return;
    }
    if (idem__refuse_fence(decision)) {
        return;
    }
    decision->verdict = IDEM_STARTED;
    /* Not only right after a takeover: until a person decides, each attempt of this life is
     * told that the work may have been done (specification 2). */
    decision->takeover = idem__in_doubt(&decision->next) != 0;
}

/* attempts_max counts attempts that ended without reporting an outcome. A released attempt
 * did nothing, so it does not count. If no earlier attempt is in doubt, because all were
 * released or a person has decided the others, none of them counts either. */
static void uncount_released(struct idem_record *next)
{
    if (idem__in_doubt(next) == 0) {
        next->retried = next->attempts;
    } else if (next->retried < next->attempts) {
        next->retried++;
    }
}

/* The key has no record, or one that no longer counts: a new life begins. A record that
 * was released and has not expired is the same operation, so its history is kept. */
static void start_life(const struct idem_record *found, bool released,
                       const struct idem_op *op, const struct idem_now *now,
                       struct idem_decision *decision)
{
    struct idem_record *next = &decision->next;

    if (released) {
        *next = *found;
        idem__history_push(next, found->owner, found->ended_ms,
                           IDEM_PAST_RELEASED);
        uncount_released(next);
    } else {
        next->created_ms = now->store_ms;
    }
    next->scope = op->scope;
    next->key = op->key;
    memcpy(next->id, op->id, sizeof(next->id));
    /* The new fence is above the fence of an expired record, too: the owner of that
     * record may still hold it, and it must never name another attempt. */
    next->fence = next_fence(found, now);
    next->fingerprint = op->u.begin.fingerprint;
    set_attempt(next, op, now);
    clear_outcome(decision);
    decision->change = found == NULL ? IDEM_CHANGE_INSERT : IDEM_CHANGE_REPLACE;
    started(decision, set_input(decision, op->u.begin.input));
}

/* Pushes the attempt of @found onto the history, with the way it ended. The history of a
 * reopened record has the attempt already. */
static void push_found(struct idem_record *next,
                       const struct idem_record *found,
                       const struct idem_now *now)
{
    if (idem__is_reopened(found)) {
        return;
    }
    /* An attempt that asked for another try ended when it did so. When a lost attempt
     * ended is unknown, so it counts as ended now. */
    idem__history_push(next, found->owner,
                       found->retry ? found->ended_ms : now->store_ms,
                       found->retry ? IDEM_PAST_RETRIED : IDEM_PAST_TAKEN_OVER);
    next->ended_ms = next->history[0].ended_ms; /* The next starts after it. */
}

/* A takeover is the same operation, so unlike a new life it keeps the fingerprint of
 * the record, if there is one. A person who reopens a record allows another request:
 * the first one to arrive sets the fingerprint. The result of the last try stays until
 * this attempt ends. */
static void take_over(const struct idem_record *found, const struct idem_op *op,
                      const struct idem_now *now,
                      struct idem_decision *decision)
{
    struct idem_record *next = &decision->next;
    int rc = 0;

    *next = *found;
    push_found(next, found, now);
    /* That attempt may have done the work, in part or in full, and the new owner must be
     * told. */
    next->in_doubt = found->fence;
    if (idem__is_reopened(found)) {
        next->fingerprint = op->u.begin.fingerprint;
        clear_outcome(decision);
    }
    /* The record is at hand to count on from, so unlike a new life a takeover needs no
     * clock for its fence. Like every new fence it is above the floor (struct idem_now). */
    next->fence = found->fence < now->fence_floor ? now->fence_floor + 1
                                                  : found->fence + 1;
    set_attempt(next, op, now);
    /* A caller that brings no input inherits the one on record. */
    if (op->u.begin.input.len > 0) {
        rc = set_input(decision, op->u.begin.input);
    }
    decision->change = IDEM_CHANGE_REPLACE;
    started(decision, rc);
}

/* The lease is over and no caller may start: records the end of the lease as the end of
 * the attempt. */
static void close_record(const struct idem_record *found,
                         enum idem_status status, const struct idem_now *now,
                         struct idem_decision *decision)
{
    struct idem_outcome outcome = {
        .status = status,
        .text = idem_str(decision->note),
    };
    int rc;

    decision->next = *found;
    rc = idem__outcome_set(&decision->next, &outcome, now);
    if (rc != 0) {
        idem__refuse(decision, rc, "%s", idem_error_text(rc));
        return;
    }
    /* The mark says that only the lease has ended the attempt. Nonce and fence stay those
     * of its owner, whose late report is still taken (may_follow() in decide_end.c). */
    decision->next.by_lease = true;
    decision->change = IDEM_CHANGE_REPLACE;
    decision->set_result = true;
    decision->verdict =
        status == IDEM_STATUS_FAILED ? IDEM_FAILED : IDEM_UNKNOWN;
}

/* The attempt asked to be run again. That overrides both policies, which are for attempts
 * that ended without reporting an outcome. */
static void run_again(const struct idem_record *found, const struct idem_op *op,
                      const struct idem_now *now,
                      struct idem_decision *decision)
{
    if (op->u.begin.join_fence != 0) {
        /* A waiter starts nothing: BUSY with nothing left sends it back to its caller, as
         * wait_ms in idem.h says. */
        decision->verdict = IDEM_BUSY;
    } else {
        take_over(found, op, now, decision);
    }
}

/* The lease is over and the owner never reported an outcome: the work may have been done
 * in whole, in part or not at all. */
static void lease_is_over(const struct idem_record *found,
                          const struct idem_op *op, const struct idem_now *now,
                          struct idem_decision *decision)
{
    const struct idem_request *request = &op->u.begin;
    uint32_t counted = found->attempts - found->retried;

    if (found->on_expired_lease != IDEM_RERUN ||
        request->on_expired_lease != IDEM_RERUN) {
        /* The owner or this caller does not allow a second run: a person decides. A
         * waiter records this too: it starts nothing. */
        (void)snprintf(decision->note, sizeof(decision->note),
                       "the lease of attempt %u ended without an outcome",
                       (unsigned)found->attempts);
        close_record(found, IDEM_STATUS_UNKNOWN, now, decision);
    } else if (request->attempts_max != 0 && counted >= request->attempts_max) {
        /* Every allowed attempt died: another would probably die too. */
        (void)snprintf(decision->note, sizeof(decision->note),
                       "gave up after %u attempts", (unsigned)counted);
        close_record(found, IDEM_STATUS_FAILED, now, decision);
    } else if (request->join_fence != 0) {
        /* A waiter never starts work; it waits for the caller that takes over. */
        decision->verdict = IDEM_BUSY;
        decision->lease_left_ms = 0;
    } else {
        take_over(found, op, now, decision);
    }
}

/* The lease, or the pause, still runs. A lease longer than any correct clock could have
 * written would block the key for too long: it is shortened. Its owner goes on, because
 * it counts its own lease, and the shortening alone lets no other caller start. On the
 * boot that wrote the lease, the boot clock gives the right end whatever the wall clock
 * wrote. */
static void stay_away(const struct idem_record *found,
                      const struct idem_now *now,
                      struct idem_decision *decision)
{
    decision->verdict = IDEM_BUSY;
    if (idem__is_counted_here(found, now)) {
        return;
    }
    decision->next = *found;
    /* The write changes the end of the lease, and the expiry that follows from it. The
     * attempt stays its owner's. */
    if (idem__lease_bound(&decision->next, now)) {
        decision->change = IDEM_CHANGE_REPLACE;
        decision->lease_left_ms = idem__lease_left(&decision->next, now);
    }
}

/* The record has the nonce of this very request, so an earlier copy of it was applied: the
 * answer is the state that copy left. */
static enum idem_verdict own_earlier_claim(const struct idem_record *found)
{
    switch (found->status) {
    case IDEM_STATUS_COMPLETED:
        return IDEM_REPLAY;
    case IDEM_STATUS_FAILED:
        return IDEM_FAILED;
    case IDEM_STATUS_UNKNOWN:
        return IDEM_UNKNOWN;
    case IDEM_STATUS_RELEASED:
        return IDEM_RELEASED;
    case IDEM_STATUS_IN_PROGRESS:
    case IDEM_STATUS_RETRY:
        break;
    }
    /* The owner of this claim got its answer, and has ended the attempt with a retry.
     * Only another begin, with its own nonce, starts the next attempt. */
    return found->retry ? IDEM_BUSY : IDEM_STARTED;
}

/* True if @op made this claim (it has the nonce of @found), has not been answered yet,
 * and another caller has meanwhile ended the claim because its lease was over. That
 * happens between a claim that a slow clock wrote and the write that corrects its lease,
 * or when an answer is lost for longer than the lease. No caller works under such a
 * claim, or ever did:
 *
 * - Only the answer to its op has the nonce and fence of an attempt. A caller with the
 *   answer STARTED has taken the attempt, and cannot submit the op again
 *   (queue/submit.c): one that asks again came back with an error.
 * - op->fence is set only once this op itself has decided to claim the key
 *   (store/remote/own.c). A late copy of the request cannot interfere: it writes only where
 *   it finds the record that it was decided on, and taking the claim back changes that.
 * - The only other op with this nonce is that of the supervisor of idem run, which releases
 *   the claim if its runner died before it ordered any work (run/runner_death.c).
 * - by_lease: neither the owner nor a person has reported how the attempt ended. A person
 *   who decides gives the record another nonce, and so does a takeover.
 */
static bool is_unanswered_claim(const struct idem_record *found,
                                const struct idem_op *op)
{
    return found->by_lease && op->fence != 0;
}

/* Continues the same attempt, with its fence, under a new lease. A caller that got UNKNOWN
 * or FAILED in the meantime will find it in progress. */
static void take_back(const struct idem_record *found, const struct idem_op *op,
                      const struct idem_now *now,
                      struct idem_decision *decision)
{
    struct idem_record *next = &decision->next;

    *next = *found;
    set_attempt(next, op, now);
    /* This is not another attempt: the work was never started under this claim. */
    next->attempts = found->attempts;
    clear_outcome(decision);
    decision->change = IDEM_CHANGE_REPLACE;
    decision->verdict = IDEM_STARTED;
}

static bool fingerprints_differ(const struct idem_record *found,
                                const struct idem_op *op)
{
    struct idem_slice asked = op->u.begin.fingerprint;

    return asked.len > 0 && found->fingerprint.len > 0 &&
           !idem__slice_equal(asked, found->fingerprint);
}

/* A waiter is tied to the attempt that it saw. If that attempt was released, or belongs to
 * an earlier life, and another one is at work now, the waiter is not kept BUSY by it. After
 * a takeover the waiter goes on waiting: it is the same operation. */
static bool joined_is_gone(const struct idem_record *found, uint64_t fence)
{
    size_t i;

    if (fence == 0 || found->status != IDEM_STATUS_IN_PROGRESS ||
        found->fence <= fence) {
        return false;
    }
    for (i = 0; i < found->history_len; i++) {
        if (found->history[i].fence < fence) {
            break;
        }
        if (found->history[i].end == IDEM_PAST_RELEASED) {
            return true;
        }
        if (found->history[i].fence == fence) {
            return false;
        }
    }
    /* A history that is not full goes back to the start of this life, so the joined
     * attempt belongs to an earlier life. A full history may have dropped it: the waiter
     * keeps waiting. */
    return found->history_len < IDEM_HISTORY_MAX;
}

void idem__decide_begin(const struct idem_record *found,
                        const struct idem_op *op, const struct idem_now *now,
                        struct idem_decision *ret_decision)
{
    struct idem_decision *decision = ret_decision;
    bool released = found != NULL && found->status == IDEM_STATUS_RELEASED;
    bool expired = found != NULL && idem__decide_expired(found, now);

    /* The branches are the rows of the table in section 2 of docs/specification.md, in its
     * order: the first one that fits decides. Two callers that race for a key come here one
     * after the other, or find that their write is refused and come here again. */
    memset(decision, 0, sizeof(*decision));
    /* An earlier copy of this request was applied, and its answer was lost. This comes
     * before expiry and fingerprint, because this request made the claim, whatever the
     * record has become since. */
    if (found != NULL && memcmp(found->nonce, op->nonce, 16) == 0) {
        decision->verdict = own_earlier_claim(found);
        if (decision->verdict == IDEM_BUSY) {
            decision->lease_left_ms = idem__lease_left(found, now);
        }
        decision->takeover = idem__in_doubt(found) != 0;
        if (is_unanswered_claim(found, op)) {
            take_back(found, op, now, decision);
        }
        return;
    }
    /* No record counts any more: a claim starts, a waiter returns to its caller. */
    if (found == NULL || released || expired) {
        if (op->u.begin.join_fence != 0) {
            decision->verdict = IDEM_RELEASED;
        } else {
            start_life(found, released && !expired, op, now, decision);
        }
        return;
    }
    /* The key was used for another request: it is refused, not replayed. */
    if (fingerprints_differ(found, op)) {
        decision->verdict = IDEM_MISMATCH;
        return;
    }
    if (joined_is_gone(found, op->u.begin.join_fence)) {
        decision->verdict = IDEM_RELEASED;
        return;
    }
    /* The operation has ended: the caller gets what is on record. */
    switch (found->status) {
    case IDEM_STATUS_COMPLETED:
        decision->verdict = IDEM_REPLAY;
        return;
    case IDEM_STATUS_FAILED:
        decision->verdict = IDEM_FAILED;
        return;
    case IDEM_STATUS_UNKNOWN:
        decision->verdict = IDEM_UNKNOWN;
        return;
    case IDEM_STATUS_IN_PROGRESS:
    case IDEM_STATUS_RELEASED:
    case IDEM_STATUS_RETRY:
        break;
    }
    /* The operation is in progress: its lease decides. */
    decision->lease_left_ms = idem__lease_left(found, now);
    if (decision->lease_left_ms > 0) {
        stay_away(found, now, decision);
    } else if (found->retry) {
        run_again(found, op, now, decision);
    } else {
        lease_is_over(found, op, now, decision);
    }
}
