/* The store is on the client's own host, like a file: each operation is decided
 * where the table is, at the moment it is written. */
#include "faults.h"
#include "flight.h"
#include "host.h"
#include "small.h"
#include "swizzle.h"
#include "table.h"

enum fate {
    FATE_FINE,
    FATE_LOSE_ANSWER, /* Done, but the flush failed: nobody can know. */
    FATE_FAIL,        /* Not done, but nobody can know. */
    FATE_REFUSE,      /* Not done, and said so. */
    FATE_DOUBLE,      /* Done, and later once more. */
    FATE_LATE,        /* Done later, perhaps when nobody waits any more. */
    FATE_SLOW,        /* Done, and answered later. */
    FATES,
    /* In a small world further ones, which else are in the way things stand. */
    FATE_LATENT = FATES, /* As if it failed, until somebody opens the store. */
    FATE_FULL,
    FATE_FLIPPED, /* What is found is damaged. */
    SMALL_FATES
};

_Static_assert((int)FATE_FLIPPED == (int)SMALL_FLIPPED, "as they are counted");

static enum fate fate_of(struct world *w)
{
    static const unsigned weights[FATES] = {0, 3, 3, 2, 2, 2, 2};

    return (enum fate)faults_fate(w, weights, FATES, SMALL_FATES);
}

void embedded_open(struct world *w)
{
    struct idem_clock_reading reading;
    struct idem_now now;

    w->generation = w->generation == 0 ? 2 : w->generation;
    truth_look(w);
    host_read(w, &w->hosts[0], &reading);
    (void)idem__anchor_now(&w->anchor, &reading, w->saved_ms, &now);
}

static void read_now(struct world *w, struct flight *f)
{
    struct idem_clock_reading reading;

    truth_look(w);
    f->truth_ms = truth_ms(w);
    f->sure_ms = truth_sure_ms(w);
    f->true_ms = w->now;
    host_read(w, &w->hosts[0], &reading);
    (void)idem__anchor_now(&w->anchor, &reading, w->saved_ms, &f->now);
    f->now.fence_floor = w->fence_floor;
    if (f->now.store_ms != f->truth_ms || f->now.store_err_ms != 0) {
        violate(w, "I13", "store time is %lld and was taken for %lld",
                (long long)f->truth_ms, (long long)f->now.store_ms);
    }
    if (f->now.store_ms - f->now.doubt_ms != f->sure_ms) {
        violate(w, "I13",
                "%lld of store time is sure and %lld was taken for it",
                (long long)f->sure_ms,
                (long long)(f->now.store_ms - f->now.doubt_ms));
    }
}

static void decide(struct world *w, struct flight *f)
{
    read_now(w, f);
    if (f->key == NULL) {
        table_purge(w, f->copy, &f->now, f->sure_ms);
    } else {
        flight_mark_flipped(f);
        flight_decide(w, f, stored(f->key));
    }
}

/* ---- Replays from memory ---- */

enum {
    REPLAYS_MAX = 8192
};

void embedded_gone(struct client *client)
{
    heap_use(&client->world->heap);
    idem__replays_destroy(client->replays);
    client->replays = NULL;
}

/* True if the process of @f has answered it from its memory. */
static bool recalled(struct world *w, struct flight *f)
{
    struct idem__replays *replays =
        f->client != NULL && f->op != NULL ? f->client->replays : NULL;

    if (replays == NULL || f->copy->verb != IDEM_OP_BEGIN ||
        !idem__replays_has(replays, f->copy->id) ||
        !idem__generation_is_settled(w->generation)) {
        return false;
    }
    read_now(w, f);
    if (!flight_recall(w, f, replays)) {
        return false;
    }
    flight_commit(w, f);
    return true;
}

/* Answers @f, whose process keeps what it is told. */
static void answer(struct world *w, struct flight *f)
{
    if (w->config.replays && f->client != NULL && f->op != NULL &&
        f->told == 0 && f->copy->verb == IDEM_OP_BEGIN &&
        f->copy->error.code == 0 && f->copy->verdict == IDEM_REPLAY) {
        if (f->client->replays == NULL) {
            f->client->replays = idem__replays_create(REPLAYS_MAX);
        }
        idem__replays_keep(f->client->replays, f->copy, f->generation,
                           w->generation, IDEM_NEVER);
    }
    flight_answer(w, f);
}

/* Looks without the lock: in memory, or at the row. False: it is for the next writer. */
static bool looked(struct world *w, struct flight *f)
{
    if (recalled(w, f)) {
        idem__op_run(f->op);
        flight_answer(w, f);
        return true;
    }
    f->generation = w->generation;
    read_now(w, f);
    flight_mark_flipped(f);
    if (!flight_peek(w, f, stored(f->key))) {
        return false;
    }
    idem__op_run(f->op);
    flight_commit(w, f);
    f->stage = FLIGHT_BACK;
    f->due_at = w->now + rng_between(&w->memory, 0, 50);
    return true;
}

static bool is_reading(const struct world *w, const struct flight *f)
{
    return (f->stage == FLIGHT_QUEUED || f->stage == FLIGHT_BACK) &&
           f->op != NULL && f->client != NULL && f->key != NULL &&
           f->copy->verb == IDEM_OP_BEGIN && !swizzle_holds_flight(w, f);
}

/* While @f changes completed records, under the lock, others read. Those that do not
 * before the commit are there after it. */
static void others_read(struct world *w, const struct flight *f,
                        unsigned permille)
{
    unsigned i;

    if (f->key != NULL && f->key->flipped) {
        return; /* For @f alone. */
    }
    for (i = 0; i < w->flights_len; i++) {
        struct flight *g = &w->flights[i];

        if (g != f && is_reading(w, g) && rng_chance(&w->memory, permille) &&
            (g->stage == FLIGHT_BACK || looked(w, g)) &&
            g->stage == FLIGHT_BACK && rng_chance(&w->memory, permille)) {
            answer(w, g);
        }
    }
}

static void begin_change(struct world *w, const struct flight *f)
{
    w->generation = idem__generation_begun(w->generation);
    others_read(w, f, 400);
}

static void end_change(struct world *w, const struct flight *f)
{
    others_read(w, f, 900);
    w->generation = idem__generation_ended(w->generation);
}

static bool changes_completed(const struct world *w, const struct flight *f)
{
    return w->config.replays && f->saved && f->before.exists &&
           f->before.status == IDEM_STATUS_COMPLETED;
}

/* A purge that deletes nothing is no change. */
static void purge(struct world *w, struct flight *f)
{
    uint64_t generation = w->generation;
    uint64_t writes = w->writes;

    if (!w->config.replays) {
        decide(w, f);
        return;
    }
    begin_change(w, f);
    decide(w, f);
    if (w->writes == writes) {
        w->generation = generation;
    } else {
        end_change(w, f);
    }
}

static void apply(struct world *w, struct flight *f)
{
    bool changes;

    f->generation = w->generation;
    if (f->key == NULL) {
        purge(w, f);
        return;
    }
    decide(w, f);
    changes = changes_completed(w, f);
    if (changes) {
        begin_change(w, f);
    }
    flight_commit(w, f);
    if (changes) {
        end_change(w, f);
    }
}

/* A byte of what is stored reads otherwise for once. */
static void apply_damaged(struct world *w, struct flight *f)
{
    struct key *key = f->key;
    struct version *row;

    if (key == NULL || stored(key)->rev == 0) {
        apply(w, f);
        return;
    }
    row = &key->rows[key->at];
    key->flipped = true;
    key->flipped_at = row->head_len - 1;
    key->flips++;
    row->bytes[key->flipped_at] ^= 1;
    apply(w, f);
    row->bytes[key->flipped_at] ^= 1;
    key->flipped = false;
}

/* What is said when nobody can know. A read has nothing to be found done. */
static int unsure(const struct flight *f)
{
    return f->copy->verb == IDEM_OP_GET ? IDEM_EUNAVAILABLE : IDEM_EUNKNOWN;
}

/* A commit failed that may be found done when the file is opened again. */
static void fail(struct world *w, struct flight *f, bool latently)
{
    struct flight *latent;

    w->stats->faults[FAULT_DROPPED]++;
    f->told = unsure(f);
    if (f->key == NULL || !latently) {
        return;
    }
    decide(w, f);
    if (changes_completed(w, f)) {
        /* It stays odd until it is known what became of the commit. */
        w->generation = idem__generation_begun(w->generation);
    }
    latent = f->saved ? flight_double(w, f) : NULL;
    if (latent != NULL) {
        latent->stage = FLIGHT_LATENT;
        latent->writes = w->writes;
        latent->call = f->call;
    }
}

static bool reappears(struct world *w)
{
    return w->explore != NULL ? explore_choose(w->explore, 2) != 0
                              : rng_chance(&w->rng, 700);
}

void embedded_reopen(struct world *w)
{
    unsigned i;

    heap_use(&w->heap);
    for (i = 0; i < w->flights_len; i++) {
        struct flight *f = &w->flights[i];

        if (f->stage != FLIGHT_LATENT) {
            continue;
        }
        if (f->writes == w->writes && reappears(w)) {
            w->stats->faults[FAULT_REAPPEARED]++;
            flight_commit(w, f);
        }
        flight_destroy(f);
    }
    w->generation = idem__generation_ended(w->generation);
}

static void double_it(struct world *w, struct flight *f)
{
    bool import = f->copy->verb == IDEM_OP_IMPORT;
    struct flight *g = import ? NULL : flight_double(w, f);

    if (g != NULL) {
        w->stats->faults[FAULT_DOUBLED]++;
        g->due_at += flight_delay(w, /* late= */ true);
    }
}

static void wait_a_while(struct world *w, struct flight *f, enum stage stage)
{
    w->stats->faults[FAULT_DELAYED]++;
    f->stage = stage;
    f->due_at = w->now + flight_delay(w, /* late= */ true);
}

static void take(struct world *w, struct flight *f)
{
    enum fate fate;

    if (w->config.replays && is_reading(w, f) && looked(w, f)) {
        return;
    }
    fate = fate_of(w);
    w->store_calls++;
    note(w, EV_TAKE, f->client, (int64_t)f->no, fate);
    switch (fate) {
    case FATE_LOSE_ANSWER:
        w->stats->faults[FAULT_LOST_ANSWER]++;
        apply(w, f);
        f->told = unsure(f);
        break;
    case FATE_FAIL:
        fail(w, f, w->explore == NULL && !rng_chance(&w->rng, 400));
        break;
    case FATE_LATENT:
        fail(w, f, /* latently= */ true);
        break;
    case FATE_FULL:
        w->disk_full = true;
        apply(w, f);
        w->disk_full = false;
        break;
    case FATE_FLIPPED:
        apply_damaged(w, f);
        break;
    case FATE_REFUSE:
        w->stats->faults[FAULT_REFUSED]++;
        f->told = IDEM_EUNAVAILABLE;
        break;
    case FATE_DOUBLE:
        double_it(w, f);
        apply(w, f);
        break;
    case FATE_LATE:
        wait_a_while(w, f, FLIGHT_SENT);
        return;
    case FATE_SLOW:
        apply(w, f);
        wait_a_while(w, f, FLIGHT_BACK);
        return;
    case FATE_FINE:
    case SMALL_FATES:
        apply(w, f);
        break;
    }
    answer(w, f);
}

void embedded_step(struct world *w, struct flight *f)
{
    switch (f->stage) {
    case FLIGHT_QUEUED:
        take(w, f);
        return;
    case FLIGHT_SENT:
        apply(w, f);
        answer(w, f);
        return;
    case FLIGHT_BACK:
        answer(w, f);
        return;
    case FLIGHT_WAITING:
    case FLIGHT_PAUSED:
    case FLIGHT_FREE:
    case FLIGHT_LATENT:
        return;
    }
}
