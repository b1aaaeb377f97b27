/* Implements the states that all services share. machine.h has their table, and
 * docs/rooms.md draws them. */
#include "store/remote/machine.h"

#include "base/heap.h"
#include "base/pace.h"
#include "contract/parts.h"
#include "core/decide.h"
#include "core/error.h"
#include "store/remote/own.h"
#include "store/shared/replays.h"

#include <assert.h>
#include <stdio.h>

enum {
    KEEP_BYTES = 2 * IDEM_HEAD_MAX, /* Memory that is kept for the next op. */
    /* Attempts in a row without progress. The pauses between them add up to 13 s at most,
     * and to half of that on average; the caller's time usually runs out before. */
    TRIES_MAX = 12,
    AWAY_TRIES_MAX = 4, /* If not even a connection was made. */
    PAUSE_CAP_MS = 2000,
};

/* ---- What the flights of a store share ---- */

int idem__flight_env_init(struct idem__flight_env *env,
                          const struct idem_host *host, bool remembers)
{
    env->host = *host;
    env->scratch = idem__alloc(IDEM_HEAD_MAX);
    env->claims = remembers ? idem__claims_create() : NULL;
    return env->scratch != NULL && (env->claims != NULL || !remembers)
               ? 0
               : IDEM_ENOMEM;
}

void idem__flight_env_finish(struct idem__flight_env *env)
{
    idem__claims_destroy(env->claims);
    idem__free(env->scratch);
}

/* ---- Failing ---- */

idem__state idem__flight_fail(struct idem__flight *flight,
                              const struct idem_error *error)
{
    struct idem_op *op = flight->op;

    /* The op's own write is on record; only the work after it failed. To the caller that
     * is a success. */
    if (flight->settled) {
        memset(&op->error, 0, sizeof(op->error));
        return IDEM__STATE_DONE;
    }
    op->has_record = false; /* It was set for a write that was not made. */
    op->error = *error;
    /* A write that was not answered may have been applied, whatever stopped the op after
     * it. */
    op->error.code = idem__own_code(error->code, flight->ambiguous);
    return IDEM__STATE_DONE;
}

idem__state idem__flight_fail_with(struct idem__flight *flight, int code,
                                   const char *text)
{
    struct idem_error error;

    (void)idem__error(&error, code, "%s", text);
    return idem__flight_fail(flight, &error);
}

idem__state idem__flight_no_memory(struct idem__flight *flight)
{
    return idem__flight_fail_with(flight, IDEM_ENOMEM,
                                  idem_error_text(IDEM_ENOMEM));
}

/* ---- Asking again ---- */

static idem__state pause_before(struct idem__flight *flight, unsigned nth,
                                idem__state again)
{
    const struct idem_host *host = &flight->env->host;
    uint64_t random = 0;

    (void)host->random(host->ctx, &random, sizeof(random));
    flight->pause_ms =
        idem__backoff(nth, flight->ops->pause_base_ms, PAUSE_CAP_MS, random);
    flight->after_pause = again;
    return IDEM__STATE_PAUSE;
}

idem__state idem__flight_pause(struct idem__flight *flight, idem__state again)
{
    return pause_before(flight, flight->tries, again);
}

idem__state idem__flight_retry(struct idem__flight *flight,
                               enum idem__said said, bool sent,
                               const struct idem_error *error,
                               idem__state again)
{
    unsigned most = sent ? TRIES_MAX : AWAY_TRIES_MAX;

    if (flight->settled) {
        return IDEM__STATE_DONE; /* A later purge tidies up what is left. */
    }
    /* Keep the reason, to report it if the caller's time runs out during the pause. */
    flight->op->error = *error;
    flight->tries++;
    if (said == IDEM__SAID_NEVER || flight->tries >= most ||
        error->code == IDEM_ENOMEM) {
        return idem__flight_fail(flight, error);
    }
    return idem__flight_pause(flight, again);
}

idem__state idem__flight_again(struct idem__flight *flight, idem__state again,
                               const char *why)
{
    (void)idem__error(&flight->op->error, IDEM_EUNAVAILABLE, "%s: %s",
                      flight->ops->service, why);
    /* These pauses are not limited by number: the deadline of the op ends them. */
    return pause_before(flight, ++flight->waits, again);
}

/* ---- Claims of this handle ---- */

/* Precedes the remembered bytes: how many each part has. */
struct lengths {
    size_t head;
    size_t scope;
    size_t key;
};

void idem__flight_remember(struct idem__flight *flight,
                           const struct idem_slice *more, size_t n)
{
    const struct idem_record *record = flight->next_record;
    struct lengths lengths = {flight->head.len, record->scope.len,
                              record->key.len};
    struct idem_slice parts[7] = {
        idem_bytes(&lengths, sizeof(lengths)),
        idem__buffer_slice(&flight->head),
        record->scope,
        record->key,
    };
    size_t i;

    for (i = 0; i < n; i++) {
        parts[4 + i] = more[i];
    }
    idem__claims_put(flight->env->claims, record->id, parts, 4 + n);
}

bool idem__flight_recall(struct idem__flight *flight, const uint8_t **ret_more)
{
    const struct idem_op *op = flight->op;
    struct idem_record *record = flight->found;
    struct lengths lengths;
    const uint8_t *p;

    if (!idem__claims_get(flight->env->claims, op->id, &flight->found_memory)) {
        return false;
    }
    p = flight->found_memory.base;
    memcpy(&lengths, p, sizeof(lengths));
    p += sizeof(lengths);
    *flight->found_head = idem_bytes(p, lengths.head);
    /* Use it only if it is of this very attempt: the handle may remember another claim of
     * the key. */
    if (idem__record_decode(op->id, *flight->found_head, record, NULL) != 0 ||
        record->fence != op->fence ||
        memcmp(record->nonce, op->nonce, sizeof(op->nonce)) != 0) {
        return false;
    }
    p += lengths.head;
    record->scope = idem_bytes(p, lengths.scope);
    p += lengths.scope;
    record->key = idem_bytes(p, lengths.key);
    *ret_more = p + lengths.key;
    return true;
}

/* Remembers a claim until it is ended, so that its owner can end it in one request. */
static void remember(struct idem__flight *flight)
{
    const struct idem_record *record = flight->next_record;

    if (flight->env->claims == NULL) {
        return;
    }
    /* Remember only an attempt that is at work under this op's nonce: a claim, or its
     * renewal. After any other write its owner has nothing left to end. */
    if (record->status == IDEM_STATUS_IN_PROGRESS && !record->retry &&
        memcmp(record->nonce, flight->op->nonce, sizeof(record->nonce)) == 0) {
        flight->ops->remember(flight);
    } else {
        idem__claims_forget(flight->env->claims, record->id);
    }
}

/* ---- Deciding ---- */

/* Encodes the record to write. False: the op has failed. */
static bool encode(struct idem__flight *flight)
{
    size_t len;
    int rc = idem__record_encode(flight->next_record, flight->env->scratch,
                                 IDEM_HEAD_MAX, &len);

    if (rc == 0) {
        flight->head.len = 0;
        idem__buffer_add(&flight->head, flight->env->scratch, len);
        rc = flight->head.failed ? IDEM_ENOMEM : 0;
    }
    if (rc != 0) {
        (void)idem__flight_fail_with(flight, rc, idem_error_text(rc));
    }
    return rc == 0;
}

static idem__state too_many_rounds(struct idem__flight *flight)
{
    char text[128];

    (void)snprintf(text, sizeof(text),
                   "%s: too many concurrent changes to the record",
                   flight->ops->service);
    return idem__flight_fail_with(flight, IDEM_EUNAVAILABLE, text);
}

static idem__state decide(struct idem__flight *flight)
{
    const struct idem_record *there = flight->has_found ? flight->found : NULL;
    struct idem_decision *decision = &flight->decision;
    struct idem_op *op = flight->op;
    idem__state next;
    bool stays;
    bool wants;

    /* A write is refused only because another write succeeded. So the callers as a whole
     * make progress, but one op may lose every round, and gives up here. */
    if (flight->rounds++ == flight->ops->rounds_max) {
        return too_many_rounds(flight);
    }
    flight->extending = false;
    /* Apply the rules of src/core to the record and what the service knows beyond it. */
    next = flight->ops->decide(flight, there);
    if (next != IDEM__STATE_NONE) {
        return next;
    }
    stays = decision->code != 0 || decision->change == IDEM_CHANGE_NONE;
    /* The record was remembered, not read, and may have changed since. A conditional
     * write detects that; an answer without a write would not, so read first. */
    if (stays && flight->remembered) {
        return IDEM__STATE_LOOK;
    }
    /* An earlier write of this op is still unanswered and rests on the same record: if
     * the service applies it after this answer, the answer was wrong. */
    if (stays && flight->has_found &&
        idem__pending_holds(op, *flight->found_head)) {
        return idem__flight_again(
            flight, IDEM__STATE_LOOK,
            "a write was not answered, and may still be applied");
    }
    if (decision->code != 0) {
        return idem__flight_fail_with(flight, decision->code, decision->text);
    }
    /* An import whose answer was lost finds the record that it added. */
    if (flight->ambiguous && there != NULL && idem__own_import(op, there)) {
        op->u.import.added = true;
    }
    idem__own_claim_note(op, there, decision);
    wants = idem__verb_given(op, there, decision, &flight->given);
    /* Encode now: the service's prepare() needs the head to lay out the request. */
    if (decision->change != IDEM_CHANGE_NONE) {
        *flight->next_record = decision->next;
        memcpy(flight->next_record->id, op->id, IDEM_ID_LEN);
        if (!encode(flight)) {
            return IDEM__STATE_DONE;
        }
    }
    next = flight->ops->prepare(flight);
    if (next != IDEM__STATE_NONE) {
        return next;
    }
    return wants ? IDEM__STATE_LOAD : IDEM__STATE_ACT;
}

/* ---- Acting ---- */

static bool is_too_short(const struct idem__flight *flight,
                         const struct idem_record *claim)
{
    return idem__own_claim_is_short(flight->op, &flight->decision, claim,
                                    flight->now);
}

static idem__state settle(struct idem__flight *flight, bool wrote)
{
    return flight->ops->settle != NULL ? flight->ops->settle(flight, wrote)
                                       : IDEM__STATE_DONE;
}

/* Sets the op's answer. False: memory ran out. */
static bool answer(struct idem__flight *flight)
{
    if (idem__verb_answer(flight->op, &flight->decision, &flight->given) == 0) {
        return true;
    }
    (void)idem__flight_no_memory(flight);
    return false;
}

static idem__state act(struct idem__flight *flight)
{
    /* Set the answer before the write: if memory for it runs out, nothing is written. */
    if (!answer(flight)) {
        return IDEM__STATE_DONE;
    }
    if (flight->decision.change != IDEM_CHANGE_NONE) {
        return flight->ops->store != NULL ? flight->ops->store(flight)
                                          : IDEM__STATE_WRITE;
    }
    /* The claim on record is this op's own, whose answer was lost, and a slow clock made
     * its lease too short. */
    if (flight->has_found && is_too_short(flight, flight->found)) {
        return IDEM__STATE_EXTEND;
    }
    /* Nothing was written in this round; a change, if there is one, was made by an
     * unanswered write of this op. */
    flight->op->changed = flight->ambiguous;
    return settle(flight, /* wrote= */ false);
}

/* Writes the claim again with a longer lease. The claim is on record already, so the op
 * is ambiguous from here on, whatever becomes of this write. */
static idem__state extend(struct idem__flight *flight)
{
    struct idem_record *next = flight->next_record;

    flight->extending = true;
    flight->ambiguous = true;
    flight->ops->rewrite(flight);
    /* Count the end from the service's time, which the answers have shown by now, and not
     * from the clock that made the claim too short. */
    idem__lease_extend(next, next->lease_ms, flight->now);
    idem__lease_extend(&flight->given, flight->given.lease_ms, flight->now);
    return encode(flight) && answer(flight) ? IDEM__STATE_WRITE
                                            : IDEM__STATE_DONE;
}

/* ---- After a write ---- */

/* The claim is on record, but its lease is too short. Treat the record just written as
 * the record found, which saves a read. After a takeover it has texts of the attempt
 * before it, which stay in the memory that they were read into. */
static idem__state extend_written(struct idem__flight *flight)
{
    flight->ambiguous = true;
    if (!flight->ops->found_written(flight)) {
        return IDEM__STATE_LOOK;
    }
    flight->written.len = 0;
    idem__buffer_add(&flight->written, flight->head.base, flight->head.len);
    if (flight->written.failed) {
        return idem__flight_no_memory(flight);
    }
    *flight->found_head = idem__buffer_slice(&flight->written);
    flight->has_found = true;
    return IDEM__STATE_EXTEND;
}

static idem__state applied(struct idem__flight *flight)
{
    struct idem_op *op = flight->op;

    /* Remember it first: the write is on record whatever happens next. */
    remember(flight);
    /* The claim stands, but its owner would count on more time than others grant it. Do
     * not answer before the lease is extended. */
    if (!flight->extending && is_too_short(flight, flight->next_record)) {
        return extend_written(flight);
    }
    if (op->verb == IDEM_OP_IMPORT) {
        op->u.import.added = true;
    }
    op->changed = true;
    return settle(flight, /* wrote= */ true);
}

/* Another write came first, so the remembered claim no longer is the record. */
static idem__state refused(struct idem__flight *flight)
{
    if (flight->remembered) {
        idem__claims_forget(flight->env->claims, flight->op->id);
    }
    return IDEM__STATE_NONE;
}

/* The service may still apply the write while we read. If it has not by then, our next
 * write is conditional on what we read: of the two, the one that comes first refuses the
 * other. */
static idem__state not_answered(struct idem__flight *flight, bool sent,
                                const struct idem_error *error)
{
    flight->ambiguous = true;
    /* The op must not be answered from a record that this write may yet change (decide()). */
    if (flight->has_found && !flight->extending &&
        idem__pending_note(flight->op, *flight->found_head) != 0) {
        return idem__flight_no_memory(flight);
    }
    return idem__flight_retry(flight, IDEM__SAID_UNKNOWN, sent, error,
                              IDEM__STATE_LOOK);
}

idem__state idem__flight_written(struct idem__flight *flight,
                                 enum idem__said said, bool sent,
                                 const struct idem_error *error)
{
    switch (said) {
    case IDEM__SAID_OK:
        flight->tries = 0;
        return applied(flight);
    case IDEM__SAID_REFUSED:
        /* The record is not as it was found, so nothing was written. */
        flight->tries = 0;
        return refused(flight);
    case IDEM__SAID_NOT_APPLIED:
        /* Certainly not applied (throttled, say): the decision still stands. */
        return idem__flight_retry(flight, said, sent, error, IDEM__STATE_WRITE);
    case IDEM__SAID_UNKNOWN:
        return not_answered(flight, sent, error);
    case IDEM__SAID_NEVER:
    case IDEM__SAID_CALLER_WRITE:
        break; /* Another try would end the same way. */
    }
    return idem__flight_fail(flight, error);
}

/* ---- Moving on ---- */

static idem__state step(struct idem__flight *flight)
{
    switch (flight->state) {
    case IDEM__STATE_DECIDE:
        return decide(flight);
    case IDEM__STATE_ACT:
        return act(flight);
    case IDEM__STATE_EXTEND:
        return extend(flight);
    default:
        return flight->ops->enter(flight);
    }
}

/* Enters @state and those that follow, until the flight has a request to send or a pause
 * to make, or is done. */
static void enter(struct idem__flight *flight, idem__state state)
{
    while (state > IDEM__STATE_DONE) {
        flight->state = state;
        state = step(flight);
    }
    assert(state != IDEM__STATE_NONE);
    if (state != IDEM__STATE_SEND) {
        flight->state = state;
    }
    flight->next = (enum idem__flight_next)state;
}

/* ---- Replays from memory ----
 *
 * Only if the URL of the store has "cache=". Since the record was read, another process
 * may have reopened it, or moved the store, or the service may have applied a write of
 * this handle after it was given up (UNKNOWN): such a store sees that late, and gives up
 * nothing else. So memory answers only with the replay of a completed record, and not if
 * more is known:
 *
 * - A waiter has seen an attempt, which may be later than the record. A look (UINT64_MAX)
 *   has seen none.
 * - An earlier copy of this op may have claimed the key, or may still claim it.
 * - A commit compares the writes on record, which are not in memory. */
static bool may_recall(const struct idem__flight *flight)
{
    const struct idem_op *op = flight->op;
    uint64_t joined = op->u.begin.join_fence;

    return flight->replays != NULL && (joined == 0 || joined == UINT64_MAX) &&
           op->fence == 0 && !op->pending && op->commit == NULL;
}

static bool recall(struct idem__flight *flight)
{
    struct idem_op *op = flight->op;

    if (!may_recall(flight)) {
        return false;
    }
    if (idem__replays_answer(flight->replays, op, flight->generation,
                             flight->now) &&
        op->error.code == 0 && op->verdict == IDEM_REPLAY) {
        flight->replays = NULL; /* Else the record is kept anew. */
        return true;
    }
    /* Such as a mismatch: ask the service, as if there were no memory. */
    memset(&op->error, 0, sizeof(op->error));
    op->has_record = false;
    return false;
}

idem__state idem__flight_first(struct idem__flight *flight, bool looks)
{
    const struct idem_op *op = flight->op;

    switch (op->verb) {
    case IDEM_OP_BEGIN:
        if (recall(flight)) {
            return IDEM__STATE_DONE;
        }
        /* Most keys are new: a claim writes first, on condition that there is no record,
         * and a refusal shows the record. A waiter and a likely replay expect a record,
         * and would pay for the refused write: they read first. */
        return looks || op->u.begin.join_fence != 0 ||
                       (op->u.begin.flags & IDEM_LIKELY_REPLAY) != 0
                   ? IDEM__STATE_LOOK
                   : IDEM__STATE_DECIDE;
    case IDEM_OP_IMPORT:
        /* Most imports add a record: they write, on condition that there is none. */
        return IDEM__STATE_DECIDE;
    case IDEM_OP_END:
    case IDEM_OP_RENEW:
    case IDEM_OP_EXPIRE:
        /* The owner's own claim, if this handle made it, saves the look. */
        flight->remembered =
            flight->env->claims != NULL && flight->ops->recall(flight);
        flight->has_found = flight->remembered;
        return flight->remembered ? IDEM__STATE_DECIDE : IDEM__STATE_LOOK;
    case IDEM_OP_GET:
    case IDEM_OP_RESOLVE:
        /* Both are about a record that is there. */
        return IDEM__STATE_LOOK;
    case IDEM_OP_LIST:
        return IDEM__STATE_LIST;
    case IDEM_OP_PURGE:
        return IDEM__STATE_PURGE;
    case IDEM_OP_LIMIT:
        return IDEM__STATE_LIMIT;
    case IDEM_OP_MOVE:
        return IDEM__STATE_MOVE;
    case IDEM_OP_COUNT:
        break;
    }
    assert(!"an op that no service answers");
    return IDEM__STATE_DONE;
}

/* A flight runs one op after another, so forget everything about the last op but its
 * memory. */
void idem__flight_start(struct idem__flight *flight, const struct idem_now *now)
{
    flight->now = now;
    flight->op->changed = false;
    flight->tries = 0;
    flight->waits = 0;
    flight->rounds = 0;
    flight->ambiguous = false;
    flight->settled = false;
    flight->has_found = false;
    flight->remembered = false;
    flight->extending = false;
    enter(flight, flight->ops->start(flight));
}

void idem__flight_resume(struct idem__flight *flight,
                         const struct idem_now *now)
{
    flight->now = now;
    enter(flight, flight->after_pause);
}

void idem__flight_answered(struct idem__flight *flight,
                           const struct idem_now *now)
{
    flight->now = now;
    enter(flight, flight->ops->answered(flight));
}

/* ---- The end ---- */

/* Ends the op from outside, wherever it is. */
static void end(struct idem__flight *flight, const char *text)
{
    /* This code means that nothing was done; if a write is in doubt, idem__own_code() turns
     * it into IDEM_EUNKNOWN. */
    flight->state = idem__flight_fail_with(flight, IDEM_EUNAVAILABLE, text);
    flight->next = IDEM__FLIGHT_DONE;
}

void idem__flight_no_clock(struct idem__flight *flight)
{
    if (flight->ops->may_have_written(flight)) {
        flight->ambiguous = true; /* The answer to that request is not read. */
    }
    end(flight, "cannot read the clock");
}

void idem__flight_give_up(struct idem__flight *flight)
{
    char text[sizeof(flight->op->error.text)];

    (void)snprintf(text, sizeof(text), "%s did not answer in time",
                   flight->ops->service);
    /* The reason for the last pause says more than a timeout does. */
    end(flight,
        flight->op->error.text[0] != '\0' ? flight->op->error.text : text);
}

static void for_all_buffers(struct idem__flight *flight,
                            void (*apply)(struct idem__buffer *buffer))
{
    apply(&flight->found_memory);
    apply(&flight->head);
    apply(&flight->written);
}

static void shrink(struct idem__buffer *buffer)
{
    idem__buffer_reset(buffer, KEEP_BYTES);
}

void idem__flight_reset(struct idem__flight *flight)
{
    for_all_buffers(flight, shrink);
    flight->op = NULL;
    flight->ambiguous = false;
    flight->settled = false;
}

void idem__flight_free(struct idem__flight *flight)
{
    for_all_buffers(flight, idem__buffer_free);
}
