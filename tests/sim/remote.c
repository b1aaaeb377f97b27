/* The store is far away: a client reads, decides by the time that it knew when
 * it asked, and writes if the record is still the one that it decided on.
 *
 * A begin first writes as if there were no record, and an owner as if it were
 * still as it left it; a refusal brings the record that is there. */
#include "base/learned_clock.h"
#include "../lib/clone.h"
#include "faults.h"
#include "flight.h"
#include "history.h"
#include "host.h"
#include "judge.h"
#include "learned.h"
#include "queue/op.h"
#include "small.h"
#include "table.h"

#include <idem/queue.h>

enum {
    TRIES_MAX = 10,
    /* A deletion comes so late that a fence which is taken from a clock is
     * above all before it, even if the first clock was an hour fast and the
     * second is an hour slow. */
    PURGE_AFTER_MS = 3 * HOUR_MS,
    /* No request is let in that was signed longer ago, so that none can come
     * when the record it is about was deleted. */
    SIGNED_FOR_MS = 15 * 60 * 1000,
};

enum fate {
    FATE_FINE,
    FATE_LOSE_ANSWER,
    FATE_DROP,
    FATE_REFUSE,
    FATE_DOUBLE,
    FATES_OF_SMALL,
    FATE_LATE = FATES_OF_SMALL, /* In a small world any of them may be late. */
    FATES
};

static bool take_now(struct world *w, struct flight *f)
{
    f->truth_ms = w->now;
    f->sure_ms = w->now;
    f->true_ms = w->now;
    f->by_wall = false;
    if (learned_now(f->client, &f->now)) {
        return true;
    }
    if (!w->config.by_wall || f->copy->verb != IDEM_OP_BEGIN) {
        return false;
    }
    f->by_wall = true;
    w->stats->faults[FAULT_WALL_TRUSTED]++;
    learned_by_wall(f->client, &f->now);
    return true;
}

_Static_assert((int)FATE_DOUBLE == (int)SMALL_DOUBLE, "as they are counted");

/* ---- Sending ---- */

static void drop(struct world *w, struct flight *f)
{
    w->stats->faults[FAULT_DROPPED]++;
    f->lost = true;
    f->stage = FLIGHT_BACK;
    f->due_at = w->now + rng_between(&w->rng, 200, 1500);
}

static enum fate fate_of(struct world *w)
{
    static const unsigned weights[FATES] = {2, 4, 3, 0, 2, 2};

    return (enum fate)faults_fate(w, weights, FATES, FATES_OF_SMALL);
}

static void double_it(struct world *w, struct flight *f)
{
    struct flight *g = f->ask == ASK_WRITE ? flight_double(w, f) : NULL;

    if (g != NULL) {
        g->due_at += flight_delay(w, /* late= */ true);
        w->stats->faults[FAULT_DOUBLED]++;
    }
}

static void spoil(struct world *w, struct flight *f, enum fate fate)
{
    switch (fate) {
    case FATE_DROP:
        drop(w, f);
        break;
    case FATE_LOSE_ANSWER:
        f->lost = true;
        w->stats->faults[FAULT_LOST_ANSWER]++;
        break;
    case FATE_DOUBLE:
        double_it(w, f);
        break;
    case FATE_LATE:
        f->due_at = w->now + flight_delay(w, /* late= */ true);
        w->stats->faults[FAULT_DELAYED]++;
        break;
    case FATE_FINE:
    case FATE_REFUSE:
    case FATES:
        break;
    }
}

static void give_up(struct world *w, struct flight *f)
{
    f->told = f->maybe ? IDEM_EUNKNOWN : IDEM_EUNAVAILABLE;
    flight_answer(w, f);
}

static void send(struct world *w, struct flight *f, enum ask ask)
{
    enum fate fate;

    if (f->tries++ == TRIES_MAX) {
        give_up(w, f);
        return;
    }
    w->store_calls++;
    fate = fate_of(w);
    if (fate == FATE_REFUSE || (!f->maybe && fault(w, FAULT_REFUSED, 10))) {
        give_up(w, f);
        return;
    }
    f->ask = ask;
    f->maybe = f->maybe || ask == ASK_WRITE;
    f->lost = false;
    f->stage = FLIGHT_SENT;
    f->due_at = w->now + flight_delay(w, /* late= */ false);
    f->sent_at = w->now;
    f->sent_boot_ms = host_boot_ms(w, f->client->host);
    note(w, EV_SEND, f->client, (int64_t)f->no, (int64_t)f->seen.rev);
    spoil(w, f, fate);
}

static void decide_and_send(struct world *w, struct flight *f,
                            const struct version *found)
{
    if (found != &f->seen) {
        version_copy(&f->seen, found);
    }
    flight_decide(w, f, &f->seen);
    if (f->saved) {
        send(w, f, ASK_WRITE);
    } else if (!f->fresh) {
        send(w, f, ASK_READ);
    }
}

static bool remembers(struct world *w)
{
    return w->explore != NULL || rng_chance(&w->rng, 700);
}

static void start(struct world *w, struct flight *f)
{
    static const struct version none;
    const struct version *known = NULL;

    switch (f->copy->verb) {
    case IDEM_OP_PURGE:
        if (take_now(w, f)) {
            send(w, f, ASK_PURGE);
            return;
        }
        f->key = &w->keys[0]; /* Anything, to learn the time. */
        break;
    case IDEM_OP_BEGIN:
        known = &none;
        break;
    case IDEM_OP_END:
    case IDEM_OP_RENEW:
    case IDEM_OP_EXPIRE:
        known = &f->client->cache[f->key->no];
        known = known->rev != 0 && remembers(w) ? known : NULL;
        break;
    default:
        break;
    }
    if (known != NULL && take_now(w, f)) {
        decide_and_send(w, f, known);
    } else {
        send(w, f, ASK_READ);
    }
}

/* ---- Where the table is ---- */

static void purge(struct world *w, struct flight *f)
{
    struct idem_now late = f->now;

    late.store_ms -= PURGE_AFTER_MS;
    table_purge(w, f->copy, &late, w->now);
}

static void read(struct flight *f, const struct version *row)
{
    version_copy(&f->seen, row);
    flight_mark_flipped(f);
}

/* A service changes no result that a write does not name. It is as it is in the store,
 * damaged or repaired, whatever the client read before. */
static void leave_result(struct flight *f, const struct version *row)
{
    if (!f->saved || !f->keeps_result ||
        f->next.result_len != row->result_len) {
        return;
    }
    memcpy(f->next.bytes + f->next.head_len, row->bytes + row->head_len,
           row->result_len);
    f->body_flipped = f->key->flipped && f->key->flipped_at >= row->head_len;
}

static void arrive(struct world *w, struct flight *f)
{
    const struct version *row = f->key != NULL ? stored(f->key) : NULL;

    f->refused = false;
    if (w->now - f->sent_at > SIGNED_FOR_MS) {
        f->lost = true;
    } else if (f->ask == ASK_PURGE) {
        purge(w, f);
    } else if (f->ask == ASK_READ) {
        read(f, row);
    } else if (row->rev == f->seen.rev) {
        leave_result(f, row);
        flight_commit(w, f);
        f->next.rev = stored(f->key)->rev;
    } else {
        note(w, EV_REFUSE, f->client, (int64_t)f->no, (int64_t)row->rev);
        w->stats->faults[FAULT_RACED]++;
        f->refused = true;
        read(f, row);
    }
    f->date_ms = w->now / 1000 * 1000;
    if (f->client == NULL) {
        flight_destroy(f);
        return;
    }
    f->stage = FLIGHT_BACK;
    f->due_at = w->now + flight_delay(w, fault(w, FAULT_DELAYED, 5));
}

/* ---- Mending a claim by a slow wall clock ---- */

/* True if the record's lease does not end before the owner believes that it
 * does, by what is now known of store time. */
static bool lease_covers(const struct flight *f)
{
    const struct idem_op *op = f->copy;
    int64_t lease_ms = op->u.begin.lease_ms;

    return lease_ms == IDEM_NEVER ||
           op->record->lease_end_ms + 1000 >=
               learned_latest(f->client, op->asked_boot_ms) + lease_ms;
}

static void mend(struct world *w, struct flight *f)
{
    history_made(f);
    f->begin = f->copy;
    f->copy = clone_op(f->begin);
    f->copy->verb = IDEM_OP_RENEW;
    f->copy->fence = f->begin->record->fence;
    f->copy->u.renew.lease_ms = f->begin->u.begin.lease_ms;
    f->fresh = false;
    (void)take_now(w, f);
    decide_and_send(w, f, &f->client->cache[f->key->no]);
}

static void mended(struct flight *f, bool done)
{
    if (done) {
        (void)idem__op_set_record(f->begin, f->copy->record);
    }
    idem_op_destroy(f->copy);
    f->copy = f->begin;
    f->begin = NULL;
}

static void finish(struct world *w, struct flight *f)
{
    const struct idem_op *op = f->copy;

    if (op->verb == IDEM_OP_BEGIN && op->error.code == 0 &&
        op->verdict == IDEM_STARTED && !lease_covers(f)) {
        mend(w, f);
    } else {
        flight_answer(w, f);
    }
}

/* ---- Back at the client ---- */

static void nothing_came(struct world *w, struct flight *f)
{
    history_again(f);
    if (w->explore != NULL ? explore_choose(w->explore, 2) == 0
                           : rng_chance(&w->rng, 500)) {
        give_up(w, f);
    } else {
        f->fresh = false;
        send(w, f, f->key == NULL ? ASK_PURGE : ASK_READ);
    }
}

static void look(struct world *w, struct flight *f)
{
    version_copy(&f->client->cache[f->key->no], &f->seen);
    if (f->begin != NULL) {
        mended(f, /* done= */ false);
    }
    if (f->seen.rev != 0 && !f->flipped && fault(w, FAULT_FLIPPED_ANSWER, 2)) {
        unsigned at = rng_below(&w->rng, (unsigned)f->seen.head_len);

        f->seen.bytes[at] ^= 1;
        f->flipped = true;
        if (f->call != NULL) {
            f->call->answer_flipped = true;
        }
        f->client->cache[f->key->no].rev = 0;
    }
    f->fresh = true;
    (void)take_now(w, f);
    if (f->copy->verb == IDEM_OP_PURGE) {
        f->key = NULL;
        send(w, f, ASK_PURGE);
        return;
    }
    decide_and_send(w, f, &f->seen);
    if (!f->saved) {
        judge(w, f);
        finish(w, f);
    }
}

/* A client takes no time from an answer that was so long under way, for its host slept: a
 * fence of that time could lie below one that was purged meanwhile. It asks again. */
static bool came_too_late(struct world *w, const struct flight *f)
{
    return host_boot_ms(w, f->client->host) - f->sent_boot_ms >
           IDEM__LEARNED_TRIP_MAX_MS;
}

static void back(struct world *w, struct flight *f)
{
    if (f->lost || came_too_late(w, f)) {
        nothing_came(w, f);
        return;
    }
    learned_add(f->client, f->date_ms, f->sent_boot_ms);
    if (f->ask == ASK_PURGE) {
        flight_answer(w, f);
        return;
    }
    if (f->ask == ASK_READ || f->refused) {
        look(w, f);
        return;
    }
    version_copy(&f->client->cache[f->key->no], &f->next);
    if (f->begin != NULL) {
        mended(f, /* done= */ true);
    }
    finish(w, f);
}

void remote_step(struct world *w, struct flight *f)
{
    switch (f->stage) {
    case FLIGHT_QUEUED:
        start(w, f);
        return;
    case FLIGHT_SENT:
        arrive(w, f);
        return;
    case FLIGHT_BACK:
        back(w, f);
        return;
    case FLIGHT_WAITING:
    case FLIGHT_PAUSED:
    case FLIGHT_FREE:
    case FLIGHT_LATENT:
        return;
    }
}
