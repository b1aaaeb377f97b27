/* An AWS service's refusal: its name for it, and what that means for the
 * request. Pure. */
#ifndef IDEM_AWS_CLIENT_ERROR_H
#define IDEM_AWS_CLIENT_ERROR_H

#include <idem.h>

struct json_object;

/* The meaning of an answer, beyond the names that the service in question
 * defines (ConditionalCheckFailedException ...), which the caller compares
 * first.
 *
 * THROTTLED to CONFIG are refusals: the request was not applied. SERVER and
 * UNCLEAR say nothing about that. */
enum idem__aws_meaning {
    IDEM__AWS_SUCCESS = 1, /* Status 200. */
    IDEM__AWS_THROTTLED,   /* Too much at once: later, with jitter. */
    IDEM__AWS_SKEWED,      /* Signed with a time too far from the service's. */
    IDEM__AWS_EXPIRED,     /* The credentials' time is over. */
    IDEM__AWS_DENIED,  /* Unknown credentials, bad signature, no permission. */
    IDEM__AWS_CONFIG,  /* The request, or what it names, cannot be. */
    IDEM__AWS_SERVER,  /* Any 5xx, whatever it says. */
    IDEM__AWS_UNCLEAR, /* Anything else: read back before acting on it. */
};

struct idem__aws_error {
    enum idem__aws_meaning meaning;
    char type[96];     /* The name after any "#", before any ":"; "": none. */
    char message[192]; /* Cut to whole characters; control characters are
                          spaces; "": none. */
};

/* Reads the answer with @status: @header is its x-amzn-ErrorType (or NULL),
 * @body its body, of which a JSON object's "__type" (or "code") and "message"
 * (or "Message") count. The body's name wins over the header's. A body that is no
 * JSON object, is nested deeper than 32 or longer than 16 MiB has neither. */
void idem__aws_error_parse(int status, const char *header,
                           struct idem_slice body,
                           struct idem__aws_error *ret_error);

/* False: idem__aws_error_parse() would neither call it SKEWED nor EXPIRED. Looks
 * without parsing, and may be true of others too. */
bool idem__aws_error_may_be_stale(const char *header, struct idem_slice body);

/* The same as idem__aws_error_parse() for a body that the caller has parsed already (NULL: it is no JSON):
 * for answers that carry more than an error, such as the item of a refused
 * write. @body is not kept. */
void idem__aws_error_read(int status, const char *header,
                          struct json_object *body,
                          struct idem__aws_error *ret_error);

/* True if the service's own name for it is @type. */
bool idem__aws_error_is(const struct idem__aws_error *error, const char *type);

/* A name that one service defines, and its result there. */
struct idem__aws_name {
    const char *type;
    int code; /* For the caller: IDEM_EUNAVAILABLE, IDEM_ENOTFOUND ... */
    int result;
};

/* The row of @names for @error, or NULL: none of them, or it came with a 5xx, after
 * which a name is not evidence that nothing was applied. */
const struct idem__aws_name *idem__aws_error_find(
    const struct idem__aws_error *error, const struct idem__aws_name *names,
    size_t n);

/* Says "@who answered STATUS Type: message", unless that was a success. Returns the
 * code of @name or, if it is NULL, that of a name which all services share: 0,
 * IDEM_EDENIED, IDEM_ECONFIG or IDEM_EUNAVAILABLE. */
int idem__aws_error_say(const struct idem__aws_error *error,
                        const struct idem__aws_name *name, const char *who,
                        int status, struct idem_error *ret_error);

#endif
