/* Decides a claim, given the record on the key. */
#include "core/decide.h"

#include "base/host.h"
#include "core/identity.h"
#include "core/slice.h"

#include <stdio.h>

static uint64_t next_fence(const struct idem_record *found,
                           const struct idem_now *now)
{
    uint64_t fence = now->store_ms > 0 ? (uint64_t)now->store_ms : 1;

    if (found != NULL && fence <= found->fence) {
        fence = found->fence + 1;
    }
    return fence <= now->fence_floor ? now->fence_floor + 1 : fence;
}

/* The parts of a claim that come from the caller and the clock. */
static void set_attempt(struct idem_record *next, const struct idem_op *op,
                        const struct idem_now *now)
{
    const struct idem_request *request = &op->u.begin;

    next->attempts += next->attempts < UINT32_MAX ? 1 : 0;
    next->status = IDEM_STATUS_IN_PROGRESS;
    next->by_lease = false;
    next->retry = false;
    next->owner = request->owner;
    memcpy(next->nonce, op->nonce, sizeof(next->nonce));
    next->on_expired_lease = request->on_expired_lease;
    if (next->retention_ms < request->retention_ms) {
        next->retention_ms = request->retention_ms;
    }
    next->started_ms = idem__not_before(next, now->store_ms);
    next->ended_ms = 0;
    next->expected_ms = request->expect_ms > 0
                            ? idem__time_add(now->store_ms, request->expect_ms)
                            : 0;
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
    decision->takeover = idem__in_doubt(&decision->next) != 0;
}

/* A cap is for attempts that ended without a word. One that was released did nothing,
 * so it does not count; nor does any before it, where nobody doubts that: all were
 * released, or a person has said what became of the others. */
static void uncount_released(struct idem_record *next)
{
    if (idem__in_doubt(next) == 0) {
        next->retried = next->attempts;
    } else if (next->retried < next->attempts) {
        next->retried++;
    }
}

/* Nothing that still counts: a life of the key begins. A record that was
 * released a moment ago is the same operation, and its attempts are still
 * told. */
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
    next->fence = next_fence(found, now);
    next->fingerprint = op->u.begin.fingerprint;
    set_attempt(next, op, now);
    clear_outcome(decision);
    decision->change = found == NULL ? IDEM_CHANGE_INSERT : IDEM_CHANGE_REPLACE;
    started(decision, set_input(decision, op->u.begin.input));
}

/* How the attempt that @found holds came to its end. That of a reopened record is
 * in the history already. */
static void push_found(struct idem_record *next,
                       const struct idem_record *found,
                       const struct idem_now *now)
{
    if (idem__is_reopened(found)) {
        return;
    }
    idem__history_push(next, found->owner,
                       found->retry ? found->ended_ms : now->store_ms,
                       found->retry ? IDEM_PAST_RETRIED : IDEM_PAST_TAKEN_OVER);
    next->ended_ms = next->history[0].ended_ms; /* The next starts after it. */
}

/* Unlike a new life it keeps the fingerprint that it was claimed with, or the
 * lack of one: a takeover is the same operation. A person who reopens a record
 * allows for another request, and the first one to come is it. The result of the last
 * try stays until this one ends. */
static void take_over(const struct idem_record *found, const struct idem_op *op,
                      const struct idem_now *now,
                      struct idem_decision *decision)
{
    struct idem_record *next = &decision->next;
    int rc = 0;

    *next = *found;
    push_found(next, found, now);
    next->in_doubt = found->fence;
    if (idem__is_reopened(found)) {
        next->fingerprint = op->u.begin.fingerprint;
        clear_outcome(decision);
    }
    next->fence = found->fence < now->fence_floor ? now->fence_floor + 1
                                                  : found->fence + 1;
    set_attempt(next, op, now);
    if (op->u.begin.input.len > 0) {
        rc = set_input(decision, op->u.begin.input);
    }
    decision->change = IDEM_CHANGE_REPLACE;
    started(decision, rc);
}

/* The lease is over and no one may start: the record says so from now on. */
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
    decision->next.by_lease = true;
    decision->change = IDEM_CHANGE_REPLACE;
    decision->set_result = true;
    decision->verdict =
        status == IDEM_STATUS_FAILED ? IDEM_FAILED : IDEM_UNKNOWN;
}

/* Its attempt has said that it is to be run again: that holds whatever the
 * policies, which are for attempts that ended without a word. */
static void run_again(const struct idem_record *found, const struct idem_op *op,
                      const struct idem_now *now,
                      struct idem_decision *decision)
{
    if (op->u.begin.join_fence != 0) {
        decision->verdict = IDEM_BUSY; /* See wait_ms. */
    } else {
        take_over(found, op, now, decision);
    }
}

static void lease_is_over(const struct idem_record *found,
                          const struct idem_op *op, const struct idem_now *now,
                          struct idem_decision *decision)
{
    const struct idem_request *request = &op->u.begin;
    uint32_t counted = found->attempts - found->retried;

    if (found->on_expired_lease != IDEM_RERUN ||
        request->on_expired_lease != IDEM_RERUN) {
        (void)snprintf(decision->note, sizeof(decision->note),
                       "the lease of attempt %u ended without a word",
                       (unsigned)found->attempts);
        close_record(found, IDEM_STATUS_UNKNOWN, now, decision);
    } else if (request->attempts_max != 0 && counted >= request->attempts_max) {
        (void)snprintf(decision->note, sizeof(decision->note),
                       "gave up after %u attempts", (unsigned)counted);
        close_record(found, IDEM_STATUS_FAILED, now, decision);
    } else if (request->join_fence != 0) {
        decision->verdict = IDEM_BUSY;
        decision->lease_left_ms = 0;
    } else {
        take_over(found, op, now, decision);
    }
}

/* The lease, or the pause, runs. One that no right clock can have written would keep everybody
 * away for too long: it is made shorter, and its owner, who counts on none of that,
 * goes on. Nobody starts on the strength of this alone. On the boot that counts it
 * the end is right, whatever was written. */
static void stay_away(const struct idem_record *found,
                      const struct idem_now *now,
                      struct idem_decision *decision)
{
    decision->verdict = IDEM_BUSY;
    if (idem__is_counted_here(found, now)) {
        return;
    }
    decision->next = *found;
    if (idem__lease_bound(&decision->next, now)) {
        decision->change = IDEM_CHANGE_REPLACE;
        decision->lease_left_ms = idem__lease_left(&decision->next, now);
    }
}

/* A request that was delivered twice finds what its first copy did. */
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
    return found->retry ? IDEM_BUSY : IDEM_STARTED;
}

/* True if @op, which has the nonce of @found, has made this claim and is not answered yet, and
 * another has ended the claim for want of a word from its owner: in between a claim that a
 * slow clock wrote and the write that mends its lease, say, or while an answer was lost for
 * longer than the lease. Then nobody works under it, or ever did:
 *
 * - Only the answer to its op has the nonce and fence of an attempt. A caller with the
 *   answer STARTED has taken the attempt, and cannot submit the op again
 *   (queue/submit.c): one that asks again came back with an error.
 * - op->fence is set by an earlier decision of this op to claim the key (store/remote/own.c).
 *   A copy of a request is none: what it writes it writes only where it finds what that was
 *   decided on, and taking the claim back changes that.
 * - One other op has the nonce, that of the supervisor of idem run: after the death of its
 *   runner, if that has ordered no work. It releases the claim then (run/runner_death.c).
 * - by_lease: neither its owner nor a person has said how the attempt ended. A person who
 *   decides gives the record another nonce, and so does a takeover. */
static bool is_untold(const struct idem_record *found, const struct idem_op *op)
{
    return found->by_lease && op->fence != 0;
}

/* The same attempt, with its fence, under a new lease. A caller that got UNKNOWN or
 * FAILED meanwhile finds it in progress. */
static void take_back(const struct idem_record *found, const struct idem_op *op,
                      const struct idem_now *now,
                      struct idem_decision *decision)
{
    struct idem_record *next = &decision->next;

    *next = *found;
    set_attempt(next, op, now);
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

/* A waiter is tied to the attempt that it saw: when that one was released, or is
 * of an earlier life, and another is at work now, the answer is not BUSY. After
 * a takeover it goes on waiting. */
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
    return found->history_len < IDEM_HISTORY_MAX;
}

void idem__decide_begin(const struct idem_record *found,
                        const struct idem_op *op, const struct idem_now *now,
                        struct idem_decision *ret_decision)
{
    struct idem_decision *decision = ret_decision;
    bool released = found != NULL && found->status == IDEM_STATUS_RELEASED;
    bool expired = found != NULL && idem__decide_expired(found, now);

    memset(decision, 0, sizeof(*decision));
    if (found != NULL && memcmp(found->nonce, op->nonce, 16) == 0) {
        decision->verdict = own_earlier_claim(found);
        if (decision->verdict == IDEM_BUSY) {
            decision->lease_left_ms = idem__lease_left(found, now);
        }
        decision->takeover = idem__in_doubt(found) != 0;
        if (is_untold(found, op)) {
            take_back(found, op, now, decision);
        }
        return;
    }
    if (found == NULL || released || expired) {
        if (op->u.begin.join_fence != 0) {
            decision->verdict = IDEM_RELEASED;
        } else {
            start_life(found, released && !expired, op, now, decision);
        }
        return;
    }
    if (fingerprints_differ(found, op)) {
        decision->verdict = IDEM_MISMATCH;
        return;
    }
    if (joined_is_gone(found, op->u.begin.join_fence)) {
        decision->verdict = IDEM_RELEASED;
        return;
    }
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
    decision->lease_left_ms = idem__lease_left(found, now);
    if (decision->lease_left_ms > 0) {
        stay_away(found, now, decision);
    } else if (found->retry) {
        run_again(found, op, now, decision);
    } else {
        lease_is_over(found, op, now, decision);
    }
}
