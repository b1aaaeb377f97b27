/* The one reader of JSON that came from elsewhere: a service, a program, a caller. */
#ifndef IDEM_AWS_CLIENT_JSON_H
#define IDEM_AWS_CLIENT_JSON_H

#include <idem.h>
#include <json-c/json_object.h>

/* The value of @text, which is one value of @type in strict JSON and UTF-8, of at most
 * @len_max bytes and nested at most @depth_max deep; only white space may follow it.
 * NULL with *@ret_code (which may be NULL): IDEM_ECORRUPT, it is not; IDEM_ENOMEM.
 * The caller puts it back with json_object_put(). */
struct json_object *idem__aws_json(struct idem_slice text, json_type type,
                                   int depth_max, size_t len_max,
                                   int *ret_code);

#endif
