/* Items of other libraries: ours come back as they went, theirs stand for what they
 * say, and one that both had a hand in is theirs. */
#include "aws/dynamodb/layout/foreign.h"

#include "core/decide.h"
#include "core/identity.h"
#include "core/record.h"
#include "heap.h"
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

static const struct idem__layout_kind *const every_layout[] = {
    PYTHON, TYPESCRIPT, LOCK_TOKEN, IDEMPOTENCY_STORE, HTTP_IDEMPOTENCY};

/* Names lead to layouts, and back. */
TEST(layout, hasAName)
{
    size_t i;

    for (i = 0; i < COUNT(every_layout); i++) {
        assert_ptr_equal(idem__layout_find(every_layout[i]->name),
                         every_layout[i]);
    }
    assert_null(idem__layout_find("powertools-rust"));
    assert_null(idem__layout_find(""));
}

/* What we write comes back as it went, whatever its result looks like. */
TEST(layout, roundTrips)
{
    static const enum idem_status statuses[] = {IDEM_STATUS_COMPLETED,
                                                IDEM_STATUS_FAILED,
                                                IDEM_STATUS_UNKNOWN,
                                                IDEM_STATUS_RELEASED};
    static const char *const results[] = {
        "done",     "{\"b\":1.50,\"a\":[1e3,null,true,\"\\u00e9\"]}",
        " 7 ",      "\"text\"",
        "\x01\xff", "{\"a\":1,\"a\":2}",
        "[1e400]",  "{\"\":1}"};
    size_t i, j, k;

    for (i = 0; i < COUNT(every_layout); i++) {
        for (j = 0; j < COUNT(statuses); j++) {
            for (k = 0; k < COUNT(results); k++) {
                struct idem_record record =
                    plain(sample_ended(statuses[j], 3600000));
                json_object *object;

                if (record.result_len > 0) {
                    record.result.bytes = idem_str(results[k]);
                    record.result_len = strlen(results[k]);
                    assert_ok(idem__body_digest(record.result.bytes,
                                                record.result_digest));
                }
                if (idem__layout_deletes(table_of(every_layout[i]), &record)) {
                    assert_null(written(every_layout[i], &record));
                    continue;
                }
                object = written(every_layout[i], &record);
                assert_ok(read_object(every_layout[i], object));
                assert_same_record(&item.record, &record);
                assert_slice(item.result.stored, record.result.bytes);
                (void)json_object_put(object);
            }
        }
    }
    let_go();
}

/* In progress work can be taken over by Powertools when its lease is over and two
 * seconds more, held work never. */
TEST(layout, saysWhenPowertoolsMayTakeOver)
{
    struct idem_record record = plain(sample_record());
    json_object *object = written(PYTHON, &record);

    says(object, "status", "S", "INPROGRESS");
    says(object, "expiration", "N", "253402300799");
    says(object, "in_progress_expiration", "N", NULL);
    (void)json_object_put(object);

    record.on_expired_lease = IDEM_RERUN;
    record.lease_end_ms = 1700000060123;
    record.expires_ms = 1700003660123;
    object = written(PYTHON, &record);
    says(object, "status", "S", "INPROGRESS");
    says(object, "expiration", "N", "1700003661");
    says(object, "in_progress_expiration", "N", "1700000062123");
    (void)json_object_put(object);
}

/* What a person must look at is never run by Powertools; what was released is free
 * at once. */
TEST(layout, keepsPowertoolsAway)
{
    static const enum idem_status statuses[] = {IDEM_STATUS_FAILED,
                                                IDEM_STATUS_UNKNOWN};
    struct idem_record record;
    json_object *object;
    size_t i;

    for (i = 0; i < COUNT(statuses); i++) {
        record = plain(sample_ended(statuses[i], 3600000));
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

/* An attempt of Powertools' is in progress until its time, in milliseconds. */
TEST(layout, readsWhatPowertoolsHasInProgress)
{
    assert_ok(read_text(TYPESCRIPT,
                        "{'id':{'S':'f#x'},'status':{'S':'INPROGRESS'},"
                        "'expiration':{'N':'1700003600'},"
                        "'in_progress_expiration':{'N':'1700000060123'}}"));
    assert_int_equal(item.record.status, IDEM_STATUS_IN_PROGRESS);
    assert_int_equal(item.record.on_expired_lease, IDEM_RERUN);
    assert_true(item.record.lease_end_ms == 1700000060123);
    assert_true(item.record.expires_ms == 1700003600000);
    assert_true(item.record.fence == 1700003600000);
    assert_text(item.record.key, "f#x");
    assert_null(idem__record_fault(&item.record));
    let_go();
}

/* Without a deadline it is no orphan: it lives until its expiration. */
TEST(layout, neverJudgesAnOrphan)
{
    assert_ok(read_text(PYTHON, "{'id':{'S':'f#x'},'status':{'S':'INPROGRESS'},"
                                "'expiration':{'N':'1700003600'}}"));
    assert_true(item.record.lease_end_ms == 1700003600000);
    assert_ok(
        read_text(PYTHON, "{'id':{'S':'f#x'},'status':{'S':'INPROGRESS'}}"));
    assert_true(item.record.lease_end_ms == IDEM_NEVER);
    assert_true(item.record.expires_ms == IDEM_NEVER);
    let_go();
}

/* A result of Powertools' is JSON, from a value or from a text. */
TEST(layout, readsWhatPowertoolsCompleted)
{
    assert_ok(read_text(
        TYPESCRIPT,
        "{'id':{'S':'f#x'},'status':{'S':'COMPLETED'},'expiration':"
        "{'N':'1700003600'},'in_progress_expiration':{'N':'1'},'data':{'M':"
        "{'a':{'L':[{'N':'1.5'},{'BOOL':true},{'NULL':true},{'S':'x\\ny'}]},"
        "'s':{'SS':['p','q']},'n':{'NS':['1','2']}}}}"));
    assert_int_equal(item.record.status, IDEM_STATUS_COMPLETED);
    assert_true(item.record.expires_ms == 1700003600000);
    assert_text(item.result.stored,
                "{\"a\":[1.5,true,null,\"x\\u000ay\"],\"s\":[\"p\",\"q\"],"
                "\"n\":[1,2]}");
    assert_int_equal(item.record.result_len, item.result.stored.len);
    assert_text(item.record.result.content_type, "application/json");

    assert_ok(read_text(PYTHON, "{'id':{'S':'f#x'},'status':{'S':'COMPLETED'},"
                                "'expiration':{'N':'1700003600'},"
                                "'data':{'S':'[1, 2]'}}"));
    assert_text(item.result.stored, "[1, 2]");

    assert_ok(read_text(TYPESCRIPT,
                        "{'id':{'S':'f#x'},'status':{'S':'COMPLETED'},"
                        "'expiration':{'N':'1700003600'}}"));
    assert_true(item.record.result.not_kept);
    let_go();
}

/* A table that two languages write to is found out. */
TEST(layout, refusesTheDataOfAnotherLanguage)
{
    assert_code(IDEM_ECORRUPT,
                read_text(PYTHON,
                          "{'id':{'S':'f#x'},'status':{'S':'COMPLETED'},"
                          "'expiration':{'N':'1700003600'},"
                          "'data':{'M':{}}}"));
    assert_why("another library");
    let_go();
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
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        assert_ok(read_text(rows[i].layout, rows[i].text));
        assert_int_equal(item.record.status, rows[i].status);
        assert_true(item.record.lease_end_ms == rows[i].lease_end_ms);
        assert_true(item.record.expires_ms == rows[i].expires_ms);
        assert_int_equal(item.record.on_expired_lease, rows[i].policy);
        assert_text(item.record.key, "m1");
        assert_null(idem__record_fault(&item.record));
    }
    assert_text(item.record.error, "[7]");
    assert_text(item.result.stored, "[7]");
    let_go();
#undef KEY
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

/* An answer of HTTP is one for the article's function, and one of its own is an
 * answer of HTTP for every front end of idem. */
TEST(layout, knowsAnswersOfHttp)
{
    struct idem_record record =
        plain(sample_ended(IDEM_STATUS_COMPLETED, 3600000));
    json_object *object;

    record.result.bytes = idem_str("{\"a\": 1}");
    record.result_len = record.result.bytes.len;
    record.result.content_type = idem_str("application/json");
    record.result.meta =
        idem_str("HTTP 201\nLocation: /o/1\nVary: a\nvary: b\n");
    assert_ok(idem__body_digest(record.result.bytes, record.result_digest));
    object = written(HTTP_IDEMPOTENCY, &record);
    says(object, "responsePayload", "S",
         "{\"statusCode\":201,\"headers\":{\"Content-Type\":"
         "\"application/json\",\"Location\":\"/o/1\",\"Vary\":\"a, b\"},"
         "\"body\":\"{\\\"a\\\": 1}\"}");
    assert_ok(read_object(HTTP_IDEMPOTENCY, object));
    assert_same_record(&item.record, &record);
    assert_slice(item.result.stored, record.result.bytes);

    /* Theirs, with a cookie that nobody else may be given. */
    (void)json_object_object_del(object, "idem");
    assert_ok(read_object(HTTP_IDEMPOTENCY, object));
    assert_text(item.record.result.meta,
                "HTTP 201\nLocation: /o/1\nVary: a, b\n");
    assert_text(item.record.result.content_type, "application/json");
    assert_text(item.result.stored, "{\"a\": 1}");
    (void)json_object_put(object);

    assert_ok(read_text(
        HTTP_IDEMPOTENCY,
        "{'idempotencyKey':{'S':'x'},'status':{'S':'COMPLETED'},"
        "'responsePayload':{'S':'{\\'statusCode\\':200,\\'headers\\':"
        "{\\'Set-Cookie\\':\\'s=1\\'},\\'multiValueHeaders\\':{\\'Link\\':"
        "[\\'a\\',\\'b\\']},\\'body\\':\\'/wE=\\',"
        "\\'isBase64Encoded\\':true}'}}"));
    assert_text(item.record.result.meta, "HTTP 200\nLink: a\nLink: b\n");
    assert_text(item.result.stored, "\xff\x01");
    assert_null(idem__record_fault(&item.record));
    let_go();
}

/* Of a command that wrote to both streams, others see its standard output. */
TEST(layout, showsStandardOutput)
{
    static const char frames[] = "\1\0\0\0\3[1,\2\0\0\0\4note\1\0\0\0\2"
                                 "2]";
    struct idem_record record =
        plain(sample_ended(IDEM_STATUS_COMPLETED, 3600000));
    size_t i;

    record.result.bytes = idem_bytes(frames, sizeof(frames) - 1);
    record.result_len = record.result.bytes.len;
    record.result.content_type = idem_str(IDEM_FORM_FRAMES_TYPE);
    record.result.meta = idem_str("exit 0\n");
    assert_ok(idem__body_digest(record.result.bytes, record.result_digest));
    for (i = 0; i < COUNT(every_layout); i++) {
        const struct idem__table_conf *table = table_of(every_layout[i]);
        bool native = every_layout[i] == TYPESCRIPT ||
                      every_layout[i] == IDEMPOTENCY_STORE;
        json_object *object = written(every_layout[i], &record);

        if (!native) {
            says(object, table->attrs[IDEM__ATTR_DATA], "S", "[1,2]");
        }
        assert_ok(read_object(every_layout[i], object));
        assert_same_record(&item.record, &record);
        assert_slice(item.result.stored, record.result.bytes);
        (void)json_object_put(object);
    }
    let_go();
}

/* What is no answer of HTTP is given as it is. */
TEST(layout, leavesOtherPayloadsAlone)
{
    static const char *const payloads[] = {
        "7",
        "{'statusCode':99}",
        "{'statusCode':'200'}",
        "{'statusCode':200,'body':7}",
        "{'statusCode':200,'body':'*','isBase64Encoded':true}",
        "{'statusCode':200,'headers':[]}",
        "{'statusCode':200,'headers':{'a b':'c'}}",
        "{'statusCode':200,'headers':{'a':7}}",
        "{'statusCode':200,'headers':{'Content-Type':'a\\nb'}}",
        "{'statusCode':200",
    };
    size_t i;

    for (i = 0; i < COUNT(payloads); i++) {
        json_object *object =
            parse("{'idempotencyKey':{'S':'x'},'status':{'S':'COMPLETED'}}");
        json_object *payload = json_object_new_object();
        char text[128];
        size_t k;

        for (k = 0; payloads[i][k] != '\0'; k++) {
            text[k] = payloads[i][k] == '\'' ? '"' : payloads[i][k];
        }
        text[k] = '\0';
        (void)json_object_object_add(payload, "S",
                                     json_object_new_string(text));
        (void)json_object_object_add(object, "responsePayload", payload);
        assert_ok(read_object(HTTP_IDEMPOTENCY, object));
        assert_text(item.result.stored, text);
        assert_text(item.record.result.content_type, "application/json");
        assert_int_equal(item.record.result.meta.len, 0);
        (void)json_object_put(object);
    }
    let_go();
}

/* The words of lock tokens: what is held stays, what is unknown is an error. */
TEST(layout, speaksOfLockTokens)
{
    struct idem_record record = plain(sample_record());
    json_object *object = written(LOCK_TOKEN, &record);

    says(object, "lockToken", "S", "pay#69n0x7BssKr10T2A5J2LkA==");
    says(object, "status", "S", "inProgress");
    says(object, "created", "S", "2023-11-14T22:13:10.000Z");
    says(object, "actualCompletion", "S", NULL);
    says(object, "ttl", "N", NULL);
    (void)json_object_put(object);

    record = plain(sample_ended(IDEM_STATUS_COMPLETED, 3600000));
    object = written(LOCK_TOKEN, &record);
    says(object, "status", "S", NULL);
    says(object, "result", "S", "\"done\"");
    (void)json_object_put(object);

    record = plain(sample_ended(IDEM_STATUS_UNKNOWN, 0));
    record.note = idem_str("cut off");
    object = written(LOCK_TOKEN, &record);
    says(object, "status", "S", "error");
    says(object, "result", "S", "\"outcome unknown: cut off\"");
    (void)json_object_put(object);
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

/* A ttl is in seconds, or the null value, or not there. */
TEST(layout, readsTheTtlOfLockTokens)
{
    assert_ok(
        read_text(LOCK_TOKEN,
                  "{'lockToken':{'S':'order/7'},'lockedBy':{'S':'host'},"
                  "'created':{'S':'2024-04-27T14:02:40.123Z'},"
                  "'expectedCompletion':{'S':'2024-04-27T14:03:40.123Z'},"
                  "'actualCompletion':{'S':'2024-04-27T14:02:41.000Z'},"
                  "'result':{'S':'{\\'data\\':1}'},'ttl':{'N':'1714230160'}}"));
    assert_int_equal(item.record.status, IDEM_STATUS_COMPLETED);
    assert_true(item.record.expires_ms == 1714230160000);
    assert_true(item.record.created_ms == 1714226560123);
    assert_true(item.record.ended_ms == 1714226561000);
    assert_true(item.record.fence == 1714226560123);
    assert_text(item.result.stored, "{\"data\":1}");
    assert_text(item.record.owner, "host");

    assert_ok(
        read_text(LOCK_TOKEN,
                  "{'lockToken':{'S':'order/7'},'lockedBy':{'S':'host'}}"));
    assert_true(item.record.expires_ms == IDEM_NEVER);
    assert_ok(read_text(LOCK_TOKEN,
                        "{'lockToken':{'S':'order/7'},'lockedBy':{'S':'host'},"
                        "'ttl':{'NULL':true}}"));
    assert_true(item.record.expires_ms == IDEM_NEVER);
    let_go();
}

/* A lock is held until somebody ends it, an error is a failure. */
TEST(layout, readsLocks)
{
    assert_ok(read_text(LOCK_TOKEN,
                        "{'lockToken':{'S':'order/7'},'lockedBy':{'S':'host'},"
                        "'created':{'S':'2024-04-27T14:02:40.123Z'},"
                        "'expectedCompletion':{'S':'2024-04-27T14:03:40.123Z'},"
                        "'status':{'S':'inProgress'},'ttl':{'NULL':true}}"));
    assert_int_equal(item.record.status, IDEM_STATUS_IN_PROGRESS);
    assert_int_equal(item.record.on_expired_lease, IDEM_HOLD);
    assert_true(item.record.lease_end_ms == IDEM_NEVER);
    assert_true(item.record.expected_ms == 1714226620123);
    assert_null(idem__record_fault(&item.record));

    assert_ok(read_text(LOCK_TOKEN,
                        "{'lockToken':{'S':'order/7'},'lockedBy':{'S':'host'},"
                        "'status':{'S':'error'},'result':{'S':'oh no'}}"));
    assert_int_equal(item.record.status, IDEM_STATUS_FAILED);
    assert_text(item.record.error, "oh no");
    assert_null(idem__record_fault(&item.record));
    let_go();
}

/* Without memory it fails cleanly. */
TEST(layout, failsWithoutMemory)
{
    struct idem_record record =
        plain(sample_ended(IDEM_STATUS_COMPLETED, 3600000));
    json_object *object = written(TYPESCRIPT, &record);
    bool failed = true;
    long n;
    int rc;

    for (n = 0; failed; n++) {
        heap_fail(n, /* on= */ false);
        rc = read_object(TYPESCRIPT, object);
        failed = heap_fail_never();
        assert_code(failed ? IDEM_ENOMEM : IDEM_OK, rc);
        let_go();
    }
    assert_true(n > 3);
    (void)json_object_put(object);
}
