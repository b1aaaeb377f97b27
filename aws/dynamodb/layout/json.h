/* Writes and reads the JSON of DynamoDB: attribute values. */
#ifndef IDEM_AWS_DYNAMODB_LAYOUT_JSON_H
#define IDEM_AWS_DYNAMODB_LAYOUT_JSON_H

#include "aws/client/json.h"
#include "key/tree.h"

#include <json-c/json.h>

/* {"S":"..."}, {"B":"..."}, {"N":"..."}. */
void idem__json_s(struct idem__buffer *out, const char *text);
void idem__json_b(struct idem__buffer *out, struct idem_slice bytes);
void idem__json_n(struct idem__buffer *out, uint64_t number);

/* The text of @value, without spaces. NULL: no memory. It is valid until the next call for
 * @value, and as long as that lives. */
const char *idem__json_text(json_object *value, size_t *ret_len);

/* Parses a whole answer: an object, nested at most 80 deep, that nothing follows. NULL: it
 * is not such an object (*@ret_code is IDEM_ECORRUPT), or memory ran out (IDEM_ENOMEM). The
 * caller frees it with json_object_put(). */
json_object *idem__json_parse(struct idem_slice text, int *ret_code);

/* The same for a list that a caller wrote. */
json_object *idem__json_parse_list(struct idem_slice text, int *ret_code);

/* Gets the text of the attribute @name of @item, which must be of @type ("S", "N" or "B").
 * Returns 1, 0 if the attribute is missing, or IDEM_ECORRUPT. */
int idem__json_attribute(json_object *item, const char *name, const char *type,
                         struct idem_slice *ret_text);

/* Appends the bytes of a "B" to @out, which must have room for them (see
 * idem__base64_max). Returns 0 or IDEM_ECORRUPT. */
int idem__json_bytes(struct idem_slice text, struct idem__buffer *out,
                     struct idem_slice *ret_bytes);

/* ---- Results as attribute values, and back. Pure ---- */

/* Appends the attribute value for the result @bytes. JSON becomes a native value, or without
 * @native a string with the JSON. Other bytes become a JSON string: as text, or as base64 if
 * they are not readable text. *@ret_plain: the value is a string with exactly @bytes. Parses
 * in @scratch. False: memory ran out. */
bool idem__value_write(struct idem__buffer *out, struct idem_slice bytes,
                       bool native, struct idem__tree *scratch,
                       bool *ret_plain);

/* Appends the JSON text of an attribute value. False: @value is not an attribute value. */
bool idem__value_read(json_object *value, struct idem__buffer *out);

/* True if both hold the same; numbers are compared by value. */
bool idem__value_same(json_object *a, json_object *b);

#endif
