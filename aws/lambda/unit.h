/* A unit is the work of one key: an event, or one record of a batch. */
#ifndef IDEM_AWS_LAMBDA_UNIT_H
#define IDEM_AWS_LAMBDA_UNIT_H

#include "aws/lambda/lambda.h"
#include "aws/lambda/event_source.h"

struct idem__lambda_refusal;

struct idem__lambda_unit {
    const struct idem__lambda_rule *rule;
    uint32_t at; /* In the tree of the event; 0: the whole event. */
    struct idem_slice
        list; /* A record: the name of the list it is in, if that has
                               one. */
    bool
        is_open; /* Not protected: a request that has no key, and needs none. */
    bool has_fingerprint;
    int64_t event_ms; /* When it happened; 0: unknown. */
    struct idem__buffer scope;
    struct idem__buffer key;
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];
    const struct idem__lambda_refusal *refusal; /* Why it cannot be keyed, if
                                                   that has its own answer. */
};

/* Sets the identity and the fingerprint of @unit, whose rule, at and list are set.
 * IDEM_EINVALID: the event lacks what they need. IDEM_ENOMEM. */
int idem__lambda_unit_init(struct idem_lambda *lambda,
                           struct idem__lambda_unit *unit,
                           struct idem_error *ret_error);
void idem__lambda_unit_finish(struct idem__lambda_unit *unit);

#define IDEM__LAMBDA_OWNER_MAX (IDEM_OWNER_MAX + 1)

/* Makes the request for the key of @unit, valid until the next call. It points to @owner,
 * which is filled in. 0 or IDEM_ENOMEM. */
int idem__lambda_unit_request(struct idem_lambda *lambda,
                              const struct idem__lambda_unit *unit,
                              char owner[IDEM__LAMBDA_OWNER_MAX],
                              struct idem_request *ret_request);

/* Returns the text of @unit. */
static inline struct idem_slice idem__lambda_unit_text(
    const struct idem_lambda *lambda, const struct idem__lambda_unit *unit)
{
    return idem__tree_raw(&lambda->tree,
                          idem__tree_at(&lambda->tree, unit->at));
}

/* Empties @to, and writes the event for the handler of @unit, a record: the whole event,
 * but with only that record in it. */
void idem__lambda_unit_event(const struct idem_lambda *lambda,
                             const struct idem__lambda_unit *unit,
                             struct idem__buffer *to);

/* ---- The work on an event ----------------------------------------------- */

/* Checks @options. IDEM_EINVALID: one is missing or not valid. */
int idem__lambda_check(const struct idem_lambda_options *options,
                       struct idem_error *ret_error);

/* Picks the rule for the event, whose tree was read. *@ret_why is NULL, or why the rule
 * must not be used. */
const struct idem__lambda_rule *idem__lambda_pick(
    const struct idem_lambda *lambda, const char **ret_why);

/* Handle the event, which is of the source of @rule: one unit, or a batch of them. Set
 * lambda->response. */
void idem__lambda_single(struct idem_lambda *lambda,
                         const struct idem__lambda_rule *rule);
void idem__lambda_batch(struct idem_lambda *lambda,
                        const struct idem__lambda_rule *rule);

/* Ends the lease of @attempt now, because its handler was stopped: the policy then decides
 * what follows. */
void idem__lambda_stopped(const struct idem_lambda *lambda,
                          struct idem_attempt *attempt);

/* Logs a takeover: @attempt is not the first. */
void idem__lambda_log_start(const struct idem_lambda *lambda,
                            const struct idem_attempt *attempt);

#endif
