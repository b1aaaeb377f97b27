/* The sources of events: a row for each, in event_source.c. */
#ifndef IDEM_AWS_LAMBDA_EVENT_SOURCE_H
#define IDEM_AWS_LAMBDA_EVENT_SOURCE_H

#include "aws/lambda/event.h"

#include <idem/lambda.h>

/* The form of the events of a source, and of the answers to them. */
enum idem__lambda_shape {
    IDEM__LAMBDA_EVENT = 1, /* One unit; its response, or an error. */
    IDEM__LAMBDA_HTTP,      /* One unit; a response with a status. */
    IDEM__LAMBDA_RECORDS,   /* A unit for each record; one error for all. */
    IDEM__LAMBDA_QUEUE,     /* A unit for each record; a list of failures. */
    IDEM__LAMBDA_FIFO,      /* As QUEUE; a failure fails all that follow it in
                               its group, too. */
    IDEM__LAMBDA_STREAM,    /* As QUEUE; Lambda itself sends again all that
                               follows the first failure. */
    IDEM__LAMBDA_PARTITION, /* As STREAM; failures by partition and offset. */
};

/* A place is a path of members, "s3.object.key": in the unit or, if a record does not
 * have it, in its event. "a|b" is the first of two places that exists. A list of places
 * ends with NULL. */
struct idem__lambda_rule {
    struct idem_lambda_source row;
    enum idem__lambda_shape shape;

    /* The marks of an event of this source, all of which it has: a PLACE that exists,
     * "PLACE=TEXT|TEXT" for one of these texts, "PLACE~TEXT" for one that contains
     * TEXT. */
    const char *has[4];

    /* The member with the records: an array or, with "{}", an object of arrays. NULL: the
     * event is one unit. EventBridge Pipes passes only the array of records. */
    const char *records;

    /* The places that make the key, with "/" between them. A place with "?" may be
     * missing, with "#" it may be a number, with "{}" an object. Without places, the key
     * is in a header or in the event, or is the id of the request. */
    const char *key[6];

    /* The parts that every delivery repeats, for the fingerprint: texts (method, path and
     * query of HTTP), a part that is the canonical form of the places in json, and the
     * body. The body is a message, perhaps in base64, or the JSON of the places in
     * body_json, or else the whole unit. */
    const char *parts[4];
    const char *json[3];
    const char *body;
    bool is_base64;
    const char *body_json[4];

    /* When it happened, which is the same in each delivery: a text, or a number of
     * seconds. NULL: the source has no such time, or a client chooses it. */
    const char *time;
    bool is_time_ms; /* The number is in milliseconds. */

    /* For batches: the name of a record to Lambda, and the group in which it must stay in
     * order. */
    const char *item[4];
    const char *group[3];
};

extern const struct idem__lambda_rule *const idem__lambda_direct;

/* Returns the row called @name, or NULL. */
const struct idem__lambda_rule *idem__lambda_rule_named(const char *name);

/* Returns the row for @event; NULL: it has records of a source that is not in the
 * table. */
const struct idem__lambda_rule *idem__lambda_rule_of(
    const struct idem__tree *event);

/* True if @event is of the source of @rule. */
bool idem__lambda_is_from(const struct idem__lambda_rule *rule,
                          const struct idem__tree *event);

/* Returns the value with the records of @event: an array, or an object of arrays, which
 * may be the whole event. IDEM__LAMBDA_NOWHERE: it has none. */
#define IDEM__LAMBDA_NOWHERE UINT32_MAX
uint32_t idem__lambda_records(const struct idem__lambda_rule *rule,
                              const struct idem__tree *event);

/* Returns the first record, or 0. */
uint32_t idem__lambda_first(const struct idem__lambda_rule *rule,
                            const struct idem__tree *event);

/* ---- A unit: the event (0), or a record of it --------------------------- */

/* Appends the values at @places, with "/" between them. IDEM_EINVALID: one is missing, or
 * is of a kind that its place does not allow. */
int idem__lambda_join(const struct idem__tree *event, uint32_t unit,
                      const char *const *places, struct idem__buffer *to,
                      struct idem_error *ret_error);

/* Appends the key of @unit.
 *
 * IDEM_EINVALID   It has no usable key.
 * IDEM_ENOTFOUND  A request without the header Idempotency-Key.
 */
int idem__lambda_key(const struct idem__lambda_rule *rule,
                     const struct idem__tree *event, uint32_t unit,
                     const char *request_id, struct idem__buffer *key,
                     struct idem_error *ret_error);

/* True if @event has the header Idempotency-Key, so that it probably comes from HTTP. */
bool idem__lambda_has_key_header(const struct idem__tree *event);

/* The input of a unit's fingerprint: parts that are compared by their bytes, then a body
 * that is compared by its meaning, see idem_http_fingerprint(). The slices point into the
 * event and into the buffers. */
struct idem__lambda_parts {
    struct idem_slice part[4];
    size_t len;
    struct idem_slice type; /* The content type of the body; may be empty. */
    struct idem_slice body;
    struct idem__buffer json;    /* Holds the part made from rule->json. */
    struct idem__buffer decoded; /* Holds a body that was decoded or made. */
};

/* Fills in the zeroed @parts, whose buffers the caller frees. IDEM_EINVALID or
 * IDEM_ENOMEM. */
int idem__lambda_read_parts(const struct idem__lambda_rule *rule,
                            const struct idem__tree *event, uint32_t unit,
                            struct idem__lambda_parts *parts,
                            struct idem_error *ret_error);

/* Returns when it happened, in ms since 1970; 0: unknown. */
int64_t idem__lambda_time(const struct idem__lambda_rule *rule,
                          const struct idem__tree *event, uint32_t unit);

#endif
