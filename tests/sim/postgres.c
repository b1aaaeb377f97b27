/* PostgreSQL: the requests of a process wait in a line for its one connection, and go over
 * it together, as a transaction. What postgres/conn.c does is redone here, not run. */
#include "service.h"

#include "base/heap.h"
#include "core/error.h"
#include "deadline.h"
#include "flight.h"
#include "history.h"
#include "postgres/task.h"
#include "server.h"

#include <limits.h>

/* The connection of a process. */
struct connection {
    struct idem__pg_env env;
    int64_t purged_in;
    uint64_t known_floor;
    enum {
        LINK_DOWN,
        LINK_CONNECTING,
        LINK_IDLE,
        LINK_BUSY,
    } state;
    unsigned link;      /* Another number with every connection. */
    bool settled;       /* A batch about attempts was committed over it. */
    unsigned in_flight; /* Batches that are not answered. */
    unsigned order;     /* Of the last one. */
    bool broken;        /* What is sent over it is lost, */
    bool deaf;          /* or what is answered. */
    unsigned line_no;
};

static struct connection connections[CLIENTS_MAX];

static struct connection *connection_of(const struct flight *f)
{
    return &connections[service_process(f)->no];
}

static struct idem__pg_task *task_of(const struct flight *f)
{
    return (struct idem__pg_task *)f->task;
}

/* ---- Tasks ---- */

static void born(struct process *process)
{
    struct connection *conn = &connections[process->no];

    *conn = (struct connection){
        .link = conn->link + 1,
        .line_no =
            FLIGHTS_MAX, /* Lower ones are for those to be tried alone. */
    };
    conn->env.base.host = process->host;
    conn->env.base.claims = process->claims;
    conn->env.base.scratch = process->scratch;
    conn->env.purged_in = &conn->purged_in;
    conn->env.known_floor = &conn->known_floor;
}

static void init(struct idem__flight *task, const struct process *process)
{
    idem__pg_task_init((struct idem__pg_task *)task,
                       &connections[process->no].env);
}

static void reset(struct idem__flight *task)
{
    idem__pg_task_reset((struct idem__pg_task *)task);
}

static void free_task(struct idem__flight *task)
{
    idem__pg_task_free((struct idem__pg_task *)task);
}

/* A purge decides when it reads a page, and deletes later. */
static bool carries(const struct idem__flight *task)
{
    idem__state state =
        task->state == IDEM__STATE_PAUSE ? task->after_pause : task->state;

    return state == IDEM__STATE_PURGE_RAISE ||
           state == IDEM__STATE_PURGE_WAIT || state == IDEM__STATE_PURGE_GO;
}

/* As learn() of postgres/batch_results.c. */
static void learn(struct process *process, const struct batch *batch)
{
    const struct idem_host *host = &process->host;
    const struct pg_tx *tx = &batch->tx;
    struct idem__learned_time time = {.sent_boot_ms = batch->sent_boot_ms,
                                      .late_ms = 1};
    struct idem_clock_reading reading;
    size_t i;

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

/* ---- Requests ---- */

static void ask(struct world *w, struct flight *f)
{
    struct idem__pg_request *request = &task_of(f)->request;

    f->line_no = ++connection_of(f)->line_no;
    f->alone = request->ask == IDEM__PG_ASK_WAIT;
    f->due_at = deadline_when(w, f, deadline_of_try(w, f));
    request->said = 0;
    if (f->task->state == IDEM__STATE_WRITE) {
        f->fresh = false;
    }
    note(w, EV_SEND, f->client, (int64_t)f->no, (int64_t)request->ask);
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
    f->line_no = 0;
    service_look(w, f, c != NULL ? &c->judged : NULL,
                 c != NULL && was_shown(c));
}

/* The request of @f came to nothing, or to nothing that is known. */
static void look_at_failure(struct world *w, struct flight *f,
                            enum idem__said said, int code, bool sent)
{
    struct idem__pg_request *request = &task_of(f)->request;

    request->said = said;
    request->sent = sent;
    request->applied = false;
    request->row_code = 0;
    request->result = NULL;
    request->after = NULL;
    (void)idem__error(&request->error, code, "simulated");
    if (said == IDEM__SAID_UNKNOWN) {
        history_again(f);
    }
    look(w, f, NULL);
}

/* ---- The connection ---- */

static bool is_in_line(const struct flight *f, const struct connection *conn)
{
    return f->stage == FLIGHT_WAITING && f->line_no != 0 &&
           connection_of(f) == conn;
}

static bool was_sent(const struct flight *f, const struct connection *conn)
{
    return f->stage == FLIGHT_WAITING && f->line_no == 0 &&
           connection_of(f) == conn && f->link == conn->link;
}

static struct flight *first_in_line(struct world *w,
                                    const struct connection *conn)
{
    struct flight *first = NULL;
    unsigned i;

    for (i = 0; i < w->flights_len; i++) {
        struct flight *f = &w->flights[i];

        if (is_in_line(f, conn) &&
            (first == NULL || f->line_no < first->line_no)) {
            first = f;
        }
    }
    return first;
}

/* A message of @conn, which is at its process at @due_at. */
static struct flight *message(struct world *w, struct client *c,
                              const struct connection *conn,
                              enum carries carries, int64_t due_at)
{
    struct flight *p = flight_create(w);

    if (p != NULL) {
        p->stage = FLIGHT_BACK;
        p->client = c;
        p->carries = carries;
        p->link = conn->link;
        p->due_at = due_at;
    }
    return p;
}

/* Whatever was sent over it may have been done, or may be done yet. */
static void lose(struct world *w, struct connection *conn)
{
    unsigned link = conn->link++;
    unsigned i;

    conn->state = LINK_DOWN;
    for (i = 0; i < w->flights_len; i++) {
        struct flight *f = &w->flights[i];

        if (f->stage == FLIGHT_WAITING && f->line_no == 0 &&
            connection_of(f) == conn && f->link == link) {
            look_at_failure(w, f, IDEM__SAID_UNKNOWN, IDEM_EUNAVAILABLE,
                            /* sent= */ true);
        }
    }
}

static void fail_line(struct world *w, struct connection *conn)
{
    unsigned last = conn->line_no;
    struct flight *f;

    while ((f = first_in_line(w, conn)) != NULL && f->line_no <= last) {
        look_at_failure(w, f, IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE,
                        /* sent= */ false);
    }
}

static void connect(struct world *w, struct connection *conn,
                    struct flight *first)
{
    struct flight *p;

    conn->link++;
    conn->state = LINK_CONNECTING;
    if (!w->quiet && rng_chance(&w->rng, w->config.fate_permille / 4)) {
        w->stats->pg[PG_NO_ANSWER]++;
        return; /* Until its time is over. */
    }
    p = message(w, first->client, conn, CARRIES_CONNECT,
                w->now + flight_delay(w, /* late= */ false));
    if (p != NULL) {
        p->refused =
            !w->quiet && rng_chance(&w->rng, w->config.fate_permille / 2);
    }
}

static void connected(struct world *w, struct connection *conn,
                      const struct flight *p)
{
    if (p->link != conn->link) {
        return;
    }
    if (!p->refused) {
        conn->state = LINK_IDLE;
        conn->in_flight = 0;
        conn->broken = false;
        conn->deaf = false;
        conn->settled = false;
        return;
    }
    w->stats->pg[PG_REFUSED]++;
    conn->state = LINK_DOWN;
    fail_line(w, conn);
}

/* ---- Batches ---- */

static void carry(struct batch *batch, struct flight *f)
{
    struct carried *c = &batch->carried[batch->len];
    struct flight *judged = &c->judged;

    memset(judged, 0, offsetof(struct flight, next));
    judged->next.rev = 0;
    service_carry(judged, f);
    c->asker = f->no;
    c->number = f->request;
    c->request = pg_request_copy(&task_of(f)->request);
    batch->requests[batch->len] = c->request;
    batch->len++;
}

/* Moves those that go together from the line into @batch. */
static void choose(struct world *w, struct connection *conn,
                   struct batch *batch)
{
    struct flight *f = first_in_line(w, conn);

    while (f != NULL && (batch->len == 0 || !f->alone)) {
        bool alone = f->alone;

        f->line_no = 0;
        f->link = conn->link;
        carry(batch, f);
        f = alone ? NULL : first_in_line(w, conn);
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

static void send(struct world *w, struct connection *conn, struct flight *first)
{
    struct client *c = first->client;
    const struct idem_host *host = &conn->env.base.host;
    struct flight *p = flight_create(w);
    enum pg fate = choose_fate(w);
    struct idem_clock_reading reading;

    if (p == NULL) {
        fail_line(w, conn);
        return;
    }
    conn->state = LINK_BUSY;
    p->stage = FLIGHT_SENT;
    p->client = c;
    p->carries = CARRIES_BATCH;
    p->link = conn->link;
    p->due_at = w->now + flight_delay(w, /* late= */ false);
    p->batch = idem__zalloc(sizeof(*p->batch));
    p->batch->steps_max = UINT_MAX;
    p->batch->settled = conn->settled;
    /* After many new ones in a row; when that is, is chance here. */
    p->batch->shows = rng_chance(&w->rng, 700);
    p->batch->host = service_process(first)->no;
    p->batch->order = ++conn->order;
    p->batch->carried = idem__alloc(FLIGHTS_MAX * sizeof(*p->batch->carried));
    choose(w, conn, p->batch);
    p->ask = writes(p->batch) ? ASK_WRITE : ASK_READ;
    p->batch->sent_boot_ms =
        host->clock(host->ctx, &reading) == 0 ? reading.boot_ms : -1;
    conn->in_flight++;
    set_fate(w, p, fate);
    w->stats->pg[fate]++;
    note(w, EV_TAKE, c, (int64_t)p->no, (int64_t)fate);
    if (is_cut(fate)) {
        (void)message(w, c, conn, CARRIES_CUT,
                      w->now + flight_delay(w, fate != PG_CUT_LATE));
    }
    if (conn->broken || fate == PG_CUT_BEFORE) {
        conn->broken = true;
        flight_destroy(p);
        return;
    }
    p->lost = p->lost || conn->deaf;
    conn->deaf = p->lost;
    /* The server may not have seen yet that nobody hears it. */
    conn->broken = p->lost && rng_chance(&w->rng, 500);
}

static struct flight *asker_of(struct world *w, const struct carried *c,
                               const struct connection *conn)
{
    unsigned i;

    for (i = 0; i < w->flights_len; i++) {
        struct flight *f = &w->flights[i];

        if (f->no == c->asker && f->request == c->number && was_sent(f, conn)) {
            return f;
        }
    }
    return NULL;
}

/* Each is tried again by itself, before those that came later: those have higher
 * numbers. */
static void divide(struct world *w, struct connection *conn,
                   const struct batch *batch)
{
    size_t i;

    w->stats->pg[PG_DIVIDED]++;
    for (i = 0; i < batch->len; i++) {
        struct flight *f = asker_of(w, &batch->carried[i], conn);

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
    struct idem__pg_request *to = &task_of(f)->request;

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

static void answer_all(struct world *w, const struct connection *conn,
                       const struct batch *batch)
{
    size_t i;

    for (i = 0; i < batch->len; i++) {
        struct flight *f = asker_of(w, &batch->carried[i], conn);

        if (f != NULL) {
            answer(w, f, &batch->carried[i], batch->failure);
        }
    }
}

static void batch_answered(struct world *w, struct connection *conn,
                           const struct flight *p)
{
    const struct batch *batch = p->batch;

    if (p->link != conn->link) {
        return; /* Nobody waits for it any more. */
    }
    learn(service_process(p), batch);
    if (batch->failure != NULL && batch->failure->said == IDEM__SAID_UNKNOWN) {
        lose(w, conn);
        service_process(p)->missed_time = false;
        return;
    }
    conn->in_flight--;
    conn->state = conn->in_flight == 0 ? LINK_IDLE : LINK_BUSY;
    conn->settled =
        conn->settled || (batch->failure == NULL && is_about_attempts(batch));
    if (batch->failure != NULL && batch->steps > 0 && batch->len > 1) {
        divide(w, conn, batch);
    } else {
        answer_all(w, conn, batch);
    }
    if (batch->failure != NULL && batch->at_commit) {
        lose(w, conn); /* Another one is made. */
    }
    service_process(p)->missed_time = false;
}

/* ---- Steps ---- */

static void time_is_up(struct world *w, struct flight *f)
{
    struct connection *conn = connection_of(f);

    if (f->line_no == 0) {
        w->stats->pg[PG_TIMED_OUT]++;
        task_of(f)->request.timed_out = true;
        lose(w, conn);
        return;
    }
    w->stats->pg[PG_TIMED_OUT_IN_LINE]++;
    look_at_failure(w, f, IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE,
                    /* sent= */ false);
    if (conn->state == LINK_CONNECTING && first_in_line(w, conn) == NULL) {
        lose(w, conn);
    }
}

static void arrive(struct world *w, struct flight *p)
{
    struct connection *conn = connection_of(p);

    if (p->carries == CARRIES_CONNECT) {
        connected(w, conn, p);
    } else if (p->carries == CARRIES_BATCH) {
        batch_answered(w, conn, p);
    } else if (p->link == conn->link) {
        lose(w, conn);
    }
    flight_destroy(p);
}

/* Another batch may be sent while one is in flight. When it is, is chance here. */
static bool may_follow(struct world *w, const struct connection *conn)
{
    return conn->state == LINK_BUSY && conn->in_flight == 1 && conn->settled &&
           rng_chance(&w->rng, 300);
}

/* Does what the connection can do now. */
static void work(struct world *w, const struct process *process)
{
    struct connection *conn = &connections[process->no];
    struct flight *first = first_in_line(w, conn);

    if (first == NULL) {
        return;
    }
    if (conn->state == LINK_DOWN) {
        connect(w, conn, first);
    } else if (conn->state == LINK_IDLE || may_follow(w, conn)) {
        send(w, conn, first);
    }
}

static void step(struct world *w, struct flight *f)
{
    if (f->stage == FLIGHT_SENT) {
        server_step(w, f);
    } else if (f->stage == FLIGHT_BACK) {
        arrive(w, f);
    } else {
        time_is_up(w, f);
    }
}

const struct service postgres_service = {
    .open = server_open,
    .close = server_close,
    .born = born,
    .task_size = sizeof(struct idem__pg_task),
    .init = init,
    .reset = reset,
    .free = free_task,
    .carries = carries,
    .uncertain = {IDEM_EFULL, IDEM_EDENIED},
    .ask = ask,
    .step = step,
    .work = work,
    .drop = server_drop,
    .strike = server_strike,
    .choose_flip = server_choose_flip,
    .flip = server_flip,
    .ms = server_ms,
    .latest_ms = server_latest_ms,
    .knows = server_knows,
};
