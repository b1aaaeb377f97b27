/* A queue of SQS: where it is, and the calls to it. */
#ifndef IDEM_AWS_SQS_QUEUE_H
#define IDEM_AWS_SQS_QUEUE_H

#include "aws/sqs/codec.h"
#include "aws/sqs/refusal.h"

struct idem__sqs_queue {
    struct idem__aws_endpoint endpoint;
    struct idem__aws_provider *provider;
    struct idem__aws_client *client;
    char url[IDEM__SQS_URL_MAX]; /* As SQS calls it. */
};

struct idem__sqs_place {
    const char *queue;   /* Its URL, or its name alone. */
    const char *region;  /* NULL: the URL's, or as the user's settings say. */
    const char *account; /* The owner of the queue that is named: at AWS its URL
                            is made of both, which needs no right. NULL: our
                            own, and SQS is asked for the URL. */
    bool insecure;       /* http:// to another machine was asked for. */
};

/* One call. Zero it; @body is what codec.h wrote. */
struct idem__sqs_call {
    struct idem__aws_request request;
    struct idem__buffer body;
};

/* The region in the host of a queue's URL: sqs.REGION.amazonaws.com,
 * REGION.queue.amazonaws.com and their like. False: it names none. */
bool idem__sqs_region_of(const char *url, char ret_region[64]);

/* Finds the endpoint (AWS_ENDPOINT_URL_SQS and its like, else where the URL
 * leads, else AWS's own) and opens the client. Where @place names the queue alone,
 * SQS is asked for its URL, for as long as @deadline_ms allows.
 *
 * IDEM_EINVALID      @place is neither a URL nor a name.
 * IDEM_ECONFIG       As idem__aws_endpoint_find() says.
 * IDEM_ENOTFOUND     The queue does not exist.
 * IDEM_EDENIED, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem__sqs_queue_open(const struct idem__sqs_place *place,
                         int64_t deadline_ms, struct idem__sqs_queue *ret_queue,
                         struct idem_error *ret_error);

/* Asks for the attributes of @queue, and waits. The errors of idem__sqs_ask(). */
int idem__sqs_queue_read(struct idem__sqs_queue *queue, int64_t deadline_ms,
                         struct idem__sqs_attributes *ret_attributes,
                         struct idem_error *ret_error);

/* All calls were reaped. */
void idem__sqs_queue_close(struct idem__sqs_queue *queue);

/* Submits @call, which the client gives back when it is done. */
void idem__sqs_submit(struct idem__sqs_queue *queue, const char *target,
                      struct idem__sqs_call *call, int64_t deadline_ms);

/* Submits @call and waits. No other call may be under way. 0 or the code. */
int idem__sqs_ask(struct idem__sqs_queue *queue, const char *target,
                  struct idem__sqs_call *call, int64_t deadline_ms,
                  struct idem_error *ret_error);

void idem__sqs_call_finish(struct idem__sqs_call *call);

#endif
