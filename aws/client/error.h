/* The refusal of an AWS service: its name, and what it means for the request. Pure. */
#ifndef IDEM_AWS_CLIENT_ERROR_H
#define IDEM_AWS_CLIENT_ERROR_H

#include <idem.h>

struct json_object;

/* The meaning of an answer, apart from the names that one service defines
 * (ConditionalCheckFailedException ...), which the caller compares first.
 *
 * THROTTLED to CONFIG are refusals: the request was not applied. After SERVER and
 * UNCLEAR it may have been. */
enum idem__aws_meaning {
    IDEM__AWS_SUCCESS = 1, /* Status 200. */
    IDEM__AWS_THROTTLED,   /* Too many requests: try later, with jitter. */
    IDEM__AWS_SKEWED,      /* Signed with a time too far from the service's. */
    IDEM__AWS_EXPIRED,     /* The credentials have expired. */
    IDEM__AWS_DENIED,  /* Unknown credentials, bad signature, no permission. */
    IDEM__AWS_CONFIG,  /* The request, or what it names, is wrong. */
    IDEM__AWS_SERVER,  /* Any 5xx, whatever its name is. */
    IDEM__AWS_UNCLEAR, /* Anything else: read before you act on it. */
};

struct idem__aws_error {
    enum idem__aws_meaning meaning;
    char type[96];     /* The name after any "#", before any ":"; "": none. */
    char message[192]; /* Cut to whole characters; control characters are
                          spaces; "": none. */
};

/* Reads the answer with @status. @header is its x-amzn-ErrorType (or NULL). @body has the
 * name in "__type" (or "code") and the message in "message" (or "Message") if it is a
 * JSON object of at most 16 MiB, nested at most 32 deep. The body's name wins over the
 * header's. */
void idem__aws_error_parse(int status, const char *header,
                           struct idem_slice body,
                           struct idem__aws_error *ret_error);

/* False: idem__aws_error_parse() would call it neither SKEWED nor EXPIRED. It searches
 * without parsing, so it may be true for other answers, too. */
bool idem__aws_error_may_be_stale(const char *header, struct idem_slice body);

/* Does the same as idem__aws_error_parse() with a body that the caller has parsed (NULL:
 * it is not JSON), for answers that carry more than an error, such as the item of a
 * refused write. Does not keep @body. */
void idem__aws_error_read(int status, const char *header,
                          struct json_object *body,
                          struct idem__aws_error *ret_error);

/* True if the service's name for the error is @type. */
bool idem__aws_error_is(const struct idem__aws_error *error, const char *type);

/* A name that one service defines, and its meaning there. */
struct idem__aws_name {
    const char *type;
    int code; /* For the caller: IDEM_EUNAVAILABLE, IDEM_ENOTFOUND ... */
    int result;
};

/* Returns the row of @names for @error, or NULL if there is none, or if the answer was a
 * 5xx: then a name does not prove that nothing was applied. */
const struct idem__aws_name *idem__aws_error_find(
    const struct idem__aws_error *error, const struct idem__aws_name *names,
    size_t n);

/* Makes the message "@who answered STATUS Type: message", unless that was a success.
 * Returns the code of @name or, if that is NULL, the code for the meaning of @error: 0,
 * IDEM_EDENIED, IDEM_ECONFIG or IDEM_EUNAVAILABLE. */
int idem__aws_error_say(const struct idem__aws_error *error,
                        const struct idem__aws_name *name, const char *who,
                        int status, struct idem_error *ret_error);

#endif
