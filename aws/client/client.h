/* The inside of a client, which transport.c drives and flight.c sends by. */
#ifndef IDEM_AWS_CLIENT_CLIENT_H
#define IDEM_AWS_CLIENT_CLIENT_H

#include "aws/client/curl.h"
#include "aws/client/request.h"
#include "aws/client/sigv4.h"
#include "base/wait.h"

#include <idem.h>
#include <pthread.h>

/* ---- Sockets: sockets.c ---- */

/* The sockets that libcurl waits for, in one descriptor.
 *
 * A kept-alive connection is waited for again and again. It stays registered in
 * between: taking it out and putting it back would be two system calls for each
 * request, and so we hear of it when it says something meanwhile. That is its end,
 * or an answer that nobody requested (a 408 of a proxy that waited too long, a
 * second answer to the last request). libcurl asks a connection that it kept only
 * whether it has ended, and would take such bytes for the answer to the next
 * request: they are thrown away here, and the connection is ended before libcurl
 * looks at it again.
 *
 *     nobody wants it --- want() ---> wanted ---- want(0) --+
 *           ^                                               |
 *           +-----------------------------------------------+
 *           |
 *           +-- it is ready --> ended: its next reader finds its end
 *
 * Only sockets whose closing we hear of can be treated so; others are registered as
 * they are asked for. */

struct idem__socket {
    int fd;
    short wanted;     /* The events that are waited for; 0: nothing. */
    short registered; /* The events that the watch reports; 0: nothing. */
};

struct idem__sockets {
    int watch;
    int wake; /* An event, always registered. */
    struct idem__socket *kept;
    size_t kept_len;
    size_t kept_cap;
};

/* For about @max connections. IDEM_ENOMEM: descriptors or memory ran out;
 * close() is still to be called. */
int idem__sockets_open(struct idem__sockets *sockets, size_t max);
void idem__sockets_close(struct idem__sockets *sockets);

/* @fd was just opened, or is about to be closed. */
void idem__sockets_opened(struct idem__sockets *sockets, int fd);
void idem__sockets_closing(struct idem__sockets *sockets, int fd);

/* From now on @fd is waited for with @wanted of POLLIN and POLLOUT; 0: not any
 * more; @is_new: it was not waited for before. 0 or -1. */
int idem__sockets_want(struct idem__sockets *sockets, int fd, short wanted,
                       bool is_new);

/* The sockets that are ready now, without waiting, at most @max; a wake is
 * among them. Returns how many. Ends those that are ready and nobody wants. */
int idem__sockets_ready(struct idem__sockets *sockets, struct pollfd *ret_ready,
                        int max);

/* ---- Header lines: post.c ---- */

/* The header lines of a request to AWS, signed, as libcurl takes them. */

/* Five that are signed, the signature, and two that libcurl is to leave out. */
#define IDEM__AWS_POST_LINES 8

/* Zeroed: there are none. */
struct idem__aws_post {
    struct curl_slist lines[IDEM__AWS_POST_LINES]; /* Linked; in @base. */
    char *base;
    size_t cap;
};

/* Signs @request with @now_ms and writes its lines. @post may hold those of another
 * one, whose memory is taken.
 *
 * IDEM_EINVALID  Endpoint, target, type or token are too long, or no header's.
 * IDEM_ENOMEM
 */
int idem__aws_post_make(struct idem__aws_post *post,
                        const struct idem__aws_request *request,
                        struct idem__sigv4 *signer,
                        const struct idem__aws_credentials *credentials,
                        int64_t now_ms);

void idem__aws_post_free(struct idem__aws_post *post);

/* ---- Handles: slot.c ---- */

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

/* ---- What comes back: answer.c ---- */

/* Callbacks of libcurl; @slot is the struct idem__aws_slot. */
size_t idem__aws_on_header(char *line, size_t size, size_t n, void *slot);
size_t idem__aws_on_body(char *bytes, size_t size, size_t n, void *slot);

/* Forgets what arrived. */
void idem__aws_answer_reset(struct idem__aws_slot *slot);

/* NULL if what arrived is a whole and intact answer, else what is wrong. */
const char *idem__aws_answer_flaw(const struct idem__aws_slot *slot);

/* Of a request: in which list of its client it is. */
enum idem__aws_state {
    IDEM__AWS_IDLE = 0, /* The caller's. */
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
    CURLM *multi; /* Its connections are kept for the next request. */
    int64_t curl_due_ms;
    struct idem__sockets sockets;
    struct idem__learned_clock clock;
    struct idem__sigv4 signer;
    struct idem__aws_counters counters;
    /* Copies of the clock and the counters as of the last request that ended: any thread
     * may look at them, and the thread that works uses the others. */
    struct {
        pthread_mutex_t mutex;
        struct idem__learned_clock clock;
        struct idem__aws_counters counters;
    } shown;

    struct idem__aws_slot *free_slots;
    size_t slots; /* Created. */
    struct idem__aws_list queued;
    int64_t queued_due_ms; /* No later than the first deadline among them. */
    struct idem__aws_list running;
    int64_t running_due_ms; /* Likewise. */
    struct idem__aws_list done;
    size_t in_flight;

    bool guarded; /* Something but plain HTTP to this machine was asked for. */
    bool working;
    bool unsigned_yet; /* Credentials are being fetched. */
    /* Atomic: wait() and wake() use them without the lock. */
    int64_t due_ms;
    int64_t
        sleep_until_ms; /* The wait under way ends then; -1: there is none. */
    uint64_t wakes;
    uint64_t wakes_seen; /* By wait(). */
};

/* Lets @request, which is in no list, wait for its turn. */
void idem__aws_enqueue(struct idem__aws_client *client,
                       struct idem__aws_request *request);

/* Signs @request, which is in no list, and sends it on its way. At @now_ms if
 * that is not 0, else at the service's time. 0; 1: credentials are being fetched;
 * or a code. */
int idem__aws_launch(struct idem__aws_client *client,
                     struct idem__aws_request *request, int64_t now_ms,
                     struct idem_error *error);

/* Ends @request, which is in no list and never got to a connection. */
void idem__aws_refuse(struct idem__aws_client *client,
                      struct idem__aws_request *request,
                      const struct idem_error *why);

/* Likewise, because its time was over. */
void idem__aws_refuse_late(struct idem__aws_client *client,
                           struct idem__aws_request *request);

/* Takes the request of @slot, which libcurl has ended with @code, or which is given
 * up here: @code is CURLE_OPERATION_TIMEDOUT then, and @why says why. It may be
 * sent anew. */
void idem__aws_land(struct idem__aws_client *client,
                    struct idem__aws_slot *slot, CURLcode code,
                    const char *why);

#endif
