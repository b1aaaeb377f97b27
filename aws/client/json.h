/* JSON: the one reader for texts of services, programs and callers, and the writer of
 * strings. */
#ifndef IDEM_AWS_CLIENT_JSON_H
#define IDEM_AWS_CLIENT_JSON_H

#include "base/bytes.h"

#include <json-c/json_object.h>

/* Parses @text, which must be one value of @type in strict JSON and UTF-8, of at most
 * @len_max bytes and nested at most @depth_max deep; only white space may follow it. The
 * caller releases the value with json_object_put(). NULL: *@ret_code (@ret_code may be
 * NULL) is IDEM_ECORRUPT if it is not such a value, or IDEM_ENOMEM. */
struct json_object *idem__aws_json(struct idem_slice text, json_type type,
                                   int depth_max, size_t len_max,
                                   int *ret_code);

/* Returns the member @name of @object if it is of @type. NULL: there is none, or @object,
 * which may be NULL, is not an object. */
struct json_object *idem__json_member(struct json_object *object,
                                      const char *name, json_type type);

/* Returns the bytes of a string. */
struct idem_slice idem__json_bytes_of(struct json_object *string);

/* Returns the bytes of the member @name if that is a string, else an empty slice. */
struct idem_slice idem__json_text_of(struct json_object *object,
                                     const char *name);

/* Appends @text as a JSON string. Bytes that are not UTF-8 become U+FFFD. */
void idem__json_string(struct idem__buffer *out, struct idem_slice text);

/* Appends the fields of @head (idem/http.h) as members, each name once. @many: each member
 * is a list of its values. Otherwise several values become one text, with commas (RFC 9110
 * section 5.3). */
void idem__json_head(struct idem__buffer *out, struct idem_slice head,
                     bool many);

/* Appends a comma unless @out ends with an opening bracket, then "name":. */
void idem__json_name(struct idem__buffer *out, const char *name);

/* Does the same, and appends the string @text. */
void idem__json_pair(struct idem__buffer *out, const char *name,
                     struct idem_slice text);

#endif
