/* A rate limit that counts a request once, however often it is retried.
 *
 * The event is {"user": "u1", "request": "r1", "timestamp": 1510067704370}; the
 * response says whether this user is over the limit on that day, and how many
 * requests are left. The day is the event's, so that a retry after midnight gets the
 * same decision.
 *
 *     cc -o bootstrap limit.c $(pkg-config --cflags --libs idem-aws json-c)
 *     zip -r limit.zip bootstrap lib
 *
 * on the function's system, Amazon Linux 2023; lib has the libraries that
 * `ldd bootstrap` names and the runtime lacks. It runs with
 * IDEM_LAMBDA_KEY='[.user, .request]', so that a retry does not even ask the limit, and
 * two users may choose the same request id.
 */
#include <idem/lambda.h>
#include <idem/limit.h>

#include <json-c/json.h>

#include <stdio.h>
#include <stdlib.h>

#define LIMIT 8

static const char *text_of(struct json_object *event, const char *name)
{
    struct json_object *member;

    return json_object_object_get_ex(event, name, &member)
               ? json_object_get_string(member)
               : "";
}

static int decide(struct idem_store *store, struct json_object *event,
                  struct idem_limited *ret_limited,
                  struct idem_error *ret_error)
{
    struct idem_limit_request limit = IDEM_LIMIT_INIT;
    struct json_object *member;

    limit.name = idem_str("requests");
    limit.subject = idem_str(text_of(event, "user"));
    limit.request = idem_str(text_of(event, "request"));
    limit.max = LIMIT;
    limit.per_ms = IDEM_LIMIT_DAY;
    /* The event above is from 2017. A store refuses an event that comes a day after its
     * window, because it may have forgotten the decision. Leave this out if your events
     * come in time. */
    limit.late_ms = IDEM_DURATION_MAX_MS;
    if (json_object_object_get_ex(event, "timestamp", &member)) {
        limit.at_ms = json_object_get_int64(member);
    }
    return idem_limit(store, &limit, ret_limited, ret_error);
}

static int handle(struct idem_lambda_call *call)
{
    struct json_object *event = json_tokener_parse(call->event.base);
    struct idem_limited limited;
    struct idem_error error;
    char answer[80];
    int rc = decide(call->ctx, event, &limited, &error);

    json_object_put(event);
    if (rc != 0) {
        return idem_lambda_error(call, "NotCounted", "%s", error.text);
    }
    snprintf(answer, sizeof(answer), "{\"limited\": %s, \"remaining\": %llu}",
             limited.admitted ? "false" : "true",
             (unsigned long long)limited.remaining);
    return idem_lambda_answer(call, idem_str(answer));
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
