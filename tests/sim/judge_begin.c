/* What a begin ought to be answered: section 5 of the design, from memory. */
#include "judge.h"

#include "ledger.h"
#include "table.h"

static bool starts(const struct judged *j)
{
    return j->after != NULL && j->code == 0 && j->op->verdict == IDEM_STARTED &&
           j->after->status == IDEM_STATUS_IN_PROGRESS;
}

static bool answers(const struct judged *j, enum idem_verdict verdict)
{
    return j->after == NULL && j->code == 0 && j->op->verdict == verdict;
}

static uint64_t asked_fingerprint(const struct judged *j)
{
    struct idem_slice s = j->op->u.begin.fingerprint;

    return s.len > 0 ? hash_of(s, 1) | 1 : 0;
}

/* What was asked for in this life of the key. */
static int64_t longest_retention(const struct judged *j)
{
    int64_t asked_ms = j->op->u.begin.retention_ms;
    int64_t before_ms = j->before->retention_ms;

    return j->after->attempts > 1 && before_ms > asked_ms ? before_ms
                                                          : asked_ms;
}

/* What every claim has in common. */
static void judge_claim(const struct judged *j)
{
    const struct view *a = j->after;
    const struct idem_request *asked = &j->op->u.begin;

    expect(j, memcmp(a->nonce, j->op->nonce, 16) == 0, "I3",
           "a claim does not carry the nonce of who asked");
    expect(j, a->fence > j->f->key->fence_max, "I2",
           "a fence is not above all before it");
    expect(j, a->policy == asked->on_expired_lease, "I15",
           "a claim has another policy than was asked for");
    expect(j, a->retention_ms == longest_retention(j), "I13",
           "a claim has another retention than the longest of its life");
    expect(j, !a->times_back, "I21", "a time goes behind an earlier one");
    expect(j, !a->retry, "I15", "an attempt at work is to be run again");
    expect(j, (asked->expect_ms != 0) == (a->expected_ms != 0), "I21",
           "a claim says wrongly when it is expected to end");
    judge_lease(j, asked->lease_ms);
    judge_open(j);
}

/* A cap is for attempts that ended without a word: what was released did nothing. */
static void judge_uncounted(const struct judged *j)
{
    const struct view *b = j->before;
    const struct view *a = j->after;
    uint32_t released =
        ledger_silent(j->f->key, b->fence) ? b->retried + 1 : b->attempts;

    expect(j, a->retried == (a->attempts > 1 ? released : 0), "I16",
           "attempts that were released count towards the cap");
}

static void judge_new_life(const struct judged *j)
{
    const struct view *b = j->before;
    bool again = b->exists && b->status == IDEM_STATUS_RELEASED;
    uint32_t before = again ? b->attempts : 0;

    if (!again || (j->after != NULL && j->after->attempts == 1)) {
        judge_gone(j);
    }
    if (j->op->u.begin.join_fence != 0) {
        expect(j, answers(j, IDEM_RELEASED), "I25",
               "a waiter for an attempt that is gone is not told so");
        return;
    }
    expect(j, starts(j),
           b->exists && b->status == IDEM_STATUS_COMPLETED ? "I13" : "I21",
           "a key that is free does not start");
    if (!starts(j)) {
        return;
    }
    expect(j, again || j->after->attempts == 1, "I13",
           "what is past its retention goes on");
    expect(j,
           j->op->takeover == (again && j->after->attempts > 1 &&
                               ledger_silent(j->f->key, b->fence)),
           "I16", "an owner is not told what may have happened before");
    judge_claim(j);
    /* What was released long ago is forgotten, attempts and all. */
    expect(j,
           j->after->attempts == before + 1 ||
               (may_be_past(j, b->expires_ms) && j->after->attempts == 1),
           "I16", "a new life counts its attempts wrongly");
    judge_uncounted(j);
    expect(j, j->after->failures == (j->after->attempts > 1 ? b->failures : 0),
           "I16", "a new life counts its failures wrongly");
    expect(j, j->after->fingerprint == asked_fingerprint(j), "I11",
           "a new life has another fingerprint than was asked for");
    if (b->exists) {
        scene(j->w, again ? SCENE_AGAIN : SCENE_REUSED);
    }
}

static void judge_takeover(const struct judged *j)
{
    struct idem_result none = {.not_kept = false};
    const struct view *b = j->before;

    expect(j, starts(j) && j->op->takeover, "I21",
           "a lease is over and the next does not start");
    if (!starts(j)) {
        return;
    }
    judge_claim(j);
    expect(j,
           j->after->fence == b->fence + 1 || b->fence < j->f->now.fence_floor,
           "I2", "a takeover's fence is not the next one");
    expect(j, j->after->attempts == b->attempts + 1, "I16",
           "a takeover is not counted");
    expect(j,
           j->after->fingerprint ==
               (b->reopened ? asked_fingerprint(j) : b->fingerprint),
           "I11", "a takeover changes the fingerprint");
    expect(j, j->after->retried == b->retried, "I16",
           "a takeover changes how many attempts were retried");
    expect(j, j->after->failures == b->failures, "I16",
           "a takeover changes how many attempts failed");
    expect(j,
           j->after->content == (b->reopened ? content_of(&none) : b->content),
           "I7", "a takeover changes what the last try came to");
    scene(j->w, SCENE_TAKEOVER);
}

/* The lease is over, and the record is closed as @status with its verdict. */
static void judge_closed(const struct judged *j, enum idem_status status,
                         enum idem_verdict verdict, const char *id)
{
    const struct view *a = j->after;

    expect(j, !answers(j, IDEM_BUSY), "I21", "BUSY, and the lease is over");
    expect(j,
           a != NULL && j->code == 0 && j->op->verdict == verdict &&
               a->status == status,
           id, "a lease that is over is not closed as it should be");
    if (a == NULL) {
        return;
    }
    expect(j,
           a->by_lease && a->fence == j->before->fence &&
               a->attempts == j->before->attempts &&
               a->failures == j->before->failures &&
               a->expires_ms == IDEM_NEVER,
           id, "a record that is closed changes more than its status");
}

static void judge_lease_over(const struct judged *j)
{
    const struct view *b = j->before;
    const struct idem_request *asked = &j->op->u.begin;

    if (b->policy != IDEM_RERUN || asked->on_expired_lease != IDEM_RERUN) {
        judge_closed(j, IDEM_STATUS_UNKNOWN, IDEM_UNKNOWN, "I15");
        scene(j->w, SCENE_HELD);
    } else if (asked->attempts_max != 0 &&
               b->attempts - b->retried >= asked->attempts_max) {
        judge_closed(j, IDEM_STATUS_FAILED, IDEM_FAILED, "I16");
        scene(j->w, SCENE_GAVE_UP);
    } else if (asked->join_fence != 0) {
        expect(j, answers(j, IDEM_BUSY), "I25", "a waiter takes over");
    } else {
        judge_takeover(j);
    }
}

/* True if the attempt that a waiter saw, and all that took it over, were given
 * up before the present one began. */
static bool joined_is_gone(const struct judged *j)
{
    uint64_t joined = j->op->u.begin.join_fence;
    const struct start *then = ledger_start(j->f->key, joined);
    const struct start *now = ledger_start(j->f->key, j->before->fence);

    return joined != 0 && then != NULL && now != NULL &&
           then->chain != now->chain;
}

/* Its attempt, or a person, has asked for another run: neither policies nor caps
 * nor clocks stand in its way. */
static void judge_run_again(const struct judged *j)
{
    if (j->op->u.begin.join_fence != 0) {
        expect(j, answers(j, IDEM_BUSY) && j->op->lease_left_ms == 0, "I25",
               "a waiter is not told to begin again");
        return;
    }
    judge_takeover(j);
    scene(j->w, j->before->lease_ms > 0 ? SCENE_AFTER_PAUSE : SCENE_RUN_AGAIN);
}

/* A clock that was wrong wrote this lease: it is made shorter for the same attempt,
 * by nothing that its owner counts on, and nobody starts. */
static void judge_bounded(const struct judged *j)
{
    const struct view *b = j->before;
    const struct view *a = j->after;

    expect(j,
           j->code == 0 && j->op->verdict == IDEM_BUSY &&
               a->status == b->status && a->fence == b->fence &&
               memcmp(a->nonce, b->nonce, 16) == 0 &&
               a->attempts == b->attempts,
           "I9", "a lease is made shorter, and more is changed");
    expect(j,
           b->lease_end_ms > a->lease_end_ms &&
               a->lease_end_ms >= j->f->truth_ms + b->lease_ms,
           "I9", "a lease ends before its owner believes that it does");
    expect(j, a->retry == b->retry && a->failures == b->failures, "I15",
           "a pause is made shorter, and its record is another one");
    judge_open(j);
    scene(j->w, SCENE_BOUNDED);
}

static void judge_in_progress(const struct judged *j)
{
    if (joined_is_gone(j)) {
        if (answers(j, IDEM_RELEASED)) {
            return;
        }
        /* A record forgets; how soon depends on how its attempts ended. */
        expect(j, j->before->attempts > IDEM_HISTORY_MAX, "I25",
               "a waiter is not told that its attempt was given up");
    }
    if (j->after != NULL && j->op->verdict == IDEM_BUSY) {
        judge_bounded(j);
        return;
    }
    if (answers(j, IDEM_BUSY) && !lease_must_be_over(j)) {
        if (j->before->retry) {
            scene(j->w, SCENE_PAUSED);
        }
        return;
    }
    expect(j, lease_may_be_over(j), "I9",
           j->before->retry ? "an attempt starts in a pause"
                            : "an attempt whose lease is live is pushed aside");
    if (j->before->retry) {
        judge_run_again(j);
    } else {
        judge_lease_over(j);
    }
}

/* The record that was found still counts. */
static void judge_standing(const struct judged *j)
{
    const struct view *b = j->before;
    uint64_t asked = asked_fingerprint(j);

    if (b->expires_ms <= j->f->truth_ms && b->expires_ms > j->f->sure_ms) {
        j->w->stats->faults[FAULT_DOUBTED]++;
    }
    if (asked != 0 && b->fingerprint != 0 && asked != b->fingerprint) {
        expect(j, answers(j, IDEM_MISMATCH), "I11",
               "another request is not answered MISMATCH");
        return;
    }
    expect(j, j->op->verdict != IDEM_MISMATCH, "I11",
           "the same request is answered MISMATCH");
    switch (b->status) {
    case IDEM_STATUS_COMPLETED:
        expect(j, answers(j, IDEM_REPLAY), "I5",
               "what is completed is not replayed");
        break;
    case IDEM_STATUS_FAILED:
        expect(j, answers(j, IDEM_FAILED), "I15",
               "what has failed is not answered so");
        break;
    case IDEM_STATUS_UNKNOWN:
        expect(j, answers(j, IDEM_UNKNOWN), "I15",
               "what is unknown is not answered so");
        break;
    case IDEM_STATUS_IN_PROGRESS:
        judge_in_progress(j);
        break;
    case IDEM_STATUS_RELEASED:
    case IDEM_STATUS_RETRY:
        break;
    }
}

/* Another has ended this claim, whose owner was not told of it: it is the same attempt
 * still. */
static void judge_taken_back(const struct judged *j)
{
    const struct view *b = j->before;
    const struct view *a = j->after;
    const struct start *start = ledger_start(j->f->key, b->fence);
    const struct idem_request *asked = &j->op->u.begin;
    struct idem_result none = {.not_kept = false};

    expect(j, starts(j), "I8",
           "an owner is turned away by the end of a lease that it never had");
    if (!starts(j)) {
        return;
    }
    expect(j, start != NULL && !start->told && !start->over, "I1",
           "a claim is taken back whose owner was told of it");
    expect(j,
           a->fence == b->fence && memcmp(a->nonce, b->nonce, 16) == 0 &&
               a->attempts == b->attempts && a->retried == b->retried &&
               a->failures == b->failures && a->fingerprint == b->fingerprint,
           "I16", "a claim that is taken back is another attempt");
    expect(j, !a->by_lease && !a->retry && a->content == content_of(&none),
           "I15", "a claim that is taken back is over still");
    expect(j, a->policy == asked->on_expired_lease, "I15",
           "a claim has another policy than was asked for");
    expect(j, a->retention_ms == b->retention_ms, "I13",
           "a claim that is taken back has another retention");
    expect(j, !a->times_back, "I21", "a time goes behind an earlier one");
    expect(j, (asked->expect_ms != 0) == (a->expected_ms != 0), "I21",
           "a claim says wrongly when it is expected to end");
    expect(j, j->op->takeover == ledger_silent(j->f->key, b->fence), "I16",
           "an owner is not told what may have happened before");
    judge_lease(j, asked->lease_ms);
    judge_open(j);
    scene(j->w, SCENE_TAKEN_BACK);
}

/* The record that was found was claimed by this very request. */
static void judge_own_claim(const struct judged *j)
{
    static const enum idem_verdict verdicts[] = {
        [IDEM_STATUS_IN_PROGRESS] = IDEM_STARTED,
        [IDEM_STATUS_COMPLETED] = IDEM_REPLAY,
        [IDEM_STATUS_FAILED] = IDEM_FAILED,
        [IDEM_STATUS_UNKNOWN] = IDEM_UNKNOWN,
        [IDEM_STATUS_RELEASED] = IDEM_RELEASED,
    };

    if (j->before->by_lease && j->after != NULL) {
        judge_taken_back(j);
        return;
    }
    expect(j,
           answers(j,
                   j->before->retry ? IDEM_BUSY : verdicts[j->before->status]),
           "I8", "a request does not recognise what its first copy did");
    scene(j->w, SCENE_OWN_CLAIM);
}

void judge_begin(const struct judged *j)
{
    const struct view *b = j->before;
    bool gone_may;
    bool gone_must;

    if (b->exists && memcmp(b->nonce, j->op->nonce, 16) == 0) {
        judge_own_claim(j);
        return;
    }
    expect(j, j->op->verdict != IDEM_STARTED || j->after != NULL, "I1",
           "an attempt is given to somebody who did not claim it");
    gone_must = !b->exists || b->status == IDEM_STATUS_RELEASED ||
                must_be_past(j, b->expires_ms);
    gone_may = gone_must || may_be_past(j, b->expires_ms);
    if (gone_must || (gone_may && (answers(j, IDEM_RELEASED) ||
                                   (starts(j) && j->after->attempts == 1)))) {
        judge_new_life(j);
    } else {
        judge_standing(j);
    }
}
