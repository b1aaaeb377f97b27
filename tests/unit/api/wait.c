/* Waiting for another's attempt. On a host with a sleep of its own a waiter polls
 * with it, so that what happens meanwhile is the test's to say. */
#include "contract/store.h"
#include "claims.h"
#include "host.h"
#include "script.h"
#include "test.h"

#include <idem/operator.h>

/* What happens in which sleep of the waiter. */
struct event {
    unsigned sleep; /* Its number, from 1; 0: none. */
    void (*happens)(struct event *event, struct host *host);
    int64_t lease_ms; /* The owner's; 0: as always. */
    struct host host;
    struct idem_store *store;
    struct idem_request request;
    struct idem_attempt *owner;
    struct idem_attempt *next; /* Whoever began in between. */
    uint64_t next_fence;
    struct idem_attempt *waiter;
};

static void on_sleep(void *ctx, struct host *host)
{
    struct event *event = ctx;

    if (host->sleeps == event->sleep) {
        event->happens(event, host);
    }
}

/* A store with an attempt of the owner's. */
static void open_event(struct event *event, enum idem_on_expired_lease policy)
{
    struct idem_open_options options;

    host_init(&event->host);
    event->host.on_sleep = on_sleep;
    event->host.ctx = event;
    options = host_options(&event->host, true);
    event->store = open_memory(&options);
    event->request = claim("k");
    event->request.on_expired_lease = policy;
    if (event->lease_ms != 0) {
        event->request.lease_ms = event->lease_ms;
    }
    event->owner = begin(event->store, &event->request, IDEM_STARTED);
}

static void wait_for(struct event *event, int64_t wait_ms)
{
    event->request.wait_ms = wait_ms;
    assert_ok(idem_begin(event->store, &event->request, &event->waiter, &why));
    freed_later(event->waiter);
}

static void complete_it(struct event *event, struct host *host)
{
    (void)host;
    assert_ok(complete(event->owner, "done"));
}

static void fail_it(struct event *event, struct host *host)
{
    (void)host;
    assert_ok(idem_fail(event->owner, idem_str("no"), NULL, &why));
}

static void make_unknown(struct event *event, struct host *host)
{
    (void)host;
    assert_ok(idem_unknown(event->owner, idem_str("?"), &why));
}

static void release(struct event *event, struct host *host)
{
    (void)host;
    assert_ok(idem_release(event->owner, idem_str("later"), &why));
}

static void begin_again(struct event *event, int64_t lease_ms)
{
    struct idem_request request = rerun("k");

    request.lease_ms = lease_ms;
    event->next = begin(event->store, &request, IDEM_STARTED);
    event->next_fence = event->next->fence;
}

static void release_and_begin(struct event *event, struct host *host)
{
    release(event, host);
    begin_again(event, 60000);
}

static void end_lease(struct event *event, struct host *host)
{
    (void)event;
    host_pass(host, 60000);
}

/* The lease ends, another caller takes over and completes soon after. */
static void complete_next(struct event *event, struct host *host)
{
    (void)host;
    assert_ok(complete(event->next, "by the second"));
}

static void take_over(struct event *event, struct host *host)
{
    end_lease(event, host);
    begin_again(event, 60000);
    assert_true(event->next->takeover);
    event->sleep = host->sleeps + 3;
    event->happens = complete_next;
}

static void purge(struct event *event, struct host *host)
{
    uint64_t purged;

    complete_it(event, host);
    host_pass(host, 86400000);
    assert_ok(idem_purge(event->store, 0, &purged, &why));
    assert_int_equal(purged, 1);
}

/* ---- The table ---- */

/* What a waiter is told when this happens in its fourth sleep. */
TEST(wait, answersWhatHappened)
{
    static const struct {
        const char *what;
        void (*happens)(struct event *event, struct host *host);
        enum idem_on_expired_lease policy;
        unsigned flags;
        enum idem_verdict want;
        bool takeover;
    } rows[] = {
        {"completed", complete_it, IDEM_HOLD, 0, IDEM_REPLAY, false},
        {"failed", fail_it, IDEM_HOLD, 0, IDEM_FAILED, false},
        {"unknown", make_unknown, IDEM_HOLD, 0, IDEM_UNKNOWN, false},
        {"released", release, IDEM_HOLD, 0, IDEM_RELEASED, false},
        {"released, and begun by another", release_and_begin, IDEM_RERUN, 0,
         IDEM_RELEASED, false},
        {"lease over under hold", end_lease, IDEM_HOLD, 0, IDEM_UNKNOWN, false},
        {"lease over under rerun", end_lease, IDEM_RERUN, 0, IDEM_BUSY, false},
        {"taken over and completed", take_over, IDEM_RERUN, 0, IDEM_REPLAY,
         false},
        {"completed and forgotten", purge, IDEM_HOLD, 0, IDEM_RELEASED, false},
        {"completed", complete_it, IDEM_HOLD, IDEM_WAIT_THEN_RUN, IDEM_REPLAY,
         false},
        {"released", release, IDEM_HOLD, IDEM_WAIT_THEN_RUN, IDEM_STARTED,
         false},
        {"lease over under rerun", end_lease, IDEM_RERUN, IDEM_WAIT_THEN_RUN,
         IDEM_STARTED, true},
        {"lease over under hold", end_lease, IDEM_HOLD, IDEM_WAIT_THEN_RUN,
         IDEM_UNKNOWN, false},
    };

    EACH(row, rows) {
        struct event event = {.sleep = 4, .happens = row->happens};

        open_event(&event, row->policy);
        event.request.flags = row->flags;
        /* Where nobody comes it waits its time out. */
        wait_for(&event, row->want == IDEM_BUSY ? 120000 : 200000000);
        if (event.waiter->verdict != row->want ||
            event.waiter->takeover != row->takeover) {
            fail_with("%s (flags %u): %s%s", row->what, row->flags,
                      idem_verdict_name(event.waiter->verdict),
                      event.waiter->takeover ? ", a takeover" : "");
        }
    }
}

/* ---- Outages ---- */

/* A store that is away from one sleep of the waiter to another; in that its owner
 * ends its attempt. */
struct outage {
    struct script script;
    struct host host;
    struct idem_attempt *owner;
    unsigned from;
    unsigned until;
    bool is_away;
    unsigned refused;
};

static enum script_does serve(struct script *script, struct idem_op *op)
{
    struct outage *outage = script->ctx;

    if (outage->is_away) {
        outage->refused++;
        (void)idem__op_fail(op, IDEM_EUNAVAILABLE, "it is away");
    } else {
        script_relay(script, op);
    }
    return SCRIPT_ANSWERS;
}

static void come_and_go(void *ctx, struct host *host)
{
    struct outage *outage = ctx;

    if (host->sleeps == outage->from) {
        outage->is_away = true;
    } else if (host->sleeps == outage->until) {
        outage->is_away = false;
        if (outage->owner != NULL) {
            assert_ok(complete(outage->owner, "done"));
        }
    }
}

static struct idem_store *open_away(struct outage *outage, bool remote)
{
    struct idem_open_options options;
    struct idem_store *store;

    host_init(&outage->host);
    outage->host.on_sleep = come_and_go;
    outage->host.ctx = outage;
    options = host_options(&outage->host, true);
    store = script_open(&outage->script, serve, &options);
    store->remote = remote;
    outage->script.ctx = outage;
    return store;
}

/* A store that does not answer at the first look: on this host others keep it busy,
 * and are waited for; across a network it may be away for good. */
TEST(wait, beginsInAnOutage)
{
    struct outage outage = {.until = 4, .is_away = true};
    struct idem_request request = claim("k");
    struct idem_store *store = open_away(&outage, true);
    struct idem_attempt *attempt;

    request.wait_ms = 5000;
    assert_code(IDEM_EUNAVAILABLE, idem_begin(store, &request, &attempt, &why));
    assert_int_equal(outage.host.sleeps, 0);
    store->remote = false;
    expect(store, &request, IDEM_STARTED);
    assert_int_equal(outage.host.sleeps, 4);
    idem_close(store);
}

/* After a long wait it looks about once a second. */
TEST(wait, growsRare)
{
    struct event event = {.lease_ms = IDEM_NEVER};

    open_event(&event, IDEM_HOLD);
    wait_for(&event, 1000000);
    assert_int_equal(event.waiter->verdict, IDEM_BUSY);
    assert_true(event.host.sleeps >= 1000 && event.host.sleeps < 2000);
}

/* Bounded by the caller's time, it polls more seldom as it goes on. */
TEST(wait, endsAtItsTime)
{
    struct event event = {.sleep = 0};

    open_event(&event, IDEM_HOLD);
    wait_for(&event, 10000);
    assert_int_equal(event.waiter->verdict, IDEM_BUSY);
    assert_int_equal(event.waiter->lease_left_ms, 50000);
    assert_int_equal(event.host.slept_ms, 10000);
    assert_true(event.host.sleeps >= 40 && event.host.sleeps < 100);
}
