/* The parts that the sources of HTTP share: the key's header, the answers. */
#ifndef IDEM_AWS_LAMBDA_HTTP_H
#define IDEM_AWS_LAMBDA_HTTP_H

#include "aws/lambda/source.h"

#include <idem/http.h>

/* The key in the header Idempotency-Key, in whatever case, form and map it came:
 * a plain word, or text in quotes as structured headers have it. NULL, or why not;
 * idem__lambda_no_header where there is none. */
const char *idem__lambda_header_key(struct json_object *event,
                                    const struct idem_lambda_invocation *now,
                                    struct idem__buffer *key);
extern const char idem__lambda_no_header[];

/* Method, path, query and body of the older form (REST, ALB), and of version 2. */
struct idem_slice idem__lambda_method_1(struct json_object *event);
const char *idem__lambda_parts_1(struct json_object *event,
                                 struct idem__lambda_parts *parts);
struct idem_slice idem__lambda_method_2(struct json_object *event);
const char *idem__lambda_parts_2(struct json_object *event,
                                 struct idem__lambda_parts *parts);

/* True if @event, which may be NULL, is of a balancer that sends many values for each
 * header, and takes no others. */
bool idem__lambda_wants_many(struct json_object *event);

/* True if a replay may have the header @name, of a response that is put on record: the
 * content type, what idem_http_header_kept() names, and @replay_headers (may be NULL). */
bool idem__lambda_keeps_header(struct idem_slice name,
                               const char *replay_headers);

/* True if @map has a member @name, in whatever case. */
bool idem__lambda_has_name(struct json_object *map, const char *name);

/* True if @value is an object with a status: without, all of it is a body. */
bool idem__lambda_is_response(struct json_object *value);

/* Writes the emptied @to as a response of ours. @event says which form the headers
 * must have; it may be NULL. @retry_s: in so many seconds another try is worth it;
 * 0: in none. */
void idem__lambda_problem(struct idem__buffer *to, struct json_object *event,
                          enum idem_http_problem_kind kind, int64_t retry_s);

/* Writes @response, a handler's, into the emptied @to as it is put on record: of
 * its headers what idem_http_header_kept() and @replay_headers name, and never a
 * cookie. False: @to is empty, for @response is on record as it is. */
bool idem__lambda_keep_response(struct idem__buffer *to,
                                struct idem_slice response,
                                const char *replay_headers);

/* Writes @response, a handler's, into the emptied @to with the header that says
 * that it is not on record. One that is not a response of HTTP stays as it
 * is. */
void idem__lambda_unrecorded_response(struct idem__buffer *to,
                                      struct idem_slice response);

/* Writes @response, which was on record, into the emptied @to as a replay: marked,
 * and without the fields that must never be given to another caller, by any front
 * end. One that is not a response of HTTP stays as it is. */
void idem__lambda_replay_response(struct idem__buffer *to,
                                  struct idem_slice response);

/* The status in @response, a handler's; 200 where there is none. */
int idem__lambda_status_of(struct idem_slice response);

#endif
