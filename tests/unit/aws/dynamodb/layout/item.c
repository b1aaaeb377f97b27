/* A record as an item: nothing is lost on the way, and nothing is believed that
 * its checksum does not cover. */
#include "aws/dynamodb/layout/item.h"

#include "sample.h"
#include "test.h"

static uint8_t head[IDEM_HEAD_MAX];

/* The item of @record, parsed; the caller puts it back. */
static json_object *made(const struct idem_record *record,
                         const struct idem__body *result,
                         const struct idem__body *input)
{
    struct idem__item item = {.record = *record};
    struct idem__buffer out = {.len = 0};
    json_object *object;
    size_t len;
    int rc;

    if (result != NULL) {
        item.result = *result;
    }
    if (input != NULL) {
        item.input = *input;
    }
    assert_ok(idem__record_encode(record, head, sizeof(head), &len));
    idem__item_write(&out, &item, idem_bytes(head, len), true);
    assert_false(out.failed);
    object = idem__json_parse(idem__buffer_slice(&out), &rc);
    assert_non_null(object);
    idem__buffer_free(&out);
    return object;
}

/* Some of the sample records say how long a body is, and have none. */
static struct idem__body inline_body(struct idem_slice bytes, uint64_t len)
{
    return (struct idem__body){.place = len > 0 ? IDEM__PLACE_INLINE
                                                : IDEM__PLACE_NONE,
                               .stored = bytes};
}

static const char *text_at(json_object *object, const char *name,
                           const char *type)
{
    json_object *value;
    json_object *text;

    if (!json_object_object_get_ex(object, name, &value) ||
        !json_object_object_get_ex(value, type, &text)) {
        return NULL;
    }
    return json_object_get_string(text);
}

/* The index has what is not at its end; the ttl is later than the retention, and
 * only where that ends. */
TEST(item, isIndexedAndExpires)
{
    struct idem_record record = sample_record();
    json_object *object = made(&record, NULL, NULL);

    assert_non_null(text_at(object, "open", "S"));
    assert_null(text_at(object, "ttl", "N"));
    (void)json_object_put(object);
    record = sample_ended(IDEM_STATUS_COMPLETED, 86400000);
    object = made(&record, NULL, NULL);
    assert_null(text_at(object, "open", "S"));
    assert_int_equal(atoll(text_at(object, "ttl", "N")),
                     (record.expires_ms + 2 * 3600000 + 999) / 1000);
    (void)json_object_put(object);
    record = sample_ended(IDEM_STATUS_FAILED, 86400000);
    object = made(&record, NULL, NULL);
    assert_non_null(text_at(object, "open", "S"));
    assert_null(text_at(object, "ttl", "N"));
    (void)json_object_put(object);
}

static int read_changed(const char *name, const char *value)
{
    struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 86400000);
    struct idem__body result =
        inline_body(record.result.bytes, record.result_len);
    json_object *object = made(&record, &result, NULL);
    struct idem__buffer memory = {.len = 0};
    struct idem__item item;
    int rc;

    json_object_object_del(object, name);
    if (value != NULL) {
        (void)json_object_object_add(object, name, json_tokener_parse(value));
    }
    rc = idem__item_read(object, record.id, &memory, &item, &why);
    (void)json_object_put(object);
    idem__buffer_free(&memory);
    return rc;
}

/* ROW(27) What has another shape than ours is corrupt, and never absent. */
TEST(item, isRefusedInAnyOtherShape)
{
    static const struct {
        const char *name;
        const char *value;
    } rows[] = {
        {"id", NULL},
        {"id", "{\"S\":\"00\"}"},
        {"id", "{\"S\":1}"},
        {"id", "{\"B\":\"AAAA\"}"},
        {"id", "[]"},
        {"id", "null"},
        {"rec", NULL},
        {"rec", "{\"B\":\"@@\"}"},
        {"rec", "{\"B\":\"\"}"},
        {"rec", "{\"S\":\"IDR1\"}"},
        {"rec", "{\"B\":\"SURSMQ==\",\"S\":\"x\"}"},
        {"rec", "{\"B\":\"SURSMQ\"}"},
        {"rec", "{\"B\":\"SURSMR==\"}"},
        {"key", NULL},
        {"key", "{\"S\":\"another\"}"},
        {"key", "{\"N\":\"1\"}"},
        {"scope", "{\"S\":\"another\"}"},
        {"result", NULL},
        {"result", "{\"S\":\"done\"}"},
        {"result_z", "{\"B\":\"AAAA\"}"},
        {"result_in", "{\"S\":\"0123\"}"},
        {"input", "{\"B\":\"AAAA\"}"},
    };

    assert_ok(read_changed("colour", "{\"S\":\"red\"}"));
    assert_ok(read_changed("status", NULL));
    EACH(row, rows) {
        if (read_changed(row->name, row->value) != IDEM_ECORRUPT) {
            fail_with("%s %s was taken", row->name,
                      row->value == NULL ? "gone" : row->value);
        }
    }
}

/* Where parts lie is read as it is written, and in no other form. */
TEST(item, namesItsParts)
{
    static const char *const bad[] = {
        "00112233445566778899aabbccddeeff",
        "00112233445566778899aabbccddeeff:",
        "00112233445566778899aabbccddeeff:0",
        "00112233445566778899aabbccddeeff:99999",
        "00112233445566778899aabbccddeeff:1:",
        "00112233445566778899aabbccddeeff:1:y",
        "00112233445566778899aabbccddeeff:1:zz",
        "00112233445566778899AABBCCDDEEFF:1",
        "0011223344556677:1",
    };
    struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 86400000);
    struct idem__body apart = {.place = IDEM__PLACE_APART, .parts = 14};
    struct idem__buffer memory = {.len = 0};
    struct idem__item item;
    size_t i;

    memset(apart.tag, 0xa5, sizeof(apart.tag));
    for (i = 0; i < 2; i++) {
        json_object *object;

        apart.packed = i == 1;
        object = made(&record, &apart, NULL);
        assert_ok(idem__item_read(object, record.id, &memory, &item, &why));
        assert_int_equal(item.result.place, IDEM__PLACE_APART);
        assert_int_equal(item.result.parts, 14);
        assert_true(item.result.packed == apart.packed);
        assert_memory_equal(item.result.tag, apart.tag, IDEM__TAG_LEN);
        (void)json_object_put(object);
    }
    idem__buffer_free(&memory);
    for (i = 0; i < COUNT(bad); i++) {
        json_object *object = made(&record, NULL, NULL);
        json_object *value = json_object_new_object();

        (void)json_object_object_add(value, "S",
                                     json_object_new_string(bad[i]));
        (void)json_object_object_add(object, "result_in", value);
        if (idem__item_read(object, record.id, &memory, &item, &why) !=
            IDEM_ECORRUPT) {
            fail_with("%s was taken", bad[i]);
        }
        (void)json_object_put(object);
    }
    idem__buffer_free(&memory);
}

/* The size that is reckoned is not below what the service counts: the names and
 * values of all attributes. */
TEST(item, knowsItsSize)
{
    struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 86400000);
    struct idem__item item = {.record = record};
    size_t len;

    item.result = inline_body(record.result.bytes, record.result_len);
    assert_ok(idem__record_encode(&record, head, sizeof(head), &len));
    assert_true(idem__item_size(&item, len) >=
                2 + 64 + 3 + len + 6 + strlen("completed") + 3 +
                    record.key.len + 5 + record.scope.len + 3 + 6 + 6 +
                    record.result.bytes.len);
    assert_true(idem__item_size(&item, len) < 64 + len + 100 + 100);
}
