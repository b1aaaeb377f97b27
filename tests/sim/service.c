/* Drives the tasks of a service's store. */
#include "service.h"

#include "base/heap.h"
#include "../lib/clone.h"
#include "deadline.h"
#include "flight.h"
#include "history.h"
#include "judge.h"
#include "queue/op.h"
#include "store/remote/remote.h"
#include "table.h"

#include <stdalign.h>

/* A task, kept for the next operation. */
struct spare {
    const struct service *service;
    struct spare *next;
    alignas(max_align_t) uint8_t task[];
};

/* The time that a decision may use, and what it is in truth. */
struct moment {
    struct idem_now now;
    int64_t truth_ms;
    bool by_wall;
};

static struct process processes[CLIENTS_MAX];
static struct heap claims_heap;
static uint8_t scratch[IDEM_HEAD_MAX];

const struct service *service_of(enum mode mode)
{
    const struct service *const services[MODES] = {
        [DYNAMODB] = &dynamodb_service,
        [POSTGRES] = &postgres_service,
    };

    return services[mode];
}

/* ---- Processes ---- */

unsigned service_host(const struct world *w, unsigned no)
{
    return w->config.threads ? no / 2 * 2 : no;
}

bool service_together(const struct client *a, const struct client *b)
{
    return a->host == b->host;
}

static struct process *process_of(const struct client *c)
{
    return &processes[service_host(c->world, (unsigned)c->no)];
}

struct process *service_process(const struct flight *f)
{
    return process_of(f->client);
}

/* Another client of @c's process that is alive, or NULL. */
static struct client *other_of(const struct client *c)
{
    struct world *w = c->world;
    unsigned i;

    for (i = 0; i < w->config.clients; i++) {
        struct client *other = &w->clients[i];

        if (other != c && service_together(other, c) &&
            other->state != CLIENT_GONE) {
            return other;
        }
    }
    return NULL;
}

/* They are large: each is made once, and emptied for the next process. */
static struct idem__claims *empty_claims(struct world *w,
                                         struct idem__claims *claims)
{
    unsigned i;

    if (claims == NULL) {
        heap_use(&claims_heap);
        claims = idem__claims_create();
        heap_use(&w->heap);
    }
    for (i = 0; i < KEYS_MAX; i++) {
        idem__claims_forget(claims, w->keys[i].name->id);
    }
    return claims;
}

void service_born(struct client *c)
{
    const struct service *service = service_of(c->world->config.mode);
    struct process *process = process_of(c);

    if (service == NULL || other_of(c) != NULL) {
        return; /* The latter: a thread more. */
    }
    *process = (struct process){
        .no = (unsigned)(process - processes),
        .host = c->door.base.options.host,
        .claims = empty_claims(c->world, process->claims),
        .scratch = scratch,
    };
    service->born(process);
}

static struct idem__flight *task_in(struct spare *spare)
{
    return (struct idem__flight *)(void *)spare->task;
}

static void free_spare(struct spare *spare)
{
    spare->service->free(task_in(spare));
    idem__free(spare);
}

void service_gone(struct client *c)
{
    struct process *process = process_of(c);

    if (service_of(c->world->config.mode) == NULL || other_of(c) != NULL) {
        return;
    }
    while (process->spare != NULL) {
        struct spare *spare = process->spare;

        process->spare = spare->next;
        free_spare(spare);
    }
}

bool service_hand_over(const struct client *c, struct flight *f)
{
    struct client *other = other_of(c);

    if (other == NULL || f->carries == CARRIES_NOTHING) {
        return false;
    }
    f->client = other;
    return true;
}

/* ---- Tasks ---- */

static struct spare *spare_of(struct idem__flight *task)
{
    return (struct spare *)((uint8_t *)task - offsetof(struct spare, task));
}

static struct idem__flight *take_task(const struct service *service,
                                      struct process *process)
{
    struct spare *spare = process->spare;

    if (spare != NULL) {
        process->spare = spare->next;
    } else {
        spare = idem__zalloc(sizeof(*spare) + service->task_size);
        spare->service = service;
        service->init(task_in(spare), process);
    }
    return task_in(spare);
}

static void spare_task(struct flight *f)
{
    struct process *process = service_process(f);
    struct spare *spare = spare_of(f->task);

    f->service->reset(f->task);
    spare->next = process->spare;
    process->spare = spare;
    f->task = NULL;
}

void service_drop(struct flight *f)
{
    if (f->service != NULL) {
        f->service->drop(f);
    }
    if (f->task != NULL) {
        free_spare(spare_of(f->task));
        f->task = NULL;
    }
}

/* ---- Time ---- */

/* As the stores read it. False: the clock does not answer. */
static bool read_now(struct world *w, const struct flight *f,
                     struct moment *moment)
{
    const struct process *process = service_process(f);
    const struct service *service = f->service;
    struct idem_now *now = &moment->now;

    if (process->missed_time ||
        idem__remote_now(&process->host, &process->clock,
                         process->answered ? service->signed_err_ms
                                           : IDEM__REMOTE_GUESS_ERR_MS,
                         now) != 0) {
        return false;
    }
    now->fence_floor = process->fence_floor;
    moment->truth_ms = service->ms(w);
    moment->by_wall = !process->clock.known;
    if (moment->by_wall) {
        w->stats->faults[FAULT_WALL_TRUSTED]++;
    } else if (!service->knows(w, now->store_ms, now->store_err_ms,
                               &moment->truth_ms)) {
        violate(w, "SIM", "the learned interval misses the truth");
    }
    return true;
}

/* ---- Decisions ---- */

/* It asks for a write of a record. */
static bool writes(const struct flight *f)
{
    return f->task->state == IDEM__STATE_WRITE;
}

static bool carries(const struct flight *f)
{
    return f->service->carries != NULL && f->service->carries(f->task);
}

/* A decision is judged by what was known when it was made: by now a task, but for a
 * purge that is carrying out one. */
static void note_decision(struct world *w, struct flight *f, bool carries,
                          const struct moment *moment)
{
    const struct idem__flight *task = f->task;
    bool decided = task->rounds != f->rounds;
    bool extends = task->extending && !f->extending;

    if (decided || extends || (f->key == NULL && !carries)) {
        f->now = moment->now;
        f->truth_ms = moment->truth_ms;
        f->sure_ms = moment->truth_ms;
        f->true_ms = w->now;
        f->by_wall = moment->by_wall;
    }
    if (extends || (task->extending && decided)) {
        history_made(f);
    }
    f->rounds = task->rounds;
    f->extending = task->extending;
}

void service_carry(struct flight *p, const struct flight *f)
{
    const struct idem__flight *task = f->task;
    struct idem_op *copy;

    p->client = f->client;
    p->call = f->call;
    p->origin = f->origin;
    p->key = f->key;
    p->now = f->now;
    p->truth_ms = f->truth_ms;
    p->sure_ms = f->sure_ms;
    p->true_ms = f->true_ms;
    p->by_wall = f->by_wall;
    if (!writes(f)) {
        return;
    }
    copy = clone_op(f->copy);
    copy->verdict = task->decision.verdict;
    copy->takeover = task->decision.takeover;
    if (task->extending) { /* The claim was made; its lease is set anew. */
        copy->verb = IDEM_OP_RENEW;
        copy->fence = task->next_record->fence;
        copy->u.renew.lease_ms = task->next_record->lease_ms;
    }
    p->copy = copy;
    p->saved = true;
    table_view(task->next_record,
               task->decision.set_result ? task->next_record->result.bytes
                                         : idem_str(""),
               &p->next.view);
    p->keeps_result = !task->decision.set_result;
    p->next.rev = 1;
    p->next.head_len = 0;
    p->next.result_len = 0;
    p->next.input_len = 0;
}

/* ---- Going on ---- */

static bool is_certain(const struct flight *f)
{
    size_t i = 0;

    while (f->service->uncertain[i] != 0) {
        if (f->copy->error.code == f->service->uncertain[i++]) {
            return false;
        }
    }
    return f->copy->error.code != IDEM_EUNAVAILABLE &&
           f->copy->error.code != IDEM_EUNKNOWN;
}

static void end(struct world *w, struct flight *f)
{
    f->saved = false;
    /* But that what an import brings is past its retention. */
    if (!f->asked && is_certain(f) && f->copy->verb != IDEM_OP_IMPORT) {
        violate(w, "I18", "an answer was given without asking the table");
    }
    if (f->fresh && is_certain(f)) {
        judge(w, f);
    }
    spare_task(f);
    flight_answer(w, f);
}

static void go_on(struct world *w, struct flight *f)
{
    const struct idem__flight *task = f->task;

    switch (task->next) {
    case IDEM__FLIGHT_SEND:
        w->store_calls++;
        f->request = f->no << 8 | (++f->tries & 255);
        f->stage = FLIGHT_WAITING;
        f->service->ask(w, f);
        return;
    case IDEM__FLIGHT_PAUSE:
        f->stage = FLIGHT_PAUSED;
        f->due_at = w->now + task->pause_ms;
        if (deadline_mono_ms(w, f) + task->pause_ms > deadline_of(w, f)) {
            f->due_at = deadline_when(w, f, deadline_of(w, f));
        }
        return;
    case IDEM__FLIGHT_DONE:
        end(w, f);
        return;
    }
}

static void start(struct world *w, struct flight *f)
{
    struct moment moment;

    f->copy->store = f->op->store;
    f->copy->deadline_ms = f->op->deadline_ms;
    f->task = take_task(f->service, service_process(f));
    f->task->op = f->copy;
    f->rounds = 0;
    if (read_now(w, f, &moment)) {
        idem__flight_start(f->task, &moment.now);
        f->extending = false;
        note_decision(w, f, /* carries= */ false, &moment);
    } else {
        idem__flight_no_clock(f->task);
    }
    go_on(w, f);
}

static void resume(struct world *w, struct flight *f)
{
    bool carried = carries(f);
    struct moment moment;

    if (deadline_mono_ms(w, f) >= deadline_of(w, f)) {
        idem__flight_give_up(f->task);
    } else if (read_now(w, f, &moment)) {
        idem__flight_resume(f->task, &moment.now);
        note_decision(w, f, carried, &moment);
    } else {
        idem__flight_no_clock(f->task);
    }
    go_on(w, f);
}

void service_look(struct world *w, struct flight *f, const struct flight *seen,
                  bool shown)
{
    const struct idem__flight *task = f->task;
    unsigned rounds = task->rounds;
    struct moment moment;

    f->asked = f->asked || seen != NULL;
    if (read_now(w, f, &moment)) {
        idem__flight_answered(f->task, &moment.now);
        note_decision(w, f, carries(f), &moment);
        if (seen != NULL && task->rounds != rounds) {
            f->fresh = !writes(f);
            f->before = seen->before;
            f->flipped = seen->flipped && shown;
            f->body_flipped = seen->body_flipped && shown;
            if (f->flipped) {
                violate(w, "I19", "a damaged record is decided on");
            }
        } else if (seen != NULL && f->copy->error.code == IDEM_ECORRUPT) {
            /* What was read after the last decision allowed none. */
            f->flipped = f->flipped || seen->flipped;
            f->body_flipped = f->body_flipped || seen->body_flipped;
        }
    } else {
        idem__flight_no_clock(f->task);
    }
    if (f->task->next != IDEM__FLIGHT_DONE &&
        deadline_mono_ms(w, f) >= deadline_of(w, f)) {
        idem__flight_give_up(f->task);
    }
    go_on(w, f);
}

void service_step(struct world *w, struct flight *f)
{
    const struct service *service = f->service;
    const struct process *process =
        f->stage != FLIGHT_SENT ? service_process(f) : NULL;

    switch (f->stage) {
    case FLIGHT_QUEUED:
        start(w, f);
        break;
    case FLIGHT_PAUSED:
        resume(w, f);
        break;
    case FLIGHT_SENT:
    case FLIGHT_BACK:
    case FLIGHT_WAITING:
        service->step(w, f);
        break;
    case FLIGHT_FREE:
    case FLIGHT_LATENT:
        break;
    }
    if (process != NULL && service->work != NULL) {
        service->work(w, process);
    }
}
