/* The unit of one record of idempotency: an event, or one record of a batch. */
#ifndef IDEM_AWS_LAMBDA_UNIT_H
#define IDEM_AWS_LAMBDA_UNIT_H

#include "aws/lambda/lambda.h"
#include "aws/lambda/event_source.h"

struct idem__lambda_refusal;

struct idem__lambda_unit {
    const struct idem__lambda_rule *rule;
    uint32_t at; /* In the tree of the event; 0: it is all of it. */
    struct idem_slice
        list; /* Of a record: the name of the list it is in, if that has
                               one. */
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

/* Sets @unit, whose rule, place and list are set already: its identity and what is
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

/* The text of @unit. */
static inline struct idem_slice idem__lambda_unit_text(
    const struct idem_lambda *lambda, const struct idem__lambda_unit *unit)
{
    return idem__tree_raw(&lambda->tree,
                          idem__tree_at(&lambda->tree, unit->at));
}

/* Writes the event for the handler of @unit, a record, into the emptied @to: all of what
 * came, but with one record in it. */
void idem__lambda_unit_event(const struct idem_lambda *lambda,
                             const struct idem__lambda_unit *unit,
                             struct idem__buffer *to);

/* ---- The work on an event ----------------------------------------------- */

/* IDEM_EINVALID: one of @options is missing or not valid. */
int idem__lambda_check(const struct idem_lambda_options *options,
                       struct idem_error *ret_error);

/* The rule of the event, whose tree was read. *@ret_why is NULL, or why it is not one of
 * that source. */
const struct idem__lambda_rule *idem__lambda_pick(
    const struct idem_lambda *lambda, const char **ret_why);

/* Handle the event, of the source of @rule: one unit, or a batch of them. The response is
 * in @lambda. */
void idem__lambda_single(struct idem_lambda *lambda,
                         const struct idem__lambda_rule *rule);
void idem__lambda_batch(struct idem_lambda *lambda,
                        const struct idem__lambda_rule *rule);

/* The handler of @attempt was stopped: its lease ends now, and the policy
 * decides. */
void idem__lambda_stopped(const struct idem_lambda *lambda,
                          struct idem_attempt *attempt);

/* Says that an attempt is not the first one. */
void idem__lambda_log_start(const struct idem_lambda *lambda,
                            const struct idem_attempt *attempt);

#endif
