/* An answer of HTTP as the object that a function on Lambda responds with. Pure.
 *
 *     {"statusCode": 201, "headers": {"Location": "/orders/42"}, "body": "..."}
 */
#ifndef IDEM_AWS_DYNAMODB_LAYOUT_ENVELOPE_H
#define IDEM_AWS_DYNAMODB_LAYOUT_ENVELOPE_H

#include "aws/dynamodb/layout/json.h"

/* Appends the object for @result, whose metadata is a head of <idem/http.h>. A body
 * that is not UTF-8 is base64, as isBase64Encoded says; values of one header become
 * one. False: the metadata is not such a head, and nothing is appended. */
bool idem__envelope_write(struct idem__buffer *out,
                          const struct idem_result *result);

/* Takes the object @text apart; the slices of *@ret_result point into @memory, which
 * must have room for all of @text once more and 64 bytes. Headers that nobody but the
 * first caller may be given are left out. 1; 0: it is not such an object, or one that
 * no head holds; IDEM_ENOMEM. */
int idem__envelope_read(struct idem_slice text, struct idem__buffer *memory,
                        struct idem_result *ret_result);

#endif
