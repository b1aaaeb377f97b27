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
    IDEM__LAMBDA_QUEUE,     /* Likewise; those that failed are named. */
    IDEM__LAMBDA_FIFO,      /* Likewise; after the first that failed, all the
                               others of its group failed too. */
    IDEM__LAMBDA_STREAM,    /* Likewise, but Lambda itself sends again all that
                               follows the first that is named. */
    IDEM__LAMBDA_PARTITION, /* Likewise; named by its partition and offset. */
};

/* A place is a path of members, "s3.object.key": in the unit or, if a record does not
 * have it, in its event. Of "a|b" the first that is there counts. A list of places ends
 * with NULL. */
struct idem__lambda_rule {
    struct idem_lambda_source row;
    enum idem__lambda_shape shape;

    /* The marks of an event of this source: a place, "PLACE=TEXT|TEXT", or "PLACE~TEXT" for
     * one with TEXT in it. */
    const char *has[4];

    /* The member that has its records: an array or, with "{}", an object of arrays. NULL: it is one
     * unit. EventBridge Pipes passes an array of the records. */
    const char *records;

    /* The key, with "/" between them; with "?" after it one may be missing, with "#" it may
     * be a number, with "{}" an object. None: the
     * key is in a header, or in the event, or there is none. */
    const char *key[6];

    /* The parts that every delivery repeats: texts (of HTTP method, path and query), a
     * part that is the canonical form of these places, and the body. That is a message,
     * maybe in base64, or JSON of these places; without either it is all of the unit. */
    const char *parts[4];
    const char *json[3];
    const char *body;
    bool is_base64;
    const char *body_json[4];

    /* When it happened, the same in each delivery: as text, or a number of seconds. NULL:
     * the source has no such time, or a client chooses it. */
    const char *time;
    bool is_time_ms; /* The number is one of milliseconds. */

    /* Of batches: what names a record to Lambda, and in which group it has to stay in
     * order. */
    const char *item[4];
    const char *group[3];
};

extern const struct idem__lambda_rule *const idem__lambda_direct;

/* The row called @name, or NULL. */
const struct idem__lambda_rule *idem__lambda_rule_named(const char *name);

/* The row that @event is of; NULL: it has records of a source that is not in the
 * table. */
const struct idem__lambda_rule *idem__lambda_rule_of(
    const struct idem__tree *event);

/* True if @event is of the source of @rule. */
bool idem__lambda_is_from(const struct idem__lambda_rule *rule,
                          const struct idem__tree *event);

/* Where the records of @event are: an array, or an object of arrays, which may be all of
 * it. IDEM__LAMBDA_NOWHERE: it has none. */
#define IDEM__LAMBDA_NOWHERE UINT32_MAX
uint32_t idem__lambda_records(const struct idem__lambda_rule *rule,
                              const struct idem__tree *event);

/* The first record, or 0. */
uint32_t idem__lambda_first(const struct idem__lambda_rule *rule,
                            const struct idem__tree *event);

/* ---- A unit: the event (0), or a record of it --------------------------- */

/* Appends what is at @places, with "/" between them. IDEM_EINVALID: one is not there, or
 * is neither a text nor a number. */
int idem__lambda_join(const struct idem__tree *event, uint32_t unit,
                      const char *const *places, struct idem__buffer *to,
                      struct idem_error *ret_error);

/* Appends its key.
 *
 * IDEM_EINVALID   It has none that will do.
 * IDEM_ENOTFOUND  A request without the header Idempotency-Key.
 */
int idem__lambda_key(const struct idem__lambda_rule *rule,
                     const struct idem__tree *event, uint32_t unit,
                     const char *request_id, struct idem__buffer *key,
                     struct idem_error *ret_error);

/* True if @event has the header Idempotency-Key, which its source would have to know. */
bool idem__lambda_has_key_header(const struct idem__tree *event);

/* The input of a unit's fingerprint: parts that are compared by their bytes, then a
 * body by what it means, see idem_http_fingerprint(). Slices into the event and into the
 * buffers. */
struct idem__lambda_parts {
    struct idem_slice part[4];
    size_t len;
    struct idem_slice type; /* The content type of the body; may be empty. */
    struct idem_slice body;
    struct idem__buffer json;    /* A part, if it had to be made. */
    struct idem__buffer decoded; /* The body, if it had to be made. */
};

/* Fills in the zeroed @parts, whose buffers the caller frees. IDEM_EINVALID or
 * IDEM_ENOMEM. */
int idem__lambda_read_parts(const struct idem__lambda_rule *rule,
                            const struct idem__tree *event, uint32_t unit,
                            struct idem__lambda_parts *parts,
                            struct idem_error *ret_error);

/* When it happened, in ms since 1970; 0: it does not say. */
int64_t idem__lambda_time(const struct idem__lambda_rule *rule,
                          const struct idem__tree *event, uint32_t unit);

#endif
