/* submit, cancel, drive and close, as "contract/store.h" asks of a store. */
#include "door.h"

#include "client.h"
#include "../lib/clone.h"
#include "flight.h"
#include "history.h"
#include "host.h"
#include "queue/op.h"
#include "service.h"
#include "state.h"
#include "told.h"

#include <assert.h>
#include <idem/queue.h>

static const struct idem_store_ops door_ops;

static struct client *client_of(struct idem_store *base)
{
    assert(base->ops == &door_ops);
    return ((struct door *)base)->client;
}

static struct key *key_of(struct world *w, const struct idem_op *op)
{
    unsigned i;

    if (op->verb == IDEM_OP_PURGE) {
        return NULL;
    }
    for (i = 0; memcmp(w->keys[i].name->id, op->id, IDEM_ID_LEN) != 0; i++) {
        assert(i + 1 < w->config.keys);
    }
    return &w->keys[i];
}

/* Of the claim that @op may have made, if it is asked for again. The op itself is not given
 * it: no claim is given back here that nobody wants. */
static uint64_t known_fence(const struct call *call, const struct idem_op *op)
{
    bool same = memcmp(call->unsure_nonce, op->nonce, sizeof(op->nonce)) == 0;

    return same ? call->unsure_fence : 0;
}

static int door_submit(struct idem_store *base, struct idem_op *op)
{
    struct client *c = client_of(base);
    struct world *w = c->world;
    struct flight *f = flight_create(w);

    if (f == NULL) {
        return IDEM_EUNAVAILABLE;
    }
    w->stats->ops++;
    c->call->op_since = w->now;
    f->stage = FLIGHT_QUEUED;
    f->client = c;
    f->op = op;
    f->call = c->call;
    f->origin = c->call;
    f->key = key_of(w, op);
    f->due_at = w->now + flight_delay(w, fault(w, FAULT_DELAYED, 10));
    heap_use(&w->heap);
    f->copy = clone_op(op);
    if (op->verb == IDEM_OP_BEGIN) {
        f->copy->fence = known_fence(c->call, op);
    }
    f->copy->asked_boot_ms = op->asked_boot_ms;
    f->copy->store = op->store;
    heap_use(&c->heap);
    note(w, EV_SUBMIT, c, op->verb, (int64_t)f->no);
    history_submit(c, op);
    return 0;
}

static enum idem_cancel door_cancel(struct idem_store *base, struct idem_op *op)
{
    struct world *w = client_of(base)->world;
    struct flight *f = w->flights;
    enum idem_cancel how;

    while (f->stage == FLIGHT_FREE || f->op != op) {
        f++;
        assert(f < w->flights + w->flights_len);
    }
    note(w, EV_CANCEL, f->client, (int64_t)f->no, f->stage);
    call_op_over(w, f->client->call, /* unsure= */ f->stage != FLIGHT_QUEUED);
    if (f->stage == FLIGHT_QUEUED) {
        flight_destroy(f);
        w->stats->faults[FAULT_TAKEN_BACK]++;
        state_told(client_of(base), IDEM_CANCEL_TAKEN_BACK);
        return IDEM_CANCEL_TAKEN_BACK;
    }
    how = idem__op_detach(op);
    state_told(client_of(base), how);
    w->stats->faults[FAULT_TIMED_OUT]++;
    return how;
}

static void door_drive(struct idem_store *base, struct idem_queue *queue,
                       int64_t deadline_ms)
{
    struct client *c = client_of(base);
    int64_t until = INT64_MAX;

    if (idem__queue_ready(queue)) {
        return;
    }
    if (deadline_ms != IDEM_NEVER) {
        until = host_when(c->host, deadline_ms);
        until = until > c->world->now ? until : c->world->now + 1;
    }
    client_block(c, CLIENT_WAITING, until);
}

static void door_close(struct idem_store *base)
{
    idem__store_finish(base);
}

static const struct idem_store_ops door_ops = {
    .name = "simulated",
    .submit = door_submit,
    .cancel = door_cancel,
    .drive = door_drive,
    .close = door_close,
};

void door_open(struct client *client)
{
    const struct config *config = &client->world->config;
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    int rc;

    options.timeout_ms = config->timeout_ms;
    options.result_max = config->result_max;
    options.host = host_hooks(client);
    heap_use(&client->heap); /* What the store keeps goes with its process. */
    rc = idem__store_init(&client->door.base, &door_ops, &options, NULL);
    heap_use(&client->world->heap);
    assert(rc == 0);
    client->door.base.margin_ms =
        config->mode == EMBEDDED ? EMBEDDED_STOP_MS : REMOTE_STOP_MS;
    client->door.base.remote = config->mode != EMBEDDED;
    client->door.client = client;
    service_born(client);
}
