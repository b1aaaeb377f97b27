/* Writing and reading the JSON of DynamoDB: attribute values. */
#ifndef IDEM_AWS_DYNAMODB_LAYOUT_JSON_H
#define IDEM_AWS_DYNAMODB_LAYOUT_JSON_H

#include "aws/client/json.h"
#include "key/tree.h"

#include <json-c/json.h>

/* {"S":"..."}, {"B":"..."}, {"N":"..."}. */
void idem__json_s(struct idem__buffer *out, const char *text);
void idem__json_b(struct idem__buffer *out, struct idem_slice bytes);
void idem__json_n(struct idem__buffer *out, uint64_t number);

/* The text of @value, without spaces. NULL: no memory. Valid as long as @value, until
 * the next call. */
const char *idem__json_text(json_object *value, size_t *ret_len);

/* Parses a whole answer: an object, nested 80 deep at most, that nothing
 * follows. NULL: it is not an object (or memory ran out: *@ret_code is
 * IDEM_ENOMEM then, else IDEM_ECORRUPT). The caller puts it back with
 * json_object_put(). */
json_object *idem__json_parse(struct idem_slice text, int *ret_code);

/* The same for what a caller wrote: a list, nested as deep as an item may be. */
json_object *idem__json_parse_list(struct idem_slice text, int *ret_code);

/* The attribute @name of @item if it is of @type ("S", "N", "B"): its text as
 * it is there. Returns 1, 0 if the attribute is missing, or IDEM_ECORRUPT. */
int idem__json_attribute(json_object *item, const char *name, const char *type,
                         struct idem_slice *ret_text);

/* The bytes of a "B", appended to @out, which must have room for them (see
 * idem__base64_max). 0 or IDEM_ECORRUPT. */
int idem__json_bytes(struct idem_slice text, struct idem__buffer *out,
                     struct idem_slice *ret_bytes);

/* ---- Results as values of DynamoDB, and back. Pure ---- */

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
