/* The life of a process. */
#include "client.h"

#include "door.h"
#include "flight.h"
#include "history.h"
#include "host.h"
#include "service.h"
#include "small.h"
#include "swizzle.h"

void client_start(struct world *w, struct client *client, coro_fn *run)
{
    unsigned i;

    client->state = CLIENT_READY;
    client->ready_at = w->now;
    client->paused_until = 0;
    client->stalled_ms = 0;
    client->learned.known = false;
    client->call = NULL;
    client->births++;
    client->killed = false;
    client->script_step = 0;
    client->told = client->births;
    client->random.state = client->births;
    for (i = 0; i < KEYS_MAX; i++) {
        client->cache[i].rev = 0;
    }
    memset(client->held, 0, sizeof(client->held));
    door_open(client);
    coro_start(&client->coro, run, client);
    note(w, EV_BORN, client, client->rounds, 0);
}

/* What a process leaves behind when it ends by itself. */
static void end(struct world *w, struct client *client)
{
    client->state = CLIENT_GONE;
    flight_orphan(w, client, /* crashed= */ false);
    service_gone(client);
    embedded_gone(client);
    heap_use(&client->heap);
    client->door.base.ops->close(&client->door.base);
    heap_use(&w->heap);
    if (client->heap.blocks != 0) {
        violate(w, "LEAK", "client %d leaves %zu blocks behind", client->no,
                client->heap.blocks);
    }
}

void client_crash(struct world *w, struct client *client)
{
    note(w, EV_CRASH, client, 0, 0);
    history_crash(client);
    client->state = CLIENT_GONE;
    client->coro.done = true;
    flight_orphan(w, client, /* crashed= */ true);
    service_gone(client);
    embedded_gone(client);
    memset(client->held, 0, sizeof(client->held));
    heap_reclaim(&client->heap);
}

bool client_ready(const struct world *w, const struct client *client)
{
    if (client->state == CLIENT_GONE || client->paused_until > w->now ||
        swizzle_holds_client(w, client)) {
        return false;
    }
    return client->state == CLIENT_READY || client->wake_at <= w->now;
}

void client_resume(struct world *w, struct client *client)
{
    if (client->state != CLIENT_READY) {
        client->ready_at = client->wake_at;
    }
    client->stalled_ms += w->now - client->ready_at;
    client->state = CLIENT_READY;
    client->ready_at = w->now;
    w->running = client;
    heap_use(&client->heap);
    coro_resume(&client->coro);
    heap_use(&w->heap);
    w->running = NULL;
    if (client->coro.done) {
        end(w, client);
    }
}

void client_block(struct client *client, enum client_state state, int64_t until)
{
    client->state = state;
    client->wake_at = until;
    coro_yield(&client->coro);
}

void client_sleep(struct client *client, int64_t ms)
{
    const struct world *w = client->world;
    int64_t until_boot = host_boot_ms(w, client->host) + ms;

    if (w->explore != NULL) {
        client_block(client, CLIENT_ASLEEP, small_wake(w, ms));
        return;
    }

    while (host_boot_ms(w, client->host) < until_boot) {
        int64_t until = host_when(client->host, until_boot);

        client_block(client, CLIENT_ASLEEP,
                     until > w->now ? until : w->now + 1);
    }
}

void client_wake(struct client *client)
{
    int64_t now = client->world->now;

    if (client->state == CLIENT_WAITING) {
        client->state = CLIENT_READY;
        client->ready_at = client->wake_at < now ? client->wake_at : now;
    }
}
