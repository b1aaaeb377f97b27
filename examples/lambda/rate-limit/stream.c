/* A large limit that the stream of a table adds up, by two functions in this one
 * program. The first writes each request as an item of a table. The second gets these
 * items from the stream of the table, and adds each to the sum of its user and day. The
 * sum lacks the requests that are still in the stream, so that some more than the limit
 * are admitted.
 *
 *     cc -o bootstrap stream.c $(pkg-config --cflags --libs idem-aws json-c)
 *     zip -r stream.zip bootstrap lib
 *
 * on the function's system, Amazon Linux 2023; lib has the libraries that
 * `ldd bootstrap` names and the runtime lacks. Both functions run with
 *
 *     IDEM_STORE=memory:            the records are in STREAM_STORE
 *     IDEM_LAMBDA_SOURCE=direct
 *     IDEM_LAMBDA_KEY='.Records[0].eventID // [.user, .request]'
 *     STREAM_STORE=dynamodb://TABLE each request and each record of the stream once
 *     LIMIT_REQUESTS=TABLE          the requests; the stream has their new image
 *     LIMIT_SUMS=TABLE              the sums
 *     LIMIT_MAX=100000              requests of a user per day
 *
 * The event of the first is {"user": "u1", "request": "r1", "timestamp":
 * 1510067704370}, that of the second a batch of the stream.
 */
#include <idem/dynamodb.h>
#include <idem/lambda.h>

#include <json-c/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_MAX_LEN 64
#define KEY_MAX 160 /* "u1 2017-11-07 r1" */
#define WRITE_MAX 512

struct limiter {
    struct idem_store *store;
    const char *requests;
    const char *sums;
    const char *max;
};

static const char *text_of(struct json_object *object, const char *name)
{
    struct json_object *member;

    return json_object_object_get_ex(object, name, &member)
               ? json_object_get_string(member)
               : "";
}

static struct json_object *member_of(struct json_object *object,
                                     const char *name)
{
    struct json_object *member = NULL;

    (void)json_object_object_get_ex(object, name, &member);
    return member;
}

/* Makes the writes once, in one transaction with a record of @key. Returns 1 if they
 * are made, now or before; 0 if one of their conditions does not hold; -1 if that is
 * unknown. */
static int make_once(struct idem_store *store, const char *scope,
                     const char *key, const struct idem_slice *writes,
                     size_t writes_len, struct idem_error *error)
{
    struct idem_dynamodb_committed commit = IDEM_DYNAMODB_COMMITTED_INIT;
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt = NULL;
    int made = 1;

    request.scope = idem_str(scope);
    request.key = idem_str(key);
    request.on_expired_lease = IDEM_RERUN;
    request.retention_ms *= 2; /* A stream keeps its records for a day. */
    if (idem_dynamodb_commit(store, &request, /* result= */ NULL, writes,
                             writes_len, &attempt, &commit, error) != 0) {
        return -1;
    }
    if (!commit.committed && attempt->verdict != IDEM_REPLAY) {
        made = 0;
    }
    idem_attempt_destroy(attempt);
    return made;
}

/* ---- A request ---- */

static int is_name(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len <= NAME_MAX_LEN &&
           strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "abcdefghijklmnopqrstuvwxyz_.@-") == len;
}

/* Writes the request, if the known sum is below the limit. A retry finds it on record,
 * and is admitted whatever the sum is. */
static int put_request(const struct limiter *limiter, const char *sum,
                       const char *key, struct idem_error *error)
{
    char put[WRITE_MAX];
    char below[WRITE_MAX];
    struct idem_slice writes[2];

    snprintf(put, sizeof(put),
             "{\"Put\":{\"TableName\":\"%s\",\"Item\":{\"id\":{\"S\":\"%s\"},"
             "\"sum\":{\"S\":\"%s\"}}}}",
             limiter->requests, key, sum);
    snprintf(
        below, sizeof(below),
        "{\"ConditionCheck\":{\"TableName\":\"%s\",\"Key\":{\"id\":{\"S\":"
        "\"%s\"}},\"ConditionExpression\":\"attribute_not_exists(requests) "
        "OR requests < :max\",\"ExpressionAttributeValues\":{\":max\":"
        "{\"N\":\"%s\"}}}}",
        limiter->sums, sum, limiter->max);
    writes[0] = idem_str(put);
    writes[1] = idem_str(below);
    return make_once(limiter->store, "request", key, writes, 2, error);
}

/* The day is the event's, so that a retry after midnight gets the same
 * decision. */
static int take_request(struct idem_lambda_call *call,
                        struct json_object *event)
{
    const char *user = text_of(event, "user");
    const char *name = text_of(event, "request");
    time_t at = json_object_get_int64(member_of(event, "timestamp")) / 1000;
    struct idem_error error = {0};
    char key[KEY_MAX];
    char sum[KEY_MAX];
    char day[16];
    struct tm tm;
    int admitted;

    if (!is_name(user) || !is_name(name) || gmtime_r(&at, &tm) == NULL ||
        strftime(day, sizeof(day), "%Y-%m-%d", &tm) == 0) {
        return idem_lambda_error(call, "Invalid",
                                 "the event needs user, request and timestamp");
    }
    snprintf(sum, sizeof(sum), "%s %s", user, day);
    snprintf(key, sizeof(key), "%s %s %s", user, day, name);
    admitted = put_request(call->ctx, sum, key, &error);
    if (admitted < 0) {
        return idem_lambda_error(call, "NotCounted", "%s", error.text);
    }
    return idem_lambda_answer(call,
                              idem_str(admitted == 1 ? "{\"limited\": false}"
                                                     : "{\"limited\": true}"));
}

/* ---- A batch of the stream ---- */

/* Adds a record once, however often and in whatever batch the stream brings it. */
static int add_record(const struct limiter *limiter, struct json_object *record,
                      struct idem_error *error)
{
    struct json_object *image =
        member_of(member_of(record, "dynamodb"), "NewImage");
    char text[WRITE_MAX];
    struct idem_slice write;

    if (strcmp(text_of(record, "eventName"), "INSERT") != 0) {
        return 0;
    }
    snprintf(text, sizeof(text),
             "{\"Update\":{\"TableName\":\"%s\",\"Key\":{\"id\":{\"S\":"
             "\"%s\"}},\"UpdateExpression\":\"ADD requests :one\","
             "\"ExpressionAttributeValues\":{\":one\":{\"N\":\"1\"}}}}",
             limiter->sums, text_of(member_of(image, "sum"), "S"));
    write = idem_str(text);
    return make_once(limiter->store, "stream", text_of(record, "eventID"),
                     &write, 1, error);
}

static int take_batch(struct idem_lambda_call *call,
                      struct json_object *records)
{
    size_t n = json_object_array_length(records);
    struct idem_error error = {0};
    size_t i;

    for (i = 0; i < n; i++) {
        if (add_record(call->ctx, json_object_array_get_idx(records, i),
                       &error) < 0) {
            return idem_lambda_error(call, "NotAdded", "%s", error.text);
        }
    }
    return 0;
}

static int handle(struct idem_lambda_call *call)
{
    struct json_object *event = json_tokener_parse(call->event.base);
    struct json_object *records = member_of(event, "Records");
    int rc = json_object_is_type(records, json_type_array)
                 ? take_batch(call, records)
                 : take_request(call, event);

    json_object_put(event);
    return rc;
}

int main(void)
{
    struct idem_lambda_options options = IDEM_LAMBDA_OPTIONS_INIT;
    struct idem_error error = {0};
    struct idem_lambda *lambda;
    struct limiter limiter = {
        .requests = getenv("LIMIT_REQUESTS"),
        .sums = getenv("LIMIT_SUMS"),
        .max = getenv("LIMIT_MAX"),
    };

    if (limiter.requests == NULL || limiter.sums == NULL ||
        limiter.max == NULL) {
        fprintf(stderr, "LIMIT_REQUESTS, LIMIT_SUMS and LIMIT_MAX are not "
                        "all set\n");
        return 1;
    }
    if (idem_lambda_options_env(&options, &error) != 0 ||
        idem_open(getenv("STREAM_STORE"), NULL, &limiter.store, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    options.run = handle;
    options.ctx = &limiter;
    if (idem_lambda_open(&options, &lambda, &error) == 0) {
        (void)idem_lambda_serve(lambda, getenv("AWS_LAMBDA_RUNTIME_API"),
                                &error);
        idem_lambda_close(lambda);
    }
    fprintf(stderr, "%s\n", error.text);
    idem_close(limiter.store);
    return 1;
}
