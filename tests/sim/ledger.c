/* Claims, completions, owners and effects of each key. */
#include "ledger.h"

#include "queue/op.h"
#include "host.h"
#include "table.h"

#include <idem/operator.h>

struct start *ledger_start(struct key *key, uint64_t fence)
{
    unsigned i = key->starts_len;

    while (i-- > 0) {
        if (key->starts[i].fence == fence) {
            return &key->starts[i];
        }
    }
    return NULL;
}

bool ledger_silent(struct key *key, uint64_t fence)
{
    const struct start *start = ledger_start(key, fence);

    return start != NULL && start->silent && !start->resolved;
}

const struct completion *ledger_completion(const struct key *key,
                                           uint64_t fence)
{
    unsigned i = key->completions_len;

    while (i-- > 0) {
        if (key->completions[i].fence == fence) {
            return &key->completions[i];
        }
    }
    return NULL;
}

const struct completion *ledger_recorded(const struct key *key, uint64_t fence,
                                         uint64_t content, int64_t since_ms)
{
    unsigned i = key->completions_len;

    while (i-- > 0) {
        const struct completion *each = &key->completions[i];

        if (each->fence == fence && each->content == content &&
            each->reopened_ms >= since_ms) {
            return each;
        }
    }
    return NULL;
}

static bool is_reopened(const struct completion *completion)
{
    return completion->reopened_ms != IDEM_NEVER;
}

bool ledger_reopened(const struct key *key, uint64_t fence, int64_t since_ms)
{
    const struct completion *newest = ledger_completion(key, fence);
    unsigned i;

    if (newest != NULL && is_reopened(newest)) {
        return true;
    }
    for (i = 0; i < key->completions_len; i++) {
        const struct completion *each = &key->completions[i];

        if (each->fence == fence && is_reopened(each) &&
            each->reopened_ms >= since_ms) {
            return true;
        }
    }
    return false;
}

/* ---- Owners ---- */

bool ledger_live(const struct held *held)
{
    return held->attempt != NULL && !held->over &&
           idem_attempt_lease_left_ms(held->attempt) > 0;
}

bool ledger_lease_runs(const struct client *c, const struct held *held)
{
    const struct idem__attempt *a = idem__attempt_of(held->attempt);

    return !held->over &&
           idem__attempt_lease_end(a) > host_boot_ms(c->world, c->host);
}

/* Nobody is pushed aside while its own count of the lease, margin and all, is
 * not over. */
static void check_pushed_aside(struct world *w, const struct flight *f)
{
    unsigned i;
    unsigned n;

    for (i = 0; i < w->config.clients; i++) {
        struct client *c = &w->clients[i];

        for (n = 0; n < HELD_MAX; n++) {
            const struct held *held = &c->held[n];

            if (held->attempt != NULL && held->key == f->key &&
                held->fence == f->before.fence && ledger_lease_runs(c, held)) {
                violate(w, "I9",
                        "client %d has %lld ms left of its lease, and lost it",
                        c->no,
                        (long long)idem_attempt_lease_left_ms(held->attempt));
            }
        }
    }
}

void ledger_started(struct client *c, const struct held *held)
{
    struct world *w = c->world;
    unsigned i;
    unsigned n;

    if (!ledger_live(held)) {
        return; /* The answer came so late that it knows better. */
    }
    for (i = 0; i < w->config.clients; i++) {
        for (n = 0; n < HELD_MAX; n++) {
            const struct held *other = &w->clients[i].held[n];

            if (other != held && other->key == held->key &&
                ledger_live(other)) {
                violate(w, "I1",
                        "client %d owns key %d with fence %llu and client %d "
                        "with fence %llu",
                        c->no, held->key->no, (unsigned long long)held->fence,
                        (int)i, (unsigned long long)other->fence);
            }
        }
    }
}

/* ---- Writes ---- */

static void note_claim(struct world *w, const struct flight *f)
{
    const struct view *b = &f->before;
    const struct view *a = &f->next.view;
    struct key *key = f->key;
    struct start *start = &key->starts[key->starts_len];
    const struct start *before = b->exists ? ledger_start(key, b->fence) : NULL;
    bool goes_on = before != NULL && a->attempts == b->attempts + 1;
    bool takeover = goes_on && b->status == IDEM_STATUS_IN_PROGRESS;

    if (b->exists && b->status == IDEM_STATUS_IN_PROGRESS) {
        check_pushed_aside(w, f);
    }
    *start = (struct start){
        .fence = a->fence,
        .chain = takeover ? before->chain : ++w->chains,
        .silent = takeover || (goes_on && ledger_silent(key, b->fence)),
    };
    memcpy(start->nonce, f->copy->nonce, sizeof(start->nonce));
    if (key->starts_len + 1 < STARTS_MAX) {
        key->starts_len++;
    }
    if (f->copy->u.begin.lease_ms == IDEM_NEVER) {
        scene(w, SCENE_FOREVER);
    }
}

static void note_completion(struct key *key, const struct view *view)
{
    struct completion *completion = &key->completions[key->completions_len];

    if (key->completions_len + 1 < STARTS_MAX) {
        key->completions_len++;
    }
    *completion =
        (struct completion){view->fence, view->content, view->expires_ms,
                            /* reopened_ms= */ IDEM_NEVER};
}

/* What was completed with @fence may be done again from now on. */
static void note_reopened(struct world *w, struct key *key, uint64_t fence)
{
    unsigned i;

    for (i = 0; i < key->completions_len; i++) {
        struct completion *each = &key->completions[i];

        if (each->fence == fence && !is_reopened(each)) {
            each->reopened_ms = w->now;
        }
    }
    if (key->seen.fence == fence) {
        key->seen.completed = false;
    }
}

/* What was decided with @fence is another thing from now on, under a fence of its
 * own. */
static void note_correction(struct world *w, struct key *key, uint64_t fence,
                            const struct view *after)
{
    const struct start *before = ledger_start(key, fence);

    if (before != NULL) {
        key->starts[key->starts_len] = *before;
        key->starts[key->starts_len].fence = after->fence;
        memcpy(key->starts[key->starts_len].nonce, after->nonce, 16);
        if (key->starts_len + 1 < STARTS_MAX) {
            key->starts_len++;
            key->corrections++;
        }
    }
    note_reopened(w, key, fence);
    if (key->effect_fence == fence) {
        key->effect_fence = after->fence;
        key->effect_settled = false;
    }
}

static void note_resolved(struct world *w, struct key *key,
                          const struct view *before, const struct view *after,
                          bool forced)
{
    struct start *start;

    if (after->fence != before->fence) {
        note_correction(w, key, before->fence, after);
    }
    start = ledger_start(key, after->fence);

    if (start != NULL) {
        start->resolved = true;
        start->forced = forced;
    }
    if (after->retry) {
        note_reopened(w, key, after->fence);
        key->effect_settled |= key->effect_fence == after->fence;
    }
    ledger_over(w, key, after->fence, after->status);
}

static void note_import(struct key *key, const struct view *before,
                        const struct view *after)
{
    struct start *start = &key->starts[key->starts_len];

    *start = (struct start){
        .fence = after->fence,
        .told = true,
        .over = true,
        .silent = before->exists && after->in_doubt != 0 &&
                  ledger_silent(key, before->fence),
    };
    memcpy(start->nonce, after->nonce, sizeof(start->nonce));
    if (key->starts_len + 1 < STARTS_MAX) {
        key->starts_len++;
    }
    if (after->fence <= key->fence_max) {
        key->imported_below = true;
    }
}

/* What is counted from a time that is in doubt is kept as long, whatever comes of
 * the doubt. */
static void note_kept(struct key *key, const struct flight *f)
{
    int64_t expires_ms = f->next.view.expires_ms;

    key->kept.from_ms = f->true_ms;
    key->kept.until_ms = expires_ms == IDEM_NEVER
                             ? IDEM_NEVER
                             : f->true_ms + expires_ms - f->truth_ms;
}

/* A clock that is ahead, and that nothing ever puts right, is believed when as much
 * time has passed as it was ahead: so half of the time has passed at least. */
bool ledger_may_be_gone(const struct world *w, const struct key *key)
{
    const struct kept *kept = &key->kept;
    int64_t passed_ms = w->now - kept->from_ms;
    int64_t length_ms = kept->until_ms - kept->from_ms;

    if (!w->config.doubtful) {
        return true;
    }
    if (kept->until_ms == IDEM_NEVER) {
        return false;
    }
    return passed_ms >= (w->believed ? length_ms / 2 : length_ms);
}

void ledger_write(struct world *w, const struct flight *f)
{
    const struct view *after = &f->next.view;
    struct key *key = f->key;

    w->checking = true;
    if (f->copy->verb == IDEM_OP_BEGIN) {
        bool same = f->before.exists && f->before.fence == after->fence;

        if (after->status == IDEM_STATUS_IN_PROGRESS && !same) {
            note_claim(w, f);
        } else if (after->status != IDEM_STATUS_IN_PROGRESS) {
            check_pushed_aside(w, f);
        }
    }
    if (f->copy->verb == IDEM_OP_RESOLVE) {
        note_resolved(w, key, &f->before, after,
                      (f->copy->u.resolve.flags & IDEM_RESOLVE_FORCE) != 0 &&
                          f->before.status == IDEM_STATUS_IN_PROGRESS &&
                          !f->before.retry);
    }
    if (f->copy->verb == IDEM_OP_IMPORT) {
        note_import(key, &f->before, after);
    }
    if (after->status == IDEM_STATUS_COMPLETED) {
        note_completion(key, after);
    }
    if (after->fence > key->fence_max) {
        key->fence_max = after->fence;
    }
    note_kept(key, f);
    w->checking = false;
}

/* ---- Effects ---- */

/* Completed work may be done again when its retention is over. */
static bool retention_is_over(struct world *w, const struct key *key,
                              uint64_t fence)
{
    const struct completion *completion = ledger_completion(key, fence);

    return completion != NULL && (is_reopened(completion) ||
                                  (completion->expires_ms != IDEM_NEVER &&
                                   truth_sure_ms(w) >= completion->expires_ms));
}

void ledger_effect(struct client *c, const struct held *held,
                   enum idem_on_expired_lease policy)
{
    const struct idem__attempt *a = idem__attempt_of(held->attempt);
    struct world *w = c->world;
    struct key *key = held->key;

    note(w, EV_EFFECT, c, key->no, (int64_t)held->fence);
    if (a->lease_end_boot_ms - host_boot_ms(w, c->host) <
        (w->config.mode == EMBEDDED ? EMBEDDED_STOP_MS : REMOTE_STOP_MS)) {
        violate(w, "I10", "an effect begins too late before the lease ends");
    }
    if (held->over) {
        return; /* A person decided meanwhile, and did not ask the owner. */
    }
    if (ledger_start(key, held->fence) == NULL) {
        violate(w, "I14", "an effect begins and there is no claim for it");
    }
    if (key->effect_fence >= held->fence) {
        violate(w, "I16", "an effect begins after one with fence %llu",
                (unsigned long long)key->effect_fence);
    }
    if (key->effect_held && !key->effect_settled &&
        !retention_is_over(w, key, key->effect_fence)) {
        violate(w, "I15",
                "an effect begins, and how the one before ended is not known");
    }
    key->effects++;
    if (key->effects > key->starts_len - key->corrections) {
        violate(w, "I16", "more effects than fences");
    }
    key->effect_fence = held->fence;
    key->effect_held = policy == IDEM_HOLD;
    key->effect_settled = false;
}

void ledger_over(struct world *w, struct key *key, uint64_t fence,
                 enum idem_status status)
{
    struct start *start = ledger_start(key, fence);
    unsigned i;
    unsigned n;

    if (start != NULL) {
        start->over = true;
    }
    if (key->effect_fence == fence &&
        (status == IDEM_STATUS_RELEASED || status == IDEM_STATUS_RETRY)) {
        key->effect_settled = true;
    }
    for (i = 0; i < w->config.clients; i++) {
        for (n = 0; n < HELD_MAX; n++) {
            struct held *held = &w->clients[i].held[n];

            if (held->key == key && held->fence == fence) {
                held->over = true;
            }
        }
    }
}

/* ---- At the end ---- */

static void check_kept(struct world *w, const struct key *key)
{
    const struct sight *seen = &key->seen;
    const struct version *row = stored(key);
    const struct completion *completion = ledger_completion(key, seen->fence);
    const char *id = seen->acknowledged ? "I6" : "I18";

    if (!seen->completed || completion == NULL || is_reopened(completion) ||
        key->imported_below || truth_sure_ms(w) >= seen->expires_ms) {
        return;
    }
    if (row->rev == 0 || row->view.fence < seen->fence) {
        violate(w, id, "what was completed with fence %llu is gone",
                (unsigned long long)seen->fence);
    } else if (row->view.fence == seen->fence &&
               (row->view.status != IDEM_STATUS_COMPLETED ||
                row->view.content != completion->content)) {
        violate(w, id, "what was completed with fence %llu is another thing",
                (unsigned long long)seen->fence);
    }
}

void ledger_kept(struct world *w)
{
    unsigned i;

    for (i = 0; i < w->config.keys; i++) {
        check_kept(w, &w->keys[i]);
    }
}
