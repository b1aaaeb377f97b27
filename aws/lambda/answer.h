/* The answers for Lambda: from an end, or from a verdict, to a response. */
#ifndef IDEM_AWS_LAMBDA_ANSWER_H
#define IDEM_AWS_LAMBDA_ANSWER_H

#include "aws/lambda/lambda.h"
#include "aws/lambda/event_source.h"

#include "aws/lambda/http.h"

/* The reason for a missing result: a class of errors, and the answer of
 * HTTP. */
struct idem__lambda_refusal {
    const char *type;
    const char *title;
    enum idem_http_problem_kind problem;
    bool retry; /* It is worth another try later. */
};

/* The refusal of @verdict, which is none of STARTED and REPLAY. */
const struct idem__lambda_refusal *idem__lambda_refusal_of(
    enum idem_verdict verdict);

extern const struct idem__lambda_refusal idem__lambda_invalid,
    idem__lambda_keyless, idem__lambda_unauthenticated,
    idem__lambda_scope_unset, idem__lambda_corrupt, idem__lambda_no_store,
    idem__lambda_no_memory, idem__lambda_too_late, idem__lambda_not_kept;

/* For the log: why HTTP is refused while IDEM_LAMBDA_SCOPE is not set. */
extern const char idem__lambda_scope_mending[];

/* lambda->response becomes ... */
void idem__lambda_answer_error(struct idem_lambda *lambda, const char *type,
                               const char *text);
void idem__lambda_answer_json(struct idem_lambda *lambda,
                              struct idem_slice json);

/* ... what lambda->work ended with. */
void idem__lambda_answer_work(struct idem_lambda *lambda);

/* ... the same, marked: what an HTTP handler answered is not on record. */
void idem__lambda_answer_unrecorded(struct idem_lambda *lambda);

/* ... @refusal: HTTP's own answer where @rule is of HTTP. */
void idem__lambda_answer_refusal(struct idem_lambda *lambda,
                                 const struct idem__lambda_rule *rule,
                                 const struct idem__lambda_refusal *refusal,
                                 const char *detail);

/* ... the refusal of the verdict of @attempt, with the error on record. */
void idem__lambda_answer_verdict(struct idem_lambda *lambda,
                                 const struct idem__lambda_rule *rule,
                                 const struct idem_attempt *attempt);

/* ... the outcome on record. */
void idem__lambda_answer_replay(struct idem_lambda *lambda,
                                const struct idem__lambda_rule *rule,
                                const struct idem_record *record);

#endif
