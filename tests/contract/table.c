/* Tables of a DynamoDB server: making them, and reading them without the store. */
#include "table.h"

#include "aws/dynamodb/layout/layout.h"
#include "aws/dynamodb/table/table.h"
#include "base/base64.h"

#include <idem/dynamodb.h>
#include <unistd.h>

static void call(struct idem__admin *admin, const char *target,
                 struct idem__answer *answer)
{
    idem__admin_call(admin, target, true, answer);
    if (answer->said != IDEM__SAID_OK) {
        fail_with("%s: %s", target, answer->error.text);
    }
}

/* A table of the store's layout, with its attributes. */
static const struct idem__table_conf *layout(void)
{
    static struct idem__table_conf table;

    if (traits()->layout != NULL && table.layout == NULL) {
        struct idem__place_conf conf;
        char text[256];

        (void)snprintf(text, sizeof(text), "//any?layout=%s", traits()->layout);
        assert_ok(idem__place_read(text, &conf, &why));
        table = conf.table;
    }
    return &table;
}

/* These tests run in the past, and some servers would delete records by their own clock. */
static void keep_for_ever(const char *place)
{
    struct idem__admin admin;
    struct idem__answer answer;

    assert_ok(idem__admin_open(place, &admin, &why));
    idem__admin_begin(&admin);
    idem__buffer_str(&admin.out, ",\"TimeToLiveSpecification\":{"
                                 "\"Enabled\":false,"
                                 "\"AttributeName\":\"");
    idem__buffer_str(&admin.out, idem__layout_ttl(layout()));
    idem__buffer_str(&admin.out, "\"}}");
    call(&admin, IDEM__TARGET("UpdateTimeToLive"), &answer);
    idem__answer_finish(&answer);
    idem__admin_close(&admin);
}

const char *table_new(void)
{
    static unsigned made;
    static char places[64][400];
    const char *endpoint = getenv("IDEM_TEST_DYNAMODB");
    char *place = places[made % COUNT(places)];

    if (endpoint == NULL) {
        fail_with("IDEM_TEST_DYNAMODB names no server");
    }
    (void)snprintf(place, sizeof(places[0]),
                   "//idem-%ld-%u?clock=host&region=local&endpoint=%s%s%s",
                   (long)getpid(), made++, endpoint,
                   traits()->layout == NULL ? "" : "&layout=",
                   traits()->layout == NULL ? "" : traits()->layout);
    assert_ok(idem_dynamodb_create(place, NULL, &why));
    keep_for_ever(place);
    return place;
}

static void add_key(struct idem__admin *admin, const char *id)
{
    idem__buffer_str(&admin->out, ",\"Key\":");
    idem__layout_put_key(&admin->out, layout(), idem_str(id));
    idem__buffer_str(&admin->out, "}");
}

/* The place of a part: its item and its attribute. */
struct spot {
    char id[IDEM__PART_NAME_MAX];
    const char *attribute;
};

static void find(struct idem__admin *admin, const char *key, enum part part,
                 struct spot *ret_spot)
{
    struct idem__answer answer;
    struct idem__buffer memory = {.len = 0};
    struct idem__item item;
    const struct idem__body *body;
    uint8_t id[IDEM_ID_LEN];
    json_object *object;

    assert_ok(idem_id(idem_str(""), idem_str(key), id));
    idem__item_id(id, ret_spot->id);
    ret_spot->attribute = "rec";
    if (layout()->layout != NULL) {
        (void)strcpy(ret_spot->id, key);
        ret_spot->attribute = part == HEAD     ? "idem"
                              : part == RESULT ? "idem_result"
                                               : "idem_input";
        return;
    }
    if (part == HEAD) {
        return;
    }
    idem__admin_begin(admin);
    add_key(admin, ret_spot->id);
    idem__buffer_str(&admin->out, ",\"ConsistentRead\":true}");
    call(admin, IDEM__TARGET("GetItem"), &answer);
    assert_true(json_object_object_get_ex(answer.body, "Item", &object));
    assert_ok(idem__item_read(object, id, &memory, &item, &why));
    body = part == RESULT ? &item.result : &item.input;
    if (body->place == IDEM__PLACE_APART) {
        assert_int_equal(body->parts, 1);
        idem__part_name(id, part == RESULT ? 'r' : 'i', body->tag, 0,
                        ret_spot->id);
        ret_spot->attribute = "body";
    } else if (body->packed) {
        ret_spot->attribute = part == RESULT ? "result_z" : "input_z";
    } else {
        ret_spot->attribute = part == RESULT ? "result" : "input";
    }
    idem__answer_finish(&answer);
    idem__buffer_free(&memory);
}

size_t table_part_read(const char *place, const char *key, enum part part,
                       uint8_t *buf, size_t cap)
{
    struct idem__admin admin;
    struct idem__answer answer;
    struct idem_slice text;
    struct spot spot;
    json_object *item;
    size_t len;

    assert_ok(idem__admin_open(place, &admin, &why));
    find(&admin, key, part, &spot);
    idem__admin_begin(&admin);
    add_key(&admin, spot.id);
    idem__buffer_str(&admin.out, ",\"ConsistentRead\":true}");
    call(&admin, IDEM__TARGET("GetItem"), &answer);
    assert_true(json_object_object_get_ex(answer.body, "Item", &item));
    if (idem__json_attribute(item, spot.attribute, "B", &text) == 0) {
        len = 0; /* No bytes, no attribute. */
    } else {
        uint8_t *bytes = malloc(text.len + 1);

        assert_ok(idem__base64_read(IDEM__BASE64, text, bytes, &len));
        assert_true(len <= cap);
        memcpy(buf, bytes, len);
        free(bytes);
    }
    idem__answer_finish(&answer);
    idem__admin_close(&admin);
    return len;
}

void table_part_write(const char *place, const char *key, enum part part,
                      const uint8_t *bytes, size_t len)
{
    struct idem__admin admin;
    struct idem__answer answer;
    struct spot spot;

    assert_ok(idem__admin_open(place, &admin, &why));
    find(&admin, key, part, &spot);
    idem__admin_begin(&admin);
    add_key(&admin, spot.id);
    idem__buffer_str(&admin.out, ",\"UpdateExpression\":\"SET #a = :a\"");
    idem__buffer_str(&admin.out, ",\"ExpressionAttributeNames\":{\"#a\":\"");
    idem__buffer_str(&admin.out, spot.attribute);
    idem__buffer_str(&admin.out, "\"},\"ExpressionAttributeValues\":{\":a\":");
    idem__json_b(&admin.out, idem_bytes(bytes, len));
    idem__buffer_str(&admin.out, "}}");
    call(&admin, IDEM__TARGET("UpdateItem"), &answer);
    idem__answer_finish(&answer);
    idem__admin_close(&admin);
}
