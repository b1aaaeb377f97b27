/* idem/exchange.h: decides about one HTTP request and its response, in two calls.
 *
 * nginx, a Lambda function and idem serve stand between a client and a service, and
 * differ in how bytes come and go. All of them decide here what those bytes mean:
 *
 *     request      idem_http_key(), idem_http_fingerprint(), idem_begin()
 *     |
 *     idem_http_answer_of()
 *     |
 *     +-- IDEM_HTTP_FETCH    idem_get() the record, and ask again with it
 *     +-- IDEM_HTTP_REFUSE   send answer.problem
 *     +-- IDEM_HTTP_REPLAY   send answer.form, with idem_http_replay_next()
 *     +-- IDEM_HTTP_RUN      send the request to the service
 *         |
 *     response     or none
 *         |
 *     idem_http_outcome()    what to record; then idem_complete() or another ending,
 *                            and only then the first byte to the client
 *
 * No function here reads or writes a socket, knows the time, or keeps any state.
 */
#ifndef IDEM_EXCHANGE_H
#define IDEM_EXCHANGE_H

#include <idem.h>
#include <idem/form.h>
#include <idem/http.h>
#include <idem/outcome.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- The request: run it, or answer it ---------------------------------- */

enum idem_http_action {
    IDEM_HTTP_RUN = 1,
    IDEM_HTTP_REPLAY,
    IDEM_HTTP_REFUSE,
    IDEM_HTTP_FETCH,
};

struct idem_http_answer {
    enum idem_http_action action;
    const char *name; /* For a log: "started", "replayed", "busy", ... */
    enum idem_http_problem_kind problem; /* REFUSE */
    int retry_after_s;                   /* REFUSE: 0: no Retry-After. */
    struct idem_slice error; /* REFUSE: for idem_http_problem_body(). */
    struct idem_form form;   /* REPLAY; points into the record. */
};

/* Decides about a request for which idem_begin() returned @code and, if that is 0,
 * @attempt. Of @attempt it reads the verdict, the record and lease_left_ms. For BUSY
 * the record may be NULL, if the owner is in this process: Retry-After is then a
 * second. A recorded body has one coding: @accept is the client's Accept-Encoding, as
 * in idem_http_accepts(). */
void idem_http_answer_of(int code, const struct idem_attempt *attempt,
                         struct idem_slice accept,
                         struct idem_http_answer *ret_answer);

/* Returns true and one header of a replay on each call: first those on record, then
 * those that every replay has. Returns false after the last one. The content type is
 * not among them: see idem_form_content_type(). */
struct idem_http_replay {
    const struct idem_form *form;
    struct idem_slice rest; /* form->headers at first. */
    unsigned mark;          /* 0 at first. */
    bool cached;            /* False at first. */
};

bool idem_http_replay_next(struct idem_http_replay *replay,
                           struct idem_slice *ret_name,
                           struct idem_slice *ret_value);

/* ---- The response: what to record --------------------------------------- */

/* How a request that was run ended. */
enum idem_http_end {
    IDEM_HTTP_ANSWERED = 1, /* With a response of the service. */
    IDEM_HTTP_NOT_SENT,     /* No byte of the request reached the service. */
    IDEM_HTTP_NO_ANSWER,    /* The request was sent; no complete response
                               came. */
};

/* The settings of a front end that decide what an ending means. */
struct idem_http_rules {
    const struct idem_outcome_table *outcomes;
    enum idem_on_expired_lease on_expired_lease;
    uint32_t failures_max;  /* Of struct idem_outcome. */
    int64_t retry_after_ms; /* Of struct idem_outcome. */
};

/* How much of the response to record. */
enum idem_http_keep {
    IDEM_HTTP_KEEP_NOTHING,
    IDEM_HTTP_KEEP_RESPONSE, /* Head, content type and body: as the result or,
                                after a retry, for a person to see. */
    IDEM_HTTP_KEEP_NAMED,    /* The same, and mark the head with
                                idem_http_head_complete(). */
};

#define IDEM_HTTP_TEXT_MAX 48

/* Decides the outcome of a request that was run: fills in *@ret_outcome except for the
 * response itself, and returns how much of the response to record. @status counts for
 * ANSWERED only; @rules may be NULL for NOT_SENT. Unless the work completed, @text
 * receives a sentence for people, to which the outcome points. */
enum idem_http_keep idem_http_outcome(const struct idem_http_rules *rules,
                                      enum idem_http_end end, int status,
                                      char text[IDEM_HTTP_TEXT_MAX],
                                      struct idem_outcome *ret_outcome);

/* Makes @result a tombstone: the work was done, and its response is too large to keep
 * or cannot be replayed. */
void idem_http_tombstone(struct idem_result *result);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
