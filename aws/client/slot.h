/* One connection, which libcurl makes (names, proxies, TLS), and the request that
 * is on it. HTTP is spoken here: libcurl would take as long to write the head of a
 * request as the kernel takes to send it.
 *
 *     idem__aws_slot_load(slot, request, ...)     the bytes that will be sent
 *     idem__aws_slot_start(slot)                  connects, or sends at once
 *     idem__aws_slot_curl(slot, fd, what)         while it connects
 *     idem__aws_slot_ready(slot)                  once it is connected
 *     idem__aws_slot_end(slot, code, why)         it is given up
 *
 * A request that has come to its end is news, with slot->code. A connection is
 * kept for the next request if this one left it clean.
 */
#ifndef IDEM_AWS_CLIENT_SLOT_H
#define IDEM_AWS_CLIENT_SLOT_H

#include "aws/client/curl.h"
#include "aws/client/http.h"
#include "aws/client/post.h"
#include "aws/client/sockets.h"
#include "aws/client/transport.h"

/* The parts of an answer that arrived, beside its body. */
struct idem__aws_arrival {
    bool framed;  /* A length or chunks: a cut would show. */
    bool encoded; /* In a way that was not asked for. */
    bool too_long;
    bool no_memory;
    bool has_crc32;
    uint32_t crc32;
    int64_t date_ms; /* Of a Date that the clock took in; 0: none. */
};

enum idem__aws_line {
    IDEM__AWS_LINE_CLOSED = 0,
    IDEM__AWS_LINE_OPENING, /* libcurl works on it. */
    IDEM__AWS_LINE_OPEN,
};

/* The callbacks of a client, called by its slots. */
struct idem__aws_news {
    size_t opening; /* Slots whose line is OPENING. */
    struct idem__aws_slot
        *first;                  /* Those that have ended, linked by next, in */
    struct idem__aws_slot *last; /* that order. The client takes them out. */
};

struct idem__aws_slot {
    const struct idem__curl *curl;
    CURLM *multi; /* Of this connection alone: libcurl would look after idle
                     ones that it shares, and take an answer on its way for
                     the sign of a dead one. */
    CURL *easy;
    struct idem__aws_slot *next; /* Of the free ones, or of those that ended. */
    struct idem__aws_news *news;
    struct idem__aws_request *request;
    struct idem__sockets *sockets;
    struct idem__aws_clock *clock;
    const struct idem_host *host;

    enum idem__aws_line line;
    int fd;              /* OPEN; else -1. */
    int64_t curl_due_ms; /* OPENING. */
    int64_t idle_ms;     /* The longest time to be idle ... */
    int64_t since_ms;    /* ... and since when it is. */
    uint64_t opened;     /* How often. */
    char url[sizeof(((struct idem__aws_endpoint *)0)->url)]; /* As it is set. */

    int64_t sent_boot_ms; /* Read before the request was handed over. */
    bool kept; /* The request went over a connection that was kept. */
    bool ended;
    CURLcode code;
    struct idem__aws_post post;
    size_t sent; /* Of it and a long body. */
    bool begun;  /* This copy of it was handed over, or a part of it. */
    struct idem__http http;
    struct idem__aws_arrival arrival;
    char why[CURL_ERROR_SIZE]; /* libcurl's sentence, or ours. */
};

/* IDEM_ENOMEM, or IDEM_ECONFIG when the certificates of options->ca_file cannot
 * be used. */
int idem__aws_slot_create(const struct idem__curl *curl,
                          const struct idem__aws_options *options,
                          struct idem__sockets *sockets,
                          struct idem__aws_clock *clock,
                          struct idem__aws_news *news,
                          struct idem__aws_slot **ret_slot,
                          struct idem_error *ret_error);

/* NULL is allowed. */
void idem__aws_slot_destroy(struct idem__aws_slot *slot);

/* Signs @request with @now_ms and makes what is to be sent.
 *
 * IDEM_EINVALID  Endpoint, target, type or token are too long, or no header's.
 * IDEM_ENOMEM
 */
int idem__aws_slot_load(struct idem__aws_slot *slot,
                        struct idem__aws_request *request,
                        struct idem__sigv4 *signer,
                        const struct idem__aws_credentials *credentials,
                        int64_t now_ms, struct idem_error *ret_error);

/* Sends what was loaded; connects before that where it has to. */
void idem__aws_slot_start(struct idem__aws_slot *slot);

/* For a socket of libcurl's that is ready, or CURL_SOCKET_TIMEOUT when
 * slot->curl_due_ms has come. */
void idem__aws_slot_curl(struct idem__aws_slot *slot, int fd, int what);

/* For the socket of an open connection, with or without a request on it. */
void idem__aws_slot_ready(struct idem__aws_slot *slot);

/* Ends the request where it is, and its connection. @why may be NULL. */
void idem__aws_slot_end(struct idem__aws_slot *slot, CURLcode code,
                        const char *why);

/* Sets the outcome of the request, which has ended. */
void idem__aws_slot_classify(struct idem__aws_slot *slot);

/* ---- answer.c ---------------------------------------------------------- */

/* Called with the bytes that arrive; @slot is the struct idem__aws_slot. */
bool idem__aws_on_line(void *slot, struct idem_slice line);
bool idem__aws_on_body(void *slot, struct idem_slice bytes);

/* Forgets what arrived. */
void idem__aws_answer_reset(struct idem__aws_slot *slot);

/* NULL if what arrived is a whole and intact answer, else what is wrong. */
const char *idem__aws_answer_flaw(const struct idem__aws_slot *slot);

#endif
