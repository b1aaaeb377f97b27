/* Results as values of DynamoDB, and back. Pure. */
#ifndef IDEM_AWS_DYNAMODB_LAYOUT_VALUE_H
#define IDEM_AWS_DYNAMODB_LAYOUT_VALUE_H

#include "aws/dynamodb/layout/json.h"
#include "key/tree.h"

/* Appends the attribute value for the result @bytes, which are best JSON. Without
 * @native it is a string with that JSON. Bytes that are not JSON become a
 * string of JSON's: the text, or base64 where it is not valid text.
 * *@ret_plain: it is a string with just these bytes. @scratch is memory for it.
 * False: there is none. */
bool idem__value_write(struct idem__buffer *out, struct idem_slice bytes,
                       bool native, struct idem__tree *scratch,
                       bool *ret_plain);

/* Appends the JSON text of an attribute value. False: it is none. */
bool idem__value_read(json_object *value, struct idem__buffer *out);

/* True: they say the same, numbers by their value. */
bool idem__value_same(json_object *a, json_object *b);

#endif
