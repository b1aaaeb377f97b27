/* Hashing of what matters. Pointers, counters of the past and the order in which
 * things were made do not. */
#include "state.h"

#include "explore.h"
#include "queue/op.h"
#include "table.h"

/* ---- Mixing ---- */

static void mix(uint64_t *hash, uint64_t word)
{
    *hash = (*hash ^ word) * 0x9e3779b97f4a7c15ULL;
    *hash ^= *hash >> 29;
}

static void mix_bytes(uint64_t *hash, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    uint64_t word;

    mix(hash, len);
    for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        mix(hash, word);
    }
    word = 0;
    if (len > 0) {
        memcpy(&word, at, len);
    }
    mix(hash, word);
}

static void mix_slice(uint64_t *hash, struct idem_slice s)
{
    mix_bytes(hash, s.base, s.len);
}

/* ---- Records ---- */

static void mix_result(uint64_t *hash, const struct idem_result *result)
{
    mix(hash, result->not_kept);
    mix_slice(hash, result->bytes);
    mix_slice(hash, result->content_type);
    mix_slice(hash, result->meta);
}

static void mix_record(uint64_t *hash, const struct idem_record *r)
{
    size_t i;

    mix(hash, r->fence);
    mix(hash, r->attempts);
    mix(hash, (uint64_t)r->status << 2 | (uint64_t)r->on_expired_lease);
    mix(hash, r->by_lease);
    mix(hash, (uint64_t)r->retry << 32 | r->retried);
    mix(hash, r->failures);
    mix(hash, r->in_doubt);
    mix(hash, (uint64_t)r->lease_ms);
    mix(hash, (uint64_t)r->lease_end_ms);
    mix(hash, (uint64_t)r->lease_end_boot_ms);
    mix(hash, (uint64_t)r->expires_ms);
    mix(hash, (uint64_t)r->retention_ms);
    mix_bytes(hash, r->nonce, sizeof(r->nonce));
    mix_bytes(hash, r->boot_id, sizeof(r->boot_id));
    mix_slice(hash, r->fingerprint);
    mix_slice(hash, r->error);
    mix_slice(hash, r->note);
    mix_result(hash, &r->result);
    for (i = 0; i < r->history_len; i++) {
        mix(hash, r->history[i].fence << 3 | (uint64_t)r->history[i].end);
    }
}

/* Of a rev it matters whether it is what is stored now. */
static void mix_version(uint64_t *hash, const struct version *v,
                        const struct key *key)
{
    mix(hash, v->rev == 0 ? 0 : v->rev == stored(key)->rev ? 1 : 2);
    if (v->rev != 0) {
        mix_bytes(hash, v->bytes, v->head_len + v->result_len + v->input_len);
    }
}

/* ---- Clients ---- */

void state_told(struct client *c, uint64_t what)
{
    mix(&c->told, what);
}

static void mix_answer(uint64_t *hash, const struct idem_op *op)
{
    mix(hash, (uint64_t)-op->error.code << 8 | (uint64_t)op->verdict << 3 |
                  (uint64_t)op->takeover << 2 | (uint64_t)op->changed << 1 |
                  op->has_record);
    mix(hash, (uint64_t)op->lease_left_ms);
    if (op->has_record) {
        mix_record(hash, op->record);
    }
    if (op->verb == IDEM_OP_PURGE) {
        mix(hash, op->u.purge.purged << 1 | op->u.purge.done);
    }
}

void state_answered(struct client *c, const struct idem_op *op)
{
    mix_answer(&c->told, op);
}

static void mix_held(uint64_t *hash, const struct held *held)
{
    const struct idem__attempt *a;

    mix(hash, held->attempt != NULL);
    if (held->attempt == NULL) {
        return;
    }
    a = idem__attempt_of(held->attempt);
    mix(hash, held->fence << 1 | held->over);
    mix_bytes(hash, held->nonce, sizeof(held->nonce));
    mix(hash, (uint64_t)idem__attempt_lease_end(a));
    mix(hash, (uint64_t)a->lease_ms);
    mix(hash, (uint64_t)a->pub.verdict << 1 | a->pub.takeover);
    mix_record(hash, a->pub.record);
}

void state_rest(struct client *c, int line, int64_t note)
{
    uint64_t hash = 0;

    mix(&hash, (uint64_t)c->no << 32 | c->births << 16 | c->script_step);
    c->random.state = hash;
    mix(&hash, (uint64_t)line);
    mix(&hash, (uint64_t)note);
    c->told = hash;
    c->call = NULL;
}

static void mix_sight(uint64_t *hash, const struct sight *sight)
{
    mix(hash, sight->fence << 2 | (uint64_t)sight->completed << 1 |
                  sight->acknowledged);
    mix(hash, (uint64_t)sight->expires_ms);
}

/* What a call is held against when it returns, or something is done for it. */
static void mix_call(uint64_t *hash, const struct call *call)
{
    mix(hash, (uint64_t)call->nothing_done << 3 | (uint64_t)call->applied << 2 |
                  (uint64_t)call->unsure << 1 | call->answer_flipped);
    mix(hash, (uint64_t)call->boot_ms);
    mix(hash, (uint64_t)call->op_since);
    mix(hash, (uint64_t)call->op_ms);
    mix_sight(hash, &call->sight);
    mix(hash, call->busy_fence);
    mix(hash, call->flips);
    mix(hash, call->wrote.exists ? call->wrote.fence : 0);
    mix(hash, (uint64_t)call->wrote.lease_end_ms);
    mix(hash, (uint64_t)call->wrote.lease_end_boot_ms);
    mix_bytes(hash, call->unsure_nonce, sizeof(call->unsure_nonce));
    mix(hash, call->unsure_fence);
}

static void mix_learned(uint64_t *hash, const struct learned *learned)
{
    mix(hash, learned->known);
    if (learned->known) {
        mix(hash, (uint64_t)learned->at_ms);
        mix(hash, (uint64_t)learned->low_ms);
        mix(hash, (uint64_t)learned->high_ms);
    }
}

static void mix_client(uint64_t *hash, const struct client *c)
{
    const struct world *w = c->world;
    unsigned i;

    mix(hash, (uint64_t)c->state << 16 | (uint64_t)c->killed << 15 | c->births);
    if (c->state == CLIENT_GONE) {
        return;
    }
    mix(hash, c->told);
    mix(hash, c->random.state);
    mix(hash, c->state == CLIENT_READY ? 0 : (uint64_t)c->wake_at);
    for (i = 0; i < HELD_MAX; i++) {
        mix_held(hash, &c->held[i]);
    }
    if (c->call != NULL) {
        mix_call(hash, c->call);
        mix(hash, (uint64_t)c->ready_at);
        mix(hash, (uint64_t)(c->stalled_ms - c->call->stalled_ms));
    }
    if (w->config.mode == REMOTE) {
        mix_version(hash, &c->cache[0], &w->keys[0]);
        mix_learned(hash, &c->learned);
    }
}

/* ---- Operations under way ---- */

static void mix_op(uint64_t *hash, const struct idem_op *op)
{
    mix(hash, (uint64_t)op->verb);
    mix(hash, op->fence);
    mix_bytes(hash, op->nonce, sizeof(op->nonce));
    mix(hash, (uint64_t)op->asked_boot_ms);
    switch (op->verb) {
    case IDEM_OP_BEGIN:
        mix(hash, op->u.begin.join_fence);
        mix(hash, op->u.begin.flags);
        break;
    case IDEM_OP_END:
        mix(hash, (uint64_t)op->u.end.status);
        mix_slice(hash, op->u.end.result.bytes);
        break;
    case IDEM_OP_RENEW:
        mix(hash, (uint64_t)op->u.renew.lease_ms);
        break;
    case IDEM_OP_PURGE:
        mix(hash, op->u.purge.max);
        break;
    case IDEM_OP_RESOLVE:
        mix(hash,
            (uint64_t)op->u.resolve.outcome.status << 1 | op->u.resolve.flags);
        break;
    default:
        break; /* A script has no two that differ in more. */
    }
}

static void mix_decided(uint64_t *hash, const struct flight *f)
{
    mix(hash, (uint64_t)f->now.store_ms);
    mix(hash, (uint64_t)f->now.store_err_ms);
    mix(hash, (uint64_t)f->now.boot_ms);
    mix(hash, (uint64_t)f->truth_ms);
    mix(hash,
        (uint64_t)f->saved << 2 | (uint64_t)f->flipped << 1 | f->body_flipped);
    mix_answer(hash, f->copy);
    if (f->saved && f->key != NULL) {
        mix_bytes(hash, f->next.bytes, f->next.head_len + f->next.result_len);
        mix(hash, f->before.exists ? f->before.fence : 0);
        mix(hash, f->before.exists ? (uint64_t)f->before.status : 0);
    }
}

uint64_t state_of_flight(const struct world *w, const struct flight *f)
{
    const struct client *c = f->client;
    uint64_t hash = 0;
    unsigned i;

    mix(&hash, (uint64_t)f->stage);
    mix(&hash, c == NULL ? 9 : (uint64_t)c->no);
    mix(&hash, (uint64_t)(f->op != NULL) << 1 | (f->key != NULL));
    mix(&hash, (uint64_t)-f->told);
    mix_op(&hash, f->copy);
    if (f->call != NULL && c != NULL && f->call == c->call) {
        mix(&hash, 1);
    } else if (f->call != NULL) {
        mix_call(&hash, f->call);
    }
    for (i = 0; i < w->config.clients; i++) {
        mix(&hash, f->origin == w->clients[i].call);
    }
    if (f->stage == FLIGHT_LATENT) {
        mix(&hash, f->writes == w->writes);
    }
    if (f->stage != FLIGHT_QUEUED || f->begin != NULL) {
        mix_decided(&hash, f);
    }
    if (w->config.mode == REMOTE) {
        mix(&hash, (uint64_t)f->ask << 5 | (uint64_t)f->fresh << 4 |
                       (uint64_t)f->by_wall << 3 | (uint64_t)f->refused << 2 |
                       (uint64_t)f->lost << 1 | f->maybe);
        mix(&hash, f->tries);
        mix(&hash, (uint64_t)f->sent_at);
        mix(&hash, (uint64_t)f->sent_boot_ms);
        mix(&hash, (uint64_t)f->date_ms);
        if (f->key != NULL) {
            mix_version(&hash, &f->seen, f->key);
        }
        if (f->begin != NULL) {
            mix_answer(&hash, f->begin);
        }
    }
    return hash;
}

/* ---- The store, and what is known of it ---- */

static void mix_key(uint64_t *hash, const struct key *key)
{
    unsigned i;

    mix_version(hash, stored(key), key);
    mix(hash, key->fence_max);
    mix(hash, key->flips);
    mix_sight(hash, &key->seen);
    mix(hash, key->effect_fence);
    mix(hash, (uint64_t)key->effect_held << 1 | key->effect_settled);
    mix(hash, key->effects);
    for (i = 0; i < key->starts_len; i++) {
        const struct start *start = &key->starts[i];

        mix(hash, start->fence);
        mix_bytes(hash, start->nonce, sizeof(start->nonce));
        mix(hash, (uint64_t)start->chain << 4 | (uint64_t)start->told << 3 |
                      (uint64_t)start->over << 2 |
                      (uint64_t)start->resolved << 1 | start->silent);
        mix(hash, start->forced);
    }
    for (i = 0; i < key->completions_len; i++) {
        mix(hash, key->completions[i].fence);
        mix(hash, key->completions[i].content);
        mix(hash, (uint64_t)key->completions[i].expires_ms);
        mix(hash, (uint64_t)key->completions[i].reopened_ms);
    }
}

uint64_t state_of(const struct world *w)
{
    uint64_t hash = 0;
    uint64_t flights = 0;
    unsigned i;

    mix(&hash, w->explore->delays);
    mix(&hash, (uint64_t)w->now);
    mix(&hash, (uint64_t)w->saved_ms);
    mix(&hash, w->fence_floor);
    mix(&hash, w->hosts[0].boot_id[0]);
    mix_key(&hash, &w->keys[0]);
    for (i = 0; i < w->config.clients; i++) {
        mix_client(&hash, &w->clients[i]);
    }
    for (i = 0; i < w->flights_len; i++) {
        if (w->flights[i].stage != FLIGHT_FREE) {
            flights += state_of_flight(w, &w->flights[i]); /* In any order. */
        }
    }
    mix(&hash, flights);
    return hash;
}
