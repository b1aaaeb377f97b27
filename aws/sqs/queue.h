/* A queue of SQS: its endpoint, and the calls to it. */
#ifndef IDEM_AWS_SQS_QUEUE_H
#define IDEM_AWS_SQS_QUEUE_H

#include "aws/sqs/codec.h"
#include "aws/sqs/refusal.h"

struct idem__sqs_queue {
    struct idem__aws_endpoint endpoint;
    struct idem__aws_provider *provider;
    struct idem__aws_client *client;
    char url[IDEM__SQS_URL_MAX]; /* QueueUrl in requests. */
};

struct idem__sqs_place {
    const char *queue;   /* Its URL, or its name alone. */
    const char *region;  /* NULL: the URL's, or that of the user's settings. */
    const char *account; /* The owner of a queue given by name: at AWS the URL
                            is made of both, which needs no permission. NULL:
                            our own, and SQS is asked for the URL. */
    bool insecure;       /* The user allows http:// to another machine. */
};

/* One call. Zero it; @body is what codec.h wrote. */
struct idem__sqs_call {
    struct idem__aws_request request;
    struct idem__buffer body;
};

/* Finds the region in the host of a queue's URL: sqs.REGION.amazonaws.com,
 * REGION.queue.amazonaws.com and the like. False: it names none. */
bool idem__sqs_region_of(const char *url, char ret_region[64]);

/* Finds the endpoint (AWS_ENDPOINT_URL_SQS and the like, else the host of the URL, else
 * AWS's own) and opens the client. If @place has only the name of the queue, asks SQS for
 * its URL, until @deadline_ms.
 *
 * IDEM_EINVALID      @place is neither a URL nor a name.
 * IDEM_ECONFIG       As for idem__aws_endpoint_find().
 * IDEM_ENOTFOUND     The queue does not exist.
 * IDEM_EDENIED, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem__sqs_queue_open(const struct idem__sqs_place *place,
                         int64_t deadline_ms, struct idem__sqs_queue *ret_queue,
                         struct idem_error *ret_error);

/* Requests the attributes of @queue, and waits for them. The errors of idem__sqs_ask(). */
int idem__sqs_queue_read(struct idem__sqs_queue *queue, int64_t deadline_ms,
                         struct idem__sqs_attributes *ret_attributes,
                         struct idem_error *ret_error);

/* All calls must have been reaped. */
void idem__sqs_queue_close(struct idem__sqs_queue *queue);

/* Submits @call, which the client returns when it is done. */
void idem__sqs_submit(struct idem__sqs_queue *queue, const char *target,
                      struct idem__sqs_call *call, int64_t deadline_ms);

/* Submits @call and waits for its answer, with retries. No other call may be in flight.
 * Returns 0 or the code of the error. */
int idem__sqs_ask(struct idem__sqs_queue *queue, const char *target,
                  struct idem__sqs_call *call, int64_t deadline_ms,
                  struct idem_error *ret_error);

void idem__sqs_call_finish(struct idem__sqs_call *call);

#endif
