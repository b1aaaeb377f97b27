/* JSON: the one reader of what came from elsewhere (a service, a program, a caller), and the
 * writer of strings. */
#ifndef IDEM_AWS_CLIENT_JSON_H
#define IDEM_AWS_CLIENT_JSON_H

#include "base/bytes.h"

#include <json-c/json_object.h>

/* The value of @text, which is one value of @type in strict JSON and UTF-8, of at most
 * @len_max bytes and nested at most @depth_max deep; only white space may follow it.
 * NULL with *@ret_code (which may be NULL): IDEM_ECORRUPT, it is not; IDEM_ENOMEM.
 * The caller puts it back with json_object_put(). */
struct json_object *idem__aws_json(struct idem_slice text, json_type type,
                                   int depth_max, size_t len_max,
                                   int *ret_code);

/* The member @name of @object if it is of @type; NULL: it is not there, or @object, which
 * may be NULL, is no object. */
struct json_object *idem__json_member(struct json_object *object,
                                      const char *name, json_type type);

/* The bytes of a string. */
struct idem_slice idem__json_bytes_of(struct json_object *string);

/* The bytes of the member @name if that is a string, or none. */
struct idem_slice idem__json_text_of(struct json_object *object,
                                     const char *name);

/* Appends @text as a JSON string. Bytes that are not UTF-8 become U+FFFD. */
void idem__json_string(struct idem__buffer *out, struct idem_slice text);

/* Appends the fields of @head (idem/http.h) as members, each name once: of one that comes
 * several times the values are one text, with commas (RFC 9110 section 5.3), or @many: a
 * list, and so is each of the others. */
void idem__json_head(struct idem__buffer *out, struct idem_slice head,
                     bool many);

/* Appends a comma unless @out ends with an opening bracket, then "name":. */
void idem__json_name(struct idem__buffer *out, const char *name);

/* The same, and the string @text. */
void idem__json_pair(struct idem__buffer *out, const char *name,
                     struct idem_slice text);

#endif
