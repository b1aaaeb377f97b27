/* The selectors of the options, compiled once. */
#ifndef IDEM_AWS_LAMBDA_SELECT_H
#define IDEM_AWS_LAMBDA_SELECT_H

#include "aws/lambda/lambda.h"

enum idem__lambda_what {
    IDEM__LAMBDA_KEY,
    IDEM__LAMBDA_SCOPE,
    IDEM__LAMBDA_FINGERPRINT,
    IDEM__LAMBDA_TIME,
    IDEM__LAMBDA_WHATS_LEN
};

/* IDEM_EINVALID (the sentence names the variable), IDEM_ECONFIG, IDEM_ENOMEM */
int idem__lambda_selects_init(struct idem_lambda *lambda,
                              struct idem_error *ret_error);
void idem__lambda_selects_finish(struct idem_lambda *lambda);

/* True if there is a selector for @what. */
bool idem__lambda_selects_has(const struct idem_lambda *lambda,
                              enum idem__lambda_what what);

/* Appends what the selector for @what selects of @json: a text as idem_key_of() makes
 * one, of IDEM__LAMBDA_FINGERPRINT the values.
 *
 * IDEM_EINVALID   It selects nothing that will do; the sentence names the variable.
 * IDEM_ENOTFOUND  The key is not there.
 * IDEM_ENOMEM
 */
int idem__lambda_select(struct idem_lambda *lambda, enum idem__lambda_what what,
                        struct idem_slice json, struct idem__buffer *to,
                        struct idem_error *ret_error);

#endif
