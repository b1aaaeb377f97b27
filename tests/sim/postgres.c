/* Operations as tasks of the PostgreSQL store, and the connection of each process. */
#include "postgres.h"

#include "base/heap.h"
#include "base/learned_clock.h"
#include "core/error.h"
#include "deadline.h"
#include "flight.h"
#include "history.h"
#include "host.h"
#include "judge.h"
#include "postgres/task.h"
#include "queue/op.h"
#include "server.h"
#include "table.h"

#include <limits.h>

enum {
    MARGIN_MS = 2000,
    GUESS_ERR_MS = 2000,
};

/* A task, kept for the next operation. */
struct spare {
    struct idem__pg_task task;
    struct spare *next;
};

/* What a process of the library's has beside its operations. */
struct process {
    struct idem__pg_env env;
    int64_t purged_in;
    uint64_t known_floor;
    struct idem__learned_clock clock;
    bool answered;
    bool missed_time;
    uint64_t fence_floor;
    struct spare *spare;

    enum {
        LINK_DOWN,
        LINK_CONNECTING,
        LINK_IDLE,
        LINK_BUSY,
    } link_state;
    unsigned link;      /* Another number with every connection. */
    bool settled;       /* A batch about attempts was committed over it. */
    unsigned in_flight; /* Batches that are not answered. */
    unsigned order;     /* Of the last one. */
    bool broken;        /* What is sent over it is lost, */
    bool deaf;          /* or what is answered. */
    unsigned line_no;
};

static struct process processes[CLIENTS_MAX];
static struct heap claims_heap;
static uint8_t scratch[IDEM_HEAD_MAX];

bool postgres_is_there(void)
{
    return true;
}

/* ---- Processes ---- */

unsigned postgres_host(const struct world *w, unsigned no)
{
    return w->config.threads ? no / 2 * 2 : no;
}

bool postgres_together(const struct client *a, const struct client *b)
{
    return a->host == b->host;
}

static struct process *process_of(const struct flight *f)
{
    return &processes[postgres_host(f->client->world, f->client->no)];
}

/* Another client of @c's process that is alive, or NULL. */
static struct client *other_of(const struct client *c)
{
    struct world *w = c->world;
    unsigned i;

    for (i = 0; i < w->config.clients; i++) {
        struct client *other = &w->clients[i];

        if (other != c && postgres_together(other, c) &&
            other->state != CLIENT_GONE) {
            return other;
        }
    }
    return NULL;
}

static void empty_claims(struct world *w, struct idem__pg_env *env)
{
    unsigned i;

    if (env->claims == NULL) {
        heap_use(&claims_heap);
        env->claims = idem__claims_create();
        heap_use(&w->heap);
    }
    for (i = 0; i < KEYS_MAX; i++) {
        idem__claims_forget(env->claims, w->keys[i].name->id);
    }
}

void postgres_born(struct client *c)
{
    struct process *process = &processes[postgres_host(c->world, c->no)];

    if (other_of(c) != NULL) {
        return; /* A thread more. */
    }
    memset(&process->clock, 0, sizeof(process->clock));
    process->answered = false;
    process->missed_time = false;
    process->fence_floor = 0;
    process->spare = NULL;
    process->link_state = LINK_DOWN;
    process->link++;
    process->in_flight = 0;
    process->order = 0;
    process->purged_in = 0;
    process->known_floor = 0;
    process->line_no =
        FLIGHTS_MAX; /* Lower ones are for those to be tried alone. */
    process->env.host = c->door.base.options.host;
    process->env.scratch = scratch;
    process->env.purged_in = &process->purged_in;
    process->env.known_floor = &process->known_floor;
    empty_claims(c->world, &process->env);
}

void postgres_gone(struct client *c)
{
    struct process *process = &processes[postgres_host(c->world, c->no)];

    if (other_of(c) != NULL) {
        return;
    }
    while (process->spare != NULL) {
        struct spare *spare = process->spare;

        process->spare = spare->next;
        idem__pg_task_free(&spare->task);
        idem__free(spare);
    }
}

bool postgres_hand_over(const struct client *c, struct flight *f)
{
    struct client *other = other_of(c);

    if (other == NULL || f->carries == CARRIES_NOTHING) {
        return false;
    }
    f->client = other;
    return true;
}

static struct idem__pg_task *take_task(struct process *process)
{
    struct spare *spare = process->spare;

    if (spare != NULL) {
        process->spare = spare->next;
    } else {
        spare = idem__zalloc(sizeof(*spare));
        idem__pg_task_init(&spare->task, &process->env);
    }
    return &spare->task;
}

static void spare_task(struct flight *f)
{
    struct process *process = process_of(f);
    struct spare *spare = (struct spare *)f->pg_task;

    idem__pg_task_reset(f->pg_task);
    spare->next = process->spare;
    process->spare = spare;
    f->pg_task = NULL;
}

void postgres_drop(struct flight *f)
{
    server_drop(f);
    if (f->pg_task != NULL) {
        idem__pg_task_free(f->pg_task);
        idem__free(f->pg_task);
        f->pg_task = NULL;
    }
}

/* ---- The server ---- */

void postgres_open(struct world *w)
{
    server_open(w);
}

void postgres_close(void)
{
    server_close();
}

void postgres_strike(struct world *w)
{
    server_strike(w);
}

bool postgres_choose_flip(struct world *w, struct key *key)
{
    return server_choose_flip(w, key);
}

void postgres_flip(struct key *key)
{
    server_flip(key);
}

int64_t postgres_ms(const struct world *w)
{
    return server_ms(w);
}

int64_t postgres_latest_ms(const struct world *w)
{
    return server_latest_ms(w);
}

/* ---- Time ---- */

/* The time that a decision may use, and what it is in truth. */
struct moment {
    struct idem_now now;
    int64_t truth_ms;
    bool by_wall;
};

/* As read_now() of postgres/flight.c. False: the clock does not answer. */
static bool read_now(struct world *w, const struct flight *f,
                     struct moment *moment)
{
    const struct process *process = process_of(f);
    const struct idem_host *host = &process->env.host;
    struct idem_now *now = &moment->now;
    struct idem_clock_reading reading;

    memset(now, 0, sizeof(*now));
    if (host->clock(host->ctx, &reading) != 0 || process->missed_time) {
        return false;
    }
    now->boot_ms = reading.boot_ms;
    memcpy(now->boot_id, reading.boot_id, sizeof(now->boot_id));
    now->margin_ms = MARGIN_MS;
    now->store_ms = reading.wall_ms;
    now->fence_floor = process->fence_floor;
    moment->truth_ms = server_ms(w);
    moment->by_wall =
        !idem__learned_clock_now(&process->clock, reading.boot_ms,
                                 &now->store_ms, &now->store_err_ms);
    if (moment->by_wall && process->answered) {
        return false;
    }
    if (moment->by_wall) {
        now->store_err_ms = GUESS_ERR_MS;
        w->stats->faults[FAULT_WALL_TRUSTED]++;
    } else if (!server_knows(w, now->store_ms, now->store_err_ms,
                             &moment->truth_ms)) {
        violate(w, "SIM", "the learned interval misses the truth");
    }
    return true;
}

/* As learn() of postgres/batch_results.c. */
static void learn(struct world *w, struct process *process,
                  const struct batch *batch)
{
    const struct idem_host *host = &process->env.host;
    const struct pg_tx *tx = &batch->tx;
    struct idem__learned_time time = {.sent_boot_ms = batch->sent_boot_ms,
                                      .late_ms = 1};
    struct idem_clock_reading reading;
    size_t i;

    (void)w;
    if (tx->tells_floor && (uint64_t)tx->fence_floor > process->fence_floor) {
        process->fence_floor = (uint64_t)tx->fence_floor;
    }
    for (i = 0; i < tx->told_len; i++) {
        process->answered = true;
        if (batch->sent_boot_ms < 0 || host->clock(host->ctx, &reading) != 0 ||
            reading.boot_ms - batch->sent_boot_ms > IDEM__LEARNED_TRIP_MAX_MS) {
            process->missed_time = true;
            continue;
        }
        time.got_boot_ms = reading.boot_ms;
        time.told_ms = tx->told_ms[i];
        (void)idem__learned_clock_learn(&process->clock, &time,
                                        /* wall_ms= */ time.told_ms);
    }
}

/* ---- Going on with an operation ---- */

static void enlist(struct world *w, struct flight *f)
{
    struct idem__pg_request *request = &f->pg_task->request;

    w->store_calls++;
    f->tries++;
    f->request = f->no << 8 | (f->tries & 255);
    f->stage = FLIGHT_WAITING;
    f->line_no = ++process_of(f)->line_no;
    f->alone = request->ask == IDEM__PG_ASK_WAIT;
    f->due_at = deadline_when(w, f, deadline_of_try(w, f));
    request->said = 0;
    if (f->pg_task->state == IDEM__PG_TO_WRITE) {
        f->fresh = false;
    }
    note(w, EV_SEND, f->client, (int64_t)f->no, (int64_t)request->ask);
}

/* A purge decides when it reads a page, and deletes later. */
static bool is_decided(enum idem__pg_where_to state)
{
    return state == IDEM__PG_TO_PURGE_RAISE ||
           state == IDEM__PG_TO_PURGE_WAIT || state == IDEM__PG_TO_PURGE_GO;
}

/* A decision is judged by what was known when it was made. @from: the state that the task
 * has left. */
static void note_decision(struct world *w, struct flight *f,
                          enum idem__pg_where_to from,
                          const struct moment *moment)
{
    const struct idem__pg_task *task = f->pg_task;
    bool decided = task->rounds != f->rounds;

    if (decided || (task->extending && !f->extending) ||
        (f->key == NULL && !is_decided(from))) {
        f->now = moment->now;
        f->truth_ms = moment->truth_ms;
        f->sure_ms = moment->truth_ms;
        f->true_ms = w->now;
        f->by_wall = moment->by_wall;
    }
    if (task->extending && (decided || !f->extending)) {
        history_made(f);
    }
    f->rounds = task->rounds;
    f->extending = task->extending;
}

static bool is_certain(int code)
{
    return code != IDEM_EUNAVAILABLE && code != IDEM_EUNKNOWN &&
           code != IDEM_EFULL && code != IDEM_EDENIED;
}

static void end(struct world *w, struct flight *f)
{
    f->saved = false;
    /* But that what an import brings is past its retention. */
    if (!f->asked && is_certain(f->copy->error.code) &&
        f->copy->verb != IDEM_OP_IMPORT) {
        violate(w, "I18", "an answer was given without asking the table");
    }
    if (f->fresh && is_certain(f->copy->error.code)) {
        judge(w, f);
    }
    spare_task(f);
    flight_answer(w, f);
}

static void go_on(struct world *w, struct flight *f)
{
    const struct idem__pg_task *task = f->pg_task;

    switch (task->state) {
    case IDEM__PG_TO_PAUSE:
        f->stage = FLIGHT_PAUSED;
        f->due_at = w->now + task->pause_ms;
        if (deadline_mono_ms(w, f) + task->pause_ms > deadline_of(w, f)) {
            f->due_at = deadline_when(w, f, deadline_of(w, f));
        }
        return;
    case IDEM__PG_TO_DONE:
        end(w, f);
        return;
    default:
        enlist(w, f);
    }
}

static void start(struct world *w, struct flight *f)
{
    struct moment moment;

    f->copy->store = f->op->store;
    f->copy->deadline_ms = f->op->deadline_ms;
    f->pg_task = take_task(process_of(f));
    f->pg_task->op = f->copy;
    f->rounds = 0;
    if (read_now(w, f, &moment)) {
        idem__pg_task_start(f->pg_task, f->copy, &moment.now);
        f->extending = false;
        note_decision(w, f, IDEM__PG_TO_NONE, &moment);
    } else {
        idem__pg_task_no_clock(f->pg_task);
    }
    go_on(w, f);
}

static void resume(struct world *w, struct flight *f)
{
    struct moment moment;

    if (deadline_mono_ms(w, f) >= deadline_of(w, f)) {
        idem__pg_task_give_up(f->pg_task);
    } else if (read_now(w, f, &moment)) {
        idem__pg_task_resume(f->pg_task, &moment.now);
        note_decision(w, f, f->pg_task->after_pause, &moment);
    } else {
        idem__pg_task_no_clock(f->pg_task);
    }
    go_on(w, f);
}

/* False for a claim that came too late by the server's clock: it is decided on anew, and
 * not on what is there. */
static bool was_shown(const struct carried *c)
{
    return c->request->ask != IDEM__PG_ASK_CLAIM || c->request->row_code != 0;
}

/* The task looks at the answer in its request. @c: what the table says; or NULL. */
static void look(struct world *w, struct flight *f, const struct carried *c)
{
    struct idem__pg_task *task = f->pg_task;
    enum idem__pg_where_to from = task->state;
    unsigned rounds = task->rounds;
    struct moment moment;

    f->line_no = 0;
    f->asked = f->asked || c != NULL;
    if (read_now(w, f, &moment)) {
        idem__pg_task_answered(task, &moment.now);
        note_decision(w, f, from, &moment);
        if (c != NULL && task->rounds != rounds) {
            f->fresh = task->state != IDEM__PG_TO_WRITE;
            f->before = c->judged.before;
            f->flipped = c->judged.flipped && was_shown(c);
            f->body_flipped = c->judged.body_flipped && was_shown(c);
            if (f->flipped) {
                violate(w, "I19", "a damaged record is decided on");
            }
        } else if (c != NULL && f->copy->error.code == IDEM_ECORRUPT) {
            /* What was read after the last decision allowed none. */
            f->flipped = f->flipped || c->judged.flipped;
            f->body_flipped = f->body_flipped || c->judged.body_flipped;
        }
    } else {
        idem__pg_task_no_clock(task);
    }
    if (task->state != IDEM__PG_TO_DONE &&
        deadline_mono_ms(w, f) >= deadline_of(w, f)) {
        idem__pg_task_give_up(task);
    }
    go_on(w, f);
}

/* The request of @f came to nothing, or to nothing that is known. */
static void look_at_failure(struct world *w, struct flight *f,
                            enum idem__pg_said said, int code, bool sent)
{
    struct idem__pg_request *request = &f->pg_task->request;

    request->said = said;
    request->sent = sent;
    request->applied = false;
    request->row_code = 0;
    request->result = NULL;
    request->after = NULL;
    (void)idem__error(&request->error, code, "simulated");
    if (said == IDEM__PG_UNKNOWN) {
        history_again(f);
    }
    look(w, f, NULL);
}

/* ---- The connection ---- */

static bool is_in_line(const struct flight *f, const struct process *process)
{
    return f->stage == FLIGHT_WAITING && f->line_no != 0 &&
           process_of(f) == process;
}

static bool was_sent(const struct flight *f, const struct process *process)
{
    return f->stage == FLIGHT_WAITING && f->line_no == 0 &&
           process_of(f) == process && f->link == process->link;
}

static struct flight *first_in_line(struct world *w,
                                    const struct process *process)
{
    struct flight *first = NULL;
    unsigned i;

    for (i = 0; i < w->flights_len; i++) {
        struct flight *f = &w->flights[i];

        if (is_in_line(f, process) &&
            (first == NULL || f->line_no < first->line_no)) {
            first = f;
        }
    }
    return first;
}

/* A message of @process's connection, which is at its process at @due_at. */
static struct flight *message(struct world *w, struct client *c,
                              const struct process *process,
                              enum carries carries, int64_t due_at)
{
    struct flight *p = flight_create(w);

    if (p != NULL) {
        p->stage = FLIGHT_BACK;
        p->client = c;
        p->carries = carries;
        p->link = process->link;
        p->due_at = due_at;
    }
    return p;
}

/* Whatever was sent over it may have been done, or may be done yet. */
static void lose(struct world *w, struct process *process)
{
    unsigned link = process->link++;
    unsigned i;

    process->link_state = LINK_DOWN;
    for (i = 0; i < w->flights_len; i++) {
        struct flight *f = &w->flights[i];

        if (f->stage == FLIGHT_WAITING && f->line_no == 0 &&
            process_of(f) == process && f->link == link) {
            look_at_failure(w, f, IDEM__PG_UNKNOWN, IDEM_EUNAVAILABLE,
                            /* sent= */ true);
        }
    }
}

static void fail_line(struct world *w, struct process *process)
{
    unsigned last = process->line_no;
    struct flight *f;

    while ((f = first_in_line(w, process)) != NULL && f->line_no <= last) {
        look_at_failure(w, f, IDEM__PG_NOT_APPLIED, IDEM_EUNAVAILABLE,
                        /* sent= */ false);
    }
}

static void connect(struct world *w, struct process *process,
                    struct flight *first)
{
    struct flight *p;

    process->link++;
    process->link_state = LINK_CONNECTING;
    if (!w->quiet && rng_chance(&w->rng, w->config.fate_permille / 4)) {
        w->stats->pg[PG_NO_ANSWER]++;
        return; /* Until its time is over. */
    }
    p = message(w, first->client, process, CARRIES_CONNECT,
                w->now + flight_delay(w, /* late= */ false));
    if (p != NULL) {
        p->refused =
            !w->quiet && rng_chance(&w->rng, w->config.fate_permille / 2);
    }
}

static void connected(struct world *w, struct process *process,
                      const struct flight *p)
{
    if (p->link != process->link) {
        return;
    }
    if (!p->refused) {
        process->link_state = LINK_IDLE;
        process->in_flight = 0;
        process->broken = false;
        process->deaf = false;
        process->settled = false;
        return;
    }
    w->stats->pg[PG_REFUSED]++;
    process->link_state = LINK_DOWN;
    fail_line(w, process);
}

/* ---- Batches ---- */

/* What the write that @c carries was decided to be. */
static void note_write(struct carried *c, const struct flight *f)
{
    const struct idem__pg_task *task = f->pg_task;
    const struct idem_decision *decision = &task->decision;
    const struct idem_record *record = &task->next;
    struct idem_op *copy = idem__op_clone(f->copy);
    struct flight *judged = &c->judged;

    copy->verdict = decision->verdict;
    copy->takeover = decision->takeover;
    if (task->extending) { /* The claim was made; its lease is set anew. */
        copy->verb = IDEM_OP_RENEW;
        copy->fence = record->fence;
        copy->u.renew.lease_ms = record->lease_ms;
    }
    judged->copy = copy;
    judged->saved = true;
    table_view(record,
               decision->set_result ? record->result.bytes : idem_str(""),
               &judged->next.view);
    judged->next.rev = 1;
    judged->next.head_len = 0;
    judged->next.result_len = 0;
    judged->next.input_len = 0;
}

static void carry(struct batch *batch, struct flight *f)
{
    struct carried *c = &batch->carried[batch->len];
    struct flight *judged = &c->judged;

    memset(judged, 0, offsetof(struct flight, next));
    judged->next.rev = 0;
    judged->client = f->client;
    judged->call = f->call;
    judged->origin = f->origin;
    judged->key = f->key;
    judged->now = f->now;
    judged->truth_ms = f->truth_ms;
    judged->sure_ms = f->sure_ms;
    judged->true_ms = f->true_ms;
    judged->by_wall = f->by_wall;
    c->asker = f->no;
    c->number = f->request;
    c->request = pg_request_copy(&f->pg_task->request);
    batch->requests[batch->len] = c->request;
    batch->len++;
    if (f->pg_task->state == IDEM__PG_TO_WRITE) {
        note_write(c, f);
    }
}

/* Moves those that go together from the line into @batch. */
static void choose(struct world *w, struct process *process,
                   struct batch *batch)
{
    struct flight *f = first_in_line(w, process);

    while (f != NULL && (batch->len == 0 || !f->alone)) {
        bool alone = f->alone;

        f->line_no = 0;
        f->link = process->link;
        carry(batch, f);
        f = alone ? NULL : first_in_line(w, process);
    }
    if (batch->len > 1) {
        w->stats->pg[PG_MANY]++;
    }
}

static enum pg choose_fate(struct world *w)
{
    static const unsigned weights[PGS] = {
        [PG_SLOW] = 3,     [PG_CUT_BEFORE] = 2,
        [PG_CUT_IN] = 3,   [PG_CUT_AFTER] = 4,
        [PG_CUT_LATE] = 4, [PG_SILENT] = 2,
        [PG_CONFLICT] = 3, [PG_CONFLICT_AT_COMMIT] = 1,
        [PG_ENDED] = 1,    [PG_FULL] = 1,
        [PG_DENIED] = 1,
    };

    if (w->quiet || !rng_chance(&w->rng, w->config.fate_permille)) {
        return PG_GOOD;
    }
    return (enum pg)rng_weighted(&w->rng, weights, PGS);
}

static void set_fate(struct world *w, struct flight *p, enum pg fate)
{
    static const char *const conflicts[] = {"40001", "40P01", "57014"};
    struct batch *batch = p->batch;
    unsigned early = rng_below(&w->rng, 4);

    switch (fate) {
    case PG_SLOW:
    case PG_CUT_LATE:
        p->due_at = w->now + flight_delay(w, /* late= */ true);
        break;
    case PG_CUT_IN:
        batch->steps_max = early;
        batch->at_commit = rng_chance(&w->rng, 300);
        break;
    case PG_CONFLICT:
        batch->steps_max = early;
        batch->state = conflicts[rng_below(&w->rng, 3)];
        break;
    case PG_CONFLICT_AT_COMMIT:
        batch->at_commit = true;
        batch->state = "40001";
        break;
    case PG_ENDED:
        batch->steps_max = early;
        batch->state = "57P01";
        break;
    case PG_FULL:
        batch->steps_max = early;
        batch->state = "53100";
        break;
    case PG_DENIED:
        batch->steps_max = early;
        batch->state = "42501";
        break;
    default:
        break;
    }
    p->lost = fate == PG_CUT_AFTER || fate == PG_CUT_LATE ||
              fate == PG_CUT_IN || fate == PG_SILENT;
}

static bool is_cut(enum pg fate)
{
    return fate == PG_CUT_BEFORE || fate == PG_CUT_IN || fate == PG_CUT_AFTER ||
           fate == PG_CUT_LATE;
}

static bool writes(const struct batch *batch)
{
    size_t i;

    for (i = 0; i < batch->len; i++) {
        if (batch->carried[i].judged.saved ||
            batch->carried[i].request->ask == IDEM__PG_ASK_PURGE) {
            return true;
        }
    }
    return false;
}

static bool is_about_attempts(const struct batch *batch)
{
    size_t i = 0;

    while (i < batch->len && batch->carried[i].request->shows) {
        i++;
    }
    return i < batch->len;
}

static void send(struct world *w, struct process *process, struct flight *first)
{
    struct client *c = first->client;
    const struct idem_host *host = &process->env.host;
    struct flight *p = flight_create(w);
    enum pg fate = choose_fate(w);
    struct idem_clock_reading reading;

    if (p == NULL) {
        fail_line(w, process);
        return;
    }
    process->link_state = LINK_BUSY;
    p->stage = FLIGHT_SENT;
    p->client = c;
    p->carries = CARRIES_BATCH;
    p->link = process->link;
    p->due_at = w->now + flight_delay(w, /* late= */ false);
    p->batch = idem__zalloc(sizeof(*p->batch));
    p->batch->steps_max = UINT_MAX;
    p->batch->settled = process->settled;
    /* After many new ones in a row; when that is, is chance here. */
    p->batch->shows = rng_chance(&w->rng, 700);
    p->batch->host = postgres_host(w, c->no);
    p->batch->order = ++process->order;
    p->batch->carried = idem__alloc(FLIGHTS_MAX * sizeof(*p->batch->carried));
    choose(w, process, p->batch);
    p->ask = writes(p->batch) ? ASK_WRITE : ASK_READ;
    p->batch->sent_boot_ms =
        host->clock(host->ctx, &reading) == 0 ? reading.boot_ms : -1;
    process->in_flight++;
    set_fate(w, p, fate);
    w->stats->pg[fate]++;
    note(w, EV_TAKE, c, (int64_t)p->no, (int64_t)fate);
    if (is_cut(fate)) {
        (void)message(w, c, process, CARRIES_CUT,
                      w->now + flight_delay(w, fate != PG_CUT_LATE));
    }
    if (process->broken || fate == PG_CUT_BEFORE) {
        process->broken = true;
        flight_destroy(p);
        return;
    }
    p->lost = p->lost || process->deaf;
    process->deaf = p->lost;
    /* The server may not have seen yet that nobody hears it. */
    process->broken = p->lost && rng_chance(&w->rng, 500);
}

static struct flight *asker_of(struct world *w, const struct carried *c,
                               const struct process *process)
{
    unsigned i;

    for (i = 0; i < w->flights_len; i++) {
        struct flight *f = &w->flights[i];

        if (f->no == c->asker && f->request == c->number &&
            was_sent(f, process)) {
            return f;
        }
    }
    return NULL;
}

/* Each is tried again by itself, before those that came later: those have higher
 * numbers. */
static void divide(struct world *w, struct process *process,
                   const struct batch *batch)
{
    size_t i;

    w->stats->pg[PG_DIVIDED]++;
    for (i = 0; i < batch->len; i++) {
        struct flight *f = asker_of(w, &batch->carried[i], process);

        if (f != NULL) {
            f->line_no = 1 + (unsigned)i;
            f->alone = true;
        }
    }
}

/* Hands the answer over. Slices of it are good until the batch is destroyed. */
static void answer(struct world *w, struct flight *f, const struct carried *c,
                   const struct pg_failure *failure)
{
    const struct idem__pg_request *from = c->request;
    struct idem__pg_request *to = &f->pg_task->request;

    if (failure != NULL) {
        look_at_failure(w, f, failure->said, failure->code, /* sent= */ true);
        return;
    }
    to->said = from->said;
    to->error = from->error;
    to->sent = true;
    to->applied = from->applied;
    to->row_code = from->row_code;
    to->row = from->row;
    to->result = from->result;
    to->after = from->after;
    if (from->ask == IDEM__PG_ASK_CLAIM && !from->applied &&
        from->row_code == 0) {
        w->stats->pg[PG_NEITHER]++;
    }
    look(w, f, c);
}

static void answer_all(struct world *w, const struct process *process,
                       const struct batch *batch)
{
    size_t i;

    for (i = 0; i < batch->len; i++) {
        struct flight *f = asker_of(w, &batch->carried[i], process);

        if (f != NULL) {
            answer(w, f, &batch->carried[i], batch->failure);
        }
    }
}

static void answered(struct world *w, struct process *process,
                     const struct flight *p)
{
    const struct batch *batch = p->batch;

    if (p->link != process->link) {
        return; /* Nobody waits for it any more. */
    }
    learn(w, process, batch);
    if (batch->failure != NULL && batch->failure->said == IDEM__PG_UNKNOWN) {
        lose(w, process);
        process->missed_time = false;
        return;
    }
    process->in_flight--;
    process->link_state = process->in_flight == 0 ? LINK_IDLE : LINK_BUSY;
    process->settled = process->settled ||
                       (batch->failure == NULL && is_about_attempts(batch));
    if (batch->failure != NULL && batch->steps > 0 && batch->len > 1) {
        divide(w, process, batch);
    } else {
        answer_all(w, process, batch);
    }
    if (batch->failure != NULL && batch->at_commit) {
        lose(w, process); /* Another one is made. */
    }
    process->missed_time = false;
}

/* ---- Steps ---- */

static void time_is_up(struct world *w, struct flight *f)
{
    struct process *process = process_of(f);

    if (f->line_no == 0) {
        w->stats->pg[PG_TIMED_OUT]++;
        f->pg_task->request.timed_out = true;
        lose(w, process);
        return;
    }
    w->stats->pg[PG_TIMED_OUT_IN_LINE]++;
    look_at_failure(w, f, IDEM__PG_NOT_APPLIED, IDEM_EUNAVAILABLE,
                    /* sent= */ false);
    if (process->link_state == LINK_CONNECTING &&
        first_in_line(w, process) == NULL) {
        lose(w, process);
    }
}

static void arrive(struct world *w, struct flight *p)
{
    struct process *process = process_of(p);

    if (p->carries == CARRIES_CONNECT) {
        connected(w, process, p);
    } else if (p->carries == CARRIES_BATCH) {
        answered(w, process, p);
    } else if (p->link == process->link) {
        lose(w, process);
    }
    flight_destroy(p);
}

/* Another batch may be sent while one is in flight. When it is, is chance here. */
static bool may_follow(struct world *w, const struct process *process)
{
    return process->link_state == LINK_BUSY && process->in_flight == 1 &&
           process->settled && rng_chance(&w->rng, 300);
}

/* Does what the connection of @process can do now. */
static void work(struct world *w, struct process *process)
{
    struct flight *first = first_in_line(w, process);

    if (first == NULL) {
        return;
    }
    if (process->link_state == LINK_DOWN) {
        connect(w, process, first);
    } else if (process->link_state == LINK_IDLE || may_follow(w, process)) {
        send(w, process, first);
    }
}

void postgres_step(struct world *w, struct flight *f)
{
    struct process *process;

    if (f->stage == FLIGHT_SENT) {
        server_step(w, f);
        return;
    }
    process = process_of(f);
    switch (f->stage) {
    case FLIGHT_QUEUED:
        start(w, f);
        break;
    case FLIGHT_BACK:
        arrive(w, f);
        break;
    case FLIGHT_WAITING:
        time_is_up(w, f);
        break;
    case FLIGHT_PAUSED:
        resume(w, f);
        break;
    case FLIGHT_SENT:
    case FLIGHT_FREE:
    case FLIGHT_LATENT:
        break;
    }
    work(w, process);
}
