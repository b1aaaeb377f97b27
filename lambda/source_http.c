/* Requests through an HTTP API of API Gateway, in version 2 of the form. */
#include "lambda/http.h"

static bool is_from(struct json_object *event)
{
    return idem__lambda_is(idem__lambda_text(event, "version"), "2.0") &&
           idem__lambda_method_2(event).len > 0;
}

const struct idem__lambda_rule idem__lambda_http = {
    .row = {.name = "api-gateway-http",
            .key = "the header Idempotency-Key",
            .strength = IDEM_LAMBDA_REDRIVE_SAFE,
            .busy = "409 and Retry-After",
            .failure = "error",
            .sample = "api-gateway-http.json"},
    .shape = IDEM__LAMBDA_HTTP,
    .is_from = is_from,
    .key = idem__lambda_header_key,
    .parts = idem__lambda_parts_2,
    .method = idem__lambda_method_2,
    .path = idem__lambda_path_2,
};
