/* The sources of events: a row for each, in source_event.c, source_batch.c or
 * source_http.c. */
#ifndef IDEM_AWS_LAMBDA_SOURCE_H
#define IDEM_AWS_LAMBDA_SOURCE_H

#include "aws/lambda/event.h"

#include <idem/lambda.h>

/* The form of the events of a source, and of the answers to them. */
enum idem__lambda_shape {
    IDEM__LAMBDA_EVENT = 1, /* One unit; its response, or an error. */
    IDEM__LAMBDA_HTTP,      /* One unit; a response with a status. */
    IDEM__LAMBDA_RECORDS,   /* A unit for each record; one error for all. */
    IDEM__LAMBDA_QUEUE,     /* Likewise; those that failed are named. */
    IDEM__LAMBDA_FIFO,      /* Likewise; after the first that failed, all the
                               others of its group failed too. */
    IDEM__LAMBDA_STREAM,    /* Likewise, but Lambda itself sends again all that
                               follows the first that is named. */
};

#define IDEM__LAMBDA_PARTS_MAX 3

/* What makes the fingerprint of a unit: parts that are compared by their bytes, then
 * a body by what it means, see idem_http_fingerprint(). Slices into its JSON and into
 * the buffers. */
struct idem__lambda_parts {
    struct idem_slice text; /* Of the unit. */
    struct idem_slice part[IDEM__LAMBDA_PARTS_MAX];
    size_t len;
    struct idem_slice type; /* The content type of the body; may be empty. */
    struct idem_slice body;
    struct idem__buffer json;    /* A part, if it had to be made. */
    struct idem__buffer decoded; /* The body, if it had to be made. */
};

struct idem__lambda_rule {
    struct idem_lambda_source row;
    enum idem__lambda_shape shape;

    /* True if @event, an object, is of this source. */
    bool (*is_from)(struct json_object *event);

    /* Appends the key of @unit (the event, or a record). NULL, or why not. */
    const char *(*key)(struct json_object *unit,
                       const struct idem_lambda_invocation *now,
                       struct idem__buffer *key);

    /* What must be the same in every delivery of @unit; of HTTP the parts are method,
     * path and query. NULL, or why not. */
    const char *(*parts)(struct json_object *unit,
                         struct idem__lambda_parts *parts);

    /* When @unit happened, in ms since 1970 and the same in each delivery; 0: it
     * does not say. NULL: the source has no such time, or a client chooses it. */
    int64_t (*time_ms)(struct json_object *unit);

    /* Of batches: what names a record to Lambda, and (may be NULL) in which group
     * it has to stay in order. */
    struct idem_slice (*item)(struct json_object *record);
    struct idem_slice (*group)(struct json_object *record);

    /* Of HTTP. */
    struct idem_slice (*method)(struct json_object *event);
};

extern const struct idem__lambda_rule idem__lambda_rest, idem__lambda_http,
    idem__lambda_url, idem__lambda_alb, idem__lambda_sqs, idem__lambda_sqs_fifo,
    idem__lambda_sns, idem__lambda_kinesis, idem__lambda_dynamodb,
    idem__lambda_eventbridge, idem__lambda_schedule, idem__lambda_s3,
    idem__lambda_stepfunctions, idem__lambda_direct;

/* The row called @name, or NULL. */
const struct idem__lambda_rule *idem__lambda_rule_named(const char *name);

/* The row that @event, an object, is of; NULL: it has records of a source that
 * is not in the table. */
const struct idem__lambda_rule *idem__lambda_rule_of(struct json_object *event);

/* ---- For the rows ------------------------------------------------------ */

/* The first record of @event, or NULL. */
struct json_object *idem__lambda_first(struct json_object *event);

/* True if the records of @event are of @source: "aws:sqs". */
bool idem__lambda_records_of(struct json_object *event, const char *source);

/* True if @text is @want. */
bool idem__lambda_is(struct idem_slice text, const char *want);

/* The text after the last @mark in @text, or all of it. */
struct idem_slice idem__lambda_after(struct idem_slice text, char mark);

/* Appends @text as a key. NULL, or @why if it is empty. */
const char *idem__lambda_key_text(struct idem__buffer *key,
                                  struct idem_slice text, const char *why);

void idem__lambda_part(struct idem__lambda_parts *parts,
                       struct idem_slice part);

/* The body is a message without a content type. */
void idem__lambda_message(struct idem__lambda_parts *parts,
                          struct idem_slice message);
/* Likewise, in base64. What is not base64 is taken as it is, and false. */
bool idem__lambda_message_base64(struct idem__lambda_parts *parts,
                                 struct idem_slice message);

/* A part is the canonical form of what the unit has at each of these places; once for
 * a unit. */
void idem__lambda_part_json(struct idem__lambda_parts *parts,
                            const char *const *places);

/* The body is JSON: what the unit has at each of these places, "s3.object.size",
 * with its own digits. The list ends with NULL. */
void idem__lambda_body_json(struct idem__lambda_parts *parts,
                            const char *const *places);

#endif
