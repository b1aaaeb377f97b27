/* Requests to SQS and its answers, as JSON. Pure.
 *
 * Requests are made from texts that came from SQS, or that were checked. Answers may come
 * from anywhere: one that does not have the form that SQS promises is IDEM_ECORRUPT as a
 * whole, and nothing of it is used.
 */
#ifndef IDEM_AWS_SQS_CODEC_H
#define IDEM_AWS_SQS_CODEC_H

#include "base/bytes.h"

#define IDEM__SQS_TARGET(name) "AmazonSQS." name

#define IDEM__SQS_BATCH 10      /* Entries of a batch, messages of a receive. */
#define IDEM__SQS_WAIT_MAX_S 20 /* Of a long poll. */
#define IDEM__SQS_VISIBILITY_MAX_S 43200
#define IDEM__SQS_URL_MAX 1024
#define IDEM__SQS_RECEIPT_MAX 4096 /* SQS documents 1,024. */
#define IDEM__SQS_BODY_MAX ((size_t)1 << 20)
/* Ten bodies, with each byte escaped as \u00xx, and a little more. */
#define IDEM__SQS_ANSWER_MAX ((size_t)64 << 20)

/* ---- Requests, appended to @out; out->failed: memory ran out --------- */

struct idem__sqs_receive {
    unsigned max;           /* 1 to IDEM__SQS_BATCH. */
    int64_t wait_s;         /* 0 to IDEM__SQS_WAIT_MAX_S. */
    int64_t visibility_s;   /* Negative: the queue's own. */
    const char *attempt_id; /* FIFO: a repeated id gets the same messages
                                 again. NULL: none. */
};

void idem__sqs_receive(struct idem__buffer *out, const char *url,
                       const struct idem__sqs_receive *how);

/* @receipts_len is 1 to IDEM__SQS_BATCH; entry i has the id "i". */
void idem__sqs_delete(struct idem__buffer *out, const char *url,
                      const struct idem_slice *receipts, size_t receipts_len);
void idem__sqs_visibility(struct idem__buffer *out, const char *url,
                          const struct idem_slice *receipts,
                          const int64_t *seconds, size_t receipts_len);

void idem__sqs_attributes(struct idem__buffer *out, const char *url);

/* @account "" means our own. */
void idem__sqs_queue_url(struct idem__buffer *out, const char *name,
                         const char *account);

/* ---- Answers ------------------------------------------------------------- */

struct idem__sqs_message {
    struct idem_slice id;
    struct idem_slice receipt;
    struct idem_slice body;
    struct idem_slice group;    /* Empty: none. */
    struct idem_slice sequence; /* Of a FIFO queue. */
    uint64_t receives;          /* How often it was received, now included. */
    int64_t sent_ms;            /* When it was sent, since 1970; 0: unknown. */
    bool damaged;               /* The body does not match its MD5. */
};

struct idem__sqs_messages {
    struct idem__sqs_message list[IDEM__SQS_BATCH];
    size_t len;
    void *memory; /* Holds the bytes that they point to. */
};

/* Reads the answer of a receive. 0, IDEM_ECORRUPT or IDEM_ENOMEM. */
int idem__sqs_read_messages(struct idem_slice answer,
                            struct idem__sqs_messages *ret_messages);
void idem__sqs_messages_finish(struct idem__sqs_messages *messages);

/* The result of one entry of a batch. */
enum idem__sqs_entry {
    IDEM__SQS_DONE = 1,
    IDEM__SQS_GONE,   /* The receipt is not valid any more: the message was
                         deleted, or returned to the queue. */
    IDEM__SQS_RETRY,  /* Not done; another try may succeed. */
    IDEM__SQS_BROKEN, /* Not done, and no other try can succeed. */
};

/* Reads the answer of a batch of @len entries, which must have each of them exactly once,
 * as done or as failed. 0, IDEM_ECORRUPT or IDEM_ENOMEM. */
int idem__sqs_read_batch(struct idem_slice answer, size_t len,
                         enum idem__sqs_entry *ret_entries);

struct idem__sqs_attributes {
    int64_t visibility_s;
    int64_t retention_s;
    int64_t waiting;   /* About how many messages can be received, and */
    int64_t in_flight; /* are received but not deleted; -1: unknown. */
    bool fifo;
    int64_t max_receives;  /* 0: no dead-letter queue. */
    char dead_letter[256]; /* Its ARN; "": none. */
};

/* 0, IDEM_ECORRUPT or IDEM_ENOMEM. */
int idem__sqs_read_attributes(struct idem_slice answer,
                              struct idem__sqs_attributes *ret_attributes);

int idem__sqs_read_queue_url(struct idem_slice answer,
                             char ret_url[IDEM__SQS_URL_MAX]);

/* Reads "arn:aws:sqs:REGION:ACCOUNT:NAME". False: it is not the ARN of a queue. */
bool idem__sqs_read_arn(const char *arn, char ret_region[64],
                        char ret_account[32], char ret_name[96]);

#endif
