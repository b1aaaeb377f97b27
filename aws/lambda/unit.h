/* The unit of one record of idempotency: an event, or one record of a batch. */
#ifndef IDEM_AWS_LAMBDA_UNIT_H
#define IDEM_AWS_LAMBDA_UNIT_H

#include "aws/lambda/lambda.h"
#include "aws/lambda/source.h"

struct idem__lambda_refusal;

struct idem__lambda_unit {
    const struct idem__lambda_rule *rule;
    struct json_object *json; /* These two are the event's. */
    struct idem_slice text;
    bool
        is_open; /* Not protected: a request that has no key, and needs none. */
    bool has_fingerprint;
    int64_t event_ms; /* When it happened; 0: not said. */
    struct idem__buffer scope;
    struct idem__buffer key;
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];
    const struct idem__lambda_refusal *refusal; /* Why there is none, where that
                                                   has an answer of its own. */
};

/* Sets @unit, whose rule, json and text are set already: its identity and what is
 * compared. IDEM_EINVALID: the event does not say; IDEM_ENOMEM. */
int idem__lambda_unit_init(struct idem_lambda *lambda,
                           struct idem__lambda_unit *unit,
                           struct idem_error *ret_error);
void idem__lambda_unit_finish(struct idem__lambda_unit *unit);

#define IDEM__LAMBDA_OWNER_MAX (IDEM_OWNER_MAX + 1)

/* The request for the key of @unit, valid until the next one is made. @owner is
 * filled in and must stay with it. 0 or IDEM_ENOMEM. */
int idem__lambda_unit_request(struct idem_lambda *lambda,
                              const struct idem__lambda_unit *unit,
                              char owner[IDEM__LAMBDA_OWNER_MAX],
                              struct idem_request *ret_request);

#endif
