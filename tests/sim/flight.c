/* The life of an operation from submit to answer. */
#include "flight.h"

#include "client.h"
#include "../lib/clone.h"
#include "explore.h"
#include "history.h"
#include "judge.h"
#include "ledger.h"
#include "order.h"
#include "queue/op.h"
#include "service.h"
#include "state.h"
#include "swizzle.h"
#include "table.h"
#include "told.h"

#include <idem/queue.h>

struct flight *flight_create(struct world *w)
{
    unsigned i;

    for (i = 0; i < FLIGHTS_MAX; i++) {
        struct flight *f = &w->flights[i];

        if (f->stage == FLIGHT_FREE) {
            /* All but the bytes of the two records, which are many. */
            memset(f, 0, offsetof(struct flight, next));
            f->writes = 0;
            f->generation = 0;
            memset(&f->ask, 0,
                   offsetof(struct flight, seen) -
                       offsetof(struct flight, ask));
            f->next.rev = 0;
            f->seen.rev = 0;
            f->service = service_of(w->config.mode);
            f->no = ++w->flight_no;
            f->priority = order_priority(w);
            w->flights_len = i < w->flights_len ? w->flights_len : i + 1;
            return f;
        }
    }
    return NULL;
}

struct flight *flight_double(struct world *w, const struct flight *f)
{
    struct flight *g = flight_create(w);

    if (g == NULL) {
        return NULL;
    }
    history_doubled(f);
    g->copy = clone_op(f->copy);
    g->copy->verdict = f->copy->verdict;
    g->copy->takeover = f->copy->takeover;
    g->origin = f->origin;
    g->key = f->key;
    g->stage = FLIGHT_SENT;
    g->due_at = w->now;
    g->ask = f->ask;
    g->sent_at = w->now;
    g->now = f->now;
    g->truth_ms = f->truth_ms;
    g->sure_ms = f->sure_ms;
    g->true_ms = f->true_ms;
    g->by_wall = f->by_wall;
    g->saved = f->saved;
    g->keeps_result = f->keeps_result;
    g->before = f->before;
    if (f->saved) {
        version_copy(&g->next, &f->next);
    }
    g->seen.rev = f->seen.rev; /* The rest is for who reads an answer. */
    g->seen.head_len = 0;
    g->seen.result_len = 0;
    g->seen.input_len = 0;
    return g;
}

void flight_destroy(struct flight *f)
{
    service_drop(f);
    idem_op_destroy(f->copy);
    idem_op_destroy(f->begin);
    f->copy = NULL;
    f->begin = NULL;
    f->stage = FLIGHT_FREE;
}

int64_t flight_delay(struct world *w, bool late)
{
    static const unsigned weights[] = {5, 3, 2};
    static const int64_t longest[] = {300, 4000, 20000};
    unsigned how;

    if (!late) {
        return rng_between(&w->rng, 1, 6);
    }
    how = rng_weighted(&w->rng, weights, 3);
    return rng_between(&w->rng, 1, longest[how]);
}

/* ---- Deciding ---- */

static void forget_answer(struct idem_op *op)
{
    op->error.code = 0;
    op->has_record = false;
    op->verdict = (enum idem_verdict)0;
    op->takeover = false;
    op->lease_left_ms = 0;
}

void flight_mark_flipped(struct flight *f)
{
    const struct key *key = f->key;

    f->flipped = key->flipped && key->flipped_at < stored(key)->head_len;
    f->body_flipped = key->flipped && !f->flipped;
}

static bool decide(struct world *w, struct flight *f,
                   const struct version *found, bool peeks, bool runs)
{
    struct look table = {
        .name = f->key->name,
        .found = found,
        .next = &f->next,
        .full = w->disk_full,
    };
    struct idem_table door = table_of(&table);

    f->before = found->view;
    f->before.exists = found->rev != 0;
    forget_answer(f->copy);
    if (!peeks || !idem__table_peek(&door, f->copy, &f->now)) {
        forget_answer(f->copy);
        if (!runs) {
            return false;
        }
        (void)idem__table_run(&door, f->copy, &f->now);
    }
    if (f->flipped && f->copy->error.code != IDEM_ECORRUPT) {
        violate(w, "I19", "a damaged record is not answered CORRUPT");
    }
    if (table.blind) {
        violate(w, "I19", "a record that is there is taken for none");
    }
    /* Where the answer could not be made the write is undone. */
    f->saved = table.saved && f->copy->error.code == 0;
    f->keeps_result = table.keeps_result;
    note(w, EV_NOW, f->client, f->now.store_ms, f->now.store_err_ms);
    return true;
}

void flight_decide(struct world *w, struct flight *f,
                   const struct version *found)
{
    bool peeks = w->config.mode == EMBEDDED &&
                 (w->explore != NULL || rng_chance(&w->rng, 500));

    (void)decide(w, f, found, peeks, /* runs= */ true);
}

bool flight_peek(struct world *w, struct flight *f, const struct version *found)
{
    return decide(w, f, found, /* peeks= */ true, /* runs= */ false);
}

/* A replay from memory is the record as it is at this very moment. */
bool flight_recall(struct world *w, struct flight *f,
                   struct idem__replays *replays)
{
    const struct idem_record *given;

    f->before = stored(f->key)->view;
    f->before.exists = stored(f->key)->rev != 0;
    f->saved = false;
    f->keeps_result = false;
    f->flipped = false;
    f->body_flipped = false;
    forget_answer(f->copy);
    if (!idem__replays_answer(replays, f->copy, w->generation, &f->now)) {
        return false;
    }
    given = f->copy->record;
    if (!f->before.exists || f->before.status != IDEM_STATUS_COMPLETED ||
        f->before.fence != given->fence ||
        (f->copy->verdict == IDEM_REPLAY &&
         f->before.content != content_of(&given->result))) {
        violate(w, "I18", "memory has fence %llu, and the store fence %llu",
                (unsigned long long)given->fence,
                (unsigned long long)f->before.fence);
    }
    note(w, EV_NOW, f->client, f->now.store_ms, f->now.store_err_ms);
    scene(w, SCENE_RECALLED);
    return true;
}

/* A begin that is BUSY may shorten the lease of another that a fast clock wrote.
 * It does nothing for its caller, who may have gone. */
static bool only_bounds_a_lease(const struct flight *f)
{
    return f->copy->verb == IDEM_OP_BEGIN && f->copy->verdict == IDEM_BUSY;
}

/* A result that is not written over stays as damaged as it is. (A service does not say how
 * long its heads are.) */
static void keep_damage(struct key *key, size_t head_len)
{
    struct version *row = &key->rows[key->at];

    if (row->head_len == 0) {
        row->head_len = head_len;
    }
    key->flipped = true;
    key->flipped_at += row->head_len - head_len;
}

void flight_commit(struct world *w, struct flight *f)
{
    size_t head_len = stored(f->key)->head_len;

    if (f->keeps_result) {
        f->next.view.content = f->before.content;
    }
    judge(w, f);
    if (!f->saved) {
        return;
    }
    ledger_write(w, f);
    table_store(w, f->key, &f->next);
    if (f->keeps_result && f->body_flipped) {
        keep_damage(f->key, head_len);
    }
    f->origin->wrote = f->next.view;
    if (f->call != NULL && !only_bounds_a_lease(f)) {
        f->call->applied = true;
        if (f->call->nothing_done) {
            violate(w, "I8",
                    "a caller was told that nothing was done, and "
                    "then it was done");
        }
    }
}

/* ---- Answering ---- */

static void transfer(const struct flight *f)
{
    const struct idem_op *from = f->copy;
    struct idem_op *to = f->op;

    if (f->told != 0) {
        (void)idem__op_fail(to, f->told, "simulated");
        return;
    }
    to->error = from->error;
    to->pending = from->pending;
    memcpy(to->pending_head, from->pending_head, sizeof(to->pending_head));
    to->verdict = from->verdict;
    to->takeover = from->takeover;
    to->changed = from->changed;
    to->lease_left_ms = from->lease_left_ms;
    if (from->verb == IDEM_OP_PURGE) {
        to->u.purge = from->u.purge;
    } else if (from->error.code == 0 && from->has_record) {
        (void)idem__op_set_record(to, from->record);
    }
}

static void note_answer(struct call *call, const struct flight *f)
{
    const struct idem_op *op = f->op;

    if (op->error.code == IDEM_EUNKNOWN) {
        memcpy(call->unsure_nonce, op->nonce, sizeof(call->unsure_nonce));
        call->unsure_fence = f->copy->fence;
        return;
    }
    if (op->error.code != 0) {
        return;
    }
    /* Whatever was written is answered for. */
    call->applied = false;
    if (memcmp(call->unsure_nonce, op->nonce, sizeof(op->nonce)) == 0) {
        memset(call->unsure_nonce, 0, sizeof(call->unsure_nonce));
    }
    if (op->verdict == IDEM_BUSY && call->busy_fence == 0) {
        call->busy_fence = op->record->fence;
    }
}

void flight_answer(struct world *w, struct flight *f)
{
    struct client *c = f->client;

    if (f->op != NULL) {
        heap_use(&c->heap);
        transfer(f);
        note(w, EV_ANSWER, c, f->op->error.code, (int64_t)f->no);
        call_op_over(w, f->call, f->op->error.code == IDEM_EUNKNOWN);
        if (f->op->verb == IDEM_OP_PURGE) {
            f->call->op_ms += f->op->u.purge.rest_ms; /* Before the next. */
        }
        note_answer(f->call, f);
        state_answered(c, f->op);
        idem__op_answer(f->op);
        heap_use(&w->heap);
        client_wake(c);
    }
    flight_destroy(f);
}

/* ---- Orphans ---- */

static bool goes_on_alone(struct world *w, const struct flight *f)
{
    if (f->stage != FLIGHT_SENT || f->lost || w->quiet) {
        return false;
    }
    if (w->config.mode != EMBEDDED && f->ask != ASK_WRITE) {
        return false;
    }
    return w->explore != NULL ? explore_choose(w->explore, 2) != 0
                              : rng_chance(&w->rng, 600);
}

void flight_orphan(struct world *w, struct client *client, bool crashed)
{
    unsigned i;

    for (i = 0; i < w->flights_len; i++) {
        struct flight *f = &w->flights[i];

        if (f->stage == FLIGHT_FREE || f->client != client) {
            continue;
        }
        if (!crashed && service_hand_over(client, f)) {
            continue;
        }
        if (f->op != NULL && !crashed) {
            idem__op_answer(f->op); /* Detached, so this frees it. */
        }
        f->op = NULL;
        f->client = NULL;
        if (!goes_on_alone(w, f)) {
            flight_destroy(f);
        }
    }
}

/* ---- Stepping ---- */

bool flight_ready(const struct world *w, const struct flight *f)
{
    const struct client *c = f->client;

    if (w->explore != NULL) {
        return f->stage != FLIGHT_FREE && f->stage != FLIGHT_LATENT;
    }
    if (f->stage == FLIGHT_FREE || f->stage == FLIGHT_LATENT ||
        f->due_at > w->now || swizzle_holds_flight(w, f)) {
        return false;
    }
    /* What a remote store's client has to do, it does not while it stands. */
    return c == NULL || w->config.mode == EMBEDDED || f->stage == FLIGHT_SENT ||
           c->paused_until <= w->now;
}

void flight_step(struct world *w, struct flight *f)
{
    heap_use(&w->heap);
    if (f->stage == FLIGHT_QUEUED && f->op != NULL) {
        idem__op_run(f->op);
    }
    if (w->config.mode == EMBEDDED) {
        embedded_step(w, f);
    } else if (w->config.mode == REMOTE) {
        remote_step(w, f);
    } else {
        service_step(w, f);
    }
}
