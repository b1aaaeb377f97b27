/* idem.pml: the life of one record, for the model checker Spin.
 *
 * It reads as sections 2 to 5 of docs/specification.md, and has their rules once
 * more with little else around them: one key; workers that claim it, work, and say
 * how it ended; a person; a sweeper that purges; and time, which ends leases and
 * retentions whenever it likes. Spin goes through every order in which all of this
 * can happen, and checks the properties at each step.
 *
 * What goes wrong is part of the model. A request is lost, or its answer is; it
 * comes late, when its sender has given up long ago; it comes twice. A worker
 * stops at any step: for ever (it died), or for as long as it likes (it was paused,
 * and wakes up as a stale owner). Who got no answer may ask again with the same
 * nonce, or give up.
 *
 *     spin -a idem.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m99999
 *
 * Each name after an #ifdef is a mistake: with it (spin -DNO_FENCE -a ...) one rule
 * is missing or wrong, and Spin shows how a property breaks. tests/model/model.py
 * runs all of this.
 *
 * Left out: fingerprints, waiters, how often work was started, the history, the
 * bytes of results (a completion has one of two contents), and the arithmetic of
 * clocks. A lease is
 * over or it is not, and an owner's own count of it is over first; section 6 sees
 * to that.
 */

#define WORKERS 3

#ifndef CLAIMS
#define CLAIMS 2 /* Of each worker, at most. */
#endif
#ifndef FENCES
#define FENCES 4 /* No more attempts than these are made of the key, with the
                    corrections of persons. */
#endif
#define BUDGET 2 /* Failures that a retry allows which has a budget. */

mtype:status = {none, in_progress, completed, failed, unknown, released};
/* say_last: a retry with a budget; say_later: one with a pause. */
mtype:verb = {say_nothing, begin, complete, fail, release, say_unknown, say_retry,
              say_last, say_later, renew, expire, reopen};
mtype:answer = {STARTED, REPLAY, FAILED, UNKNOWN, RELEASED, BUSY, /* begin */
                OK, LOST, NOTFOUND, INVALID,                      /* others */
                NO_ANSWER};

/* ---- 1. The record ------------------------------------------------------ */

typedef Record {
    mtype:status status = none;
    byte fence;
    byte nonce;
    bit content;  /* Of what is completed. */
    bit hold;     /* on_expired_lease */
    bit over;     /* Its lease is, or its pause. */
    bit expired;  /* It is past its retention. */
    bit by_lease; /* Unknown or failed, and its owner has not spoken. */
    bit retry;    /* In progress, but to be run again. */
    bit in_doubt; /* An attempt of this life may have done the work. */
    byte failures; /* Retries of this life, since a person has decided. */
};

inline clear(record_)
{
    record_.status = none;
    record_.fence = 0;
    record_.nonce = 0;
    record_.content = 0;
    record_.hold = 0;
    record_.over = 0;
    record_.expired = 0;
    record_.by_lease = 0;
    record_.retry = 0;
    record_.in_doubt = 0;
    record_.failures = 0
}

Record rec;
byte floor_fence; /* The highest that was ever purged. (0 while a record with a
                     higher one is there: it makes no difference then.) */

/* A nonce is fresh for each begin: the worker, and which of its claims it is. */
#define NONCE(worker, claim) (10 * (worker) + (claim))
#define NONCE_OF_PERSON 1
#define NONCE_OF_PROBE 2

/* An answer is used, and forgotten, in the step in which it is given. */
mtype:answer answer;
byte told_fence;

inline forget()
{
    answer = 0;
    told_fence = 0
}

/* ---- What must hold ----------------------------------------------------- */

#ifndef ONLY /* Look at one of them only, by its number. */
#define PROPERTY(number, holds) assert(holds)
#else
#define PROPERTY(number, holds) assert((holds) || number != ONLY)
#endif

#define FENCES_GROW 1      /* ... strictly, for as long as there is the key. */
#define NO_STALE_OWNER 2   /* Only the newest attempt ends, or is renewed. */
#define COMPLETED_STAYS 3  /* A completed record does not change before its
                              retention is over, or a person reopens it, or
                              corrects a person. */
#define ACKNOWLEDGED 4     /* A completion that was acknowledged is on record
                              until then. */
#define ONE_LIVE_OWNER 5   /* No two count on their lease at the same time. */
#define MAYBE_IS_NOT_NO 6  /* What may have happened is not begun again under
                              hold, nor after "unknown" or "failed", before a
                              person has looked; and is never released. */
#define OWN_WRITE 7        /* Nobody is turned away by what it did itself. */
#define NO_WEDGE 8         /* Nothing is in the way of a key for ever, but what
                              waits for a person. */
#define PERSON_HAS_SEEN 9  /* A person decides about the attempt that it saw, and
                              its owner does not undo it. */
#define RETRY_IS_THE_END 10 /* After a retry, as after a reopening, the attempt
                              is over: nothing that it says changes anything. */
#define RETRY_IS_RUN 11    /* The next begin starts then, whatever the policies,
                              and what a person reopened waits for it. */
#define TOLD_OF_NOTHING 13 /* What is taken back was told to nobody. */
#define BUDGET_IS_EXACT 14 /* The last failure that a budget allows is for a person,
                              and none before it. */
#define PAUSE_IS_KEPT 15 /* Nobody starts in a pause, but where a person has
                            decided. */
#define TAKEOVER_IS_TOLD 12 /* Who starts after an attempt of the same life that
                              may have done the work is told so, while no person
                              has decided. */

/* What really happened. The rules never look at it. */
byte newest;      /* The highest fence that was ever given. */
bit live[4];      /* live[w]: worker w counts on its lease. */
bit for_person;   /* The newest attempt must not be followed by another before
                     its owner completed or released it, or a person looked. */
bit decided;      /* A person decided about it. */
bit retried;      /* It is to be run again: it said so, or a person did. */
bit pausing;      /* ... but not yet. */
byte failed_truly; /* Attempts that ended so, in this life, since a person has
                     decided. */
bit begun;        /* It may have done the work, and has not taken that back. */
bit may_be_done;  /* One before it may have: in this life, and no person has
                     decided since. */
bit told;         /* Its worker was told that it started. */
bit done;         /* A completion was acknowledged, */
bit done_content; /* and was this one. */

#define MAY_CHANGE (rec.status != completed || rec.expired)

inline check()
{
    PROPERTY(ONE_LIVE_OWNER, live[1] + live[2] + live[3] <= 1);
    PROPERTY(ACKNOWLEDGED, !done || (rec.status == completed &&
                                     rec.content == done_content))
}

/* ---- 2. Begin ----------------------------------------------------------- */

inline start(nonce_, hold_)
{
    PROPERTY(COMPLETED_STAYS, MAY_CHANGE);
    PROPERTY(MAYBE_IS_NOT_NO, !for_person);
    PROPERTY(PAUSE_IS_KEPT, !pausing);
    if
    :: rec.status == none || rec.expired ->
        rec.failures = 0;
        failed_truly = 0
#ifdef DEATH_FORGETS_FAILURES
    :: rec.status == in_progress && !rec.expired && !rec.retry ->
        rec.failures = 0
#endif
#ifdef RELEASE_FORGETS_FAILURES
    :: rec.status == released && !rec.expired -> rec.failures = 0
#endif
    :: else
    fi;
    if
    :: rec.status == none || rec.expired -> rec.in_doubt = 0
#ifndef RETRY_IS_NO_TAKEOVER
    :: rec.status == in_progress && !rec.expired -> rec.in_doubt = 1
#else
    :: rec.status == in_progress && !rec.expired && !rec.retry ->
        rec.in_doubt = 1
#endif
#ifdef RELEASED_FORGETS
    :: rec.status == released && !rec.expired -> rec.in_doubt = 0
#endif
    :: else
    fi;
    may_be_done = may_be_done || begun;
    begun = 1;
#ifndef TAKEOVER_KEEPS_FENCE
    rec.fence = rec.fence + 1;
#else
    rec.fence = (rec.status == in_progress && !rec.expired -> rec.fence
                                                            : rec.fence + 1);
#endif
#ifndef PURGE_FORGETS_FENCE
    if
    :: rec.fence <= floor_fence -> rec.fence = floor_fence + 1
    :: else
    fi;
#endif
    PROPERTY(FENCES_GROW, rec.fence > newest);
    newest = rec.fence;
    rec.status = in_progress;
    rec.nonce = nonce_;
    rec.content = 0;
    rec.hold = hold_;
    rec.over = 0;
    rec.expired = 0;
    rec.by_lease = 0;
    rec.retry = 0;
    floor_fence = 0;
    for_person = hold_;
    decided = 0;
    retried = 0;
    told = 0;
    answer = STARTED
}

/* Its lease ended it before its worker was told of it: it goes on. */
inline take_back(hold_)
{
    PROPERTY(TOLD_OF_NOTHING, !told);
    rec.status = in_progress;
    rec.hold = hold_;
    rec.by_lease = 0;
    for_person = hold_;
    answer = STARTED
}

/* Who was not answered knows that it has told nobody. A copy that comes later knows
 * nothing: what it writes, it writes on condition of what it was decided on. */
#ifdef OWN_LEASE_TURNS_AWAY
#define IS_UNTOLD(copy_) false
#elif defined(COPY_TAKES_BACK)
#define IS_UNTOLD(copy_) rec.by_lease
#else
#define IS_UNTOLD(copy_) (rec.by_lease && !(copy_))
#endif

/* Its lease is over, and no one may start. */
inline close(status_, answer_)
{
    rec.status = status_;
    rec.by_lease = 1;
    rec.hold = 0;
    rec.over = 0;
    for_person = 1;
    answer = answer_
}

/* @give_up_: it was started as often as the request allows. */
inline lease_is_over(nonce_, hold_, give_up_)
{
    if
#ifndef HOLD_IS_TAKEN_OVER
    :: rec.hold || hold_ -> close(unknown, UNKNOWN)
    :: !rec.hold && !hold_ && give_up_ -> close(failed, FAILED)
    :: !rec.hold && !hold_ && !give_up_ ->
#else
    :: true ->
#endif
#ifndef NO_TAKEOVER
        start(nonce_, hold_)
#else
        answer = BUSY
#endif
    fi
}

#ifndef LEASE_IGNORED
#define OVER rec.over
#else
#define OVER true
#endif

#ifndef PAUSE_IGNORED
#define PAUSE_OVER rec.over
#else
#define PAUSE_OVER true
#endif

/* The first row that fits decides. @copy_: of a request that may be answered. */
inline do_begin(nonce_, hold_, give_up_, copy_)
{
    if
#ifndef OWN_CLAIM_UNKNOWN
    :: rec.status != none && rec.nonce == nonce_ ->
        if
#ifndef OWN_RETRY_IS_STARTED
        :: rec.status == in_progress && rec.retry -> answer = BUSY
        :: rec.status == in_progress && !rec.retry -> answer = STARTED
#else
        :: rec.status == in_progress -> answer = STARTED
#endif
        :: rec.status == completed -> answer = REPLAY
        :: IS_UNTOLD(copy_) -> take_back(hold_)
        :: rec.status == failed && !IS_UNTOLD(copy_) -> answer = FAILED
        :: rec.status == unknown && !IS_UNTOLD(copy_) -> answer = UNKNOWN
        :: rec.status == released -> answer = RELEASED
        fi
#endif
    :: else ->
        if
        :: rec.status == none || rec.expired ->
            start(nonce_, hold_)
        :: rec.status == released && !rec.expired -> start(nonce_, hold_)
        :: rec.status == completed && !rec.expired -> answer = REPLAY
        :: rec.status == failed && !rec.expired -> answer = FAILED
        :: rec.status == unknown && !rec.expired ->
#ifndef UNKNOWN_IS_BEGUN
            answer = UNKNOWN
#else
            start(nonce_, hold_)
#endif
        :: rec.status == in_progress && !rec.expired && rec.retry &&
           !(PAUSE_OVER) -> answer = BUSY
        :: rec.status == in_progress && !rec.expired && rec.retry &&
           (PAUSE_OVER) ->
#ifndef RETRY_OBEYS_HOLD
            start(nonce_, hold_)
#else
            lease_is_over(nonce_, hold_, give_up_)
#endif
        :: rec.status == in_progress && !rec.expired && !rec.retry && !OVER ->
            answer = BUSY
        :: rec.status == in_progress && !rec.expired && !rec.retry && OVER ->
            lease_is_over(nonce_, hold_, give_up_)
        fi
    fi;
    PROPERTY(OWN_WRITE, answer != BUSY || rec.nonce != nonce_ || rec.retry);
    PROPERTY(OWN_WRITE, (answer != UNKNOWN && answer != FAILED) ||
             rec.nonce != nonce_ || !rec.by_lease || copy_);
    PROPERTY(RETRY_IS_THE_END, answer != STARTED || !retried);
    PROPERTY(RETRY_IS_RUN, !retried || pausing || rec.nonce == nonce_);
    PROPERTY(TAKEOVER_IS_TOLD,
             answer != STARTED || rec.in_doubt || !may_be_done);
    told_fence = rec.fence
}

/* ---- 3. End, renew, expire ---------------------------------------------- */

#define RETRIES(verb_)                                                         \
    (verb_ == say_retry || verb_ == say_last || verb_ == say_later)

#ifndef BUDGET_IGNORED
#define USES_UP(verb_) (verb_ == say_last && rec.failures >= BUDGET)
#else
#define USES_UP(verb_) false
#endif

#define STATUS_OF(verb_)                                                       \
    (verb_ == complete -> completed                                            \
                       : (verb_ == fail || USES_UP(verb_) -> failed            \
                                        : (verb_ == release -> released        \
                                        : (RETRIES(verb_) -> RETRIED           \
                                                          : unknown))))

#ifndef RETRY_IS_RELEASE
#define RETRIED in_progress
#else
#define RETRIED released
#endif

#ifdef NO_FENCE /* Whoever comes while work is in progress is its owner. */
#define IS_OWN (rec.status != none)
#else
#define IS_OWN (rec.status != none && rec.nonce == nonce_ && rec.fence == fence_)
#endif

#define SAID_RETRY                                                             \
    (rec.retry || (rec.status == failed && USES_UP(verb_)) ||                  \
     (rec.status == released && RETRIED == released))

#define SAID_BEFORE                                                            \
    (!rec.by_lease &&                                                          \
     (RETRIES(verb_) -> SAID_RETRY                                             \
                     : rec.status == STATUS_OF(verb_) && !rec.retry &&         \
                           (verb_ != complete || rec.content == content_)))

#ifndef RETRY_IS_NOT_THE_END
#define AT_WORK (rec.status == in_progress && !rec.retry)
#else
#define AT_WORK (rec.status == in_progress)
#endif

/* What an owner may still say: while it is in progress, and after its lease spoke
 * for it; but then no longer that nothing happened. */
#ifdef RELEASED_AFTER_HOLD
#define MAY_FOLLOW (AT_WORK || rec.by_lease)
#elif defined(COMPLETION_OVERWRITES)
#define MAY_FOLLOW                                                             \
    (AT_WORK || (rec.by_lease && verb_ != release) ||                          \
     (rec.status == completed && verb_ == complete))
#elif defined(OWNER_REOPENS)
#define MAY_FOLLOW                                                             \
    (AT_WORK || (rec.by_lease && verb_ != release) ||                          \
     (rec.status == completed && RETRIES(verb_)))
#else
#define MAY_FOLLOW (AT_WORK || (rec.by_lease && verb_ != release))
#endif

inline record(verb_, content_)
{
    PROPERTY(COMPLETED_STAYS, MAY_CHANGE);
    PROPERTY(MAYBE_IS_NOT_NO, verb_ != release || !rec.by_lease);
    if
#ifndef NO_BUDGETS
    :: RETRIES(verb_) ->
        rec.failures++;
        failed_truly++
#endif
    :: else
    fi;
    rec.status = STATUS_OF(verb_);
    PROPERTY(BUDGET_IS_EXACT,
             verb_ != say_last ||
             (rec.status == failed) == (failed_truly >= BUDGET));
    rec.content = (verb_ == complete -> content_ : 0);
    rec.retry = (rec.status == in_progress);
    rec.hold = rec.hold && rec.retry;
    rec.over = rec.retry && verb_ != say_later;
    rec.expired = 0;
    rec.by_lease = 0;
    for_person = (verb_ == fail || verb_ == say_unknown ||
                  (RETRIES(verb_) && rec.status == failed));
    begun = (verb_ != release);
    retried = (RETRIES(verb_) && rec.status != failed);
    pausing = (retried && verb_ == say_later);
    answer = OK
}

inline do_end(verb_, nonce_, fence_, content_)
{
    if
#ifdef COMPLETE_UNCONDITIONAL
    :: verb_ == complete && rec.status != none ->
        PROPERTY(NO_STALE_OWNER, fence_ == newest);
        record(verb_, content_)
#endif
#ifdef RELEASE_UNCONDITIONAL
    :: verb_ == release && rec.status != none ->
        PROPERTY(NO_STALE_OWNER, fence_ == newest);
        record(verb_, content_)
#endif
    :: else ->
        if
        :: !(IS_OWN) -> answer = LOST
#ifndef OWN_END_UNKNOWN
        :: IS_OWN && SAID_BEFORE ->
#ifdef COPY_COUNTS_TWICE
            rec.failures = rec.failures + (RETRIES(verb_) -> 1 : 0);
#endif
            answer = OK
        :: IS_OWN && !(SAID_BEFORE) && MAY_FOLLOW ->
#else
        :: IS_OWN && MAY_FOLLOW ->
#endif
            PROPERTY(NO_STALE_OWNER, fence_ == newest);
            PROPERTY(RETRY_IS_THE_END, !retried);
            record(verb_, content_)
        :: IS_OWN && !(SAID_BEFORE) && !(MAY_FOLLOW) -> answer = LOST
#ifdef OWN_END_UNKNOWN
        :: IS_OWN && SAID_BEFORE && !(MAY_FOLLOW) -> answer = LOST
#endif
        fi
    fi;
    PROPERTY(PERSON_HAS_SEEN, answer != OK || !decided);
    PROPERTY(OWN_WRITE, answer != LOST || rec.status == none ||
             rec.nonce != nonce_ || rec.fence != fence_ || !(SAID_BEFORE))
}

#ifdef RENEW_UNFENCED
#define MAY_RENEW (rec.status == in_progress)
#elif defined(RETRY_IS_RENEWED)
#define MAY_RENEW (IS_OWN && rec.status == in_progress)
#else
#define MAY_RENEW (IS_OWN && AT_WORK)
#endif

inline do_renew(nonce_, fence_)
{
    if
    :: MAY_RENEW ->
        PROPERTY(NO_STALE_OWNER, fence_ == newest);
        PROPERTY(RETRY_IS_THE_END, !retried);
        rec.over = 0;
        rec.expired = 0;
        begun = 1;
        answer = OK
    :: !(MAY_RENEW) -> answer = LOST
    fi
}

inline do_expire(nonce_, fence_)
{
    if
    :: IS_OWN && AT_WORK ->
        PROPERTY(NO_STALE_OWNER, fence_ == newest);
        PROPERTY(RETRY_IS_THE_END, !retried);
        rec.over = 1;
        answer = OK
    :: !(IS_OWN && AT_WORK) -> answer = LOST
    fi
}

/* ---- 4. Resolve --------------------------------------------------------- */

/* Of @force_ somebody may be at work, and a person says that this does not count.
 * Nothing that is live is reopened. The second time it would change nothing that is
 * modelled here, so it is not refused. */
#ifndef RESOLVE_IGNORES_LEASE
#define NOT_LIVE(force_) (rec.over || rec.retry || (force_))
#else
#define NOT_LIVE(force_) true
#endif
#ifndef REOPEN_IGNORES_LEASE
#define MAY_REOPEN_OPEN (AT_WORK && rec.over || rec.retry)
#else
#define MAY_REOPEN_OPEN (AT_WORK || rec.retry)
#endif
#ifndef REOPEN_UNFENCED
#define UNFENCED(verb_) false
#else
#define UNFENCED(verb_) (verb_ == reopen)
#endif

/* A person may correct a person while nobody has started since. */
#ifndef CORRECTS_OWNERS
#define IS_DECIDED (rec.nonce == NONCE_OF_PERSON)
#else
#define IS_DECIDED true
#endif

#define MAY_RESOLVE(force_)                                                    \
    (rec.status == failed || rec.status == unknown ||                          \
     ((rec.status == completed || rec.status == released) && IS_DECIDED) ||    \
     (rec.status == in_progress && NOT_LIVE(force_)))
#define MAY_REOPEN                                                             \
    (rec.status == completed || rec.status == failed ||                        \
     rec.status == unknown || MAY_REOPEN_OPEN)

#define MAY_DECIDE(verb_, force_)                                              \
    ((verb_ == reopen && MAY_REOPEN) ||                                        \
     (verb_ != reopen && MAY_RESOLVE(force_)))

/* It waits until it is begun: it does not expire, as under hold. (Nobody looks at
 * the policy of an attempt that is over.) */
inline do_reopen()
{
    rec.status = in_progress;
    rec.content = 0;
    rec.retry = 1;
    rec.over = 1;
    rec.by_lease = 0;
#ifndef REOPENED_EXPIRES
    rec.hold = 1;
#else
    rec.hold = 0;
#endif
    rec.in_doubt = 1;
    for_person = 0;
    begun = 0;
    may_be_done = 1;
    retried = 1;
    pausing = 0;
    done = 0; /* That it was done is in the history from now on. */
    done_content = 0;
    answer = OK
}

inline do_resolve(verb_, fence_, content_, force_)
{
    if
    :: rec.status == none || rec.expired -> answer = NOTFOUND
#ifndef RESOLVE_UNFENCED
    :: rec.status != none && !rec.expired && rec.fence != fence_ &&
       !UNFENCED(verb_) -> answer = LOST
    :: rec.status != none && !rec.expired &&
       (rec.fence == fence_ || UNFENCED(verb_)) &&
       MAY_DECIDE(verb_, force_) ->
#else
    :: rec.status != none && !rec.expired && MAY_DECIDE(verb_, force_) ->
#endif
        PROPERTY(PERSON_HAS_SEEN, fence_ == newest);
        if
        :: rec.nonce == NONCE_OF_PERSON ->
            newest++; /* What the person saw is no more. */
#ifndef CORRECTION_KEEPS_FENCE
            rec.fence++
#endif
        :: else
        fi;
#ifndef PERSON_KEEPS_FAILURES
        rec.failures = 0;
#endif
        failed_truly = 0;
        if
        :: verb_ == reopen -> do_reopen()
        :: else ->
            rec.by_lease = 0;
            PROPERTY(COMPLETED_STAYS, MAY_CHANGE || rec.nonce == NONCE_OF_PERSON);
            rec.status = (rec.status == completed -> unknown : rec.status);
            record(verb_, content_);
            rec.in_doubt = 0;
            begun = 0;
            may_be_done = 0;
            if
            :: force_ -> /* Whoever is at work, it is no owner any more. */
                live[1] = 0;
                live[2] = 0;
                live[3] = 0
            :: else
            fi
        fi;
#ifndef PERSON_LEAVES_NONCE
        rec.nonce = NONCE_OF_PERSON;
#endif
        decided = 1
    :: else -> answer = INVALID
    fi
}

/* ---- 5. Expiry, and 6. time --------------------------------------------- */

#define MAY_EXPIRE                                                             \
    (rec.status == completed || rec.status == released ||                      \
     (rec.status == in_progress && rec.over && !rec.hold))

active proctype time()
{
end:
    do
    :: atomic {
        rec.status == in_progress && !rec.over ->
            rec.over = 1;
            pausing = 0;
            live[1] = 0; /* Whoever counted on it: its own count is over. */
            live[2] = 0;
            live[3] = 0
    }
    :: atomic {
        MAY_EXPIRE && !rec.expired ->
            PROPERTY(RETRY_IS_RUN, !retried || !decided);
            rec.expired = 1;
            begun = 0; /* A life is over, and what was remembered of it. */
            may_be_done = 0;
            retried = 0;
            done = 0;
            done_content = 0
    }
#ifdef UNKNOWN_EXPIRES
    :: rec.status == unknown && !rec.expired -> rec.expired = 1
#endif
#ifdef HOLD_EXPIRES
    :: rec.status == in_progress && rec.over && !rec.expired -> rec.expired = 1
#endif
    od
}

#ifdef SWEEP_IGNORES_LEASE
#define MAY_PURGE (rec.expired || rec.status == in_progress)
#else
#define MAY_PURGE rec.expired
#endif

active proctype sweeper()
{
end:
    do
    :: d_step {
        MAY_PURGE ->
            floor_fence = (rec.fence > floor_fence -> rec.fence : floor_fence);
            clear(rec);
            failed_truly = 0;
            check()
    }
    od
}

/* ---- Workers ------------------------------------------------------------ */

inline apply(verb_, nonce_, fence_, content_, hold_, copy_)
{
    d_step {
        if
        :: verb_ == begin -> do_begin(nonce_, hold_, false, copy_)
        :: verb_ == renew -> do_renew(nonce_, fence_)
        :: verb_ == expire -> do_expire(nonce_, fence_)
        :: else -> do_end(verb_, nonce_, fence_, content_)
        fi;
        check()
    }
}

/* A request that is on its way, while its sender does not wait for it any more,
 * or got its answer from the first copy. (Most of what it does comes about without
 * it, too: one that comes late is a worker who was paused and sends late. So it is
 * there only with -DLATE: there are many more states then.) */
#ifdef LATE
typedef Request {
    mtype:verb verb;
    byte nonce;
    byte fence;
    bit content;
    bit hold;
};

Request late;

inline leave_behind(verb_, nonce_, fence_, content_, hold_)
{
    late.verb == 0;
    late.verb = verb_;
    late.nonce = nonce_;
    late.fence = fence_;
    late.content = content_;
    late.hold = hold_
}

active proctype network()
{
end:
    do
    :: atomic {
        late.verb != 0;
        if
        :: late.verb != begin || newest < FENCES ->
            apply(late.verb, late.nonce, late.fence, late.content, late.hold,
                  true)
        :: true /* It is lost for good. */
        fi;
        late.verb = 0;
        late.nonce = 0;
        late.fence = 0;
        late.content = 0;
        late.hold = 0;
        forget()
    }
    od
}
#endif

/* The request comes or does not, and its answer likewise. A loss is tried only where
 * it makes a difference: of an answer that the worker uses; of a begin; and of one of
 * the words that end its work, which are all alike once they are lost. */
#define USES_ANSWER(verb_)                                                     \
    (verb_ == begin || verb_ == complete || verb_ == renew)

inline send(verb_, fence_, content_, hold_, copy_)
{
    if
    :: apply(verb_, NONCE(me, claim), fence_, content_, hold_, copy_);
        if
        :: true
        :: USES_ANSWER(verb_) -> answer = NO_ANSWER
        fi
    :: verb_ == begin || verb_ == expire -> answer = NO_ANSWER
#ifdef LATE
    :: leave_behind(verb_, NONCE(me, claim), fence_, content_, hold_);
        answer = NO_ANSWER
    :: leave_behind(verb_, NONCE(me, claim), fence_, content_, hold_);
        apply(verb_, NONCE(me, claim), fence_, content_, hold_, copy_)
#endif
#ifdef EARLY_ACKNOWLEDGEMENT
    :: verb_ == complete -> answer = OK
#endif
    fi
}

byte first_claims; /* Workers that made one. They are all alike: so they make
                      their first in the order of their numbers. */

#define OWNS                                                                   \
    (rec.status == in_progress && rec.fence == fence && !rec.over &&           \
     !rec.expired)

/* To die, or to be paused, it has to do nothing: every state of it is one that it
 * may stay in. */
proctype worker(byte me)
{
    byte claim; /* The number of the one that it makes; 0: none so far. */
    byte fence; /* Of the attempt that it holds. */
    bit asked;  /* It was not answered. */
    bit hold;
    bit spoken; /* It has said that its work is over. */
    mtype:verb word;
    bit content;

end_ask:
    atomic {
        newest < FENCES &&
        (asked || (claim > 0 && claim < CLAIMS) ||
         (claim == 0 && first_claims == me - 1));
        if
        :: asked /* The same again. */
        :: claim < CLAIMS ->
            first_claims = (claim == 0 -> first_claims + 1 : first_claims);
            claim++;
            if
            :: hold = 0
            :: hold = 1
            fi
        fi;
        send(begin, 0, 0, hold, false);
        asked = (answer == NO_ANSWER);
        hold = (asked -> hold : 0);
        if
        :: answer != STARTED -> forget(); goto end_ask
        :: answer == STARTED ->
            fence = told_fence;
            told = told || rec.fence == fence;
            live[me] = OWNS;
            check();
            forget()
        fi
    }
end_work:
    atomic {
        if
        :: newest < FENCES -> word = begin /* A copy of its request comes. */
        :: word = complete
        :: word = complete; content = 1
        :: word = fail
        :: word = release
        :: word = say_unknown
        :: word = say_retry
#ifndef NO_BUDGETS /* There are many more states with these. */
        :: word = say_last
        :: word = say_later
#endif
        :: word = renew
        :: word = expire
        :: claim < CLAIMS -> goto turn
        fi;
        d_step {
            spoken = (word == begin || word == renew -> spoken : 1);
            live[me] = live[me] && !spoken /* It starts nothing further. */
        }
        send(word, fence, content, 0, true);
        d_step {
            if
            :: word == renew && answer == OK -> live[me] = !spoken
            :: word == renew && answer == LOST -> live[me] = 0
            :: word == complete && answer == OK && !rec.expired ->
                done = 1;
                done_content = content
            :: else
            fi;
            check();
            forget();
            word = 0;
            content = 0
        }
        goto end_work
    }
turn: /* To something else; without a word, or after enough of them. */
    atomic {
        live[me] = 0;
        fence = 0;
        spoken = 0;
        goto end_ask
    }
}

/* Somebody comes whose request says that it was started often enough. */
active proctype last_caller()
{
end:
    do
    :: d_step {
        rec.status == in_progress && rec.over && !rec.hold && !rec.expired &&
        !rec.retry ->
            do_begin(NONCE_OF_PROBE, 0, true, false);
            check();
            forget()
    }
    od
}

/* ---- A person ----------------------------------------------------------- */

/* It has looked, and decides; perhaps after the key went on. */
#define SEES(verb_, fence_, force_)                                            \
    MAY_DECIDE(verb_, force_) &&                                               \
    (rec.nonce != NONCE_OF_PERSON || newest < FENCES) ->                       \
        decision = verb_;                                                      \
        seen = fence_;                                                         \
        forced = force_

active proctype person()
{
    mtype:verb decision;
    byte seen;
    bit forced;

end:
    do
    :: atomic {
        if
        :: SEES(complete, rec.fence, false)
        :: SEES(fail, rec.fence, false)
        :: SEES(release, rec.fence, false)
        :: SEES(release, rec.fence, true)
        :: SEES(release, newest - 1, false)
        :: SEES(reopen, rec.fence, false)
        :: SEES(reopen, newest - 1, false)
        fi;
        d_step {
            do_resolve(decision, seen, 0, forced);
            check();
            forget();
            decision = 0;
            seen = 0;
            forced = 0
        }
    }
    od
}

/* ---- If all of them die ------------------------------------------------- */

/* Whoever comes when the lease is over begins, or is given the outcome; unless a
 * person must look, and then after that. This is tried in every state, and then
 * everything is put back as it was. */
hidden Record was; /* Hidden: no part of a state. */
hidden byte was_newest;
hidden byte was_floor;
hidden byte was_for_person;
hidden byte was_decided;
hidden byte was_retried;
hidden byte was_pausing;
hidden byte was_failed_truly;
hidden byte was_begun;
hidden byte was_may_be_done;
hidden byte was_told;
hidden byte was_done;
hidden byte was_done_content;

inline copy(to, from)
{
    to.status = from.status;
    to.fence = from.fence;
    to.nonce = from.nonce;
    to.content = from.content;
    to.hold = from.hold;
    to.over = from.over;
    to.expired = from.expired;
    to.by_lease = from.by_lease;
    to.retry = from.retry;
    to.in_doubt = from.in_doubt;
    to.failures = from.failures
}

active proctype probe()
{
end:
    do
    :: d_step {
        copy(was, rec);
        was_newest = newest;
        was_floor = floor_fence;
        was_for_person = for_person;
        was_decided = decided;
        was_retried = retried;
        was_pausing = pausing;
        was_failed_truly = failed_truly;
        was_begun = begun;
        was_may_be_done = may_be_done;
        was_told = told;
        was_done = done;
        was_done_content = done_content;

        rec.over = (rec.status == in_progress);
        pausing = 0;
        do_begin(NONCE_OF_PROBE, 0, false, false);
        if
        :: answer == UNKNOWN || answer == FAILED ->
            do_resolve(release, rec.fence, 0, false);
            PROPERTY(NO_WEDGE, answer == OK);
            do_begin(NONCE_OF_PROBE, 0, false, false)
        :: answer == REPLAY ->
            do_resolve(reopen, rec.fence, 0, false);
            PROPERTY(NO_WEDGE, answer == OK);
            do_begin(NONCE_OF_PROBE, 1, false, false);
            PROPERTY(NO_WEDGE, answer == STARTED)
        :: else
        fi;
        PROPERTY(NO_WEDGE, answer == STARTED);

        copy(rec, was);
        newest = was_newest;
        floor_fence = was_floor;
        for_person = was_for_person;
        decided = was_decided;
        retried = was_retried;
        pausing = was_pausing;
        failed_truly = was_failed_truly;
        begun = was_begun;
        may_be_done = was_may_be_done;
        told = was_told;
        done = was_done;
        done_content = was_done_content;
        forget()
    }
    od
}

init {
    atomic {
        run worker(1);
        run worker(2);
        run worker(3)
    }
}
