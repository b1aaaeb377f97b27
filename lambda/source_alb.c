/* Requests through an Application Load Balancer. */
#include "lambda/http.h"

static bool is_from(struct json_object *event)
{
    struct json_object *context = idem__lambda_object(event, "requestContext");

    return idem__lambda_object(context, "elb") != NULL &&
           idem__lambda_method_1(event).len > 0;
}

const struct idem__lambda_rule idem__lambda_alb = {
    .row = {.name = "alb",
            .key = "the header Idempotency-Key",
            .strength = IDEM_LAMBDA_REDRIVE_SAFE,
            .busy = "409 and Retry-After",
            .failure = "error",
            .sample = "alb.json"},
    .shape = IDEM__LAMBDA_HTTP,
    .is_from = is_from,
    .key = idem__lambda_header_key,
    .parts = idem__lambda_parts_1,
    .method = idem__lambda_method_1,
    .path = idem__lambda_path_1,
};
