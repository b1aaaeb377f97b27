/* Tests of the table of sources, on the sample event of each row. */
#include "aws/lambda/event_source.h"

#include "aws/lambda/http.h"
#include "test.h"

#include <stdlib.h>

/* An event, and its text. */
struct event {
    struct idem__tree tree;
    struct json_object *json;
};

static struct event event_of(const char *text)
{
    struct event event = {.json = NULL};

    assert_int_equal(idem__tree_read(&event.tree, idem_str(text), NULL), 0);
    return event;
}

/* The caller finishes it. */
static struct event sample(const struct idem_lambda_source *row)
{
    struct json_object *json;
    struct event event;
    char path[1024];

    (void)snprintf(path, sizeof(path), "%s/%s", getenv("IDEM_TEST_SAMPLES"),
                   row->sample);
    json = json_object_from_file(path);
    assert_non_null(json);
    event = event_of(json_object_to_json_string(json));
    event.json = json;
    return event;
}

static void finish(struct event *event)
{
    idem__tree_free(&event->tree);
    (void)json_object_put(event->json);
}

/* The event of each row is found to be of that row, and of no row before it. */
TEST(table, findsTheRowOfEachSample)
{
    const struct idem_lambda_source *row;
    size_t i;

    for (i = 0; (row = idem_lambda_source_at(i)) != NULL; i++) {
        struct event event = sample(row);

        /* Nobody but who made the mapping can tell these two apart. */
        assert_string_equal(idem__lambda_rule_of(&event.tree)->row.name,
                            strcmp(row->name, "kafka-partial") == 0
                                ? "kafka"
                                : row->name);
        assert_ptr_equal(&idem__lambda_rule_named(row->name)->row, row);
        assert_non_null(idem_lambda_strength_name(row->strength));
        finish(&event);
    }
    assert_int_equal(i, 20);
    assert_null(idem__lambda_rule_named("telex"));
    assert_null(idem_lambda_strength_name((enum idem_lambda_strength)0));
}

/* True if every event of @name is of @other too. */
static bool is_special_case(const char *name, const char *other)
{
    static const char *const pairs[][2] = {
        {"function-url", "api-gateway-http"},
        {"alb", "api-gateway-rest"},
        {"sqs-fifo", "sqs"},
        {"schedule", "eventbridge"},
        {"kafka", "kafka-partial"},
        {"kafka-partial", "kafka"},
    };

    EACH(pair, pairs) {
        if (strcmp((*pair)[0], name) == 0 && strcmp((*pair)[1], other) == 0) {
            return true;
        }
    }
    return strcmp(name, other) == 0;
}

/* No row takes the sample of another one for its own. "direct" takes what has no
 * records, and is asked last. */
TEST(table, keepsRowsApart)
{
    const struct idem_lambda_source *row;
    const struct idem_lambda_source *other;
    size_t i;
    size_t j;

    for (i = 0; (row = idem_lambda_source_at(i)) != NULL; i++) {
        struct event event = sample(row);

        for (j = 0; (other = idem_lambda_source_at(j)) != NULL; j++) {
            if (strcmp(other->name, "direct") == 0) {
                continue;
            }
            assert_int_equal(idem__lambda_is_from(idem__lambda_rule_named(
                                                      other->name),
                                                  &event.tree),
                             is_special_case(row->name, other->name));
        }
        finish(&event);
    }
}

/* Without the member that its key is made of, an event has no key. */
TEST(table, missesWhatKeysAreMadeOf)
{
    static const struct {
        const char *source;
        const char *event;
    } rows[] = {
        {"sqs", "{}"},
        {"sqs", "{\"messageId\": 1}"},
        {"sns", "{\"Sns\": {}}"},
        {"sns", "{\"Sns\": \"x\"}"},
        {"kinesis", "{\"eventID\": \"a\"}"},
        {"kinesis", "{\"eventSourceARN\": \"a\"}"},
        {"dynamodb", "{\"eventID\": null}"},
        {"s3", "{\"s3\": {\"bucket\": {\"name\": \"b\"}}}"},
        {"s3", "{\"s3\": {\"bucket\": {\"name\": \"b\"}, \"object\": "
               "{\"key\": \"k\"}}}"},
        {"schedule", "{\"time\": \"t\", \"resources\": []}"},
        {"schedule", "{\"time\": \"t\", \"resources\": [1]}"},
        {"schedule", "{\"resources\": [\"r\"]}"},
        {"eventbridge", "{\"id\": \"\"}"},
        {"stepfunctions", "{\"Execution\": {\"Id\": \"e\"}}"},
        {"direct", "{\"idempotencyKey\": 7}"},
        {"alb", "{\"headers\": null}"},
        {"alb", "{}"},
        {"websocket", "{\"requestContext\": {\"apiId\": \"a\", "
                      "\"eventType\": \"MESSAGE\", \"messageId\": null}}"},
        {"kafka", "{\"topic\": \"t\", \"partition\": 0, \"offset\": 1}"},
        {"kafka", "{\"eventSourceArn\": \"a\", \"topic\": \"t\", "
                  "\"partition\": {}, \"offset\": 1, \"timestamp\": 2}"},
        {"activemq", "{\"eventSourceArn\": \"a\"}"},
        {"rabbitmq", "{\"eventSourceArn\": \"a\", \"basicProperties\": "
                     "{\"messageId\": null}}"},
    };

    EACH(row, rows) {
        struct event event = event_of(row->event);
        struct idem__buffer key = {0};

        print_message("# %s\n", row->event);
        assert_int_not_equal(idem__lambda_key(idem__lambda_rule_named(
                                                  row->source),
                                              &event.tree, 0, "r", &key, NULL),
                             0);
        idem__buffer_free(&key);
        finish(&event);
    }
}

/* Each row's key is what stands in its sample. */
TEST(table, makesTheKeys)
{
    static const char *const keys[][2] = {
        {"alb", "order-42"},
        {"function-url", "order-42"},
        {"api-gateway-http", "order-42"},
        {"api-gateway-rest", "order-42"},
        {"sqs", "059f36b4-87a3-44ab-83d2-661975830a7d"},
        {"sqs-fifo", "059f36b4-87a3-44ab-83d2-661975830a7d"},
        {"sns", "95df01b4-ee98-5cb9-9903-4c221d41eb5e"},
        {"kinesis", "arn:aws:kinesis:eu-west-1:123456789012:stream/orders/"
                    "shardId-000000000006:"
                    "49590338271490256608559692538361571095921575989136588898"},
        {"dynamodb", "c4ca4238a0b923820dcc509a6f75849b"},
        {"s3", "invoices/2026/42.pdf//ObjectCreated:Put/0C0F6F405D6ED209E1"},
        {"schedule", "arn:aws:events:eu-west-1:123456789012:rule/nightly/"
                     "2026-10-08T16:53:06Z"},
        {"eventbridge", "17793124-05d4-b198-2fde-7ededc63b103"},
        {"stepfunctions", "arn:aws:states:eu-west-1:123456789012:execution:"
                          "orders:order-42/Charge"},
        {"direct", "order-42"},
        {"vpc-lattice", "order-42"},
        {"websocket", "u9jlm1pv1h/MESSAGE/SOqIDdzSoAMCEeg="},
        {"kafka", "arn:aws:kafka:eu-west-1:123456789012:cluster/shop/"
                  "751d2973-a626-431c-9d4e-d7975eb44dd7-2/orders/0/15/"
                  "1545084650987"},
        {"kafka-partial",
         "arn:aws:kafka:eu-west-1:123456789012:cluster/shop/"
         "751d2973-a626-431c-9d4e-d7975eb44dd7-2/orders/0/15/1545084650987"},
        {"activemq",
         "arn:aws:mq:eu-west-1:123456789012:broker:shop:b-9bcfa592-423a-4942-"
         "879d-eb284b418fc8/ID:b-9bcfa592-423a-4942-879d-eb284b418fc8-1.mq."
         "eu-west-1.amazonaws.com-37557-1234520418293-4:1:1:1:1"},
        {"rabbitmq", "arn:aws:mq:eu-west-1:123456789012:broker:shop:b-9bcfa592-"
                     "423a-4942-879d-eb284b418fc8/order-42"},
    };

    EACH(one, keys) {
        const struct idem__lambda_rule *rule =
            idem__lambda_rule_named((*one)[0]);
        struct event event = sample(&rule->row);
        struct idem__buffer key = {0};

        assert_int_equal(idem__lambda_key(rule, &event.tree,
                                          idem__lambda_first(rule, &event.tree),
                                          "r", &key, NULL),
                         0);
        assert_text(idem__buffer_slice(&key), (*one)[1]);
        idem__buffer_free(&key);
        finish(&event);
    }
}

/* A replay is marked where the response has its headers, is kept by no cache, and
 * has nothing in it that was one caller's, whoever recorded it. */
TEST(replay, isMarked)
{
    static const char *const rows[][2] = {
        {"{\"statusCode\":201}",
         "{\"statusCode\":201,\"headers\":{\"Idempotent-Replayed\":\"true\","
         "\"Cache-Control\":\"no-store\"}}"},
        {"{\"statusCode\":201,\"headers\":{\"cache-control\":\"private\","
         "\"SET-COOKIE\":\"a\"}}",
         "{\"statusCode\":201,\"headers\":{\"cache-control\":\"private\","
         "\"Idempotent-Replayed\":\"true\"}}"},
        {"{\"statusCode\":201,\"multiValueHeaders\":{\"Set-Cookie\":[\"a\"]},"
         "\"cookies\":[\"b\"]}",
         "{\"statusCode\":201,\"multiValueHeaders\":{\"Idempotent-Replayed\":"
         "[\"true\"],\"Cache-Control\":[\"no-store\"]}}"},
        {"{\"body\":\"no status\"}", "{\"body\":\"no status\"}"},
        {"[1]", "[1]"},
        {"null", "null"},
    };
    struct idem__buffer to = {0};

    EACH(row, rows) {
        idem__lambda_replay_response(&to, idem_str((*row)[0]));
        assert_text(idem__buffer_slice(&to), (*row)[1]);
    }
    idem__buffer_free(&to);
}

/* Of a response what every front end keeps is put on record, and what the setting
 * names; one with nothing else in it, or that is none of HTTP, stays as it is. */
TEST(response, keepsWhatMayBeReplayed)
{
    static const char *const rows[][2] = {
        {"{\"statusCode\":201,\"headers\":{\"Location\":\"/1\",\"content-type\":"
         "\"text/plain\",\"ETag\":\"e\",\"X-Order\":\"7\",\"Set-Cookie\":\"a\","
         "\"Access-Control-Allow-Origin\":\"b\",\"Connection\":\"close\","
         "\"X-Other\":\"c\"},\"cookies\":[\"a\"],\"body\":\"12.50\"}",
         "{\"statusCode\":201,\"headers\":{\"Location\":\"/1\",\"content-type\":"
         "\"text/plain\",\"ETag\":\"e\",\"X-Order\":\"7\"},\"body\":\"12.50\"}"},
        {"{\"statusCode\":200,\"multiValueHeaders\":{\"set-cookie\":[\"a\"]}}",
         "{\"statusCode\":200,\"multiValueHeaders\":{}}"},
        {"{\"statusCode\" : 200.0, \"headers\":{\"x-order\":\"7\"}}", NULL},
        {"{\"cookies\":[\"chocolate\"]}", NULL},
        {"\"a word\"", NULL},
    };
    struct idem__buffer to = {0};

    EACH(row, rows) {
        bool changed = idem__lambda_keep_response(&to, idem_str((*row)[0]),
                                                  "Link,X-Order");

        assert_int_equal(changed, (*row)[1] != NULL);
        if (changed) {
            assert_text(idem__buffer_slice(&to), (*row)[1]);
        }
    }
    idem__buffer_free(&to);
}

/* Each source that says when an event happened says it in ms since 1970; where a
 * client would choose the time there is none. */
TEST(time, isTheSourcesOwn)
{
    static const struct {
        const char *source;
        int64_t ms;
    } rows[] = {
        {"sqs", 1545082649183},      {"sqs-fifo", 1545082649183},
        {"sns", 1767357907000},      {"kinesis", 1545084650987},
        {"dynamodb", 1479499740000}, {"s3", 1788464247192},
        {"schedule", 1791478386000}, {"eventbridge", 1791478386000},
        {"kafka", 1545084650987},    {"kafka-partial", 1545084650987},
        {"activemq", 1598827811958},
    };
    const struct idem_lambda_source *row;
    size_t said = 0;
    size_t i;

    for (i = 0; (row = idem_lambda_source_at(i)) != NULL; i++) {
        const struct idem__lambda_rule *rule =
            idem__lambda_rule_named(row->name);
        struct event event = sample(row);
        struct event other = event_of("{\"Sns\": 1}");
        int64_t wanted = 0;

        EACH(each, rows) {
            wanted = strcmp(each->source, row->name) == 0 ? each->ms : wanted;
        }
        print_message("# %s\n", row->name);
        assert_int_equal(idem__lambda_time(rule, &event.tree,
                                           idem__lambda_first(rule,
                                                              &event.tree)),
                         wanted);
        assert_int_equal(idem__lambda_time(rule, &other.tree, 0), 0);
        said += rule->time != NULL;
        finish(&event);
        finish(&other);
    }
    assert_int_equal(said, COUNT(rows));
}

/* A time of another form is none, and no wrong one. */
TEST(time, isReadStrictly)
{
    static const char *const none[] = {
        "",
        "Z",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-01-02T03:04:05+01:00",
        "2026-1-02T03:04:05Z",
        "2026-13-02T03:04:05Z",
        "2026-00-02T03:04:05Z",
        "2026-01-32T03:04:05Z",
        "2026-01-02T24:04:05Z",
        "2026-01-02T03:60:05Z",
        "2026-01-02T03:04:61Z",
        "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05,1Z",
        "2026-01-02T03:04:05.1234567890123456789Z",
        "1969-12-31T23:59:59Z",
        "2026-01-02T03:04:05ZZ",
        "2026-01-02 03:04:05Z",
    };
    static const char *const numbers[] = {"",
                                          "-1",
                                          "1.5",
                                          "0x10",
                                          " 1",
                                          "253402300800000",
                                          "99999999999999999999999"};

    EACH(one, none) {
        assert_int_equal(idem__lambda_time_of(idem_str(*one)), 0);
    }
    EACH(number, numbers) {
        assert_int_equal(idem__lambda_time_of(idem_str(*number)), 0);
    }
    assert_int_equal(idem__lambda_time_of(
                         idem_bytes("2026-01-02T03:04:05Z\0", 21)),
                     0);
    assert_int_equal(idem__lambda_time_of(idem_str("1970-01-01T00:00:01Z")),
                     1000);
    assert_int_equal(idem__lambda_time_of(
                         idem_str("2026-01-02T03:04:05.6789Z")),
                     1767323045678);
    assert_int_equal(idem__lambda_time_of(idem_str("1510067704370")),
                     1510067704370);
}
