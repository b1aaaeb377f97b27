/* What the verbs of an owner and of a person ought to do. */
#include "judge.h"

#include "host.h"
#include "ledger.h"
#include "table.h"

#include <idem/operator.h>

static bool refused(const struct judged *j, int code)
{
    return j->after == NULL && j->code == code;
}

static bool written(const struct judged *j)
{
    return j->after != NULL && j->code == 0;
}

/* The invariant that is broken when a stale owner gets through with it. */
static const char *stale_id(const struct judged *j)
{
    if (j->op->verb != IDEM_OP_END) {
        return "I3";
    }
    return j->op->u.end.status == IDEM_STATUS_COMPLETED ? "I4" : "I22";
}

/* The status that @said gives a record with so many failures. */
static enum idem_status comes_to(const struct idem_outcome *said,
                                 uint32_t failures)
{
    return said->status == IDEM_STATUS_RETRY && said->failures_max > 0 &&
                   said->failures_max <= failures
               ? IDEM_STATUS_FAILED
               : said->status;
}

static uint64_t text_of(const struct idem_outcome *outcome,
                        enum idem_status status)
{
    struct idem_slice none = {NULL, 0};
    bool failed = status == IDEM_STATUS_FAILED;

    return hash_of(failed ? outcome->text : none,
                   hash_of(failed ? none : outcome->text, 1));
}

static bool already_said(const struct judged *j,
                         const struct idem_outcome *said)
{
    const struct view *b = j->before;
    enum idem_status is = b->retry ? IDEM_STATUS_RETRY : b->status;
    enum idem_status status = comes_to(said, b->failures);

    if ((is != said->status && is != status) || b->by_lease) {
        return false;
    }
    if (b->retry || b->status == IDEM_STATUS_RELEASED ||
        b->status == IDEM_STATUS_UNKNOWN) {
        return true;
    }
    return b->content == content_of(&said->result) &&
           b->text == text_of(said, is);
}

/* Nobody starts before so long after the end of the work. */
static void judge_pause(const struct judged *j, int64_t pause_ms)
{
    judge_lease(j, pause_ms);
    judge_open(j);
    expect(j, j->after->lease_ms == pause_ms, "I9",
           "a pause has another length than was asked for");
}

static void judge_said(const struct judged *j)
{
    struct idem_outcome said = j->op->u.end;
    bool retries = said.status == IDEM_STATUS_RETRY;
    uint32_t failures = j->before->failures + (retries ? 1 : 0);

    expect(j, j->after->failures == failures, "I16",
           "failures are counted wrongly");
    expect(j, j->after->retried == j->before->retried + (retries ? 1 : 0),
           "I16", "a retried attempt is not counted");
    said.status = comes_to(&said, failures);
    if (said.status != IDEM_STATUS_RETRY) {
        judge_outcome(j, &said);
        expect(j, j->after->text == text_of(&said, said.status), "I7",
               "another text is recorded than was given");
        if (retries) {
            scene(j->w, SCENE_BUDGET);
        }
        return;
    }
    judge_again(j, &said);
    if (said.retry_after_ms > 0) {
        judge_pause(j, said.retry_after_ms);
    } else {
        judge_given_up(j);
        expect(j, j->after->lease_ms == 0, "I15",
               "there is a pause that nobody asked for");
    }
    scene(j->w, SCENE_RETRIED);
}

/* True if the attempt that is there has not said how it ended. */
static bool is_at_work(const struct view *view)
{
    return view->status == IDEM_STATUS_IN_PROGRESS && !view->retry;
}

/* Own, but over already. */
static void judge_second_end(const struct judged *j)
{
    const struct view *b = j->before;
    enum idem_status said = j->op->u.end.status;

    if (b->by_lease && said != IDEM_STATUS_RELEASED) {
        expect(j, written(j), "I21",
               "its lease spoke for an owner, who can no longer speak");
        if (j->after != NULL) {
            judge_said(j);
        }
        scene(j->w, SCENE_FOLLOWED);
        return;
    }
    expect(j, refused(j, IDEM_ELOST),
           b->status == IDEM_STATUS_COMPLETED ? "I5" : "I15",
           "what has ended is ended again in another way");
    scene(j->w, SCENE_SECOND_LOST);
}

/* True if the attempt that asks had its lease when a person decided about it. */
static bool was_overruled(const struct judged *j)
{
    const struct start *start = ledger_start(j->f->key, j->op->fence);

    return start != NULL && start->forced;
}

void judge_end(const struct judged *j)
{
    if (!is_own(j)) {
        expect(j, refused(j, IDEM_ELOST), stale_id(j),
               "a stale owner is not answered LOST");
        scene(j->w, was_overruled(j) ? SCENE_OVERRULED : SCENE_LATE_LOST);
    } else if (is_at_work(j->before)) {
        expect(j, written(j), "I8", "an owner cannot end its own attempt");
        if (j->after != NULL) {
            expect(j, memcmp(j->after->nonce, j->op->nonce, 16) == 0, "I3",
                   "an end changes the nonce");
            judge_said(j);
        }
    } else if (already_said(j, &j->op->u.end)) {
        expect(j, refused(j, 0), "I8",
               "an owner does not recognise what it said before");
        scene(j->w, SCENE_OWN_END);
    } else {
        judge_second_end(j);
    }
}

void judge_renew(const struct judged *j)
{
    const struct view *b = j->before;
    const struct view *a = j->after;

    if (!is_own(j) || !is_at_work(b)) {
        expect(j, refused(j, IDEM_ELOST), stale_id(j),
               "a stale owner's renewal is not answered LOST");
        scene(j->w, SCENE_LATE_LOST);
        return;
    }
    expect(j, written(j), "I8", "an owner cannot renew its lease");
    if (a == NULL) {
        return;
    }
    expect(j, a->status == b->status && memcmp(a->nonce, b->nonce, 16) == 0,
           "I3", "a renewal changes more than the lease");
    /* What a fast clock wrote is mended; it is more than the owner counts on. */
    expect(j,
           a->lease_end_ms >= b->lease_end_ms ||
               a->lease_end_ms - b->lease_ms > j->f->truth_ms,
           "I9", "a renewal ends the lease earlier");
    judge_lease(j, j->op->u.renew.lease_ms);
    judge_open(j);
    scene(j->w, SCENE_EXTENDED);
}

/* True if the lease of what is written is over on the host that counts it. */
static bool is_over_there(const struct judged *j)
{
    const struct view *a = j->after;
    unsigned i;

    for (i = 0; i < CLIENTS_MAX; i++) {
        const struct host *host = &j->w->hosts[i];

        if (memcmp(host->boot_id, a->boot_id, 16) == 0 &&
            host_boot_ms(j->w, host) < a->lease_end_boot_ms) {
            return false;
        }
    }
    return j->f->truth_ms >= a->lease_end_ms;
}

void judge_expire(const struct judged *j)
{
    if (!is_own(j) || !is_at_work(j->before)) {
        expect(j, refused(j, IDEM_ELOST), stale_id(j),
               "a stale owner's lease is ended");
        scene(j->w, SCENE_LATE_LOST);
        return;
    }
    expect(j, j->code == 0, "I8", "an owner cannot end its lease");
    if (j->after == NULL) {
        expect(j, lease_may_be_over(j), "I21", "a lease does not end");
        return;
    }
    expect(j, j->after->status == IDEM_STATUS_IN_PROGRESS, "I15",
           "the end of a lease is taken for an outcome");
    expect(j, is_over_there(j), "I21", "a lease that was ended goes on");
    judge_given_up(j);
    scene(j->w, SCENE_EXPIRED);
}

/* ---- A person ---- */

static bool is_forced(const struct judged *j)
{
    return (j->op->u.resolve.flags & IDEM_RESOLVE_FORCE) != 0;
}

static bool may_be_resolved(const struct judged *j, bool for_certain)
{
    const struct view *b = j->before;

    bool reopens = j->op->u.resolve.outcome.status == IDEM_STATUS_RETRY;

    if (b->status == IDEM_STATUS_FAILED || b->status == IDEM_STATUS_UNKNOWN) {
        return true;
    }
    if (b->status == IDEM_STATUS_COMPLETED && reopens) {
        return true;
    }
    if (b->retry) {
        return !reopens || !b->reopened;
    }
    if (b->status != IDEM_STATUS_IN_PROGRESS) {
        return !reopens && b->resolved_by != 0;
    }
    if (is_forced(j) && !reopens) {
        return true; /* Whoever is at work, a person has overruled it. */
    }
    if (b->lease_end_ms == IDEM_NEVER) {
        return true; /* Only a person can tell that nobody is at work. */
    }
    /* That it is late is no proof: its owner may be at work. */
    return for_certain ? lease_must_be_over(j) : lease_may_be_over(j);
}

static void judge_resolved(const struct judged *j)
{
    const struct view *a = j->after;
    struct idem_outcome none = {.status = IDEM_STATUS_RETRY};

    expect(j, a->failures == 0, "I16",
           "what failed before a person decided still counts");
    expect(j, memcmp(a->nonce, j->op->nonce, 16) == 0, "I3",
           "after a person decided the owner can still end it");
    if (j->before->status == IDEM_STATUS_IN_PROGRESS && !j->before->retry &&
        j->before->lease_end_ms != IDEM_NEVER && !lease_may_be_over(j)) {
        scene(j->w, SCENE_FORCED);
    }
    if (j->before->resolved_by != 0) {
        scene(j->w, SCENE_CORRECTED);
    }
    if (j->op->u.resolve.outcome.status != IDEM_STATUS_RETRY) {
        judge_outcome(j, &j->op->u.resolve.outcome);
        scene(j->w, SCENE_RESOLVED);
        return;
    }
    judge_again(j, &none);
    expect(j, a->lease_ms == 0, "I15", "what a person reopened has a pause");
    expect(j, a->reopened && a->expires_ms == IDEM_NEVER, "I15",
           "what a person reopened is forgotten");
    expect(j, a->retried == a->attempts, "I16",
           "attempts before it was reopened still count");
    scene(j->w, SCENE_REOPENED);
}

void judge_resolve(const struct judged *j)
{
    const struct view *b = j->before;

    if (b->exists && memcmp(b->nonce, j->op->nonce, 16) == 0) {
        expect(j, refused(j, 0), "I8",
               "a person's decision is not recognised when it comes twice");
        return;
    }
    if (!b->exists || must_be_past(j, b->expires_ms) ||
        (may_be_past(j, b->expires_ms) && j->code == IDEM_ENOTFOUND)) {
        expect(j, refused(j, IDEM_ENOTFOUND), "I13",
               "what is gone is resolved");
        judge_gone(j);
    } else if (b->fence != j->op->fence) {
        expect(j, refused(j, IDEM_ELOST), "I22",
               "another attempt is resolved than was seen");
    } else if (b->resolved_by == (hash_of(j->op->u.resolve.who, 1) | 1) &&
               already_said(j, &j->op->u.resolve.outcome)) {
        expect(j, refused(j, 0), "I8", "the same decision again is refused");
    } else if (written(j)) {
        expect(j, may_be_resolved(j, /* for_certain= */ false),
               b->status == IDEM_STATUS_COMPLETED ? "I5" : "I9",
               "what must not be resolved is resolved");
        judge_resolved(j);
    } else {
        expect(j,
               refused(j, IDEM_EINVALID) &&
                   !may_be_resolved(j, /* for_certain= */ true),
               "I21", "what is late cannot be resolved");
    }
}

void judge_import(const struct judged *j)
{
    const struct idem_record *record = j->op->u.import.record;
    const struct view *b = j->before;
    const struct view *a = j->after;
    bool released =
        b->status == IDEM_STATUS_RELEASED && record->fence > b->fence;

    expect(j, j->code == 0, "I21", "a record cannot be imported");
    if (a == NULL) {
        expect(j,
               (b->exists && !released && !must_be_past(j, b->expires_ms)) ||
                   may_be_past(j, record->expires_ms),
               "I21", "a record is not imported");
        return;
    }
    expect(j, !b->exists || released || may_be_past(j, b->expires_ms), "I5",
           "a record is imported over one that is there");
    if (b->exists && !released) {
        judge_gone(j);
    }
    if (released && !may_be_past(j, b->expires_ms) &&
        ledger_silent(j->f->key, b->fence)) {
        expect(j, a->in_doubt != 0, "I15",
               "an import forgets what may have happened");
    }
    expect(j, a->fence >= record->fence && (!b->exists || a->fence > b->fence),
           "I2", "a record is imported with a lower fence");
    expect(j,
           a->status == record->status &&
               a->content == content_of(&record->result),
           "I7", "a record is imported with another outcome");
    scene(j->w, SCENE_IMPORTED);
}

void judge_get(const struct judged *j)
{
    const struct view *b = j->before;

    expect(j, j->after == NULL, "I5", "a read changes a record");
    if (!b->exists || must_be_past(j, b->expires_ms)) {
        expect(j, j->code == IDEM_ENOTFOUND, "I13", "what is gone is shown");
        judge_gone(j);
    } else if (!may_be_past(j, b->expires_ms)) {
        expect(j, j->code == 0, "I13", "what is there is not shown");
    }
}
