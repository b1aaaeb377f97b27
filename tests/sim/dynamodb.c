/* DynamoDB: each request of a task goes its own way through the network, as bytes. */
#include "service.h"

#include "../lib/wire.h"
#include "aws/client/clock.h"
#include "cloud.h"
#include "deadline.h"
#include "flight.h"
#include "history.h"
#include "host.h"

enum {
    SIGNED_ERR_MS = 15 * 60 * 1000,
    SIGNED_FOR_MS = 15 * 60 * 1000,
};

static struct idem__task_env envs[CLIENTS_MAX];

static struct idem__task *task_of(const struct flight *f)
{
    return (struct idem__task *)f->task;
}

static bool is(const struct idem__task *task, const char *operation)
{
    return strcmp(strchr(task->request.target, '.') + 1, operation) == 0;
}

/* ---- Tasks ---- */

static void born(struct process *process)
{
    struct idem__task_env *env = &envs[process->no];

    env->base.host = process->host;
    env->base.claims = process->claims;
    env->base.scratch = process->scratch;
    (void)strcpy(env->table.name, cloud_table);
    env->table.index = true;
}

static void init(struct idem__flight *task, const struct process *process)
{
    idem__task_init((struct idem__task *)task, &envs[process->no]);
}

static void reset(struct idem__flight *task)
{
    idem__task_reset((struct idem__task *)task);
}

static void free_task(struct idem__flight *task)
{
    idem__task_free((struct idem__task *)task);
}

/* ---- Sending ---- */

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
    if ((net == NET_NO_OLD_ITEM || net == NET_CONFLICT) &&
        !is(task_of(f), "PutItem")) {
        return NET_GOOD;
    }
    if (net == NET_LEFT_OVER && !is(task_of(f), "BatchWriteItem") &&
        !is(task_of(f), "BatchGetItem")) {
        return NET_GOOD;
    }
    return net;
}

/* The service refuses it for its time: what nobody has told the time yet is signed
 * by the wall clock. */
static bool is_skewed(const struct flight *f)
{
    int64_t off_ms = f->client->host->wall_off_ms;

    return !service_process(f)->clock.known &&
           (off_ms > SIGNED_ERR_MS || off_ms < -SIGNED_ERR_MS);
}

/* One copy of the request that @f waits to be answered. NULL: too many are under
 * way. */
static struct flight *send_copy(struct world *w, struct flight *f, enum net net)
{
    const struct idem__aws_request *request = &task_of(f)->request;
    struct flight *p = flight_create(w);

    if (p == NULL) {
        return NULL;
    }
    p->stage = FLIGHT_SENT;
    service_carry(p, f);
    p->answers = f->no;
    p->request = f->request;
    p->net = net;
    p->sends = 1;
    p->target = request->target;
    idem__buffer_add(&p->body, request->body.base, request->body.len);
    p->sent_at = w->now;
    p->sent_boot_ms = deadline_mono_ms(w, f);
    p->due_at = w->now + flight_delay(w, net == NET_LATE);
    p->lost = net == NET_ANSWER_LOST;
    p->skewed = is_skewed(f);
    p->ask = p->saved ? ASK_WRITE : ASK_READ;
    f->fresh = f->fresh && !p->saved;
    note(w, EV_SEND, f->client, (int64_t)p->no, (int64_t)net);
    return p;
}

static void ask(struct world *w, struct flight *f)
{
    enum net net = choose_net(w, f);
    struct flight *p = NULL;

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
    f->silent = net == NET_NOT_SENT;
    f->due_at = f->silent ? w->now + flight_delay(w, false)
                          : deadline_when(w, f, deadline_of_try(w, f));
}

/* ---- Answers ---- */

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
    struct process *process = service_process(p);

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
    wire_answer(&task_of(f)->request, p->status,
                idem__buffer_slice(&p->answer));
    task_of(f)->request.sends = p->sends;
    if (p->status == 500) {
        history_again(f);
    }
    service_look(w, f, p, /* shown= */ true);
    flight_destroy(p);
}

static void time_is_up(struct world *w, struct flight *f)
{
    wire_silence(&task_of(f)->request, !f->silent);
    if (!f->silent) {
        history_again(f);
    }
    service_look(w, f, NULL, /* shown= */ false);
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

static void step(struct world *w, struct flight *f)
{
    if (f->stage == FLIGHT_SENT) {
        arrive(w, f);
    } else if (f->stage == FLIGHT_BACK) {
        take_answer(w, f);
    } else {
        time_is_up(w, f);
    }
}

static void drop(struct flight *f)
{
    idem__buffer_free(&f->body);
    idem__buffer_free(&f->answer);
}

/* ---- Time ---- */

static int64_t ms(const struct world *w)
{
    return w->now;
}

static bool knows(const struct world *w, int64_t ms, int64_t err_ms,
                  int64_t *ret_ms)
{
    *ret_ms = w->now;
    return w->now >= ms - err_ms && w->now <= ms + err_ms;
}

const struct service dynamodb_service = {
    .open = cloud_open,
    .close = cloud_close,
    .born = born,
    .task_size = sizeof(struct idem__task),
    .init = init,
    .reset = reset,
    .free = free_task,
    .uncertain = {IDEM_ENOMEM},
    .ask = ask,
    .step = step,
    .drop = drop,
    .choose_flip = cloud_choose_flip,
    .flip = cloud_flip,
    .ms = ms,
    .latest_ms = ms,
    .knows = knows,
    .signed_err_ms = SIGNED_ERR_MS,
};
