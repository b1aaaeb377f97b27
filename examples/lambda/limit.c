/* A rate limit that counts a request once, however often it is retried.
 *
 * The event is {"user": "u1", "request": "r1", "timestamp": 1510067704370}; the
 * response says whether this user is over the limit on that day. There is one record
 * for each of the places of a day. A request takes the first one that is free; its
 * id is the fingerprint of the place, so that a retry finds the place that it has.
 *
 *     cc -o limit limit.c $(pkg-config --cflags --libs idem json-c)
 *     idem lambda package -o limit.zip --program limit
 *
 * with IDEM_LAMBDA_KEY='.request', so that a retry does not even look for its place.
 */
#include <idem/lambda.h>

#include <json-c/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LIMIT 8

static const char *text_of(struct json_object *event, const char *name)
{
    struct json_object *member;

    return json_object_object_get_ex(event, name, &member)
               ? json_object_get_string(member)
               : "";
}

/* The date is the event's: it is the same in each delivery. */
static void day_of(struct json_object *event, char day[16])
{
    struct json_object *member;
    time_t when = 0;
    struct tm tm;

    if (json_object_object_get_ex(event, "timestamp", &member)) {
        when = (time_t)(json_object_get_int64(member) / 1000);
    }
    gmtime_r(&when, &tm);
    strftime(day, 16, "%Y-%m-%d", &tm);
}

/* 1: the place is this request's; 0: another one has it; negative: not known. */
static int take(struct idem_store *store, const char *key,
                struct idem_slice request_id)
{
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;
    int taken = 0;
    int rc;

    rc = idem_fingerprint(&request_id, 1, idem_bytes(NULL, 0), fingerprint);
    if (rc != 0) {
        return rc;
    }
    request.scope = idem_str("limit");
    request.key = idem_str(key);
    request.fingerprint = idem_bytes(fingerprint, sizeof(fingerprint));
    request.on_expired_lease = IDEM_RERUN;
    rc = idem_begin(store, &request, &attempt, NULL);
    if (rc != 0) {
        return rc;
    }
    if (attempt->verdict == IDEM_STARTED) {
        rc = idem_complete(attempt, NULL, NULL);
        taken = rc == 0 ? 1 : rc;
    } else if (attempt->verdict == IDEM_REPLAY ||
               attempt->verdict == IDEM_BUSY) {
        taken = 1; /* It has this request's fingerprint. */
    }
    idem_attempt_destroy(attempt);
    return taken;
}

static int count(struct idem_store *store, struct json_object *event)
{
    struct idem_slice id = idem_str(text_of(event, "request"));
    char key[IDEM_KEY_MAX + 1];
    char day[16];
    int taken = 0;
    int place;

    day_of(event, day);
    for (place = 1; taken == 0 && place <= LIMIT; place++) {
        snprintf(key, sizeof(key), "%s/%s/%d", text_of(event, "user"), day,
                 place);
        taken = take(store, key, id);
    }
    return taken;
}

static int handle(struct idem_lambda_call *call)
{
    struct json_object *event = json_tokener_parse(call->event.base);
    int taken = count(call->ctx, event);

    json_object_put(event);
    if (taken < 0) {
        return idem_lambda_error(call, "NotCounted", "%s",
                                 idem_error_text(taken));
    }
    return idem_lambda_answer(call, idem_str(taken ? "{\"limited\": false}"
                                                   : "{\"limited\": true}"));
}

int main(void)
{
    struct idem_lambda_options options = IDEM_LAMBDA_OPTIONS_INIT;
    struct idem_error error = {0};
    struct idem_lambda *lambda;
    struct idem_store *store;

    if (idem_lambda_options_env(&options, &error) != 0 ||
        idem_open(options.store, NULL, &store, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    options.run = handle;
    options.ctx = store;
    if (idem_lambda_open(&options, &lambda, &error) == 0) {
        (void)idem_lambda_serve(lambda, getenv("AWS_LAMBDA_RUNTIME_API"),
                                &error);
        idem_lambda_close(lambda);
    }
    fprintf(stderr, "%s\n", error.text);
    idem_close(store);
    return 1;
}
