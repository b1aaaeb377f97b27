/* params.h: the parameters of all methods.
 *
 * One table has for each name the values that it takes, and where they go. A method takes
 * the parameters that it names; any other is refused, since it was meant to change
 * something.
 */
#ifndef IDEM_CLI_SERVE_PARAMS_H
#define IDEM_CLI_SERVE_PARAMS_H

#include "serve/message.h"
#include "serve/server.h"

#include <idem.h>
#include <idem/limit.h>
#include <idem/operator.h>

enum {
    SERVE_CONTENT_TYPE_MAX = 255,
    SERVE_LIST_MAX = 1024, /* Bytes of a table of outcomes, or of names. */
};

/* A parameter that was not given is empty, or has its usual value. */
struct serve_params {
    struct serve_message *m;
    struct serve_claim claim;
    struct idem_request request; /* lease_ms 0: not given. */
    struct idem_outcome outcome;
    struct idem_slice usual_type;    /* Of the result, unless it has another. */
    struct idem_limit_request limit; /* max 0, at_ms 0: not given. */
    struct idem_slice id;            /* As it was written. */
    struct idem_slice method;        /* Of a request over HTTP; ... */
    struct idem_slice target;
    struct idem_slice body; /* ... and of its response, as the next ones. */
    uint32_t headers;       /* The number of the list; 0: there is none. */
    int64_t http_status;
    struct idem_slice states; /* Of the units of an event. */
    uint32_t event;           /* Its number. */
    int64_t protocol;
    int64_t pid;
    int64_t attempt;             /* 0: a token is given. */
    struct idem_attempt *named;  /* The attempt of the number or the token. */
    struct serve_attempt *known; /* The same, if this connection began it. */
    int64_t wait_ms;
    int64_t advance_ms;
    uint64_t fence;
    int status; /* An enum idem_status; 0: not given. */
    bool overdue;
    bool force;
    bool not_kept;
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];
    char key[IDEM_KEY_MAX + 1];
    const char *token; /* NULL: not given, or empty; as the next ones. */
    const char *owner;
    const char *who;
    const char *reason;
    const char *place;
    const char *challenge;
    const char *function;
    const char *request_id;
    const char *source;
    const char *key_from;
    const char *replay_headers;
    const char *outcomes;
    uint8_t *bytes; /* Of a result, or a body, from base64. */
    char *meta;     /* Of the result that a response is. */
};

/* Sets of parameters: bits, in the order of the table. */
struct serve_names {
    uint64_t taken;
    uint64_t required;
};

/* Reads "a *b", where "*" marks a parameter that is required. */
void serve_names_read(const char *names, struct serve_names *ret_names);

/* Reads the parameters of @m, which may have @names, or refuses it. The caller calls
 * serve_params_finish(). */
void serve_params_read(struct serve_message *m, const struct serve_names *names,
                       struct serve_params *ret_params);
void serve_params_finish(struct serve_params *params);

#endif
