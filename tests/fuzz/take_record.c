/* Records and moments from an input: all that a store could meet. */
#include "contract/store.h"
#include "core/identity.h"
#include "core/record.h"
#include "fuzz.h"

static void take_array(struct tape *tape, uint8_t *array, size_t len)
{
    uint8_t like = take_u8(tape);
    size_t i;

    for (i = 0; i < len; i++) {
        array[i] = like < 250 ? like : take_u8(tape);
    }
}

static void take_times(struct tape *tape, struct idem_record *r)
{
    r->created_ms = take_ms(tape);
    r->started_ms = take_ms(tape);
    r->lease_ms = take_ms(tape);
    r->lease_end_ms = take_ms(tape);
    r->lease_end_boot_ms = take_ms(tape);
    r->expected_ms = take_ms(tape);
    r->ended_ms = take_ms(tape);
    r->expires_ms = take_ms(tape);
    r->retention_ms = take_ms(tape);
}

static void take_body(struct tape *tape, struct idem_slice *ret_bytes,
                      uint64_t *ret_len, uint8_t digest[16])
{
    *ret_bytes = take_bytes(tape, 4096);
    *ret_len = ret_bytes->len;
    must(idem__body_digest(*ret_bytes, digest) == 0);
}

static void take_history(struct tape *tape, struct idem_record *r)
{
    size_t i;

    r->history_len = take_up_to(tape, IDEM_HISTORY_MAX);
    for (i = 0; i < r->history_len; i++) {
        r->history[i] = (struct idem_past){
            .owner = take_bytes(tape, IDEM_OWNER_MAX),
            .fence = take_u64(tape),
            .started_ms = take_ms(tape),
            .ended_ms = take_ms(tape),
            .end = (enum idem_past_end)(IDEM_PAST_RELEASED +
                                        (int)take_up_to(tape, 4)),
            .was = (enum idem_status)take_up_to(tape, IDEM_STATUS_RELEASED),
            .meta = take_bytes(tape, IDEM_PAST_META_MAX),
            .text = take_bytes(tape, IDEM_PAST_TEXT_MAX),
        };
    }
}

static uint64_t take_fence(struct tape *tape)
{
    static const uint64_t turning[] = {
        1, 2, FUZZ_NOW_MS, FUZZ_NOW_MS + 1, INT64_MAX - 1, INT64_MAX,
    };
    uint8_t which = take_u8(tape);
    uint64_t fence;

    if (which < 192) {
        return turning[which % (sizeof(turning) / sizeof(turning[0]))];
    }
    fence = take_u64(tape) >> 1;
    return fence > 0 ? fence : 1;
}

static uint32_t take_attempts(struct tape *tape)
{
    uint8_t n = take_u8(tape);

    if (n < 250) {
        return 1 + n % 8u;
    }
    return n < 252 ? UINT32_MAX : UINT32_MAX - n;
}

void take_record(struct tape *tape, struct idem_record *ret_record)
{
    struct idem_record *r = ret_record;
    uint8_t flags = take_u8(tape);

    memset(r, 0, sizeof(*r));
    r->scope = take_bytes(tape, IDEM_SCOPE_MAX);
    r->key = take_bytes(tape, IDEM_KEY_MAX);
    if (r->key.len == 0) {
        r->key = idem_str("k");
    }
    must(idem_id(r->scope, r->key, r->id) == 0);
    r->status =
        (enum idem_status)(IDEM_STATUS_IN_PROGRESS + (int)take_up_to(tape, 4));
    r->on_expired_lease = (flags & 1) != 0 ? IDEM_RERUN : IDEM_HOLD;
    r->by_lease = (flags & 2) != 0;
    r->owner = take_bytes(tape, IDEM_OWNER_MAX);
    r->fence = take_fence(tape);
    r->attempts = take_attempts(tape);
    take_times(tape, r);
    take_array(tape, r->nonce, sizeof(r->nonce));
    take_array(tape, r->boot_id, sizeof(r->boot_id));
    if ((flags & 4) != 0 && tape->left >= IDEM_FINGERPRINT_LEN) {
        r->fingerprint = idem_bytes(tape->at, IDEM_FINGERPRINT_LEN);
        tape->at += IDEM_FINGERPRINT_LEN;
        tape->left -= IDEM_FINGERPRINT_LEN;
    }
    r->result.content_type = take_bytes(tape, 255);
    r->result.meta = take_bytes(tape, IDEM_META_MAX);
    r->error = take_bytes(tape, IDEM_TEXT_MAX);
    r->note = take_bytes(tape, IDEM_TEXT_MAX);
    take_history(tape, r);
    r->failures = (flags & 128) != 0 ? 2 : 0;
    if (r->status != IDEM_STATUS_IN_PROGRESS || r->failures > 0) {
        r->result.not_kept = (flags & 8) != 0;
        if (!r->result.not_kept) {
            take_body(tape, &r->result.bytes, &r->result_len, r->result_digest);
        }
    }
    take_body(tape, &r->input, &r->input_len, r->input_digest);
    if (r->status == IDEM_STATUS_IN_PROGRESS && (flags & 16) != 0) {
        r->retry = true;
        r->by_lease = false;
    }
    r->retried = (flags & 32) != 0 ? 1 : 0;
    r->in_doubt = (flags & 64) != 0 ? r->fence : 0;
    r->traceparent = take_bytes(tape, IDEM_TRACEPARENT_LEN);
    must(idem__record_fault(r) == NULL);
}

static bool same_numbers(const struct idem_record *a,
                         const struct idem_record *b)
{
    return a->status == b->status &&
           a->on_expired_lease == b->on_expired_lease && a->fence == b->fence &&
           a->attempts == b->attempts && a->created_ms == b->created_ms &&
           a->started_ms == b->started_ms && a->lease_ms == b->lease_ms &&
           a->lease_end_ms == b->lease_end_ms &&
           a->lease_end_boot_ms == b->lease_end_boot_ms &&
           a->expected_ms == b->expected_ms && a->ended_ms == b->ended_ms &&
           a->expires_ms == b->expires_ms &&
           a->retention_ms == b->retention_ms && a->by_lease == b->by_lease &&
           a->retry == b->retry && a->retried == b->retried &&
           a->failures == b->failures && a->in_doubt == b->in_doubt &&
           a->result.not_kept == b->result.not_kept &&
           a->result_len == b->result_len && a->input_len == b->input_len &&
           a->history_len == b->history_len;
}

static bool same_past(const struct idem_past *a, const struct idem_past *b)
{
    return same_bytes(a->owner, b->owner) && a->fence == b->fence &&
           a->started_ms == b->started_ms && a->ended_ms == b->ended_ms &&
           a->end == b->end && a->was == b->was &&
           same_bytes(a->meta, b->meta) && same_bytes(a->text, b->text);
}

bool same_record(const struct idem_record *a, const struct idem_record *b)
{
    size_t i;

    if (!same_numbers(a, b)) {
        return false;
    }
    for (i = 0; i < a->history_len; i++) {
        if (!same_past(&a->history[i], &b->history[i])) {
            return false;
        }
    }
    return same_bytes(a->scope, b->scope) && same_bytes(a->key, b->key) &&
           same_bytes(a->owner, b->owner) &&
           same_bytes(a->traceparent, b->traceparent) &&
           same_bytes(a->fingerprint, b->fingerprint) &&
           same_bytes(a->result.bytes, b->result.bytes) &&
           same_bytes(a->result.content_type, b->result.content_type) &&
           same_bytes(a->result.meta, b->result.meta) &&
           same_bytes(a->error, b->error) && same_bytes(a->note, b->note) &&
           same_bytes(a->input, b->input) &&
           same_bytes(a->unknown_fields, b->unknown_fields) &&
           memcmp(a->id, b->id, IDEM_ID_LEN) == 0 &&
           memcmp(a->nonce, b->nonce, 16) == 0 &&
           memcmp(a->boot_id, b->boot_id, 16) == 0 &&
           memcmp(a->result_digest, b->result_digest, 16) == 0 &&
           memcmp(a->input_digest, b->input_digest, 16) == 0;
}

static int64_t between(int64_t ms, int64_t min, int64_t max)
{
    return ms < min ? min : ms > max ? max : ms;
}

/* Some way from both ends of time: a store checks its clock when it reads it. */
void take_now(struct tape *tape, struct idem_now *ret_now)
{
    static const int64_t errors[] = {0, 1, 250, 600000};
    static const int64_t margins[] = {0, 2000, 5000};

    memset(ret_now, 0, sizeof(*ret_now));
    ret_now->store_ms = between(take_ms(tape), 1000000, IDEM_NEVER / 4);
    ret_now->store_err_ms = errors[take_up_to(tape, 3)];
    ret_now->boot_ms = between(take_ms(tape), 0, IDEM_NEVER / 4);
    take_array(tape, ret_now->boot_id, sizeof(ret_now->boot_id));
    ret_now->margin_ms = margins[take_up_to(tape, 2)];
    ret_now->fence_floor = take_bool(tape) ? take_fence(tape) : 0;
}
