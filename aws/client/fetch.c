/* One request to a source of credentials. */
#include "aws/client/fetch.h"

#include "aws/client/curl.h"
#include "base/host.h"
#include "core/error.h"

#include <unistd.h>

/* ---- libcurl's callback ------------------------------------------------ */

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct idem__aws_fetch *fetch = ctx;
    size_t len = size * n;

    if (len > IDEM__AWS_FETCH_MAX - fetch->answer_len) {
        return 0; /* Another number than libcurl gave us ends the transfer. */
    }
    memcpy(fetch->answer + fetch->answer_len, bytes, len);
    fetch->answer_len += len;
    return len;
}

/* ---- One request ------------------------------------------------------- */

struct transfer {
    struct idem__aws_fetch *fetch;
    CURL *easy;
    CURLM *multi;
    struct curl_slist lines[3];
    char why[CURL_ERROR_SIZE];
};

static void link_lines(struct transfer *transfer)
{
    static char no_accept[] = "Accept:";
    static char no_expect[] = "Expect:";
    struct curl_slist *lines = transfer->lines;

    lines[0] = (struct curl_slist){no_accept, &lines[1]};
    lines[1] = (struct curl_slist){no_expect, NULL};
    if (transfer->fetch->header != NULL) {
        lines[1].next = &lines[2];
        lines[2].data = transfer->fetch->header;
    }
}

static bool set_up(struct transfer *transfer)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = curl_easy_setopt;
    struct idem__aws_fetch *fetch = transfer->fetch;
    struct idem__curl_setup setup = {
        .ca_file = fetch->ca_file,
        .local = fetch->local,
        .connect_ms = fetch->connect_ms,
        .why = transfer->why,
    };
    CURL *easy = transfer->easy;
    int bad = 0;

    link_lines(transfer);
    bad |= set(easy, CURLOPT_URL, fetch->url);
    bad |= set(easy, CURLOPT_HTTPHEADER, transfer->lines);
    bad |= set(easy, CURLOPT_TIMEOUT_MS, (long)fetch->timeout_ms);
    bad |= set(easy, CURLOPT_WRITEFUNCTION, on_body);
    bad |= set(easy, CURLOPT_WRITEDATA, fetch);
    if (strcmp(fetch->method, "POST") == 0) {
        bad |= set(easy, CURLOPT_POST, 1L);
        bad |=
            set(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)fetch->body.len);
        bad |= set(easy, CURLOPT_POSTFIELDS, fetch->body.base);
    } else if (strcmp(fetch->method, "GET") != 0) {
        bad |= set(easy, CURLOPT_CUSTOMREQUEST, fetch->method);
    }
    return idem__curl_set_up(easy, &setup) && bad == 0;
}

/* Runs the transfer to its end, or until fetch->stop is readable. */
static CURLcode run(struct transfer *transfer)
{
    struct curl_waitfd stop = {.fd = transfer->fetch->stop,
                               .events = CURL_WAIT_POLLIN};
    unsigned stops = transfer->fetch->stop >= 0 ? 1 : 0;
    CURLMsg *message;
    int running = 1;
    int left;

    while (running != 0) {
        if (curl_multi_perform(transfer->multi, &running) != CURLM_OK) {
            return CURLE_OUT_OF_MEMORY;
        }
        if (running != 0 && curl_multi_poll(transfer->multi, &stop, stops, 1000,
                                            NULL) != CURLM_OK) {
            return CURLE_OUT_OF_MEMORY;
        }
        if (stop.revents != 0) {
            return CURLE_ABORTED_BY_CALLBACK;
        }
    }
    message = curl_multi_info_read(transfer->multi, &left);
    return message == NULL ? CURLE_OUT_OF_MEMORY : message->data.result;
}

static int classify(struct transfer *transfer, CURLcode code,
                    struct idem_error *error)
{
    struct idem__aws_fetch *fetch = transfer->fetch;
    long status = 0;

    if (code == CURLE_OK) {
        (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE,
                                &status);
        fetch->status = (int)status;
        fetch->answer[fetch->answer_len] = '\0';
        return 0;
    }
    switch (code) {
    case CURLE_OUT_OF_MEMORY:
        return idem__error_plain(error, IDEM_ENOMEM);
    case CURLE_WRITE_ERROR:
        return idem__error(error, IDEM_EUNAVAILABLE, "the answer is too long");
    default:
        return idem__error(error,
                           code == CURLE_SSL_CACERT_BADFILE ? IDEM_ECONFIG
                                                            : IDEM_EUNAVAILABLE,
                           "%.100s",
                           transfer->why[0] != '\0' ? transfer->why
                                                    : curl_easy_strerror(code));
    }
}

int idem__aws_fetch(struct idem__aws_fetch *fetch, struct idem_error *ret_error)
{
    struct transfer transfer = {.fetch = fetch};
    int rc = idem__curl_ready(ret_error);

    if (rc != 0) {
        return rc;
    }
    fetch->status = 0;
    fetch->answer_len = 0;
    transfer.easy = curl_easy_init();
    transfer.multi = curl_multi_init();
    if (transfer.easy == NULL || transfer.multi == NULL || !set_up(&transfer) ||
        curl_multi_add_handle(transfer.multi, transfer.easy) != CURLM_OK) {
        rc = idem__error_plain(ret_error, IDEM_ENOMEM);
    } else {
        rc = classify(&transfer, run(&transfer), ret_error);
        (void)curl_multi_remove_handle(transfer.multi, transfer.easy);
    }
    if (transfer.easy != NULL) {
        curl_easy_cleanup(transfer.easy);
    }
    if (transfer.multi != NULL) {
        (void)curl_multi_cleanup(transfer.multi);
    }
    return rc;
}

void idem__aws_fetch_wipe(struct idem__aws_fetch *fetch)
{
    explicit_bzero(fetch, sizeof(*fetch));
}
