/* The inside of a client: transport.c drives it, and flight.c sends its requests. */
#ifndef IDEM_AWS_CLIENT_CLIENT_H
#define IDEM_AWS_CLIENT_CLIENT_H

#include "aws/client/curl.h"
#include "aws/client/request.h"
#include "aws/client/sigv4.h"
#include "base/wait.h"

#include <idem.h>
#include <pthread.h>

/* ---- Sockets: sockets.c ---- */

/* The sockets that libcurl waits for, and one descriptor for all of them.
 *
 * libcurl waits for a kept-alive connection again and again. We keep it registered in
 * between: removing and adding it would take two system calls for each request. So we
 * notice when something arrives on an idle connection: its end, or an answer that
 * nobody requested (a 408 of a proxy that waited too long, a second answer to the last
 * request). libcurl only checks whether a kept connection has ended, and would take
 * such bytes for the answer to the next request. So we discard them, and end the
 * connection before libcurl uses it again.
 *
 *     unwanted ---------- want() ---> wanted ---- want(0) --+
 *           ^                                               |
 *           +-----------------------------------------------+
 *           |
 *           +-- it is ready --> ended: its next reader finds its end
 *
 * This needs to know when a socket is closed, so it holds for the sockets in kept. Any
 * other is registered only while libcurl waits for it. */

struct idem__socket {
    int fd;
    short wanted;     /* The events that libcurl waits for; 0: none. */
    short registered; /* The events that the watch reports; 0: none. */
};

struct idem__sockets {
    int watch;
    int wake; /* An event, always registered. */
    struct idem__socket *kept;
    size_t kept_len;
    size_t kept_cap;
};

/* Opens it for about @max connections. IDEM_ENOMEM: descriptors or memory ran out; call
 * close() all the same. */
int idem__sockets_open(struct idem__sockets *sockets, size_t max);
void idem__sockets_close(struct idem__sockets *sockets);

/* @fd was just opened, or is about to be closed. */
void idem__sockets_opened(struct idem__sockets *sockets, int fd);
void idem__sockets_closing(struct idem__sockets *sockets, int fd);

/* Waits from now on for @wanted (POLLIN, POLLOUT) on @fd; 0: no longer. @is_new: it was
 * not waited for before. Returns 0 or -1. */
int idem__sockets_want(struct idem__sockets *sockets, int fd, short wanted,
                       bool is_new);

/* Sets @ret_ready to at most @max sockets that are ready now, and the wake event if it is
 * set. Does not wait. Returns how many. Ends the sockets that are ready but not wanted. */
int idem__sockets_ready(struct idem__sockets *sockets, struct pollfd *ret_ready,
                        int max);

/* ---- Header lines: post.c ---- */

/* The header lines of a request to AWS, signed, as libcurl takes them. */

/* Five that are signed, the signature, and two that stop libcurl from adding its own. */
#define IDEM__AWS_POST_LINES 8

/* Zeroed: no lines. */
struct idem__aws_post {
    struct curl_slist lines[IDEM__AWS_POST_LINES]; /* Linked; in @base. */
    char *base;
    size_t cap;
};

/* Signs @request with the time @now_ms and writes its lines, in place of those that @post
 * holds.
 *
 * IDEM_EINVALID  Endpoint, target, type or token are too long, or cannot be a header.
 * IDEM_ENOMEM
 */
int idem__aws_post_make(struct idem__aws_post *post,
                        const struct idem__aws_request *request,
                        struct idem__sigv4 *signer,
                        const struct idem__aws_credentials *credentials,
                        int64_t now_ms);

void idem__aws_post_free(struct idem__aws_post *post);

/* ---- Handles: slot.c ---- */

/* One handle of libcurl and the request that it carries.
 *
 *     idem__aws_slot_load(slot, request, ...)     signs it, sets the handle up
 *     curl_multi_add_handle(multi, slot->easy)    libcurl sends it
 *     ...                                         until libcurl is done with it,
 *                                                 or we give it up
 *     idem__aws_slot_classify(slot, code)         sets the outcome of the request
 *
 * Copies of one request
 * ---------------------
 *
 * libcurl silently sends a request again, up to five times, when a connection that it
 * kept breaks before a whole line of an answer came. It calls on_send() before each
 * copy, which decides:
 *
 *     the first copy     goes, and makes libcurl use a new connection for a second
 *     the second copy    goes, unless request->once is set or the deadline passed
 *     a third            never goes; libcurl does not try one either, since the
 *                        second went over a new connection
 *
 * If a copy must not go, the request ends. request->sends counts the earlier copies.
 */

/* The parts of an answer that arrived, beside its body. */
struct idem__aws_arrival {
    size_t head_len;  /* All header lines, and a trailer. */
    const char *flaw; /* Why we stopped reading it; NULL: we did not. */
    bool no_memory;   /* We stopped reading it because memory ran out. */
    bool final;       /* Its status line is here, and not that of a 1xx. */
    bool head_over;   /* Fields that follow are trailers. */
    bool has_length;
    uint64_t length; /* Content-Length. */
    bool chunked;
    bool encoded; /* In a way that we did not request. */
    bool has_crc32;
    uint32_t crc32;
    int64_t date_ms; /* The Date, if the clock accepted it; else 0. */
};

struct idem__aws_slot {
    CURL *easy;
    struct idem__aws_slot *next; /* In the list of free slots. */
    struct idem__aws_request *request;
    const struct idem__aws_options *options;
    struct idem__sockets *sockets;
    struct idem__learned_clock *clock;
    char url[sizeof(((struct idem__aws_endpoint *)0)->url)]; /* As last set. */
    bool worn; /* The handle must be reset before its next request. */

    int64_t sent_boot_ms; /* Read before libcurl got the request. */
    struct idem__aws_post post;
    struct idem__aws_arrival arrival;
    char why[CURL_ERROR_SIZE]; /* libcurl's message, or ours. */
};

/* Keeps @options, @sockets and @clock. The connections that libcurl makes for the slot
 * stay in @sockets after the slot is destroyed. IDEM_ENOMEM. */
int idem__aws_slot_create(const struct idem__aws_options *options,
                          struct idem__sockets *sockets,
                          struct idem__learned_clock *clock,
                          struct idem__aws_slot **ret_slot,
                          struct idem_error *ret_error);

/* Its handle must not be in a multi handle. NULL is allowed. */
void idem__aws_slot_destroy(struct idem__aws_slot *slot);

/* Signs @request with the time @now_ms and sets up the handle to send it.
 *
 * IDEM_EINVALID  Endpoint, target, type or token are too long, or cannot be a header.
 * IDEM_ENOMEM
 */
int idem__aws_slot_load(struct idem__aws_slot *slot,
                        struct idem__aws_request *request,
                        struct idem__sigv4 *signer,
                        const struct idem__aws_credentials *credentials,
                        int64_t now_ms, struct idem_error *ret_error);

/* Sets the outcome of the request, which libcurl ended with @code, or which we gave up:
 * CURLE_OPERATION_TIMEDOUT. */
void idem__aws_slot_classify(struct idem__aws_slot *slot, CURLcode code);

/* ---- Receiving an answer: answer.c ---- */

/* Callbacks of libcurl; @slot is the struct idem__aws_slot. */
size_t idem__aws_on_header(char *line, size_t size, size_t n, void *slot);
size_t idem__aws_on_body(char *bytes, size_t size, size_t n, void *slot);

/* Forgets what arrived. */
void idem__aws_answer_reset(struct idem__aws_slot *slot);

/* NULL if what arrived is a whole and intact answer, else what is wrong. */
const char *idem__aws_answer_flaw(const struct idem__aws_slot *slot);

/* The list of its client in which a request is. */
enum idem__aws_state {
    IDEM__AWS_IDLE = 0, /* In none: the caller has it. */
    IDEM__AWS_QUEUED,
    IDEM__AWS_RUNNING,
    IDEM__AWS_DONE,
};

struct idem__aws_list { /* See base/list.h. */
    struct idem__aws_request *first;
    struct idem__aws_request *last;
};

struct idem__aws_client {
    struct idem__aws_options options;
    char *ca_file;
    CURLM *multi; /* Keeps its connections for the next request. */
    int64_t curl_due_ms;
    struct idem__sockets sockets;
    struct idem__learned_clock clock;
    struct idem__sigv4 signer;
    struct idem__aws_counters counters;
    /* Copies of the clock and the counters, made when the last request ended. Any thread
     * may read these; only the thread that works uses the originals. */
    struct {
        pthread_mutex_t mutex;
        struct idem__learned_clock clock;
        struct idem__aws_counters counters;
    } shown;

    struct idem__aws_slot *free_slots;
    size_t slots; /* Created. */
    struct idem__aws_list queued;
    int64_t queued_due_ms; /* No later than the first deadline in queued. */
    struct idem__aws_list running;
    int64_t running_due_ms; /* The same for running. */
    struct idem__aws_list done;
    size_t in_flight;

    bool guarded; /* A request used TLS or went to another machine. */
    bool working;
    bool unsigned_yet; /* Requests wait for credentials. */
    /* Atomic: wait() and wake() use these without the lock. */
    int64_t due_ms;
    int64_t
        sleep_until_ms; /* The end of the wait in progress; -1: nobody waits. */
    uint64_t wakes;
    uint64_t wakes_seen; /* By wait(). */
};

/* Queues @request, which is in no list. */
void idem__aws_enqueue(struct idem__aws_client *client,
                       struct idem__aws_request *request);

/* Signs @request, which is in no list, with the time @now_ms (0: the service's), and
 * hands it to libcurl. Returns 0; 1 while credentials are being fetched; or a code. */
int idem__aws_launch(struct idem__aws_client *client,
                     struct idem__aws_request *request, int64_t now_ms,
                     struct idem_error *error);

/* Ends @request, which is in no list and never reached a connection. */
void idem__aws_refuse(struct idem__aws_client *client,
                      struct idem__aws_request *request,
                      const struct idem_error *why);

/* Does the same because its deadline has passed. */
void idem__aws_refuse_late(struct idem__aws_client *client,
                           struct idem__aws_request *request);

/* Takes the request of @slot, which libcurl has ended with @code, or which we give up
 * for the reason @why (@code is CURLE_OPERATION_TIMEDOUT then). May sign and send it
 * anew. */
void idem__aws_land(struct idem__aws_client *client,
                    struct idem__aws_slot *slot, CURLcode code,
                    const char *why);

#endif
