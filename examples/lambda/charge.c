/* An API behind API Gateway that charges a card once for each Idempotency-Key.
 *
 * Build it as a shared object, and pack it:
 *
 *     cc -shared -fPIC -o charge.so charge.c -ljson-c
 *     idem lambda package -o charge.zip charge.so
 *
 * Handler: charge.so:handle. Whose key it is says
 *
 *     IDEM_LAMBDA_SCOPE='.requestContext.authorizer.principalId'
 *
 * or whatever names the caller where you authenticate him: another caller with the
 * same key is never given this one's response. A request without the header is answered 400, one that
 * comes while the first is at work 409, another one under the same key 422, and a
 * retry gets the first response. What the function passes on to the payment service
 * is the same key, so that a run after a time-out charges nothing twice either.
 */
#include <idem/lambda.h>

#include <json-c/json.h>

#include <stdio.h>

int handle(struct idem_lambda_call *call);

/* The payment service: replace it by a request to yours, with @key as its key. */
static void charge(long long amount, struct idem_slice key)
{
    FILE *ledger = fopen("charges", "a");

    if (ledger != NULL) {
        fprintf(ledger, "%lld %.*s\n", amount, (int)key.len,
                (const char *)key.base);
        fclose(ledger);
    }
}

static int answer(struct idem_lambda_call *call, int status, const char *body)
{
    struct json_object *response = json_object_new_object();
    int rc;

    json_object_object_add(response, "statusCode", json_object_new_int(status));
    json_object_object_add(response, "body", json_object_new_string(body));
    rc = idem_lambda_answer(call,
                            idem_str(json_object_to_json_string(response)));
    json_object_put(response);
    return rc;
}

/* The member "amount" of the body; 0: there is none. */
static long long read_amount(const struct idem_lambda_call *call)
{
    struct json_object *event = json_tokener_parse(call->event.base);
    struct json_object *body = NULL;
    struct json_object *text;
    struct json_object *amount;
    long long found = 0;

    if (json_object_object_get_ex(event, "body", &text)) {
        body = json_tokener_parse(json_object_get_string(text));
    }
    if (json_object_object_get_ex(body, "amount", &amount)) {
        found = json_object_get_int64(amount);
    }
    json_object_put(body);
    json_object_put(event);
    return found;
}

int handle(struct idem_lambda_call *call)
{
    long long amount = read_amount(call);
    char body[128];

    if (call->attempt == NULL) {
        return answer(call, 405, "{\"error\": \"only POST charges\"}");
    }
    if (amount <= 0) {
        return answer(call, 400, "{\"error\": \"no amount\"}");
    }
    charge(amount, call->attempt->record->key);
    snprintf(body, sizeof(body), "{\"status\": \"success\", \"charge\": %llu}",
             (unsigned long long)call->attempt->fence);
    return answer(call, 201, body);
}
