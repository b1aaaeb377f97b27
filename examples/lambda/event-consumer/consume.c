/* The same consumer as consume.sh, as a function that is linked with the runtime.
 *
 *     cc -o bootstrap consume.c $(pkg-config --cflags --libs idem-aws json-c libcurl)
 *     zip -r consume.zip bootstrap lib
 *
 * on the function's system, Amazon Linux 2023; lib has the libraries that
 * `ldd bootstrap` names and the runtime lacks. The settings are those of consume.sh.
 */
#include <idem/lambda.h>

#include <curl/curl.h>
#include <json-c/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Only the status counts: nobody reads the response to a message. */
static size_t discard(char *data, size_t one, size_t count, void *to)
{
    (void)data;
    (void)one; /* Always 1. */
    (void)to;
    return count;
}

/* The message in the event, as it was sent; NULL if there is none. */
static const char *body_of(struct json_object *event)
{
    struct json_object *records;
    struct json_object *body;

    if (!json_object_object_get_ex(event, "Records", &records) ||
        !json_object_is_type(records, json_type_array) ||
        !json_object_object_get_ex(json_object_array_get_idx(records, 0),
                                   "body", &body)) {
        return NULL;
    }
    return json_object_get_string(body);
}

/* Send @body with @id, which no key can break. The service books an id once. */
static CURLcode book(CURL *curl, const char *body,
                     const uint8_t id[IDEM_ID_LEN], long *ret_status)
{
    char header[32 + 2 * IDEM_ID_LEN] = "Idempotency-Key: ";
    struct curl_slist *headers;
    CURLcode rc;
    int i;

    for (i = 0; i < IDEM_ID_LEN; i++) {
        snprintf(header + strlen(header), 3, "%02x", id[i]);
    }
    headers = curl_slist_append(NULL, header);
    if (headers == NULL) {
        return CURLE_COULDNT_CONNECT; /* As if it had not been reached. */
    }
    curl_easy_setopt(curl, CURLOPT_URL, getenv("ORDERS_URL"));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 20L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, discard);
    rc = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_status);
    curl_slist_free_all(headers);
    return rc;
}

/* Only a connection that was never made, or a service that is busy, proves that
 * nothing was booked. */
static int end(struct idem_lambda_call *call, CURLcode rc, long status)
{
    if (rc == CURLE_COULDNT_CONNECT || rc == CURLE_COULDNT_RESOLVE_HOST ||
        status == 429 || status == 503) {
        return idem_lambda_error(call, "NotReached", "nothing was booked: %s",
                                 curl_easy_strerror(rc));
    }
    if (rc != CURLE_OK || status >= 500) {
        return idem_lambda_error(call, "Unclear", "%s, HTTP status %ld",
                                 curl_easy_strerror(rc), status);
    }
    if (status >= 400) {
        return idem_lambda_error(call, "Rejected", "HTTP status %ld", status);
    }
    return 0;
}

static int handle(struct idem_lambda_call *call)
{
    struct json_object *event = json_tokener_parse(call->event.base);
    const char *body = body_of(event);
    long status = 0;
    CURL *curl = NULL;
    int rc;

    if (body == NULL) {
        rc = idem_lambda_error(call, "Rejected", "the event has no message");
    } else if ((curl = curl_easy_init()) == NULL) {
        rc = idem_lambda_error(call, "NotReached", "no memory for a request");
    } else {
        CURLcode sent = book(curl, body, call->attempt->record->id, &status);

        rc = end(call, sent, status);
    }
    curl_easy_cleanup(curl);
    json_object_put(event);
    return rc;
}

int main(void)
{
    return idem_lambda_main(handle);
}
