/* The same API as charge.sh, as a function that is linked with the runtime.
 *
 *     cc -o bootstrap charge.c $(pkg-config --cflags --libs idem-aws json-c libcurl)
 *     zip -r charge.zip bootstrap lib
 *
 * on the function's system, Amazon Linux 2023; lib has the libraries that
 * `ldd bootstrap` names and the runtime lacks. The settings are those of charge.sh.
 */
#include <idem/lambda.h>

#include <curl/curl.h>
#include <json-c/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECEIPT_MAX 4096 /* Bytes. */

struct receipt {
    size_t len;
    char text[RECEIPT_MAX + 1]; /* Ends with a NUL. */
};

static int respond(struct idem_lambda_call *call, int status, const char *body)
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
    if (json_object_object_get_ex(body, "amount", &amount) &&
        json_object_is_type(amount, json_type_int)) {
        found = json_object_get_int64(amount);
    }
    json_object_put(body);
    json_object_put(event);
    return found;
}

/* Keep the answer of the service. One that does not fit ends the transfer. */
static size_t keep(char *data, size_t one, size_t count, void *to)
{
    struct receipt *receipt = to;

    (void)one; /* Always 1. */
    if (count > RECEIPT_MAX - receipt->len) {
        return 0;
    }
    memcpy(receipt->text + receipt->len, data, count);
    receipt->len += count;
    return count;
}

/* Ask the service to charge @amount once. @id is the id of caller and key. */
static CURLcode charge(CURL *curl, long long amount,
                       const uint8_t id[IDEM_ID_LEN], struct receipt *receipt,
                       long *ret_status)
{
    char header[32 + 2 * IDEM_ID_LEN] = "Idempotency-Key: ";
    struct curl_slist *headers;
    char body[48];
    CURLcode rc;
    int i;

    for (i = 0; i < IDEM_ID_LEN; i++) {
        snprintf(header + strlen(header), 3, "%02x", id[i]);
    }
    snprintf(body, sizeof(body), "{\"amount\": %lld}", amount);
    headers = curl_slist_append(NULL, header);
    if (headers == NULL) {
        return CURLE_COULDNT_CONNECT; /* As if it had not been reached. */
    }
    curl_easy_setopt(curl, CURLOPT_URL, getenv("PAYMENT_URL"));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 10L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, receipt);
    rc = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_status);
    curl_slist_free_all(headers);
    return rc;
}

/* Only a connection that was never made, or a service that is busy, proves that
 * nothing was charged. */
static int end(struct idem_lambda_call *call, CURLcode rc, long status,
               const struct receipt *receipt)
{
    if (rc == CURLE_COULDNT_CONNECT || rc == CURLE_COULDNT_RESOLVE_HOST ||
        status == 429 || status == 503) {
        return idem_lambda_error(call, "NotReached", "nothing was charged");
    }
    if (rc == CURLE_OK && (status / 100 == 2 || status == 402)) {
        return respond(call, status == 402 ? 402 : 201, receipt->text);
    }
    return idem_lambda_error(call, "Unclear", "%s, HTTP status %ld",
                             curl_easy_strerror(rc), status);
}

static int handle(struct idem_lambda_call *call)
{
    long long amount = read_amount(call);
    struct receipt receipt = {0};
    long status = 0;
    CURLcode sent;
    CURL *curl;

    if (call->attempt == NULL) {
        return respond(call, 405, "{\"error\": \"only POST charges\"}");
    }
    if (amount <= 0) {
        return respond(call, 400, "{\"error\": \"no amount\"}");
    }
    curl = curl_easy_init();
    if (curl == NULL) {
        return idem_lambda_error(call, "NotReached", "no memory for a request");
    }
    sent = charge(curl, amount, call->attempt->record->id, &receipt, &status);
    curl_easy_cleanup(curl);
    return end(call, sent, status, &receipt);
}

int main(void)
{
    return idem_lambda_main(handle);
}
