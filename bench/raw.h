/* libcurl alone: requests to a DynamoDB server, not signed, nothing checked.
 *
 * What a request costs at least. The header lines are made once, easy handles and
 * connections are kept, curl_multi_perform() and curl_multi_poll() do the rest.
 * Whatever goes wrong ends the program with a sentence.
 */
#ifndef RAW_H
#define RAW_H

#include <stddef.h>

enum {
    RAW_CALLS_MAX = 64,
    RAW_ANSWER_MAX = 65536
};

struct raw;

/* One request at a time. */
struct raw_call {
    struct raw *raw;
    void *easy;
    const void *lines; /* As they are set. */
    int status;
    char answer[RAW_ANSWER_MAX];
    size_t len;
    void *user;
};

/* With @calls calls, at most RAW_CALLS_MAX. */
struct raw *raw_open(const char *url, unsigned calls);
void raw_close(struct raw *raw);
struct raw_call *raw_call(struct raw *raw, unsigned i);

/* Sends @body, which is kept, not copied. @target is a literal: "PutItem". */
void raw_send(struct raw_call *call, const char *target, const char *body);

/* Waits for a call that was sent to be answered. */
struct raw_call *raw_reap(struct raw *raw);

#endif
