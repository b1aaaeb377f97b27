/* Requests by libcurl alone. */
#include "raw.h"

#include <curl/curl.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TARGETS_MAX = 4,
    LINES = 4
};

/* The header lines of a target. */
struct target_lines {
    const char *target;
    char text[120];
    struct curl_slist lines[LINES];
};

struct raw {
    CURLM *multi;
    struct raw_call *calls;
    unsigned calls_len;
    struct target_lines targets[TARGETS_MAX];
    unsigned targets_len;
};

static void check(CURLcode code)
{
    if (code != CURLE_OK) {
        errx(1, "libcurl: %s", curl_easy_strerror(code));
    }
}

static size_t take(char *bytes, size_t size, size_t n, void *ctx)
{
    struct raw_call *call = ctx;

    if (call->len + size * n > sizeof(call->answer)) {
        return 0;
    }
    memcpy(call->answer + call->len, bytes, size * n);
    call->len += size * n;
    return size * n;
}

static void set_up(struct raw_call *call, const char *url)
{
    CURL *easy = curl_easy_init();

    if (easy == NULL) {
        errx(1, "libcurl gives no handle");
    }
    call->easy = easy;
    check(curl_easy_setopt(easy, CURLOPT_URL, url));
    check(curl_easy_setopt(easy, CURLOPT_PROXY, ""));
    check(curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L));
    check(curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 10000L));
    check(curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take));
    check(curl_easy_setopt(easy, CURLOPT_WRITEDATA, call));
    check(curl_easy_setopt(easy, CURLOPT_PRIVATE, call));
}

struct raw *raw_open(const char *url, unsigned calls)
{
    struct raw *raw = calloc(1, sizeof(*raw));
    unsigned i;

    check(curl_global_init(CURL_GLOBAL_DEFAULT));
    if (raw == NULL || calls > RAW_CALLS_MAX ||
        (raw->calls = calloc(calls, sizeof(raw->calls[0]))) == NULL ||
        (raw->multi = curl_multi_init()) == NULL) {
        errx(1, "no memory, or too many calls");
    }
    raw->calls_len = calls;
    for (i = 0; i < calls; i++) {
        raw->calls[i].raw = raw;
        set_up(&raw->calls[i], url);
    }
    return raw;
}

void raw_close(struct raw *raw)
{
    unsigned i;

    for (i = 0; i < raw->calls_len; i++) {
        curl_easy_cleanup(raw->calls[i].easy);
    }
    (void)curl_multi_cleanup(raw->multi);
    free(raw->calls);
    free(raw);
}

struct raw_call *raw_call(struct raw *raw, unsigned i)
{
    return &raw->calls[i];
}

/* They are as long as signed ones. */
static struct target_lines *lines_of(struct raw *raw, const char *target)
{
    static const char *const fixed[LINES - 1] = {
        "Content-Type: application/x-amz-json-1.0",
        "X-Amz-Date: 20260101T000000Z",
        "Authorization: AWS4-HMAC-SHA256 "
        "Credential=AKIDBENCH/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature="
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    };
    struct target_lines *made;
    unsigned i;

    for (i = 0; i < raw->targets_len; i++) {
        if (raw->targets[i].target == target) {
            return &raw->targets[i];
        }
    }
    if (raw->targets_len == TARGETS_MAX) {
        errx(1, "too many targets");
    }
    made = &raw->targets[raw->targets_len++];
    made->target = target;
    (void)snprintf(made->text, sizeof(made->text),
                   "X-Amz-Target: DynamoDB_20120810.%s", target);
    for (i = 0; i < LINES; i++) {
        made->lines[i].data =
            i < LINES - 1 ? (char *)(uintptr_t)fixed[i] : made->text;
        made->lines[i].next = i < LINES - 1 ? &made->lines[i + 1] : NULL;
    }
    return made;
}

void raw_send(struct raw_call *call, const char *target, const char *body)
{
    struct target_lines *lines = lines_of(call->raw, target);

    if (call->lines != lines) {
        call->lines = lines;
        check(curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, lines->lines));
    }
    call->len = 0;
    check(curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE,
                           (long)strlen(body)));
    check(curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, body));
    (void)curl_multi_add_handle(call->raw->multi, call->easy);
}

static struct raw_call *take_answer(struct raw *raw, const CURLMsg *message)
{
    CURL *easy = message->easy_handle;
    char *user = NULL;
    struct raw_call *call;
    long status = 0;

    check(message->data.result);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &user);
    (void)curl_multi_remove_handle(raw->multi, easy);
    call = (struct raw_call *)(void *)user;
    call->status = (int)status;
    return call;
}

struct raw_call *raw_reap(struct raw *raw)
{
    for (;;) {
        CURLMsg *message;
        int n;

        message = curl_multi_info_read(raw->multi, &n);
        if (message != NULL) {
            return take_answer(raw, message);
        }
        (void)curl_multi_perform(raw->multi, &n);
        message = curl_multi_info_read(raw->multi, &n);
        if (message != NULL) {
            return take_answer(raw, message);
        }
        (void)curl_multi_poll(raw->multi, NULL, 0, 1000, &n);
    }
}
