/* Requests to a function URL. */
#include "lambda/http.h"

static bool is_from(struct json_object *event)
{
    struct json_object *context = idem__lambda_object(event, "requestContext");
    struct idem_slice host = idem__lambda_text(context, "domainName");

    return idem__lambda_is(idem__lambda_text(event, "version"), "2.0") &&
           idem__lambda_method_2(event).len > 0 && host.len > 0 &&
           memmem(host.base, host.len, ".lambda-url.", 12) != NULL;
}

const struct idem__lambda_rule idem__lambda_url = {
    .row = {.name = "function-url",
            .key = "the header Idempotency-Key",
            .strength = IDEM_LAMBDA_REDRIVE_SAFE,
            .busy = "409 and Retry-After",
            .failure = "error",
            .sample = "function-url.json"},
    .shape = IDEM__LAMBDA_HTTP,
    .is_from = is_from,
    .key = idem__lambda_header_key,
    .parts = idem__lambda_parts_2,
    .method = idem__lambda_method_2,
    .path = idem__lambda_path_2,
};
