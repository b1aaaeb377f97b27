/* Records, claims and moments that tests begin with and then change. */
#include "sample.h"

#include "core/identity.h"
#include "test.h"

const enum idem_status sample_ends[SAMPLE_ENDS] = {
    IDEM_STATUS_COMPLETED, IDEM_STATUS_FAILED, IDEM_STATUS_UNKNOWN,
    IDEM_STATUS_RELEASED,  IDEM_STATUS_RETRY,
};

struct idem_now sample_now(void)
{
    struct idem_now now = {
        .store_ms = NOW_MS,
        .boot_ms = NOW_BOOT_MS,
        .margin_ms = 5000,
    };

    memset(now.boot_id, 'A', sizeof(now.boot_id));
    return now;
}

void sample_lease(struct idem_record *record, int64_t left_ms)
{
    record->lease_end_ms = NOW_MS + left_ms;
    record->lease_end_boot_ms = NOW_BOOT_MS + left_ms;
}

struct idem_record sample_record(void)
{
    struct idem_record record = {
        .scope = idem_str("shop"),
        .key = idem_str("order-42"),
        .status = IDEM_STATUS_IN_PROGRESS,
        .on_expired_lease = IDEM_HOLD,
        .owner = idem_str("host/1"),
        .fence = 41,
        .attempts = 1,
        .created_ms = NOW_MS - 10000,
        .started_ms = NOW_MS - 10000,
        .lease_ms = 60000,
        .expires_ms = IDEM_NEVER,
        .retention_ms = 3600000,
    };

    assert_ok(idem_id(record.scope, record.key, record.id));
    memset(record.nonce, 'n', sizeof(record.nonce));
    memset(record.boot_id, 'A', sizeof(record.boot_id));
    sample_lease(&record, 50000);
    return record;
}

struct idem_result sample_result(void)
{
    return (struct idem_result){
        .bytes = idem_str("done"),
        .content_type = idem_str("text/plain"),
        .meta = idem_str("exit=0"),
    };
}

struct idem_record sample_ended(enum idem_status status, int64_t retention_ms)
{
    struct idem_record record = sample_record();

    if (status == IDEM_STATUS_RETRY) {
        return sample_retry();
    }
    record.status = status;
    record.ended_ms = NOW_MS - 5000;
    if (status == IDEM_STATUS_COMPLETED) {
        record.result = sample_result();
        record.result_len = record.result.bytes.len;
        assert_ok(idem__body_digest(record.result.bytes, record.result_digest));
    }
    if (status == IDEM_STATUS_FAILED) {
        record.error = idem_str("card refused");
    }
    if (status == IDEM_STATUS_COMPLETED || status == IDEM_STATUS_RELEASED) {
        record.expires_ms = record.ended_ms + retention_ms;
    }
    return record;
}

struct idem_record sample_retry(void)
{
    struct idem_record record = sample_record();

    record.retry = true;
    record.retried = 1;
    record.failures = 1;
    record.ended_ms = NOW_MS - 5000;
    record.note = idem_str("the bank was away");
    sample_lease(&record, -5000);
    record.lease_ms = 0;
    return record;
}

struct idem_record sample_smallest(void)
{
    struct idem_record record = {
        .scope = idem_str(""),
        .key = idem_str("k"),
        .status = IDEM_STATUS_IN_PROGRESS,
        .on_expired_lease = IDEM_RERUN,
        .fence = 1,
        .attempts = 1,
    };

    assert_ok(idem_id(record.scope, record.key, record.id));
    return record;
}

struct idem_record sample_largest(void)
{
    static uint8_t bytes[IDEM_META_MAX];
    struct idem_record record = sample_record();
    size_t i;

    for (i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)i;
    }
    record.status = IDEM_STATUS_COMPLETED;
    record.on_expired_lease = IDEM_RERUN;
    record.owner = idem_bytes(bytes, IDEM_OWNER_MAX);
    record.traceparent = idem_bytes(bytes, IDEM_TRACEPARENT_LEN);
    record.fence = INT64_MAX;
    record.in_doubt = INT64_MAX;
    record.attempts = record.retried = UINT32_MAX;
    record.created_ms = record.started_ms = record.lease_ms = IDEM_NEVER;
    record.lease_end_ms = record.lease_end_boot_ms = IDEM_NEVER;
    record.expected_ms = record.ended_ms = IDEM_NEVER;
    record.expires_ms = record.retention_ms = IDEM_NEVER;
    record.fingerprint = idem_bytes(bytes + 1, IDEM_FINGERPRINT_LEN);
    record.result.content_type = idem_bytes(bytes, 255);
    record.result.meta = idem_bytes(bytes, IDEM_META_MAX);
    record.result_len = IDEM_RESULT_MAX;
    record.error = idem_bytes(bytes, IDEM_TEXT_MAX);
    record.note = idem_bytes(bytes + 7, IDEM_TEXT_MAX);
    record.input_len = IDEM_RESULT_MAX;
    record.history_len = IDEM_HISTORY_MAX;
    for (i = 0; i < IDEM_HISTORY_MAX; i++) {
        record.history[i] = (struct idem_past){
            .owner = idem_bytes(bytes + i, IDEM_OWNER_MAX),
            .fence = (uint64_t)INT64_MAX - i,
            .started_ms = IDEM_NEVER,
            .ended_ms = IDEM_NEVER,
            .end = (enum idem_past_end)(1 + i % 5),
            .was = i % 5 == 4 ? IDEM_STATUS_COMPLETED : 0,
            .meta = idem_bytes(bytes + 2 * i, IDEM_PAST_META_MAX),
            .text = idem_bytes(bytes + 3 * i, IDEM_PAST_TEXT_MAX),
        };
    }
    memset(record.nonce, 0xff, sizeof(record.nonce));
    memset(record.boot_id, 0xff, sizeof(record.boot_id));
    memset(record.result_digest, 0xff, sizeof(record.result_digest));
    memset(record.input_digest, 0xff, sizeof(record.input_digest));
    return record;
}

struct idem_op sample_begin(void)
{
    struct idem_record record = sample_record();
    struct idem_op op = {
        .verb = IDEM_OP_BEGIN,
        .scope = record.scope,
        .key = record.key,
        .has_nonce = true,
        .u.begin = IDEM_REQUEST_INIT,
    };

    memcpy(op.id, record.id, sizeof(op.id));
    memset(op.nonce, 'm', sizeof(op.nonce));
    op.u.begin.scope = op.scope;
    op.u.begin.key = op.key;
    op.u.begin.owner = idem_str("host/2");
    op.u.begin.on_expired_lease = IDEM_HOLD;
    return op;
}

struct idem_op sample_end(void)
{
    struct idem_record record = sample_record();
    struct idem_op op = {
        .verb = IDEM_OP_END,
        .scope = record.scope,
        .key = record.key,
        .has_nonce = true,
        .fence = record.fence,
        .u.end = {.status = IDEM_STATUS_COMPLETED, .result = sample_result()},
    };

    memcpy(op.id, record.id, sizeof(op.id));
    memcpy(op.nonce, record.nonce, sizeof(op.nonce));
    return op;
}

struct idem_op sample_resolve(void)
{
    struct idem_op op = sample_end();

    op.verb = IDEM_OP_RESOLVE;
    memset(op.nonce, 'p', sizeof(op.nonce));
    memset(&op.u, 0, sizeof(op.u));
    op.u.resolve.outcome.status = IDEM_STATUS_FAILED;
    op.u.resolve.outcome.text = idem_str("the bank says no");
    op.u.resolve.who = idem_str("ann");
    return op;
}

struct idem_limit_request sample_limit(void)
{
    struct idem_limit_request limit = IDEM_LIMIT_INIT;

    limit.name = idem_str("uploads");
    limit.subject = idem_str("u1");
    limit.request = idem_str("r1");
    limit.at_ms = LIMIT_AT_MS;
    limit.per_ms = IDEM_LIMIT_DAY;
    limit.max = 8;
    return limit;
}

struct idem_decision sample_decide(const struct idem_record *found,
                                   const struct idem_op *op,
                                   const struct idem_now *now)
{
    static void (*const decides[])(const struct idem_record *,
                                   const struct idem_op *,
                                   const struct idem_now *,
                                   struct idem_decision *) = {
        [IDEM_OP_BEGIN] = idem__decide_begin,
        [IDEM_OP_END] = idem__decide_end,
        [IDEM_OP_RENEW] = idem__decide_renew,
        [IDEM_OP_EXPIRE] = idem__decide_expire,
        [IDEM_OP_IMPORT] = idem__decide_import,
        [IDEM_OP_RESOLVE] = idem__decide_resolve,
    };
    /* The decision owns its note, so it must outlive this call. */
    static struct idem_decision decision;
    struct idem_now at = now == NULL ? sample_now() : *now;

    memset(&decision, 0x5a, sizeof(decision));
    decides[op->verb](found, op, &at, &decision);
    return decision;
}

#define assert_same(member)                                                    \
    do {                                                                       \
        if (a->member != b->member) {                                          \
            fail_with(#member " differs: %lld and %lld", (long long)a->member, \
                      (long long)b->member);                                   \
        }                                                                      \
    } while (0)

static void same_numbers(const struct idem_record *a,
                         const struct idem_record *b)
{
    assert_same(status);
    assert_same(on_expired_lease);
    assert_same(fence);
    assert_same(attempts);
    assert_same(created_ms);
    assert_same(started_ms);
    assert_same(lease_ms);
    assert_same(lease_end_ms);
    assert_same(lease_end_boot_ms);
    assert_same(expected_ms);
    assert_same(ended_ms);
    assert_same(expires_ms);
    assert_same(retention_ms);
    assert_same(result.not_kept);
    assert_same(by_lease);
    assert_same(retry);
    assert_same(retried);
    assert_same(failures);
    assert_same(in_doubt);
    assert_same(result_len);
    assert_same(input_len);
    assert_same(history_len);
}

void assert_same_record(const struct idem_record *a,
                        const struct idem_record *b)
{
    size_t i;

    same_numbers(a, b);
    assert_slice(a->scope, b->scope);
    assert_slice(a->key, b->key);
    assert_slice(a->owner, b->owner);
    assert_slice(a->fingerprint, b->fingerprint);
    assert_slice(a->result.content_type, b->result.content_type);
    assert_slice(a->result.meta, b->result.meta);
    assert_slice(a->error, b->error);
    assert_slice(a->note, b->note);
    assert_slice(a->traceparent, b->traceparent);
    assert_slice(a->unknown_fields, b->unknown_fields);
    assert_memory_equal(a->id, b->id, sizeof(a->id));
    assert_memory_equal(a->nonce, b->nonce, 16);
    assert_memory_equal(a->boot_id, b->boot_id, 16);
    assert_memory_equal(a->result_digest, b->result_digest, 16);
    assert_memory_equal(a->input_digest, b->input_digest, 16);
    for (i = 0; i < a->history_len; i++) {
        assert_slice(a->history[i].owner, b->history[i].owner);
        assert_same(history[i].fence);
        assert_same(history[i].started_ms);
        assert_same(history[i].ended_ms);
        assert_same(history[i].end);
        assert_same(history[i].was);
        assert_slice(a->history[i].meta, b->history[i].meta);
        assert_slice(a->history[i].text, b->history[i].text);
    }
}
