/* The table of sources. */
#include "aws/lambda/event_source.h"

/* How a source is listed: its key, the strength of that, and the answers while another
 * delivery is in progress and after a failure. */
#define SHOWN(title, where, good_for, at_work, failed)                         \
    {                                                                          \
        .name = (title), .key = (where), .strength = (good_for),               \
        .busy = (at_work), .failure = (failed), .sample = title ".json"        \
    }
#define SHOWN_ONE(title, where, good_for)                                      \
    SHOWN(title, where, good_for, "error Idem.InProgress", "error")
#define SHOWN_ITEM(title, where)                                               \
    SHOWN(title, where, IDEM_LAMBDA_REDELIVERY_SAFE, "item failure",           \
          "item failure")
#define SHOWN_HTTP(title)                                                      \
    SHOWN(title, "the header Idempotency-Key", IDEM_LAMBDA_REDRIVE_SAFE,       \
          "409 and Retry-After", "error")

/* The formats of API Gateway's requests, by their version. */
#define HTTP_1                                                                 \
    .shape = IDEM__LAMBDA_HTTP, .parts = {"httpMethod", "path"},               \
    .json = {"queryStringParameters", "multiValueQueryStringParameters"},      \
    .body = "body"
#define HTTP_2                                                                 \
    .shape = IDEM__LAMBDA_HTTP,                                                \
    .parts = {"requestContext.http.method", "rawPath", "rawQueryString"},      \
    .body = "body"

/* The deduplication id of a FIFO queue is not the key: it may be made from the content,
 * and then two messages that are meant to be two have the same one. */
#define MESSAGE                                                                \
    .records = "Records", .key = {"messageId"}, .body = "body",                \
    .time = "attributes.SentTimestamp", .item = {"messageId"}

/* In a topic that was deleted and created again, offsets begin anew. So the key has the
 * time of the record, too. */
#define KAFKA                                                                  \
    .has = {"eventSource=aws:kafka|SelfManagedKafka"}, .records = "records{}", \
    .key = {"eventSourceArn|bootstrapServers", "topic", "partition#",          \
            "offset#", "timestamp#"},                                          \
    .parts = {"key"}, .body = "value", .is_base64 = true, .time = "timestamp", \
    .is_time_ms = true, .item = {"topic", "partition#", "offset#"},            \
    .group = {"topic", "partition#"}
#define KAFKA_KEY                                                              \
    "records.*[].topic, .partition, .offset, .timestamp, and the cluster"

/* The rules, in the order in which they are tried. The last one accepts all that is
 * left. */
static const struct idem__lambda_rule rules[] = {
    {
        .row = SHOWN_HTTP("alb"),
        HTTP_1,
        .has = {"requestContext.elb", "httpMethod"},
    },
    {
        .row = SHOWN_HTTP("function-url"),
        HTTP_2,
        .has = {"version=2.0", "requestContext.http.method",
                "requestContext.domainName~.lambda-url."},
    },
    {
        .row = SHOWN_HTTP("api-gateway-http"),
        HTTP_2,
        .has = {"version=2.0", "requestContext.http.method"},
    },
    {
        .row = SHOWN_HTTP("api-gateway-rest"),
        HTTP_1,
        .has = {"httpMethod", "path"},
    },
    {
        .row = SHOWN_HTTP("vpc-lattice"),
        .shape = IDEM__LAMBDA_HTTP,
        .has = {"method", "requestContext.serviceNetworkArn|"
                          "requestContext.serviceArn|raw_path"},
        .parts = {"method", "path|raw_path"},
        .json = {"queryStringParameters", "query_string_parameters"},
        .body = "body",
    },
    {
        .row = SHOWN_ONE("websocket",
                         "requestContext.apiId, .eventType, .messageId, else "
                         ".connectionId",
                         IDEM_LAMBDA_REDELIVERY_SAFE),
        .shape = IDEM__LAMBDA_EVENT,
        .has = {"requestContext.connectionId", "requestContext.eventType"},
        .key = {"requestContext.apiId", "requestContext.eventType",
                "requestContext.messageId|requestContext.connectionId"},
        .body = "body",
    },
    {
        .row = SHOWN("sqs-fifo", "Records[].messageId",
                     IDEM_LAMBDA_REDELIVERY_SAFE,
                     "item failure, and of all that follow in its group",
                     "item failure, and of all that follow in its group"),
        .shape = IDEM__LAMBDA_FIFO,
        .has = {"eventSource=aws:sqs", "eventSourceARN~.fifo"},
        MESSAGE,
        .group = {"attributes.MessageGroupId"},
    },
    {
        .row = SHOWN_ITEM("sqs", "Records[].messageId"),
        .shape = IDEM__LAMBDA_QUEUE,
        .has = {"eventSource=aws:sqs"},
        MESSAGE,
    },
    {
        .row = SHOWN_ONE("sns", "Records[].Sns.MessageId",
                         IDEM_LAMBDA_REDELIVERY_SAFE),
        .shape = IDEM__LAMBDA_RECORDS,
        .has = {"EventSource=aws:sns"},
        .records = "Records",
        .key = {"Sns.MessageId"},
        .parts = {"Sns.TopicArn", "Sns.Subject"},
        .body = "Sns.Message",
        .time = "Sns.Timestamp",
    },
    {
        /* A producer that retries makes a second record, with its own id. */
        .row = SHOWN_ITEM("kinesis", "Records[].eventSourceARN, .eventID"),
        .shape = IDEM__LAMBDA_STREAM,
        .has = {"eventSource=aws:kinesis"},
        .records = "Records",
        .key = {"eventSourceARN", "eventID"},
        .parts = {"kinesis.partitionKey|partitionKey"},
        .body = "kinesis.data|data",
        .is_base64 = true,
        .time =
            "kinesis.approximateArrivalTimestamp|approximateArrivalTimestamp",
        .item = {"kinesis.sequenceNumber|sequenceNumber"},
        .group = {"kinesis.partitionKey|partitionKey"},
    },
    {
        .row = SHOWN_ITEM("dynamodb", "Records[].eventID"),
        .shape = IDEM__LAMBDA_STREAM,
        .has = {"eventSource=aws:dynamodb"},
        .records = "Records",
        .key = {"eventID"},
        .parts = {"eventName"},
        .body_json = {"dynamodb.Keys", "dynamodb.OldImage",
                      "dynamodb.NewImage"},
        .time = "dynamodb.ApproximateCreationDateTime",
        .item = {"dynamodb.SequenceNumber"},
        .group = {"dynamodb.Keys{}"},
    },
    {
        .row = SHOWN_ONE("kafka", KAFKA_KEY, IDEM_LAMBDA_REDELIVERY_SAFE),
        .shape = IDEM__LAMBDA_RECORDS,
        KAFKA,
    },
    {
        /* The event does not show whether its mapping accepts such an answer, so this rule
         * is used only if IDEM_LAMBDA_SOURCE names it. */
        .row = SHOWN_ITEM("kafka-partial", KAFKA_KEY),
        .shape = IDEM__LAMBDA_PARTITION,
        KAFKA,
    },
    {
        .row = SHOWN_ONE("activemq", "messages[].messageID, and the broker",
                         IDEM_LAMBDA_REDELIVERY_SAFE),
        .shape = IDEM__LAMBDA_RECORDS,
        .has = {"eventSource=aws:mq"},
        .records = "messages",
        .key = {"eventSourceArn", "messageID"},
        .body = "data",
        .is_base64 = true,
        .time = "timestamp",
        .is_time_ms = true,
    },
    {
        .row = SHOWN_ONE("rabbitmq",
                         "rmqMessagesByQueue.*[].basicProperties.messageId, "
                         "and the broker",
                         IDEM_LAMBDA_REDRIVE_SAFE),
        .shape = IDEM__LAMBDA_RECORDS,
        .has = {"eventSource=aws:rmq"},
        .records = "rmqMessagesByQueue{}",
        .key = {"eventSourceArn", "basicProperties.messageId"},
        .body = "data",
        .is_base64 = true,
    },
    {
        /* The sequencer orders the changes of one object, and is the same in every
         * notification of one change. */
        .row = SHOWN_ONE("s3",
                         "Records[].s3.bucket.name, .object.key, .versionId, "
                         ".sequencer, .eventName",
                         IDEM_LAMBDA_REDELIVERY_SAFE),
        .shape = IDEM__LAMBDA_RECORDS,
        .has = {"eventSource=aws:s3"},
        .records = "Records",
        .key = {"s3.bucket.name", "s3.object.key", "s3.object.versionId?",
                "eventName?", "s3.object.sequencer"},
        .body_json = {"s3.object.eTag", "s3.object.size"},
        .time = "eventTime",
    },
    {
        /* A rule may fire twice for one time, with two ids: the key is the rule and
         * the time. */
        .row = SHOWN_ONE("schedule", "resources[0], time",
                         IDEM_LAMBDA_REDRIVE_SAFE),
        .shape = IDEM__LAMBDA_EVENT,
        .has = {"detail-type=Scheduled Event"},
        .key = {"resources", "time"},
        .body_json = {"detail"},
        .time = "time",
    },
    {
        .row = SHOWN_ONE("eventbridge", "id", IDEM_LAMBDA_REDELIVERY_SAFE),
        .shape = IDEM__LAMBDA_EVENT,
        .has = {"detail-type", "source"},
        .key = {"id"},
        .body_json = {"source", "detail-type", "detail"},
        .time = "time",
    },
    {
        /* A task of a state machine that passes its context object, at least "Execution"
         * and "State" of it. The starter of an execution chooses its name. */
        .row =
            SHOWN_ONE("stepfunctions", "Execution.Id, else .Name; State.Name",
                      IDEM_LAMBDA_REDRIVE_SAFE),
        .shape = IDEM__LAMBDA_EVENT,
        .has = {"Execution.Id|Execution.Name"},
        .key = {"Execution.Id|Execution.Name", "State.Name"},
        .body_json = {"Input"},
    },
    {
        /* The key is in the event, or else it is the id of the request, which stays the
         * same when Lambda itself tries again. */
        .row = SHOWN_ONE("direct", "idempotencyKey, else the request id",
                         IDEM_LAMBDA_PER_DELIVERY),
        .shape = IDEM__LAMBDA_EVENT,
    },
};

#define RULES_LEN (sizeof(rules) / sizeof(rules[0]))

const struct idem__lambda_rule *const idem__lambda_direct =
    &rules[RULES_LEN - 1];

const struct idem_lambda_source *idem_lambda_source_at(size_t index)
{
    return index < RULES_LEN ? &rules[index].row : NULL;
}

const char *idem_lambda_strength_name(enum idem_lambda_strength strength)
{
    switch (strength) {
    case IDEM_LAMBDA_REDRIVE_SAFE:
        return "redrive-safe";
    case IDEM_LAMBDA_REDELIVERY_SAFE:
        return "redelivery-safe";
    case IDEM_LAMBDA_PER_DELIVERY:
        return "per-delivery";
    }
    return NULL;
}

const struct idem__lambda_rule *idem__lambda_rule_named(const char *name)
{
    size_t i;

    for (i = 0; i < RULES_LEN; i++) {
        if (strcmp(rules[i].row.name, name) == 0) {
            return &rules[i];
        }
    }
    return NULL;
}

const struct idem__lambda_rule *idem__lambda_rule_of(
    const struct idem__tree *event)
{
    size_t i;

    for (i = 0; i < RULES_LEN; i++) {
        if (idem__lambda_is_from(&rules[i], event)) {
            return &rules[i];
        }
    }
    return NULL;
}

/* ---- The source of an event --------------------------------------------- */

/* True if @text is one of the words in @list, "a|b". */
static bool is_one_of(struct idem_slice text, const char *list)
{
    for (;;) {
        size_t len = strcspn(list, "|");

        if (len == text.len && memcmp(list, text.base, len) == 0) {
            return true;
        }
        if (list[len] == '\0') {
            return false;
        }
        list += len + 1;
    }
}

static bool holds(const struct idem__tree *event, uint32_t unit,
                  const char *condition)
{
    size_t len = strcspn(condition, "=~");
    const char *want = condition + len + 1;
    char place[64] = "";
    struct idem_slice text;
    uint32_t at;

    memcpy(place, condition, len < sizeof(place) ? len : sizeof(place) - 1);
    at = idem__lambda_find(event, unit,
                           condition[len] == '\0' ? condition : place);
    text = idem__lambda_text_of(event, at);
    if (condition[len] == '~') {
        return text.len > 0 &&
               memmem(text.base, text.len, want, strlen(want)) != NULL;
    }
    if (condition[len] == '=') {
        return text.len > 0 && is_one_of(text, want);
    }
    return at != 0 && (text.len > 0 ||
                       idem__tree_at(event, at)->kind == IDEM__TREE_OBJECT);
}

uint32_t idem__lambda_records(const struct idem__lambda_rule *rule,
                              const struct idem__tree *event)
{
    uint32_t at;

    if (rule->records == NULL) {
        return IDEM__LAMBDA_NOWHERE;
    }
    if (idem__tree_at(event, 0)->kind == IDEM__TREE_ARRAY) {
        return 0;
    }
    at = idem__lambda_find(event, 0, rule->records);
    return at != 0 &&
                   idem__tree_at(event, at)->kind ==
                       (strchr(rule->records, '{') == NULL ? IDEM__TREE_ARRAY
                                                           : IDEM__TREE_OBJECT)
               ? at
               : IDEM__LAMBDA_NOWHERE;
}

uint32_t idem__lambda_first(const struct idem__lambda_rule *rule,
                            const struct idem__tree *event)
{
    uint32_t at = idem__lambda_records(rule, event);
    uint32_t end;

    if (at == IDEM__LAMBDA_NOWHERE) {
        return 0;
    }
    end = idem__tree_at(event, at)->end;
    if (idem__tree_at(event, at)->kind == IDEM__TREE_OBJECT) {
        /* Find the first of its arrays that is not empty. */
        for (at++; at < end && idem__tree_at(event, at)->end == at + 1; at++) {
        }
    }
    return at + 1 < end ? at + 1 : 0;
}

/* Any event without "Records" may be direct, since there are many kinds that we do not
 * know. */
bool idem__lambda_is_from(const struct idem__lambda_rule *rule,
                          const struct idem__tree *event)
{
    uint32_t unit = 0;
    size_t i;

    if (rule == idem__lambda_direct) {
        return idem__lambda_find(event, 0, "Records") == 0;
    }
    if (rule->records != NULL) {
        unit = idem__lambda_first(rule, event);
        if (unit == 0) {
            return false;
        }
    }
    for (i = 0; rule->has[i] != NULL; i++) {
        if (!holds(event, unit, rule->has[i])) {
            return false;
        }
    }
    return true;
}
