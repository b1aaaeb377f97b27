/* Requests of HTTP, whose client chose the key: from an Application Load Balancer,
 * a function URL, and both kinds of APIs of API Gateway. */
#include "aws/lambda/http.h"

/* The rule of the source @source, called @title: its events are of the form that
 * API Gateway calls version @version. */
#define ROW(source, title, version)                                            \
    const struct idem__lambda_rule idem__lambda_##source = {                   \
        .row = {.name = (title),                                               \
                .key = "the header Idempotency-Key",                           \
                .strength = IDEM_LAMBDA_REDRIVE_SAFE,                          \
                .busy = "409 and Retry-After",                                 \
                .failure = "error",                                            \
                .sample = title ".json"},                                      \
        .shape = IDEM__LAMBDA_HTTP,                                            \
        .is_from = source##_is_from,                                           \
        .key = idem__lambda_header_key,                                        \
        .parts = idem__lambda_parts_##version,                                 \
        .method = idem__lambda_method_##version,                               \
    }

/* ---- Requests through an Application Load Balancer ---------------------- */

static bool alb_is_from(struct json_object *event)
{
    struct json_object *context = idem__lambda_object(event, "requestContext");

    return idem__lambda_object(context, "elb") != NULL &&
           idem__lambda_method_1(event).len > 0;
}

ROW(alb, "alb", 1);

/* ---- Requests to a function URL ----------------------------------------- */

static bool url_is_from(struct json_object *event)
{
    struct json_object *context = idem__lambda_object(event, "requestContext");
    struct idem_slice host = idem__lambda_text(context, "domainName");

    return idem__lambda_is(idem__lambda_text(event, "version"), "2.0") &&
           idem__lambda_method_2(event).len > 0 && host.len > 0 &&
           memmem(host.base, host.len, ".lambda-url.", 12) != NULL;
}

ROW(url, "function-url", 2);

/* ---- Requests through an HTTP API of API Gateway, in version 2 of the form ---- */

static bool http_is_from(struct json_object *event)
{
    return idem__lambda_is(idem__lambda_text(event, "version"), "2.0") &&
           idem__lambda_method_2(event).len > 0;
}

ROW(http, "api-gateway-http", 2);

/* ---- Requests through a REST API of API Gateway ------------------------- */

static bool rest_is_from(struct json_object *event)
{
    return idem__lambda_text(event, "httpMethod").len > 0 &&
           idem__lambda_text(event, "path").len > 0;
}

ROW(rest, "api-gateway-rest", 1);
