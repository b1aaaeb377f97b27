/* Where the PostgreSQL server is. */
#include "server.h"

#include "base/heap.h"
#include "flight.h"
#include "history.h"
#include "table.h"

#include <idem/queue.h>

#include <stdlib.h>

enum {
    LOCK_TIMEOUT_MS = 250, /* As SETUP sets it. */
    STALL_MAX_MS = 20000,
};

static struct pg_table database;

static bool takes(void *ctx, const struct idem__pg_request *later)
{
    struct world *w = ctx;

    (void)later;
    return rng_chance(&w->rng, 500);
}

void server_open(struct world *w)
{
    static const size_t inlines[] = {IDEM__PG_RESULT_INLINE,
                                     IDEM__PG_RESULT_INLINE, 20, 1};
    size_t i;

    if (database.result_inline == 0) {
        pg_table_init(&database);
    }
    pg_table_clear(&database);
    database.takes = takes;
    database.ctx = w;
    /* So that bodies are loaded, which are short here. */
    database.result_inline = inlines[rng_below(&w->rng, 4)];
    for (i = 0; i <= SET_BACKS_MAX; i++) {
        w->server_off_ms[i] = 0;
    }
    w->server_off_ms[0] = rng_between(&w->rng, -HOUR_MS, HOUR_MS);
    w->set_backs = 0;
}

void server_close(void)
{
    pg_table_clear(&database);
}

/* ---- Its clock ---- */

int64_t server_ms(const struct world *w)
{
    return w->now + w->server_off_ms[w->set_backs];
}

int64_t server_latest_ms(const struct world *w)
{
    return w->now + w->server_off_ms[0];
}

bool server_knows(const struct world *w, int64_t ms, int64_t err_ms,
                  int64_t *ret_ms)
{
    unsigned i = w->set_backs + 1;

    while (i-- > 0) {
        *ret_ms = w->now + w->server_off_ms[i];
        if (*ret_ms >= ms - err_ms && *ret_ms <= ms + err_ms) {
            return true;
        }
    }
    /* Answers from before and after, which do not contradict each other: they came too
     * slowly. It is off by no more than the clock was set back. */
    *ret_ms = ms - err_ms;
    return *ret_ms >= server_ms(w) && *ret_ms <= server_latest_ms(w);
}

/* Also in a transaction that reads, and may have told the time: each row comes with one of
 * its own, or a lease that was written since, by the clock that was set back, would be
 * taken for one that is over. And while a takeover is on its way: should its connection be
 * lost, its caller reads the row again, by whose lease it is too early now. */
static void set_back(struct world *w)
{
    static const int64_t most[] = {3000, 60000, HOUR_MS};
    int64_t ms = most[rng_below(&w->rng, 3)];

    if (w->set_backs == SET_BACKS_MAX) {
        return;
    }
    ms = rng_between(&w->rng, 1, ms);
    w->server_off_ms[w->set_backs + 1] = w->server_off_ms[w->set_backs] - ms;
    w->set_backs++;
    w->stats->pg[PG_SET_BACK]++;
    note(w, EV_JUMP, NULL, w->server_off_ms[w->set_backs], ms);
}

/* ---- Somebody else ---- */

static void hold_row(struct world *w)
{
    const struct key *key = &w->keys[rng_below(&w->rng, w->config.keys)];
    struct flight *p = flight_create(w);

    if (p == NULL) {
        return;
    }
    p->stage = FLIGHT_SENT;
    p->carries = CARRIES_LOCK;
    p->due_at = w->now + flight_delay(w, /* late= */ true);
    p->batch = idem__zalloc(sizeof(*p->batch));
    p->batch->begun = true;
    pg_begin(&p->batch->tx, &database, NULL, 0, /* settled= */ false,
             /* shows= */ false);
    if (pg_lock(&p->batch->tx, key->name->id)) {
        w->stats->pg[PG_HELD]++;
    } else {
        flight_destroy(p);
    }
}

void server_strike(struct world *w)
{
    if (rng_chance(&w->rng, 300)) {
        set_back(w);
    } else {
        hold_row(w);
    }
}

/* ---- Damage ---- */

static struct pg_version *row_of(const struct key *key)
{
    return pg_table_row(&database, key->name->id);
}

bool server_choose_flip(struct world *w, struct key *key)
{
    const struct pg_version *row = row_of(key);

    if (row == NULL || pg_table_holds(&database, key->name->id)) {
        return false;
    }
    key->rows[key->at].head_len = row->head.len;
    key->flipped_at =
        rng_below(&w->rng, (unsigned)(row->head.len + row->result.len));
    return true;
}

void server_flip(struct key *key)
{
    struct pg_version *row = row_of(key);
    size_t head_len = stored(key)->head_len;

    if (key->flipped_at < head_len) {
        row->head.base[key->flipped_at] ^= key->flipped_bits;
    } else {
        row->result.base[key->flipped_at - head_len] ^= key->flipped_bits;
    }
}

/* ---- Statements ---- */

/* What @c reads, or what stood in its way: with what its own transaction wrote. */
static void see(struct batch *batch, struct carried *c)
{
    struct flight *judged = &c->judged;
    size_t i;

    judged->before = stored(judged->key)->view;
    judged->before.exists = stored(judged->key)->rev != 0;
    flight_mark_flipped(judged);
    if (!pg_sees(&batch->tx, judged->key->name->id)) {
        judged->before.exists = false; /* It has purged it before. */
        judged->flipped = false;
        judged->body_flipped = false;
    }
    for (i = 0; i < batch->len; i++) {
        const struct carried *other = &batch->carried[i];

        if (other->request->applied && other->judged.key == judged->key) {
            uint64_t content = judged->before.content;

            judged->before = other->judged.next.view;
            if (other->judged.keeps_result) {
                judged->before.content = content;
            }
            judged->flipped = false;
            judged->body_flipped = false;
        }
    }
}

static bool has_read(const struct batch *batch, const struct carried *c)
{
    switch (batch->tx.sql) {
    case IDEM__PG_THERE:
        return c->request->ask == IDEM__PG_ASK_CLAIM && !c->request->applied;
    case IDEM__PG_LOOK:
        return c->request->ask == IDEM__PG_ASK_LOOK;
    case IDEM__PG_LOAD:
        return c->request == batch->tx.request;
    default:
        return false;
    }
}

static bool was_skipped(const struct carried *c)
{
    const struct idem__pg_request *request = c->request;
    const struct pg_version *row;

    if (request->ask != IDEM__PG_ASK_UPDATE || request->applied) {
        return false;
    }
    row = row_of(c->judged.key);
    return row != NULL && row->head.len == request->found.len &&
           memcmp(row->head.base, request->found.base, row->head.len) == 0;
}

static void after_statement(struct world *w, struct batch *batch)
{
    size_t i;

    for (i = 0; i < batch->len; i++) {
        struct carried *c = &batch->carried[i];

        if (has_read(batch, c)) {
            see(batch, c);
            /* The head was read, and trusted, before. */
            c->judged.flipped =
                c->judged.flipped && batch->tx.sql != IDEM__PG_LOAD;
            w->stats->pg[PG_LOADED] += batch->tx.sql == IDEM__PG_LOAD;
        }
        if (batch->tx.sql == IDEM__PG_UPDATE && was_skipped(c)) {
            w->stats->pg[PG_SKIPPED]++;
        }
    }
}

/* ---- COMMIT ---- */

/* Store time, in truth, for whoever decided what @batch purges. */
static int64_t purge_ms(const struct world *w, const struct batch *batch)
{
    size_t i;

    for (i = 0; i < batch->len; i++) {
        const struct carried *c = &batch->carried[i];

        if (c->request->ask == IDEM__PG_ASK_PURGE) {
            return c->judged.truth_ms + w->now - c->judged.true_ms;
        }
    }
    return 0;
}

/* A claim was added where there was a record: a purge before it, in the same
 * transaction, has deleted that. */
static bool was_replaced(const struct batch *batch, const struct key *key)
{
    size_t i;

    for (i = 0; i < batch->len; i++) {
        const struct carried *c = &batch->carried[i];

        if (c->request->ask == IDEM__PG_ASK_CLAIM && c->request->applied &&
            c->judged.key == key) {
            return true;
        }
    }
    return false;
}

/* A row that is gone is gone for the judges. */
static void follow(struct world *w, const struct batch *batch)
{
    unsigned i;

    for (i = 0; i < w->config.keys; i++) {
        struct key *key = &w->keys[i];

        if (stored(key)->rev != 0 &&
            (row_of(key) == NULL || was_replaced(batch, key))) {
            key->flipped = false;
            table_forget(w, key, purge_ms(w, batch));
            history_deleted(w);
        }
    }
}

static void write_one(struct world *w, struct carried *c)
{
    struct flight *judged = &c->judged;
    struct key *key = judged->key;
    size_t head_len = stored(key)->head_len;

    judged->before = stored(key)->view;
    judged->before.exists = stored(key)->rev != 0;
    flight_mark_flipped(judged);
    flight_commit(w, judged);
    key->rows[key->at].head_len = c->request->write.head.len;
    if (key->flipped) {
        key->flipped_at += stored(key)->head_len - head_len;
    }
}

static void commit(struct world *w, struct batch *batch)
{
    size_t i;

    follow(w, batch);
    for (i = 0; i < batch->len; i++) {
        struct carried *c = &batch->carried[i];

        if (!c->judged.saved) {
            continue;
        }
        if (c->request->applied) {
            write_one(w, c);
        } else {
            note(w, EV_REFUSE, c->judged.client, (int64_t)c->asker,
                 (int64_t)stored(c->judged.key)->rev);
            w->stats->faults[FAULT_RACED]++;
        }
    }
}

/* ---- Connections ---- */

static bool comes_after(const struct flight *p, const struct flight *first)
{
    return p->carries == CARRIES_BATCH && p->stage != FLIGHT_FREE &&
           p->batch->host == first->batch->host && p->link == first->link &&
           p->batch->order > first->batch->order;
}

/* The batch before @p's, over the same connection, that is in @stage; or NULL. */
static const struct flight *before(struct world *w, const struct flight *p,
                                   enum stage stage)
{
    unsigned i;

    for (i = 0; i < w->flights_len; i++) {
        const struct flight *q = &w->flights[i];

        if (q->stage == stage && q->carries == CARRIES_BATCH &&
            comes_after(p, q)) {
            return q;
        }
    }
    return NULL;
}

/* The connection is gone, and what was to come over it. */
static void drop_later_ones(struct world *w, const struct flight *p)
{
    unsigned i;

    for (i = 0; i < w->flights_len; i++) {
        if (comes_after(&w->flights[i], p)) {
            flight_destroy(&w->flights[i]);
        }
    }
}

/* ---- Transactions ---- */

/* Its answer goes back, if anybody is there to take it. */
static void end(struct world *w, struct flight *p)
{
    const struct flight *earlier;

    if (p->lost || p->client == NULL) {
        flight_destroy(p);
        return;
    }
    earlier = before(w, p, FLIGHT_BACK);
    p->stage = FLIGHT_BACK;
    p->due_at = w->now + flight_delay(w, fault(w, FAULT_DELAYED, 5));
    if (earlier != NULL && p->due_at <= earlier->due_at) {
        p->due_at = earlier->due_at + 1;
    }
}

static void fail(struct world *w, struct flight *p,
                 const struct pg_failure *failure)
{
    pg_roll_back(&p->batch->tx);
    p->batch->failure = failure;
    if (failure->said == IDEM__SAID_UNKNOWN) {
        drop_later_ones(w, p);
    }
    end(w, p);
}

static bool is_stopped(const struct batch *batch)
{
    return batch->at_commit ? pg_next(&batch->tx) == IDEM__PG_COMMIT
                            : batch->steps >= batch->steps_max;
}

static void wait(struct world *w, struct flight *p)
{
    struct batch *batch = p->batch;

    if (batch->blocked_at == 0) {
        batch->blocked_at = w->now;
        w->stats->pg[PG_WAITED]++;
    }
    if (w->now - batch->blocked_at >= LOCK_TIMEOUT_MS) {
        w->stats->pg[PG_LOCK_TIMEOUT]++;
        fail(w, p, pg_failure("55P03"));
        return;
    }
    p->due_at = w->now + rng_between(&w->rng, 1, 60);
}

/* A process may stand still for long between what it sees and what it does. */
static bool stalls(struct world *w, struct flight *p)
{
    struct pg_tx *tx = &p->batch->tx;

    if (w->quiet || pg_next(tx) != IDEM__PG_CLAIM || tx->part != 0 ||
        !rng_chance(&w->rng, 20) || !pg_begin_claim(tx)) {
        return false;
    }
    w->stats->pg[PG_STALLED]++;
    p->due_at = w->now + rng_between(&w->rng, 0, STALL_MAX_MS);
    return true;
}

static void serve(struct world *w, struct flight *p)
{
    struct batch *batch = p->batch;
    const struct flight *earlier = before(w, p, FLIGHT_SENT);

    if (earlier != NULL) {
        p->due_at = earlier->due_at + 1;
        return;
    }
    database.now_ms = server_ms(w);
    if (!batch->begun) {
        batch->begun = true;
        pg_begin(&batch->tx, &database, batch->requests, batch->len,
                 batch->settled, batch->shows);
    } else if (is_stopped(batch)) {
        if (batch->state != NULL) {
            fail(w, p, pg_failure(batch->state));
        } else {
            drop_later_ones(w, p);
            flight_destroy(p);
        }
        return;
    } else if (stalls(w, p)) {
        return;
    } else {
        switch (pg_step(&batch->tx)) {
        case PG_RAN:
            batch->steps++;
            batch->blocked_at = 0;
            after_statement(w, batch);
            break;
        case PG_BLOCKED:
            wait(w, p);
            return;
        case PG_COMMITTED:
            commit(w, batch);
            pg_answer(&batch->tx);
            end(w, p);
            return;
        }
    }
    p->due_at = w->now;
    if (!w->quiet && rng_chance(&w->rng, 30)) {
        p->due_at += rng_between(&w->rng, 0, 400);
    }
}

void server_step(struct world *w, struct flight *p)
{
    if (p->carries == CARRIES_LOCK) {
        flight_destroy(p);
    } else {
        serve(w, p);
    }
}

void server_drop(struct flight *p)
{
    struct batch *batch = p->batch;
    size_t i;

    if (batch == NULL) {
        return;
    }
    if (batch->begun) {
        pg_end(&batch->tx);
    }
    for (i = 0; i < batch->len; i++) {
        free(batch->requests[i]);
        idem_op_destroy(batch->carried[i].judged.copy);
    }
    idem__free(batch->carried);
    idem__free(batch);
    p->batch = NULL;
}
