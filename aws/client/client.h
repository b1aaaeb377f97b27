/* The inside of a client, which transport.c drives and flight.c sends by. */
#ifndef IDEM_AWS_CLIENT_CLIENT_H
#define IDEM_AWS_CLIENT_CLIENT_H

#include "aws/client/slot.h"
#include "aws/client/sockets.h"

#include <pthread.h>

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
