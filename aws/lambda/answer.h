/* Makes a response for Lambda from the end of a run, or from a verdict. */
#ifndef IDEM_AWS_LAMBDA_ANSWER_H
#define IDEM_AWS_LAMBDA_ANSWER_H

#include "aws/lambda/lambda.h"
#include "aws/lambda/event_source.h"

#include "aws/lambda/http.h"

/* Why there is no result: as a class of errors, and as a response of HTTP. */
struct idem__lambda_refusal {
    const char *type;
    const char *title;
    enum idem_http_problem_kind problem;
    bool retry; /* A later try may succeed. */
};

/* Returns the refusal for @verdict, which is neither STARTED nor REPLAY. */
const struct idem__lambda_refusal *idem__lambda_refusal_of(
    enum idem_verdict verdict);

extern const struct idem__lambda_refusal idem__lambda_invalid,
    idem__lambda_keyless, idem__lambda_unauthenticated,
    idem__lambda_scope_unset, idem__lambda_corrupt, idem__lambda_no_store,
    idem__lambda_no_memory, idem__lambda_too_late, idem__lambda_not_kept;

/* For the log: why HTTP is refused while IDEM_LAMBDA_SCOPE is not set, and what to do. */
extern const char idem__lambda_scope_mending[];

/* Sets lambda->response to an error. */
void idem__lambda_answer_error(struct idem_lambda *lambda, const char *type,
                               const char *text);

/* Sets lambda->response to @json. */
void idem__lambda_answer_json(struct idem_lambda *lambda,
                              struct idem_slice json);

/* Sets lambda->response to the response or the error of lambda->work. */
void idem__lambda_answer_work(struct idem_lambda *lambda);

/* Adds the header that says that an HTTP response is not on record. */
void idem__lambda_answer_unrecorded(struct idem_lambda *lambda);

/* Sets lambda->response to @refusal: a response of HTTP if @rule is of HTTP. */
void idem__lambda_answer_refusal(struct idem_lambda *lambda,
                                 const struct idem__lambda_rule *rule,
                                 const struct idem__lambda_refusal *refusal,
                                 const char *detail);

/* Sets lambda->response to the refusal for the verdict of @attempt, with the error on
 * record. */
void idem__lambda_answer_verdict(struct idem_lambda *lambda,
                                 const struct idem__lambda_rule *rule,
                                 const struct idem_attempt *attempt);

/* Sets lambda->response to the outcome on record. */
void idem__lambda_answer_replay(struct idem_lambda *lambda,
                                const struct idem__lambda_rule *rule,
                                const struct idem_record *record);

#endif
