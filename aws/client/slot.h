/* One handle of libcurl's and the request that it carries.
 *
 *     idem__aws_slot_load(slot, request, ...)     signs it, sets the handle up
 *     curl_multi_add_handle(multi, slot->easy)    libcurl sends it
 *     ...                                         until libcurl is done with it,
 *                                                 or it is given up
 *     idem__aws_slot_classify(slot, code)         the outcome of the request
 *
 * Copies of one request
 * ---------------------
 *
 * libcurl sends a request again, up to five times and without a word, when a
 * connection that it kept breaks before a whole line of an answer came. It calls
 * on_send() before each copy, and that decides:
 *
 *     the first copy     goes; and a second one would go over a new connection
 *     the second copy    goes, unless request->once is set or the deadline passed
 *     a third            never goes; libcurl does not ask for it either, since the
 *                        second went over a new connection
 *
 * A copy that may not go ends the request where it is, with the copies before it
 * counted.
 */
#ifndef IDEM_AWS_CLIENT_SLOT_H
#define IDEM_AWS_CLIENT_SLOT_H

#include "aws/client/curl.h"
#include "aws/client/post.h"
#include "aws/client/request.h"
#include "aws/client/sockets.h"

/* The parts of an answer that arrived, beside its body. */
struct idem__aws_arrival {
    size_t head_len;  /* Of all header lines, and of a trailer. */
    const char *flaw; /* It was not read any further, for this. */
    bool no_memory;   /* Likewise. */
    bool final;       /* Its status line is there, and not that of a 1xx. */
    bool head_over;   /* Fields that follow are trailers. */
    bool has_length;
    uint64_t length; /* Content-Length. */
    bool chunked;
    bool encoded; /* In a way that was not asked for. */
    bool has_crc32;
    uint32_t crc32;
    int64_t date_ms; /* Of a Date that the clock took in; 0: none. */
};

struct idem__aws_slot {
    CURL *easy;
    struct idem__aws_slot *next; /* Of the free ones. */
    struct idem__aws_request *request;
    const struct idem__aws_options *options;
    struct idem__sockets *sockets;
    struct idem__learned_clock *clock;
    char url[sizeof(((struct idem__aws_endpoint *)0)->url)]; /* As it is set. */
    bool worn; /* The handle is reset before it serves again. */

    int64_t sent_boot_ms; /* Read before the request was handed over. */
    struct idem__aws_post post;
    struct idem__aws_arrival arrival;
    char why[CURL_ERROR_SIZE]; /* libcurl's sentence, or ours. */
};

/* @options, @sockets and @clock are kept; the connections that libcurl makes for it
 * are in @sockets, also after its end. IDEM_ENOMEM. */
int idem__aws_slot_create(const struct idem__aws_options *options,
                          struct idem__sockets *sockets,
                          struct idem__learned_clock *clock,
                          struct idem__aws_slot **ret_slot,
                          struct idem_error *ret_error);

/* The handle is in no multi handle any more. NULL is allowed. */
void idem__aws_slot_destroy(struct idem__aws_slot *slot);

/* Signs @request with @now_ms and sets up the handle to send it.
 *
 * IDEM_EINVALID  Endpoint, target, type or token are too long, or no header's.
 * IDEM_ENOMEM
 */
int idem__aws_slot_load(struct idem__aws_slot *slot,
                        struct idem__aws_request *request,
                        struct idem__sigv4 *signer,
                        const struct idem__aws_credentials *credentials,
                        int64_t now_ms, struct idem_error *ret_error);

/* Sets the outcome of the request, which libcurl ended with @code, or which was
 * given up: CURLE_OPERATION_TIMEDOUT. */
void idem__aws_slot_classify(struct idem__aws_slot *slot, CURLcode code);

/* ---- answer.c ---------------------------------------------------------- */

/* Callbacks of libcurl; @slot is the struct idem__aws_slot. */
size_t idem__aws_on_header(char *line, size_t size, size_t n, void *slot);
size_t idem__aws_on_body(char *bytes, size_t size, size_t n, void *slot);

/* Forgets what arrived. */
void idem__aws_answer_reset(struct idem__aws_slot *slot);

/* NULL if what arrived is a whole and intact answer, else what is wrong. */
const char *idem__aws_answer_flaw(const struct idem__aws_slot *slot);

#endif
