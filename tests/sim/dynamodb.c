/* Operations as tasks of the DynamoDB store, and their requests on the way. */
#include "dynamodb.h"

#include "../lib/wire.h"
#include "aws/client/clock.h"
#include "base/heap.h"
#include "cloud.h"
#include "deadline.h"
#include "flight.h"
#include "history.h"
#include "host.h"
#include "judge.h"
#include "queue/op.h"
#include "table.h"

enum {
    MARGIN_MS = 2000,
    GUESS_ERR_MS = 2000,
    SIGNED_ERR_MS = 15 * 60 * 1000,
    SIGNED_FOR_MS = 15 * 60 * 1000,
};

/* A task, kept for the next operation. */
struct spare {
    struct idem__task task;
    struct spare *next;
};

/* What a process of the library's has beside its operations. */
struct process {
    struct idem__task_env env;
    struct idem__learned_clock clock;
    bool answered;
    struct spare *spare;
};

static struct process processes[CLIENTS_MAX];
static struct heap claims_heap;
static uint8_t scratch[IDEM_HEAD_MAX];

static struct process *process_of(const struct flight *f)
{
    return &processes[f->client->no];
}

/* ---- Processes ---- */

/* They are large: each is made once, and emptied for the next process. */
static void empty_claims(struct idem__task_env *env)
{
    const struct world *w =
        env->host.ctx == NULL ? NULL : ((struct client *)env->host.ctx)->world;
    unsigned i;

    if (env->claims == NULL) {
        heap_use(&claims_heap);
        env->claims = idem__claims_create();
    }
    for (i = 0; w != NULL && i < KEYS_MAX; i++) {
        if (w->keys[i].name != NULL) {
            idem__claims_forget(env->claims, w->keys[i].name->id);
        }
    }
}

void dynamodb_born(struct client *c)
{
    struct process *process = &processes[c->no];
    struct idem__task_env *env = &process->env;

    memset(&process->clock, 0, sizeof(process->clock));
    process->answered = false;
    process->spare = NULL;
    env->host = c->door.base.options.host;
    env->scratch = scratch;
    (void)strcpy(env->table.name, cloud_table);
    env->table.index = true;
    env->table.pack = true;
    empty_claims(env);
}

void dynamodb_gone(struct client *c)
{
    struct process *process = &processes[c->no];

    while (process->spare != NULL) {
        struct spare *spare = process->spare;

        process->spare = spare->next;
        idem__task_free(&spare->task);
        idem__free(spare);
    }
}

static struct idem__task *take_task(struct process *process)
{
    struct spare *spare = process->spare;

    if (spare != NULL) {
        process->spare = spare->next;
    } else {
        spare = idem__zalloc(sizeof(*spare));
        idem__task_init(&spare->task, &process->env);
    }
    return &spare->task;
}

static void spare_task(struct flight *f)
{
    struct process *process = process_of(f);
    struct spare *spare = (struct spare *)f->task;

    idem__task_reset(f->task);
    spare->next = process->spare;
    process->spare = spare;
    f->task = NULL;
}

void dynamodb_drop(struct flight *f)
{
    idem__buffer_free(&f->body);
    idem__buffer_free(&f->answer);
    if (f->task != NULL) {
        idem__task_free(f->task);
        idem__free(f->task);
        f->task = NULL;
    }
}

/* ---- Time ---- */

/* As read_now() of aws/dynamodb/flight.c. False: the clock does not answer. */
static bool read_now(struct world *w, const struct flight *f,
                     struct idem_now *now, bool *ret_by_wall)
{
    const struct process *process = process_of(f);
    const struct idem_host *host = &process->env.host;
    struct idem_clock_reading reading;

    memset(now, 0, sizeof(*now));
    if (host->clock(host->ctx, &reading) != 0) {
        return false;
    }
    now->boot_ms = reading.boot_ms;
    memcpy(now->boot_id, reading.boot_id, sizeof(now->boot_id));
    now->margin_ms = MARGIN_MS;
    now->store_ms = reading.wall_ms;
    *ret_by_wall = !idem__learned_clock_now(&process->clock, reading.boot_ms,
                                            &now->store_ms, &now->store_err_ms);
    if (*ret_by_wall) {
        now->store_err_ms = process->answered ? SIGNED_ERR_MS : GUESS_ERR_MS;
        w->stats->faults[FAULT_WALL_TRUSTED]++;
    } else if (w->now < now->store_ms - now->store_err_ms ||
               w->now > now->store_ms + now->store_err_ms) {
        violate(w, "SIM", "the learned interval misses the truth");
    }
    return true;
}

/* ---- Sending ---- */

static bool is(const struct flight *f, const char *operation)
{
    const char *target = f->task->request.target;

    return strcmp(strchr(target, '.') + 1, operation) == 0;
}

static enum net choose_net(struct world *w, const struct flight *f)
{
    static const unsigned weights[NETS] = {
        [NET_NOT_SENT] = 3,     [NET_THROTTLED] = 2, [NET_LOST] = 3,
        [NET_ANSWER_LOST] = 4,  [NET_LATE] = 4,      [NET_FAILED_BEFORE] = 1,
        [NET_FAILED_AFTER] = 2, [NET_TWICE] = 3,     [NET_CONFLICT] = 1,
        [NET_NO_OLD_ITEM] = 2,  [NET_LEFT_OVER] = 1,
    };
    enum net net;

    if (w->quiet || !rng_chance(&w->rng, w->config.fate_permille)) {
        return NET_GOOD;
    }
    net = (enum net)rng_weighted(&w->rng, weights, NETS);
    if ((net == NET_NO_OLD_ITEM || net == NET_CONFLICT) && !is(f, "PutItem")) {
        return NET_GOOD;
    }
    if (net == NET_LEFT_OVER && !is(f, "BatchWriteItem") &&
        !is(f, "BatchGetItem")) {
        return NET_GOOD;
    }
    return net;
}

/* What the write that @p carries was decided to be. */
static void note_write(struct flight *p, const struct flight *f)
{
    const struct idem__task *task = f->task;
    const struct idem_decision *decision = &task->decision;
    const struct idem_record *record = &task->item.record;
    struct idem_op *copy = idem__op_clone(f->copy);

    copy->verdict = decision->verdict;
    copy->takeover = decision->takeover;
    if (task->extending) { /* The claim was made; its lease is set anew. */
        copy->verb = IDEM_OP_RENEW;
        copy->fence = record->fence;
        copy->u.renew.lease_ms = record->lease_ms;
    }
    p->copy = copy;
    p->saved = true;
    table_view(record,
               decision->set_result ? record->result.bytes : idem_str(""),
               &p->next.view);
    p->next.rev = 1;
    p->next.head_len = 0;
    p->next.result_len = 0;
    p->next.input_len = 0;
}

/* The service refuses it for its time: what nobody has told the time yet is signed
 * by the wall clock. */
static bool is_skewed(const struct flight *f)
{
    int64_t off_ms = f->client->host->wall_off_ms;

    return !process_of(f)->clock.known &&
           (off_ms > SIGNED_ERR_MS || off_ms < -SIGNED_ERR_MS);
}

/* One copy of the request that @f waits to be answered. NULL: too many are under
 * way. */
static struct flight *send_copy(struct world *w, struct flight *f, enum net net)
{
    const struct idem__aws_request *request = &f->task->request;
    struct flight *p = flight_create(w);

    if (p == NULL) {
        return NULL;
    }
    p->stage = FLIGHT_SENT;
    p->client = f->client;
    p->call = f->call;
    p->origin = f->origin;
    p->key = f->key;
    p->answers = f->no;
    p->request = f->request;
    p->net = net;
    p->sends = 1;
    p->target = request->target;
    idem__buffer_add(&p->body, request->body.base, request->body.len);
    p->now = f->now;
    p->truth_ms = f->truth_ms;
    p->sure_ms = f->sure_ms;
    p->true_ms = f->true_ms;
    p->by_wall = f->by_wall;
    p->sent_at = w->now;
    p->sent_boot_ms = deadline_mono_ms(w, f);
    p->due_at = w->now + flight_delay(w, net == NET_LATE);
    p->lost = net == NET_ANSWER_LOST;
    p->skewed = is_skewed(f);
    p->ask = ASK_READ;
    if (is(f, "PutItem")) {
        p->ask = ASK_WRITE;
        f->fresh = false;
        note_write(p, f);
    }
    note(w, EV_SEND, f->client, (int64_t)p->no, (int64_t)net);
    return p;
}

static void send(struct world *w, struct flight *f)
{
    enum net net = choose_net(w, f);
    struct flight *p = NULL;

    w->store_calls++;
    f->request = f->no << 8 | (++f->tries & 255);
    if (net != NET_NOT_SENT && net != NET_LOST) {
        p = send_copy(w, f, net);
        net = p == NULL ? NET_NOT_SENT : net;
    }
    if (net ==
        NET_TWICE) { /* The first connection was dead, or so it seemed. */
        struct flight *again = send_copy(w, f, NET_GOOD);

        p->lost = again != NULL;
        p->due_at += flight_delay(w, rng_chance(&w->rng, 500));
        if (again != NULL) {
            again->sends = 2;
            history_doubled(f);
        }
    }
    w->stats->net[net]++;
    f->stage = FLIGHT_WAITING;
    f->silent = net == NET_NOT_SENT;
    f->due_at = f->silent ? w->now + flight_delay(w, false)
                          : deadline_when(w, f, deadline_of_try(w, f));
}

/* ---- Going on ---- */

/* A decision is judged by what was known when it was made. */
static void note_decision(struct world *w, struct flight *f,
                          const struct idem_now *now, bool by_wall)
{
    const struct idem__task *task = f->task;

    bool decided = task->rounds != f->rounds;

    if (decided || (task->extending && !f->extending)) {
        f->now = *now;
        f->truth_ms = w->now;
        f->sure_ms = w->now;
        f->true_ms = w->now;
        f->by_wall = by_wall;
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
           code != IDEM_ENOMEM;
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
    struct idem__task *task = f->task;

    switch (task->next) {
    case IDEM__TASK_SEND:
        send(w, f);
        return;
    case IDEM__TASK_PAUSE:
        f->stage = FLIGHT_PAUSED;
        f->due_at = w->now + task->pause_ms;
        if (deadline_mono_ms(w, f) + task->pause_ms > deadline_of(w, f)) {
            f->due_at = deadline_when(w, f, deadline_of(w, f));
        }
        return;
    case IDEM__TASK_DONE:
        end(w, f);
        return;
    }
}

static void start(struct world *w, struct flight *f)
{
    struct idem_now now;
    bool by_wall;

    f->copy->store = f->op->store;
    f->copy->deadline_ms = f->op->deadline_ms;
    f->task = take_task(process_of(f));
    f->task->op = f->copy;
    f->rounds = 0;
    if (read_now(w, f, &now, &by_wall)) {
        idem__task_start(f->task, f->copy, &now);
        f->extending = false;
        note_decision(w, f, &now, by_wall);
    } else {
        idem__task_no_clock(f->task);
    }
    go_on(w, f);
}

static void resume(struct world *w, struct flight *f)
{
    struct idem_now now;
    bool by_wall;

    if (deadline_mono_ms(w, f) >= deadline_of(w, f)) {
        idem__task_give_up(f->task);
    } else if (read_now(w, f, &now, &by_wall)) {
        idem__task_resume(f->task, &now);
        note_decision(w, f, &now, by_wall);
    } else {
        idem__task_no_clock(f->task);
    }
    go_on(w, f);
}

/* ---- Answers ---- */

/* The task looks at what task->request holds. @p: what came; or NULL. */
static void look(struct world *w, struct flight *f, const struct flight *p)
{
    unsigned rounds = f->task->rounds;
    struct idem_now now;
    bool by_wall;

    f->asked = f->asked || p != NULL;
    if (read_now(w, f, &now, &by_wall)) {
        idem__task_answered(f->task, &now);
        note_decision(w, f, &now, by_wall);
        if (p != NULL && f->task->rounds != rounds) {
            f->fresh = f->task->next != IDEM__TASK_SEND || !is(f, "PutItem");
            f->before = p->before;
            f->flipped = p->flipped;
            f->body_flipped = p->body_flipped;
            if (f->flipped) {
                violate(w, "I19", "a damaged record is decided on");
            }
        } else if (p != NULL && f->copy->error.code == IDEM_ECORRUPT) {
            /* What was read after the last decision allowed none. */
            f->flipped = f->flipped || p->flipped;
            f->body_flipped = f->body_flipped || p->body_flipped;
        }
    } else {
        idem__task_no_clock(f->task);
    }
    if (f->task->next != IDEM__TASK_DONE &&
        deadline_mono_ms(w, f) >= deadline_of(w, f)) {
        idem__task_give_up(f->task);
    }
    go_on(w, f);
}

static struct flight *asker_of(struct world *w, const struct flight *p)
{
    unsigned i;

    for (i = 0; i < w->flights_len; i++) {
        struct flight *f = &w->flights[i];

        if (f->stage == FLIGHT_WAITING && f->no == p->answers &&
            f->request == p->request && !f->silent) {
            return f;
        }
    }
    return NULL;
}

/* The transport has learned the time from the refusal: it sends the very same
 * request once more. */
static void sign_anew(struct world *w, struct flight *p)
{
    w->stats->net[NET_SKEWED]++;
    p->skewed = false;
    p->stage = FLIGHT_SENT;
    p->sent_at = w->now;
    p->sent_boot_ms = host_boot_ms(w, p->client->host);
    p->due_at = w->now + flight_delay(w, /* late= */ false);
}

/* An answer is back at the process that asked. */
static void take_answer(struct world *w, struct flight *p)
{
    struct flight *f = asker_of(w, p);
    struct process *process = process_of(p);

    if (f == NULL) {
        flight_destroy(p); /* Nobody waits for it any more. */
        return;
    }
    (void)idem__aws_clock_learn(&process->clock, p->sent_boot_ms,
                                host_boot_ms(w, p->client->host), p->date_ms,
                                w->now + p->client->host->wall_off_ms);
    if (p->skewed && process->clock.known && w->now < f->due_at) {
        sign_anew(w, p);
        return;
    }
    if (p->skewed) {
        flight_destroy(p);
        return;
    }
    process->answered = true;
    wire_answer(&f->task->request, p->status, idem__buffer_slice(&p->answer));
    f->task->request.sends = p->sends;
    if (p->status == 500) {
        history_again(f);
    }
    look(w, f, p);
    flight_destroy(p);
}

static void time_is_up(struct world *w, struct flight *f)
{
    wire_silence(&f->task->request, !f->silent);
    if (!f->silent) {
        history_again(f);
    }
    look(w, f, NULL);
}

static void arrive(struct world *w, struct flight *p)
{
    if (w->now - p->sent_at > SIGNED_FOR_MS) {
        flight_destroy(p);
        return;
    }
    if (!p->skewed) {
        cloud_arrive(w, p);
    }
    p->date_ms = w->now / 1000 * 1000;
    if (p->lost || p->client == NULL) {
        flight_destroy(p);
        return;
    }
    p->stage = FLIGHT_BACK;
    p->due_at = w->now + flight_delay(w, fault(w, FAULT_DELAYED, 5));
}

void dynamodb_step(struct world *w, struct flight *f)
{
    switch (f->stage) {
    case FLIGHT_QUEUED:
        start(w, f);
        return;
    case FLIGHT_SENT:
        arrive(w, f);
        return;
    case FLIGHT_BACK:
        take_answer(w, f);
        return;
    case FLIGHT_WAITING:
        time_is_up(w, f);
        return;
    case FLIGHT_PAUSED:
        resume(w, f);
        return;
    case FLIGHT_FREE:
    case FLIGHT_LATENT:
        return;
    }
}
