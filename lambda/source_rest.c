/* Requests through a REST API of API Gateway. */
#include "lambda/http.h"

static bool is_from(struct json_object *event)
{
    return idem__lambda_text(event, "httpMethod").len > 0 &&
           idem__lambda_text(event, "path").len > 0;
}

const struct idem__lambda_rule idem__lambda_rest = {
    .row = {.name = "api-gateway-rest",
            .key = "the header Idempotency-Key",
            .strength = IDEM_LAMBDA_REDRIVE_SAFE,
            .busy = "409 and Retry-After",
            .failure = "error",
            .sample = "api-gateway-rest.json"},
    .shape = IDEM__LAMBDA_HTTP,
    .is_from = is_from,
    .key = idem__lambda_header_key,
    .parts = idem__lambda_parts_1,
    .method = idem__lambda_method_1,
    .path = idem__lambda_path_1,
};
