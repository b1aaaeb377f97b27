/* Items of other libraries: ours come back as they went, theirs stand for what they
 * say, and one that both had a hand in is theirs. */
#include "aws/dynamodb/layout/foreign.h"

#include "core/decide.h"
#include "core/identity.h"
#include "core/record.h"
#include "sample.h"
#include "test.h"

#include <idem/form.h>

#define PYTHON (&idem__foreign_powertools.kind)
#define TYPESCRIPT (&idem__foreign_powertools_native.kind)
#define LOCK_TOKEN (&idem__foreign_lock_token.kind)
#define IDEMPOTENCY_STORE (&idem__foreign_idempotency_store.kind)
#define HTTP_IDEMPOTENCY (&idem__foreign_http_idempotency.kind)

static struct idem__buffer memory;
static struct idem__scratch scratch;
static struct idem__item item;
static uint8_t head[IDEM_HEAD_MAX];

static void let_go(void)
{
    idem__buffer_free(&memory);
    idem__scratch_free(&scratch);
}

/* @text with ' for ". */
static json_object *parse(const char *text)
{
    static char buf[4096];
    json_object *object;
    size_t i;
    int rc;

    for (i = 0; text[i] != '\0'; i++) {
        buf[i] = text[i] == '\'' ? '"' : text[i];
    }
    object = idem__json_parse(idem_bytes(buf, i), &rc);
    if (object == NULL) {
        fail_with("no JSON: %s", buf);
    }
    return object;
}

/* A table of @layout, with the usual names. */
static const struct idem__table_conf *table_of(
    const struct idem__layout_kind *layout)
{
    static struct idem__table_conf table;

    memset(&table, 0, sizeof(table));
    table.layout = layout;
    assert_ok(idem__layout_settle(&table, &why));
    return &table;
}

static int read_object(const struct idem__layout_kind *layout,
                       json_object *object)
{
    return idem__layout_read(table_of(layout), object, NULL, &memory, &scratch,
                             &item, &why);
}

static int read_text(const struct idem__layout_kind *layout, const char *text)
{
    json_object *object = parse(text);
    int rc = read_object(layout, object);

    (void)json_object_put(object);
    return rc;
}

/* The item that is written for @record; the caller puts it back. */
static json_object *written(const struct idem__layout_kind *layout,
                            const struct idem_record *record)
{
    struct idem__buffer out = {.len = 0};
    struct idem__item to = {.record = *record};
    json_object *request, *object = NULL;
    size_t len;
    int rc;

    if (record->result_len > 0) {
        to.result.place = IDEM__PLACE_INLINE;
        to.result.stored = record->result.bytes;
    }
    assert_ok(idem__record_encode(record, head, sizeof(head), &len));
    idem__buffer_str(&out, "{\"TableName\":\"t\"");
    idem__layout_put(&out, table_of(layout), &to, idem_bytes(head, len), NULL);
    idem__buffer_str(&out, "}");
    request = idem__json_parse(idem__buffer_slice(&out), &rc);
    assert_non_null(request);
    if (json_object_object_get_ex(request, "Item", &object)) {
        (void)json_object_get(object);
    }
    (void)json_object_put(request);
    idem__buffer_free(&out);
    return object;
}

static struct idem_record plain(struct idem_record record)
{
    record.scope = idem_str("");
    record.key = idem_str("pay#69n0x7BssKr10T2A5J2LkA==");
    assert_ok(idem_id(record.scope, record.key, record.id));
    return record;
}

static void says(json_object *object, const char *name, const char *type,
                 const char *text)
{
    struct idem_slice there = {NULL, 0};
    int rc = idem__json_attribute(object, name, type, &there);

    if (text == NULL) {
        assert_int_equal(rc, 0);
    } else {
        assert_int_equal(rc, 1);
        assert_text(there, text);
    }
}

/* What a person must look at is never run by Powertools; what was released is free
 * at once. */
TEST(layout, keepsPowertoolsAway)
{
    static const enum idem_status statuses[] = {IDEM_STATUS_FAILED,
                                                IDEM_STATUS_UNKNOWN};
    struct idem_record record;
    json_object *object;

    EACH(status, statuses) {
        record = plain(sample_ended(*status, 3600000));
        object = written(TYPESCRIPT, &record);
        says(object, "status", "S", "INPROGRESS");
        says(object, "expiration", "N", "253402300799");
        says(object, "in_progress_expiration", "N", NULL);
        says(object, "data", "S", NULL);
        (void)json_object_put(object);
    }
    record = plain(sample_ended(IDEM_STATUS_RELEASED, 0));
    object = written(TYPESCRIPT, &record);
    says(object, "status", "S", "INPROGRESS");
    says(object, "in_progress_expiration", "N", "1");
    (void)json_object_put(object);
}

/* What is no item of the library is not believed, and not taken for absent. */
TEST(layout, refusesWhatItDoesNotKnow)
{
    static const struct {
        const struct idem__layout_kind *layout;
        const char *text;
    } rows[] = {
        {PYTHON, "{'status':{'S':'INPROGRESS'}}"},
        {PYTHON, "{'id':{'S':'x'}}"},
        {PYTHON, "{'id':{'S':'x'},'status':{'S':'DONE'},"
                 "'expiration':{'N':'1'}}"},
        {PYTHON, "{'id':{'S':'x'},'status':{'S':'COMPLETED'},"
                 "'expiration':{'S':'1'}}"},
        {PYTHON, "{'id':{'S':'x'},'status':{'S':'COMPLETED'},"
                 "'expiration':{'N':'-5'}}"},
        {PYTHON, "{'id':{'S':'x'},'status':{'S':'COMPLETED'},"
                 "'expiration':{'N':'1'},'idem':{'B':'AAAA'}}"},
        {LOCK_TOKEN, "{'lockToken':{'S':'x'},'status':{'S':'stuck'}}"},
        {LOCK_TOKEN, "{'id':{'S':'x'}}"},
        {LOCK_TOKEN, "{'lockToken':{'S':'x'},'created':{'S':'now'}}"},
        {LOCK_TOKEN, "{'lockToken':{'S':'x'},'ttl':{'N':'1714230160123'}}"},
        {LOCK_TOKEN, "{'token':{'S':'x'}}"},
        {LOCK_TOKEN, "{'lockToken':{'N':'7'}}"},
        {LOCK_TOKEN, "{'lockToken':{'S':''}}"},
        {IDEMPOTENCY_STORE, "{'idempotencyKey':{'S':'x'},'status':{'N':'1'}}"},
        {HTTP_IDEMPOTENCY,
         "{'idempotencyKey':{'S':'x'},'status':{'S':'IN_PROGRESS'},"
         "'lockExpiry':{'N':'1700000010000'}}"},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        int rc = read_text(rows[i].layout, rows[i].text);

        if (rc != IDEM_ECORRUPT) {
            fail_with("row %zu: %d", i, rc);
        }
    }
    let_go();
}

/* Sets a member of @object to the attribute value @text. */
static void change(json_object *object, const char *name, const char *text)
{
    (void)json_object_object_add(object, name, parse(text));
}

/* One that Powertools changed under our record is no longer ours: it has another
 * nonce and a higher fence, and its result is theirs. */
TEST(layout, givesUpWhatPowertoolsCompleted)
{
    struct idem_record record = plain(sample_record());
    json_object *object;

    record.on_expired_lease = IDEM_RERUN;
    record.expires_ms = 1700003660000;
    object = written(TYPESCRIPT, &record);
    change(object, "status", "{'S':'COMPLETED'}");
    change(object, "expiration", "{'N':'1700007200'}");
    change(object, "data", "{'S':'theirs'}");
    assert_ok(read_object(TYPESCRIPT, object));
    assert_int_equal(item.record.status, IDEM_STATUS_COMPLETED);
    assert_memory_not_equal(item.record.nonce, record.nonce, 16);
    assert_true(item.record.fence > record.fence);
    assert_text(item.result.stored, "\"theirs\"");
    (void)json_object_put(object);
    let_go();
}

/* Also where only the result is another: in the same second, over our own. */
TEST(layout, givesUpAResultThatWasReplaced)
{
    static const struct idem__layout_kind *const layouts[] = {PYTHON,
                                                              TYPESCRIPT};
    static const char *const results[] = {"{\"a\":1.0}", "text"};
    size_t i, k;

    for (i = 0; i < COUNT(layouts); i++) {
        for (k = 0; k < COUNT(results); k++) {
            struct idem_record record =
                plain(sample_ended(IDEM_STATUS_COMPLETED, 3600000));
            json_object *object;

            record.result.bytes = idem_str(results[k]);
            record.result_len = strlen(results[k]);
            assert_ok(
                idem__body_digest(record.result.bytes, record.result_digest));
            object = written(layouts[i], &record);
            change(object, "data", "{'S':'7'}");
            assert_ok(read_object(layouts[i], object));
            assert_memory_not_equal(item.record.nonce, record.nonce, 16);
            assert_true(item.record.fence > record.fence);
            (void)json_object_put(object);
        }
    }
    let_go();
}

/* Numbers that DynamoDB writes in its own way are the same numbers. */
TEST(layout, knowsItsNumbersAgain)
{
    struct idem_record record =
        plain(sample_ended(IDEM_STATUS_COMPLETED, 3600000));
    json_object *object;

    record.result.bytes = idem_str("[1.50,1e3,-0.0,0.00120,12e-1]");
    record.result_len = record.result.bytes.len;
    assert_ok(idem__body_digest(record.result.bytes, record.result_digest));
    object = written(TYPESCRIPT, &record);
    change(object, "data",
           "{'L':[{'N':'1.5'},{'N':'1000'},{'N':'0'},{'N':'0.0012'},"
           "{'N':'1.2'}]}");
    assert_ok(read_object(TYPESCRIPT, object));
    assert_same_record(&item.record, &record);
    change(object, "data",
           "{'L':[{'N':'1.5'},{'N':'1000'},{'N':'0'},{'N':'0.0012'},"
           "{'N':'1.3'}]}");
    assert_ok(read_object(TYPESCRIPT, object));
    assert_memory_not_equal(item.record.nonce, record.nonce, 16);
    (void)json_object_put(object);
    let_go();
}

/* What was read is what a write depends on: all of it, ours and theirs. */
TEST(layout, dependsOnAllThatItSaw)
{
    assert_ok(read_text(PYTHON, "{'id':{'S':'x'},'status':{'S':'INPROGRESS'},"
                                "'expiration':{'N':'17'}}"));
    assert_text(item.head,
                ",\"ConditionExpression\":\"#a = :a AND #b = :b AND "
                "attribute_not_exists(#c) AND attribute_not_exists(#d)\","
                "\"ExpressionAttributeNames\":{\"#a\":\"status\",\"#b\":"
                "\"expiration\",\"#c\":\"in_progress_expiration\",\"#d\":"
                "\"idem\"},\"ExpressionAttributeValues\":{\":a\":{\"S\":"
                "\"INPROGRESS\"},\":b\":{\"N\":\"17\"}}");
    let_go();
}

/* The items of the articles: what is done, when a lease ends, in seconds, and who
 * may take over. */
TEST(layout, readsTheTablesOfArticles)
{
#define KEY "{'idempotencyKey':{'S':'m1'},"
    static const struct {
        const struct idem__layout_kind *layout;
        enum idem_status status;
        const char *text;
        int64_t lease_end_ms;
        int64_t expires_ms;
        enum idem_on_expired_lease policy;
    } rows[] = {
        /* 92 seconds more: the article's lease ends before its function does. */
        {IDEMPOTENCY_STORE, IDEM_STATUS_IN_PROGRESS,
         KEY "'status':{'S':'IN_PROGRESS'},'expiryTimestamp':"
             "{'N':'1700000000'}}",
         1700000092000, IDEM_NEVER, IDEM_RERUN},
        {IDEMPOTENCY_STORE, IDEM_STATUS_IN_PROGRESS,
         KEY "'expiryTimestamp':{'N':'1700000000'}}", 1700000092000, IDEM_NEVER,
         IDEM_HOLD},
        {IDEMPOTENCY_STORE, IDEM_STATUS_IN_PROGRESS,
         KEY "'status':{'S':'IN_PROGRESS'}}", IDEM_NEVER, IDEM_NEVER,
         IDEM_RERUN},
        {IDEMPOTENCY_STORE, IDEM_STATUS_COMPLETED,
         KEY "'status':{'S':'COMPLETED'},'expiryTimestamp':"
             "{'N':'1700000000'},'responseData':{'M':{}}}",
         IDEM_NEVER, 1700000000000, IDEM_RERUN},
        {HTTP_IDEMPOTENCY, IDEM_STATUS_IN_PROGRESS,
         KEY "'status':{'S':'IN_PROGRESS'},'expiry':{'N':'1700003600'},"
             "'lockExpiry':{'N':'1700000010'}}",
         1700000010000, 1700003600000, IDEM_RERUN},
        {HTTP_IDEMPOTENCY, IDEM_STATUS_FAILED,
         KEY "'status':{'S':'FAILED'},'expiry':{'N':'1700003600'},"
             "'lockExpiry':{'N':'1700000010'},'responsePayload':{'S':'{}'}}",
         IDEM_NEVER, 1700003600000, IDEM_RERUN},
        {LOCK_TOKEN, IDEM_STATUS_IN_PROGRESS,
         "{'lockToken':{'S':'m1'},'status':{'S':'inProgress'},'created':"
         "{'S':'2024-04-27T14:02:40.123456+00:00'},'result':{'NULL':true},"
         "'ttl':{'N':'1700003600'}}",
         IDEM_NEVER, IDEM_NEVER, IDEM_HOLD},
        {LOCK_TOKEN, IDEM_STATUS_FAILED,
         "{'lockToken':{'S':'m1'},'status':{'S':'error'},'result':"
         "{'S':'[7]'}}",
         IDEM_NEVER, IDEM_NEVER, IDEM_HOLD},
    };

    EACH(row, rows) {
        assert_ok(read_text(row->layout, row->text));
        assert_int_equal(item.record.status, row->status);
        assert_true(item.record.lease_end_ms == row->lease_end_ms);
        assert_true(item.record.expires_ms == row->expires_ms);
        assert_int_equal(item.record.on_expired_lease, row->policy);
        assert_text(item.record.key, "m1");
        assert_null(idem__record_fault(&item.record));
    }
    assert_text(item.record.error, "[7]");
    assert_text(item.result.stored, "[7]");
    let_go();
#undef KEY
}

/* A date of the article is read to the millisecond, or the item is corrupt: one in another
 * zone would be hours off. */
TEST(layout, readsDatesInUtc)
{
    static const struct {
        const char *date;
        int64_t ms; /* 0: refused. */
    } rows[] = {
        {"2024-04-27T14:02:40.123Z", 1714226560123},
        {"2024-04-27T14:02:40Z", 1714226560000},
        {"2024-04-27T14:02:40.5Z", 1714226560500},
        {"2024-04-27T14:02:40.005Z", 1714226560005},
        {"2024-04-27T14:02:40.123456789Z", 1714226560123},
        {"2024-04-27T14:02:40+00:00", 1714226560000},
        {"2024-04-27T14:02:40.123456+00:00", 1714226560123},
        {"2024-04-27T14:02:40+02:00", 0},
        {"2024-04-27T14:02:40.123-01:00", 0},
        {"2024-04-27T14:02:40", 0},
        {"2024-04-27T14:02:40.123", 0},
        {"2024-04-27T14:02:40.-5Z", 0},
        {"2024-04-27T14:02:40.123Zx", 0},
        {"2024-04-27T14:02Z", 0},
        {"2024-13-27T14:02:40Z", 0},
        {"2024-02-30T14:02:40Z", 0},
        {"2024-+4-27T14:02:40Z", 0},
        {"1969-12-31T23:59:59Z", 0},
        {"", 0},
    };

    EACH(row, rows) {
        char text[200];
        int rc;

        (void)snprintf(text, sizeof(text),
                       "{'lockToken':{'S':'m1'},'status':{'S':'inProgress'},"
                       "'expectedCompletion':{'S':'%s'}}",
                       row->date);
        rc = read_text(LOCK_TOKEN, text);
        if (rc != (row->ms == 0 ? IDEM_ECORRUPT : 0) ||
            (rc == 0 && item.record.expected_ms != row->ms)) {
            fail_with("%s: %d, %lld", row->date, rc,
                      (long long)item.record.expected_ms);
        }
    }
    let_go();
}

/* An answer that is replaced under our record is theirs, although nothing else of
 * the item changed: their function ends without a condition. */
TEST(layout, givesUpAnAnswerThatWasReplaced)
{
    struct idem_record record =
        plain(sample_ended(IDEM_STATUS_COMPLETED, 3600000));
    json_object *object;

    record.result.bytes = idem_bytes(NULL, 0);
    record.result_len = 0;
    assert_ok(idem__body_digest(record.result.bytes, record.result_digest));
    object = written(HTTP_IDEMPOTENCY, &record);
    says(object, "responsePayload", "S", "null");
    says(object, "lockExpiry", "N", NULL);
    assert_ok(read_object(HTTP_IDEMPOTENCY, object));
    assert_same_record(&item.record, &record);
    change(object, "responsePayload", "{'S':'7'}");
    assert_ok(read_object(HTTP_IDEMPOTENCY, object));
    assert_memory_not_equal(item.record.nonce, record.nonce, 16);
    assert_text(item.result.stored, "7");
    (void)json_object_put(object);
    let_go();
}

/* No two attempts have one lockedBy: a program may end whatever has its own. */
TEST(layout, givesEachAttemptItsLockedBy)
{
    struct idem_record record = plain(sample_record());
    json_object *first = written(LOCK_TOKEN, &record);
    struct idem_slice a, b;
    json_object *second;

    record.fence++;
    second = written(LOCK_TOKEN, &record);
    assert_int_equal(idem__json_attribute(first, "lockedBy", "S", &a), 1);
    assert_int_equal(idem__json_attribute(second, "lockedBy", "S", &b), 1);
    assert_true(a.len != b.len || memcmp(a.base, b.base, a.len) != 0);
    (void)json_object_put(first);
    (void)json_object_put(second);
}
