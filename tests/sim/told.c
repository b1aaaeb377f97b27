/* Checks of answers; each is what a user could hold against us. */
#include "told.h"

#include "history.h"
#include "host.h"
#include "ledger.h"
#include "table.h"

enum {
    /* The clock goes on between a waiter's last look and the end of its call. */
    SLACK_MS = 600
};

void call_enter(struct client *client, struct key *key, int verb)
{
    struct world *w = client->world;
    struct call *call = &w->calls[w->calls_len];

    if (w->calls_len + 1 < CALLS_MAX) {
        w->calls_len++;
    }
    *call = (struct call){
        .key = key,
        .asked_ms = w->now,
        .boot_ms = host_boot_ms(w, client->host),
        .stalled_ms = client->stalled_ms,
    };
    if (key != NULL) {
        call->sight = key->seen;
        call->flips = key->flipped ? key->flips - 1 : key->flips;
    }
    client->call = call;
    history_call(client, key);
    note(w, EV_ASK, client, verb, key != NULL ? key->no : -1);
}

/* ---- Any answer ---- */

void call_op_over(const struct world *w, struct call *call, bool unsure)
{
    call->op_ms += w->now - call->op_since;
    call->unsure = call->unsure || unsure;
}

/* Beside its operations, each of which has the store's timeout, a caller waits
 * as long as it said; and, where an answer left it unsure, it pauses before it
 * asks again, for no longer than another timeout; twice, for a waiter may be so
 * at its first look and at its last. */
static void check_waited(struct client *c, int64_t wait_ms)
{
    const struct call *call = c->call;
    struct world *w = c->world;
    int64_t took = host_boot_ms(w, c->host) - call->boot_ms;
    int64_t excused = call->op_ms + c->stalled_ms - call->stalled_ms;
    int64_t most = wait_ms + (call->unsure ? 2 * w->config.timeout_ms : 0);

    if (took - excused > most + SLACK_MS) {
        violate(w, "I21", "a call took %lld ms where %lld ms would do",
                (long long)(took - excused), (long long)most);
    }
}

static void check_code(struct client *c, int rc)
{
    struct call *call = c->call;
    bool flipped = call->answer_flipped ||
                   (call->key != NULL && call->flips != call->key->flips);

    c->world->stats->codes[-rc]++;
    note(c->world, EV_TOLD, c, rc, 0);
    if (rc == IDEM_ECORRUPT && !flipped) {
        violate(c->world, "I19", "CORRUPT, and nobody touched the record");
    }
    if (rc == IDEM_EINVALID || rc == IDEM_ECONFIG || rc == IDEM_ENOMEM ||
        (rc == IDEM_EDENIED && c->world->config.mode != POSTGRES)) {
        violate(c->world, "API", "an answer that fits no call here: %s",
                idem_error_name(rc));
    }
    if (rc == IDEM_EUNAVAILABLE || rc == IDEM_EFULL || rc == IDEM_EDENIED) {
        call->nothing_done = true;
        if (call->applied) {
            violate(c->world, "I8",
                    "%s says that nothing was done, and it was done",
                    idem_error_name(rc));
        }
    }
}

void told_after(struct client *c, int rc, int64_t wait_ms)
{
    check_code(c, rc);
    check_waited(c, wait_ms);
}

void told_code(struct client *c, int rc)
{
    history_told(c, rc, /* attempt= */ NULL, /* record= */ NULL);
    told_after(c, rc, /* wait_ms= */ 0);
}

void told_resolved(struct client *c, int rc)
{
    history_told(c, rc, /* attempt= */ NULL, /* record= */ NULL);
    if (rc != IDEM_EINVALID) {
        told_after(c, rc, /* wait_ms= */ 0);
    }
}

/* ---- Records ---- */

static void check_identity(struct client *c, const struct idem_record *r)
{
    const struct name *name = c->call->key->name;

    if (hash_of(r->scope, 1) != hash_of(name->scope, 1) ||
        hash_of(r->key, 1) != hash_of(name->key, 1)) {
        violate(c->world, "I12", "the record of another key is shown");
    }
}

void told_see(struct key *key, const struct sight *now)
{
    struct sight *seen = &key->seen;

    if (now->fence > seen->fence ||
        (now->fence == seen->fence && now->completed && !seen->completed)) {
        *seen = *now;
    }
}

/* The invariant that is broken when there is less than was seen. */
static const char *less_id(const struct sight *sight)
{
    return sight->acknowledged ? "I6" : "I18";
}

/* A person has put back what was seen before this call, maybe while it was on. */
static bool is_put_back(const struct call *call)
{
    return call->sight.completed &&
           ledger_reopened(call->key, call->sight.fence, call->asked_ms);
}

/* The completion that @r shows, if it is one that counted during this call. */
static const struct completion *completion_shown(const struct call *call,
                                                 const struct idem_record *r)
{
    return ledger_recorded(call->key, r->fence, content_of(&r->result),
                           call->asked_ms);
}

/* What was reopened before its answer arrived is on record no more. */
static bool still_completed(const struct call *call,
                            const struct idem_record *r)
{
    const struct completion *shown = completion_shown(call, r);

    return r->status == IDEM_STATUS_COMPLETED &&
           (shown == NULL || shown->reopened_ms == IDEM_NEVER);
}

/* Nobody is shown less than anybody was shown before it asked. */
static void check_sight(struct client *c, const struct idem_record *r)
{
    const struct sight *sight = &c->call->sight;
    struct sight now = {
        .fence = r->fence,
        .completed = still_completed(c->call, r),
        .expires_ms = r->expires_ms,
    };

    if (c->call->key->imported_below || is_put_back(c->call)) {
        return; /* A person has put the clock back. */
    }
    if (now.fence < sight->fence ||
        (now.fence == sight->fence && sight->completed && !now.completed)) {
        violate(c->world, less_id(sight),
                "status %d with fence %llu is shown after fence %llu%s",
                (int)r->status, (unsigned long long)r->fence,
                (unsigned long long)sight->fence,
                sight->completed ? ", completed" : "");
    }
    told_see(c->call->key, &now);
}

/* There is no record: then what was completed is past its retention. */
static void check_none(struct client *c)
{
    const struct sight *sight = &c->call->sight;
    int64_t latest_ms = truth_sure_ms(c->world) + SAVE_EVERY_MS;

    if (sight->completed && latest_ms < sight->expires_ms &&
        !is_put_back(c->call)) {
        violate(c->world, less_id(sight),
                "what was completed is gone %lld ms early",
                (long long)(sight->expires_ms - latest_ms));
    }
}

void told_result(struct client *c, const struct idem_record *r)
{
    if (completion_shown(c->call, r) == NULL) {
        violate(c->world, "I7",
                "the result shown for fence %llu is not the "
                "one that was recorded",
                (unsigned long long)r->fence);
    }
    if (r->result.bytes.len > c->world->config.result_max) {
        violate(c->world, "I17", "a result that is too long was kept");
    }
    if (r->result.not_kept) {
        scene(c->world, SCENE_TOMBSTONE);
    }
}

void told_shown(struct client *c, const struct idem_record *r)
{
    check_identity(c, r);
    if (r->fence == 0) {
        check_none(c); /* A waiter is shown a record that is none. */
    } else {
        check_sight(c, r);
    }
}

void told_record(struct client *c, int rc, const struct idem_record *record)
{
    history_told(c, rc, /* attempt= */ NULL, record);
    told_after(c, rc, /* wait_ms= */ 0);
    if (rc == IDEM_EUNKNOWN) {
        violate(c->world, "API", "a read is answered as if it changed things");
    }
    if (rc == IDEM_ENOTFOUND) {
        check_none(c);
    }
    if (rc != 0) {
        return;
    }
    told_shown(c, record);
    if (record->status == IDEM_STATUS_COMPLETED) {
        told_result(c, record);
    }
}
