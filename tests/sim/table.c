/* Records as encoded bytes, each version beside the one that it replaces. */
#include "table.h"

#include "host.h"
#include "ledger.h"

#include <assert.h>

uint64_t hash_of(struct idem_slice s, uint64_t hash)
{
    const uint8_t *p = s.base;
    size_t i;

    hash = (hash ^ s.len) * 0x100000001b3ULL;
    for (i = 0; i < s.len; i++) {
        hash = (hash ^ p[i]) * 0x100000001b3ULL;
    }
    return hash;
}

uint64_t content_of(const struct idem_result *result)
{
    uint64_t hash = result->not_kept ? 17 : 42;

    hash = hash_of(result->bytes, hash);
    hash = hash_of(result->content_type, hash);
    return hash_of(result->meta, hash) | 1;
}

void version_copy(struct version *to, const struct version *from)
{
    size_t used = from->head_len + from->result_len + from->input_len;

    memcpy(to, from, offsetof(struct version, bytes) + used);
}

/* ---- What the engine calls ---- */

static int load(void *ctx, const uint8_t *id, bool with_bodies,
                struct idem_record *ret_record, struct idem_error *ret_error)
{
    const struct look *table = ctx;
    const struct version *row = table->saved ? table->next : table->found;
    const uint8_t *bodies = row->bytes + row->head_len;
    int rc;

    if (row->rev == 0) {
        return 0;
    }
    rc = idem__record_decode(id, idem_bytes(row->bytes, row->head_len),
                             ret_record, ret_error);
    if (rc != 0) {
        return rc;
    }
    ret_record->scope = table->name->scope;
    ret_record->key = table->name->key;
    if (with_bodies) {
        ret_record->result.bytes = idem_bytes(bodies, row->result_len);
        ret_record->input =
            idem_bytes(bodies + row->result_len, row->input_len);
        rc = idem__verb_check_bodies(ret_record, ret_error);
    }
    return rc != 0 ? rc : 1;
}

/* True if a time of @r goes behind an earlier one of it. */
static bool times_back(const struct idem_record *r)
{
    size_t i;

    for (i = 0; i < r->history_len; i++) {
        if (r->history[i].ended_ms < r->history[i].started_ms) {
            return true;
        }
    }
    return r->started_ms < r->created_ms ||
           (r->ended_ms != 0 && r->ended_ms < r->started_ms) ||
           (r->history_len > 0 && r->history[0].fence != r->fence &&
            r->started_ms < r->history[0].ended_ms);
}

void table_view(const struct idem_record *record, struct idem_slice result,
                struct view *view)
{
    struct idem_result whole = record->result;

    whole.bytes = result;
    *view = (struct view){
        .exists = true,
        .not_kept = record->result.not_kept,
        .by_lease = record->by_lease,
        .retry = record->retry,
        .times_back = times_back(record),
        .status = record->status,
        .policy = record->on_expired_lease,
        .attempts = record->attempts,
        .retried = record->retried,
        .failures = record->failures,
        .in_doubt = record->in_doubt,
        .fence = record->fence,
        .lease_ms = record->lease_ms,
        .lease_end_ms = record->lease_end_ms,
        .lease_end_boot_ms = record->lease_end_boot_ms,
        .expected_ms = record->expected_ms,
        .expires_ms = record->expires_ms,
        .retention_ms = record->retention_ms,
        .content = content_of(&whole),
        .text = hash_of(record->error, hash_of(record->note, 1)),
    };
    memcpy(view->nonce, record->nonce, sizeof(view->nonce));
    memcpy(view->boot_id, record->boot_id, sizeof(view->boot_id));
    view->reopened = record->retry && record->history_len > 0 &&
                     record->history[0].end == IDEM_PAST_REOPENED &&
                     record->history[0].fence == record->fence;
    if (view->reopened || (record->history_len > 0 &&
                           record->history[0].end == IDEM_PAST_RESOLVED &&
                           record->history[0].fence == record->fence)) {
        view->resolved_by = hash_of(record->history[0].owner, 1) | 1;
    }
    if (record->fingerprint.len > 0) {
        view->fingerprint = hash_of(record->fingerprint, 1) | 1;
    }
}

static struct idem_slice body(const struct version *row, bool input)
{
    const uint8_t *at = row->bytes + row->head_len;

    return input ? idem_bytes(at + row->result_len, row->input_len)
                 : idem_bytes(at, row->result_len);
}

static void append(uint8_t **at, struct idem_slice s)
{
    if (s.len > 0) {
        memcpy(*at, s.base, s.len);
        *at += s.len;
    }
}

static int save(void *ctx, const struct idem_decision *decision,
                struct idem_error *ret_error)
{
    struct look *table = ctx;
    struct version *next = table->next;
    bool replace = decision->change == IDEM_CHANGE_REPLACE;
    struct idem_slice result = decision->next.result.bytes;
    struct idem_slice input = decision->next.input;
    uint8_t *at;
    int rc;

    table->blind = replace != (table->found->rev != 0);
    if (table->full) {
        ret_error->code = IDEM_EFULL;
        return IDEM_EFULL;
    }
    table->keeps_result = replace && !decision->set_result;
    if (table->keeps_result) {
        result = body(table->found, /* input= */ false);
    }
    if (replace && !decision->set_input) {
        input = body(table->found, /* input= */ true);
    }
    rc = idem__record_encode(&decision->next, next->bytes, ROW_MAX,
                             &next->head_len);
    assert(rc == 0 && next->head_len + result.len + input.len <= ROW_MAX);
    next->result_len = result.len;
    next->input_len = input.len;
    at = next->bytes + next->head_len;
    append(&at, result);
    append(&at, input);
    table_view(&decision->next, result, &next->view);
    next->rev = 1; /* A better one is given when it is stored. */
    table->saved = true;
    return rc;
}

struct idem_table table_of(struct look *table)
{
    table->saved = false;
    table->blind = false;
    return (struct idem_table){.load = load, .save = save, .ctx = table};
}

/* ---- Storing and purging ---- */

/* As SQLite's clock row: saved with a write, and with each deletion. */
static void written(struct world *w, bool deleted)
{
    int64_t sure_ms = truth_sure_ms(w);

    w->writes++;
    if (sure_ms >= w->saved_ms + SAVE_EVERY_MS ||
        (deleted && sure_ms > w->saved_ms)) {
        w->saved_ms = sure_ms;
    }
}

void table_store(struct world *w, struct key *key, const struct version *next)
{
    struct version *row = &key->rows[key->at ^ 1];

    version_copy(row, next);
    row->rev = ++w->rev;
    key->at ^= 1;
    key->flipped = false;
    written(w, false);
    note(w, EV_COMMIT, NULL, key->no, (int64_t)row->rev);
    note(w, EV_STATUS, NULL, (int64_t)row->view.status,
         (int64_t)row->view.fence);
    note(w, EV_LEASE, NULL, row->view.lease_end_ms, row->view.expires_ms);
}

void table_forget(struct world *w, struct key *key, int64_t truth)
{
    const struct view *view = &stored(key)->view;

    if (view->expires_ms == IDEM_NEVER || truth < view->expires_ms) {
        violate(w, "I23", "purge took a record %lld ms before its time",
                (long long)(view->expires_ms - truth));
    }
    if (!ledger_may_be_gone(w, key)) {
        violate(w, "I23", "purge took a record too early by true time");
    }
    if (view->fence > w->fence_floor && w->config.mode == EMBEDDED) {
        w->fence_floor = view->fence;
    }
    note(w, EV_PURGE, NULL, key->no, (int64_t)view->fence);
    scene(w, SCENE_PURGED);
    key->rows[key->at].rev = 0;
    key->rows[key->at].view.exists = false;
    written(w, true);
}

void table_purge(struct world *w, struct idem_op *op,
                 const struct idem_now *now, int64_t truth)
{
    struct idem_record record;
    unsigned i;

    for (i = 0; i < w->config.keys; i++) {
        struct key *key = &w->keys[i];
        struct look table = {.name = key->name, .found = stored(key)};

        if (op->u.purge.purged < op->u.purge.max &&
            load(&table, key->name->id, false, &record, &op->error) == 1 &&
            idem__decide_expired(&record, now)) {
            table_forget(w, key, truth);
            op->u.purge.purged++;
        }
    }
    op->error.code = 0; /* What cannot be read stays where it is. */
    op->u.purge.done = op->u.purge.purged < op->u.purge.max;
}
