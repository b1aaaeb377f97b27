/* idem/lambda.h: AWS Lambda functions that may be invoked twice.
 *
 * Every source that invokes a function may deliver an event again. This runtime for
 * Lambda (provided.al2023) keeps one record for each event: an event that arrives again
 * gets the recorded response, and the function does not run.
 *
 *     static int handle(struct idem_lambda_call *call)
 *     {
 *         if (charge(call->event) != 0) {
 *             return idem_lambda_error(call, "CardDeclined", "no money");
 *         }
 *         return idem_lambda_answer(call, idem_str("{\"charged\": true}"));
 *     }
 *
 *     int main(void)
 *     {
 *         return idem_lambda_main(handle);
 *     }
 *
 * `idem lambda` runs any executable that reads an event on stdin and writes its
 * response to stdout; idem-lambda(1) also lists the settings, all of them environment
 * variables.
 *
 * What happens to an event
 * ------------------------
 *
 *     event --> its source --> for each unit (the event, or a record of a batch):
 *     |                        key, scope, fingerprint
 *     |
 *     +-- STARTED            the handler runs; its outcome goes to the log, then
 *     |                      on record; then the response is sent
 *     +-- REPLAY             the recorded response
 *     +-- BUSY               HTTP 409, an item failure, or an error: try again later
 *     +-- MISMATCH           HTTP 422, an item failure, or an error
 *     +-- FAILED, UNKNOWN    HTTP 409, an item failure, or an error: a person looks
 */
#ifndef IDEM_LAMBDA_H
#define IDEM_LAMBDA_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define IDEM_LAMBDA_RESPONSE_MAX (6L << 20) /* Bytes that Lambda accepts. */

/* ---- Handlers ---------------------------------------------------------- */

/* The input of a handler, valid until the handler returns. */
struct idem_lambda_call {
    size_t size;
    const char *request_id;       /* Identifies this delivery, not the event. */
    const char *function_arn;     /* This and the next three: "" if unknown. */
    const char *trace_id;         /* X-Ray's. */
    const char *client_context;   /* Of AWS's mobile SDK. */
    const char *cognito_identity; /* Of AWS's mobile SDK. */
    int64_t deadline_ms;          /* When Lambda stops the function, by the wall
                                     clock. */
    struct idem_slice event; /* JSON, NUL-terminated. For a batch: its envelope
                                with one record. */
    const struct idem_attempt *attempt; /* fence, attempts, takeover; NULL: this
                                           event has no key. */
    void *ctx;                          /* Of the options. */
    int64_t event_ms; /* The time of the event that its source gives in every
                         delivery, in ms since 1970; 0: none. For at_ms of
                         <idem/limit.h>. */
};

/* Returns 0 when the work is done, anything else after idem_lambda_error(). */
typedef int idem_lambda_fn(struct idem_lambda_call *call);

/* Sets the response of the handler to a copy of @json; without this call it is "null".
 * Returns 0, or IDEM_ENOMEM. */
int idem_lambda_answer(struct idem_lambda_call *call, struct idem_slice json);

/* Sets the error of the handler: @type is its name in outcome tables (letters, digits
 * and ._- only, at most 127). Returns IDEM_EINVALID, for the handler to return. */
int idem_lambda_error(struct idem_lambda_call *call, const char *type,
                      const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets an error and releases the key, for a handler that knows that nothing happened,
 * for example because a service refused its connection: the next delivery runs as if
 * this one had not. After any other error the next delivery learns that it takes
 * over. */
int idem_lambda_release(struct idem_lambda_call *call, const char *type,
                        const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns how long the handler may still work, in ms; never negative. */
int64_t idem_lambda_remaining_ms(const struct idem_lambda_call *call);

/* ---- The runtime ------------------------------------------------------- */

struct idem_lambda_options {
    size_t size;         /* sizeof, set by IDEM_LAMBDA_OPTIONS_INIT. */
    const char *store;   /* IDEM_STORE: URL of the store. */
    idem_lambda_fn *run; /* NULL: run the program in handler. */
    void *ctx;
    const char *handler;   /* _HANDLER: an executable. */
    const char *directory; /* LAMBDA_TASK_ROOT: where handler is; NULL: here. */
    const char *function;  /* IDEM_SCOPE, else AWS_LAMBDA_FUNCTION_NAME:
                              begins the scope of every key. */
    const char *source;    /* IDEM_LAMBDA_SOURCE: a name of
                              idem_lambda_source_at(); NULL: detected from each
                              event. */
    const char *key;       /* IDEM_LAMBDA_KEY: a selector of the event, or of
                              each record of a batch; NULL: the source's
                              rule. */
    const char *scope; /* IDEM_LAMBDA_SCOPE: a selector like key, for the name
                          of the caller, which follows the function in the
                          scope. "global": all callers share their records. HTTP
                          needs one of the two. */
    const char *fingerprint; /* IDEM_LAMBDA_FINGERPRINT: a selector like key;
                                "none": not compared; NULL: the source's
                                rule. */
    const char *outcome;     /* IDEM_LAMBDA_OUTCOME: a table of <idem/outcome.h>
                                for the statuses of HTTP responses and the names
                                of errors, "Declined=complete 5xx=retry". After
                                other errors the work is run again, as a
                                takeover (rerun), or is unknown (hold). */
    const char *methods;     /* IDEM_LAMBDA_METHODS: HTTP methods whose requests
                                have keys, some of "POST,PATCH,PUT,DELETE";
                                "POST,PATCH". Others run each time. */
    enum idem_on_expired_lease
        on_expired_lease;     /* IDEM_LAMBDA_ON_EXPIRED_LEASE: rerun, hold. */
    uint32_t attempts_max;    /* IDEM_LAMBDA_MAX_ATTEMPTS: 5. */
    int64_t retention_ms;     /* IDEM_LAMBDA_RETENTION: 24 hours. */
    int64_t start_min_ms;     /* IDEM_LAMBDA_START_MIN: with less time than this
                                 left until half a second before the deadline,
                                 no handler starts; 500. */
    int64_t store_timeout_ms; /* IDEM_STORE_TIMEOUT: how long the store may take
                                 to answer, and how long a response waits for
                                 its record, but no longer than half of the time
                                 left; 2,000. */
    bool credentials; /* IDEM_LAMBDA_CREDENTIALS=pass: give the program the
                         function's AWS credentials. */
    bool metrics;     /* IDEM_METER=emf: write the counts of each event to the
                         log, for CloudWatch. */
    const char *replay_headers; /* IDEM_LAMBDA_REPLAY_HEADERS: headers to replay
                                   besides those of idem_http_header_kept(),
                                   "X-Order,Link". */
    bool keyless;    /* IDEM_LAMBDA_REQUIRED=no: an HTTP request without a key
                        runs each time; else ("yes") it is refused. */
    int64_t wait_ms; /* IDEM_LAMBDA_WAIT: how long an event of one unit waits
                        for another delivery at work, as long as there is still
                        time to start; 0. */
    bool keep_input; /* IDEM_LAMBDA_KEEP_INPUT=yes: keep the event with its
                        record; for HTTP only the request, without anything that
                        identifies the sender. */
    uint32_t failures_max;  /* IDEM_LAMBDA_MAX_FAILURES: after this many
                               attempts that end in retry the record is failed,
                               for a person. 0: no limit. */
    int64_t retry_after_ms; /* IDEM_LAMBDA_RETRY_AFTER: after a failure the next
                               attempt starts no earlier than this; 0. */
};

#define IDEM_LAMBDA_OPTIONS_INIT                                               \
    {                                                                          \
        sizeof(struct idem_lambda_options), NULL, NULL, NULL, NULL, NULL,      \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL, IDEM_RERUN, 5, 86400000, \
            500, 2000, false, false, NULL, false, 0, false, 0, 0               \
    }

/* Sets @options from the variables named above. The texts belong to the environment.
 *
 * IDEM_EINVALID  The value of a variable is not valid; the error names it.
 */
int idem_lambda_options_env(struct idem_lambda_options *options,
                            struct idem_error *ret_error);

/* A function that is ready for events; used by one thread. */
struct idem_lambda;

/* Opens the store, compiles the selectors and finds the handler. @options and
 * everything that it points to must stay valid until idem_lambda_close(). The caller
 * closes *@ret_lambda.
 *
 * IDEM_EINVALID  An option is missing or not valid, or a selector does not
 *                compile.
 * IDEM_ECONFIG   The handler does not exist or cannot be used.
 * The errors of idem_open().
 */
int idem_lambda_open(const struct idem_lambda_options *options,
                     struct idem_lambda **ret_lambda,
                     struct idem_error *ret_error);

/* Closes the store and frees @lambda. NULL is allowed. */
void idem_lambda_close(struct idem_lambda *lambda);

/* One delivery of an event. All texts but request_id may be NULL. */
struct idem_lambda_invocation {
    size_t size; /* sizeof, set by IDEM_LAMBDA_INVOCATION_INIT. */
    const char *request_id;
    const char *function_arn;
    const char *trace_id;
    const char *client_context;
    const char *cognito_identity;
    int64_t deadline_ms; /* By the wall clock. */
    struct idem_slice event;
};
#define IDEM_LAMBDA_INVOCATION_INIT                                            \
    {                                                                          \
        sizeof(struct idem_lambda_invocation), NULL, NULL, NULL, NULL, NULL,   \
            0,                                                                 \
        {                                                                      \
            NULL, 0                                                            \
        }                                                                      \
    }

/* The answer for Lambda; valid until the next call. */
struct idem_lambda_response {
    bool is_error;          /* json is {"errorType", "errorMessage"}. */
    const char *error_type; /* Empty: not an error. */
    struct idem_slice json;
    unsigned ran; /* How often the handler ran for it. */
};

/* Handles one event. Returns 0 whatever its outcome, or IDEM_EINVALID for an invocation
 * without a request id. Log lines go to stderr. */
int idem_lambda_handle(struct idem_lambda *lambda,
                       const struct idem_lambda_invocation *invocation,
                       struct idem_lambda_response *ret_response);

/* Serves the Runtime API at @api, "HOST:PORT" of this machine (AWS_LAMBDA_RUNTIME_API),
 * and returns only when it cannot go on.
 *
 * IDEM_EINVALID      @api is not an address of this form.
 * IDEM_ECONFIG       libcurl is too old.
 * IDEM_EUNAVAILABLE  The API does not answer, or refuses a request.
 */
int idem_lambda_serve(struct idem_lambda *lambda, const char *api,
                      struct idem_error *ret_error);

/* Runs the whole runtime, for a main(): reads the settings from the environment,
 * reports errors in them, and serves. @run may be NULL: the program that _HANDLER
 * names. Returns an exit status, and only when it cannot go on. */
int idem_lambda_main(idem_lambda_fn *run);

/* ---- The units of an event, for a runtime of another language ----------- */

/* Receives the JSON of idem_lambda_units(), which is valid during the call only. */
typedef void idem_lambda_take_fn(void *ctx, struct idem_slice json);

/* Passes @take the units of the event, each with the key, scope and fingerprint that a
 * runtime should claim. It opens no store, claims no key and runs no handler.
 *
 *     {"source": "sqs", "answer": "failures", "units": [{"scope": "...", "key": "...",
 *      "fingerprint": "...", "event": {...}, "group": 0, "first": 0}]}
 *
 * "answer" is the response that Lambda expects: a value, http (an ordinary request,
 * without units), failures of single records, or none. "event" is a batch with one
 * record in it. After a failure, later units of the same group wait; a unit with
 * "first" shares the key and the outcome of the unit at that index. A unit with an
 * error in place of the key fails.
 *
 * With @outcomes (base not NULL), a letter for each unit ("d" done, "f" failed, "w"
 * waited for a unit that failed), it passes @take the response to the event instead:
 * {"batchItemFailures": [...]}.
 *
 * IDEM_EINVALID  The source of the event is unknown, the event or an option is not
 *                valid, or @outcomes is given for a source that takes no report.
 * IDEM_ENOMEM
 */
int idem_lambda_units(const struct idem_lambda_options *options,
                      const struct idem_lambda_invocation *invocation,
                      struct idem_slice outcomes, idem_lambda_take_fn *take,
                      void *ctx, struct idem_error *ret_error);

/* ---- The sources ------------------------------------------------------- */

/* How long the key of a source's rule stays the same. */
enum idem_lambda_strength {
    IDEM_LAMBDA_REDRIVE_SAFE = 1,    /* The caller chose it: the same however
                                        often it sends the request. */
    IDEM_LAMBDA_REDELIVERY_SAFE = 2, /* The same in every delivery of one
                                        message, but another one if the sender
                                        sends it again. */
    IDEM_LAMBDA_PER_DELIVERY = 3,    /* The same only while Lambda itself tries
                                        again. */
};

/* A row of the table of sources. */
struct idem_lambda_source {
    const char *name; /* "sqs" */
    const char *key;  /* Where the rule finds the key: "Records[].messageId". */
    enum idem_lambda_strength strength;
    const char *busy;    /* The answer while another delivery works. */
    const char *failure; /* The answer when the handler failed. */
    const char
        *sample; /* The file of a sample event, in tests/lambda/events. */
};

/* Returns row @index, from 0; NULL after the last row. */
const struct idem_lambda_source *idem_lambda_source_at(size_t index);

/* Returns "redrive-safe", "redelivery-safe" or "per-delivery"; NULL for any other
 * number. */
const char *idem_lambda_strength_name(enum idem_lambda_strength strength);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
