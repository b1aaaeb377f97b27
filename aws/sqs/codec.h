/* Requests to SQS and its answers, as JSON. Pure.
 *
 * Requests are made from texts that came from SQS itself, or that were checked;
 * answers may come from anybody. An answer that is not of the shape that SQS
 * promises is IDEM_ECORRUPT as a whole; nothing of it is believed.
 */
#ifndef IDEM_AWS_SQS_CODEC_H
#define IDEM_AWS_SQS_CODEC_H

#include "base/bytes.h"

#define IDEM__SQS_TARGET(name) "AmazonSQS." name

#define IDEM__SQS_BATCH 10      /* Entries of a batch, messages at once. */
#define IDEM__SQS_WAIT_MAX_S 20 /* Of a long poll. */
#define IDEM__SQS_VISIBILITY_MAX_S 43200
#define IDEM__SQS_URL_MAX 1024
#define IDEM__SQS_RECEIPT_MAX 4096 /* SQS says 1,024. */
#define IDEM__SQS_BODY_MAX ((size_t)1 << 20)
/* Ten bodies, each byte of them escaped as \u00xx, and some. */
#define IDEM__SQS_ANSWER_MAX ((size_t)64 << 20)

/* ---- Requests: appended to @out; a lack of memory is kept ------------ */

struct idem__sqs_receive {
    unsigned max;           /* 1 to IDEM__SQS_BATCH. */
    int64_t wait_s;         /* 0 to IDEM__SQS_WAIT_MAX_S. */
    int64_t visibility_s;   /* Negative: as the queue says. */
    const char *attempt_id; /* Of a FIFO queue: the same id again gives the same
                                 messages again. NULL: none. */
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

/* @account "": our own. */
void idem__sqs_queue_url(struct idem__buffer *out, const char *name,
                         const char *account);

/* ---- Answers ------------------------------------------------------------- */

struct idem__sqs_message {
    struct idem_slice id;
    struct idem_slice receipt;
    struct idem_slice body;
    struct idem_slice group;    /* Empty: it is in none. */
    struct idem_slice sequence; /* Of a FIFO queue. */
    uint64_t receives;          /* How often it was received, with this. */
    int64_t sent_ms;            /* When it was sent, since 1970; 0: not said. */
    bool damaged;               /* The body is not what its MD5 says. */
};

struct idem__sqs_messages {
    struct idem__sqs_message list[IDEM__SQS_BATCH];
    size_t len;
    void *memory; /* The bytes that they point to. */
};

/* Reads the answer of a receive. 0, IDEM_ECORRUPT or IDEM_ENOMEM. */
int idem__sqs_read_messages(struct idem_slice answer,
                            struct idem__sqs_messages *ret_messages);
void idem__sqs_messages_finish(struct idem__sqs_messages *messages);

/* The result of one entry of a batch. */
enum idem__sqs_entry {
    IDEM__SQS_DONE = 1,
    IDEM__SQS_GONE,  /* The receipt is none any more: the message is deleted, or
                         came back to the queue. */
    IDEM__SQS_RETRY, /* Not done; another try may do it. */
    IDEM__SQS_BROKEN, /* Not done, and no try will. */
};

/* Reads the answer of a batch of @len entries: each of them is in it exactly
 * once, as done or as failed. 0, IDEM_ECORRUPT or IDEM_ENOMEM. */
int idem__sqs_read_batch(struct idem_slice answer, size_t len,
                         enum idem__sqs_entry *ret_entries);

struct idem__sqs_attributes {
    int64_t visibility_s;
    int64_t retention_s;
    int64_t waiting;   /* About how many messages may be received ... */
    int64_t in_flight; /* ... and are received and not deleted; -1: not said. */
    bool fifo;
    int64_t max_receives;  /* 0: the queue has no dead-letter queue. */
    char dead_letter[256]; /* Its ARN; "": none. */
};

/* 0, IDEM_ECORRUPT or IDEM_ENOMEM. */
int idem__sqs_read_attributes(struct idem_slice answer,
                              struct idem__sqs_attributes *ret_attributes);

int idem__sqs_read_queue_url(struct idem_slice answer,
                             char ret_url[IDEM__SQS_URL_MAX]);

/* "arn:aws:sqs:REGION:ACCOUNT:NAME". False: it is none. */
bool idem__sqs_read_arn(const char *arn, char ret_region[64],
                        char ret_account[32], char ret_name[96]);

#endif
