/* The runtime for AWS Lambda: any event, twice, from any source.
 *
 * The first byte says which source is set, or none; the rest is the event. What
 * Lambda is told is always JSON; an item that is reported is one of the event; the
 * handler runs once for a key, unless it failed; and nothing of it crashes.
 */
#include "fuzz.h"

#include "aws/lambda/lambda.h"

#include <idem/lambda.h>

#include <stdlib.h>
#include <time.h>

void __wrap_idem__lambda_log(const struct idem_lambda_invocation *now,
                             const char *level,
                             const struct idem__lambda_field *fields,
                             const char *format, ...);

/* There are millions of these lines. */
void __wrap_idem__lambda_log(const struct idem_lambda_invocation *now,
                             const char *level,
                             const struct idem__lambda_field *fields,
                             const char *format, ...)
{
    (void)now;
    (void)level;
    (void)fields;
    (void)format;
}

static bool unprotected; /* The handler ran without an attempt. */

static int run(struct idem_lambda_call *call)
{
    const char *event = call->event.base;

    unprotected = unprotected || call->attempt == NULL;
    must(event[call->event.len] == '\0');
    must(idem__lambda_is_json(call->event));
    if (memmem(event, call->event.len, "fail", 4) != NULL) {
        return idem_lambda_error(call, "Poison", "no");
    }
    return idem_lambda_answer(call, idem_str("{\"statusCode\":200}"));
}

/* Each item that is reported is the text of a member of the event. */
static void check_items(struct idem_slice response, struct idem_slice event)
{
    struct json_object *told = idem__lambda_parse(response);
    struct json_object *failures;
    size_t i;

    if (json_object_object_get_ex(told, "batchItemFailures", &failures)) {
        for (i = 0; i < json_object_array_length(failures); i++) {
            struct json_object *item = json_object_array_get_idx(failures, i);
            struct json_object *kafka =
                idem__json_member(item, "itemIdentifier", json_type_object);
            struct idem_slice name =
                kafka == NULL ? idem__json_text_of(item, "itemIdentifier")
                              : idem__json_text_of(kafka, "partition");

            must(name.len > 0);
            must(kafka != NULL || memchr(event.base, '\\', event.len) != NULL ||
                 memmem(event.base, event.len, name.base, name.len) != NULL);
        }
    }
    (void)json_object_put(told);
}

static struct idem_lambda_response handle(struct idem_lambda *lambda,
                                          const char *event, size_t len)
{
    struct idem_lambda_invocation now = IDEM_LAMBDA_INVOCATION_INIT;
    struct idem_lambda_response response;

    now.request_id = "r";
    now.deadline_ms = (int64_t)time(NULL) * 1000 + 60000;
    now.event = idem_bytes(event, len);
    must(idem_lambda_handle(lambda, &now, &response) == 0);
    must(idem__lambda_is_json(response.json));
    check_items(response.json, now.event);
    return response;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    struct idem_lambda_options options = IDEM_LAMBDA_OPTIONS_INIT;
    const struct idem_lambda_source *source =
        idem_lambda_source_at(take_up_to(&tape, 21));
    struct idem_lambda_response told;
    struct idem_lambda *lambda;
    size_t event_len = tape.left;
    char *event = text_of(take_rest(&tape));
    bool failed;

    options.store = "memory:";
    options.function = "f";
    options.run = run;
    options.source = source == NULL ? NULL : source->name;
    unprotected = false;
    must(idem_lambda_open(&options, &lambda, NULL) == 0);
    told = handle(lambda, event, event_len);
    failed = told.is_error || memmem(event, event_len, "fail", 4) != NULL;
    told = handle(lambda, event, event_len);
    must(told.ran == 0 || failed || unprotected);
    idem_lambda_close(lambda);
    free(event);
    return 0;
}
