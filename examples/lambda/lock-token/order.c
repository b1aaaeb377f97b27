/* The same call as order.sh, as a function that is linked with the runtime.
 *
 *     cc -o bootstrap order.c $(pkg-config --cflags --libs idem-aws libcurl)
 *     zip -r order.zip bootstrap lib
 *
 * on the function's system, Amazon Linux 2023; lib has the libraries that
 * `ldd bootstrap` names and the runtime lacks. The settings are those of order.sh.
 */
#include <idem/lambda.h>

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#define RECEIPT_MAX 4096 /* Bytes. */

struct receipt {
    size_t len;
    char text[RECEIPT_MAX];
};

/* Keep the answer of the service. One that does not fit ends the transfer. */
static size_t keep(char *data, size_t one, size_t count, void *to)
{
    struct receipt *receipt = to;

    (void)one; /* Always 1. */
    if (count > sizeof(receipt->text) - receipt->len) {
        return 0;
    }
    memcpy(receipt->text + receipt->len, data, count);
    receipt->len += count;
    return count;
}

/* Send the order, and keep the answer. */
static CURLcode order(CURL *curl, struct idem_slice event,
                      struct receipt *receipt, long *ret_status)
{
    CURLcode rc;

    curl_easy_setopt(curl, CURLOPT_URL, getenv("API_URL"));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)event.len);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, event.base);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 20L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, receipt);
    rc = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_status);
    return rc;
}

/* Only a connection that was never made, or a service that is busy, proves that
 * nothing was ordered. */
static int end(struct idem_lambda_call *call, CURLcode rc, long status,
               const struct receipt *receipt)
{
    if (rc == CURLE_COULDNT_CONNECT || rc == CURLE_COULDNT_RESOLVE_HOST ||
        status == 429 || status == 503) {
        return idem_lambda_error(call, "NotReached", "nothing was ordered");
    }
    if (rc != CURLE_OK || status >= 500) {
        return idem_lambda_error(call, "Unclear", "%s, HTTP status %ld",
                                 curl_easy_strerror(rc), status);
    }
    if (status >= 400) {
        return idem_lambda_error(call, "Rejected", "HTTP status %ld", status);
    }
    return idem_lambda_answer(call,
                              (struct idem_slice){receipt->text, receipt->len});
}

static int handle(struct idem_lambda_call *call)
{
    struct receipt receipt = {0};
    CURL *curl = curl_easy_init();
    long status = 0;
    CURLcode sent;

    if (curl == NULL) {
        return idem_lambda_error(call, "NotReached", "no memory for a request");
    }
    sent = order(curl, call->event, &receipt, &status);
    curl_easy_cleanup(curl);
    return end(call, sent, status, &receipt);
}

int main(void)
{
    return idem_lambda_main(handle);
}
