/* Responses of HTTP: ours, those of handlers as they are recorded and replayed, and
 * responses made from a result on record. */
#ifndef IDEM_AWS_LAMBDA_HTTP_H
#define IDEM_AWS_LAMBDA_HTTP_H

#include "aws/lambda/event.h"

#include <idem/exchange.h>

/* True if the header @name of a response is recorded, and so may be replayed: the content
 * type, those of idem_http_header_kept(), and @replay_headers (may be NULL). */
bool idem__lambda_keeps_header(struct idem_slice name,
                               const char *replay_headers);

/* True if @map has a member @name, regardless of case. */
bool idem__lambda_has_name(struct json_object *map, const char *name);

/* True if @value is an object with a status. Without a status, all of it is the body. */
bool idem__lambda_is_response(struct json_object *value);

/* Appends one header to the object of headers in @to; @many: as below. */
void idem__lambda_header(struct idem__buffer *to, bool many, const char *name,
                         struct idem_slice value);

/* Empties @to, and writes a response of ours. @many: for a load balancer that sends a list
 * of values for each header, and accepts nothing else. @retry_s: seconds for Retry-After;
 * 0: none. @error: that of the record. */
void idem__lambda_problem(struct idem__buffer *to, bool many,
                          enum idem_http_problem_kind kind, int64_t retry_s,
                          struct idem_slice error);

/* Empties @to, and writes the @response of a handler as it is recorded: only with the
 * headers that idem__lambda_keeps_header() allows, and never with a cookie. False: @to is
 * empty, because @response is recorded as it is. */
bool idem__lambda_keep_response(struct idem__buffer *to,
                                struct idem_slice response,
                                const char *replay_headers);

/* Empties @to, and writes the @response of a handler with the header that it is not on
 * record. Copies it unchanged if it is not a response of HTTP. */
void idem__lambda_unrecorded_response(struct idem__buffer *to,
                                      struct idem_slice response);

/* Empties @to, and writes @response, which was on record, as a replay: marked, and without
 * the fields that no front end may ever give to another caller. Copies it unchanged if it
 * is not a response of HTTP. */
void idem__lambda_replay_response(struct idem__buffer *to,
                                  struct idem_slice response);

/* Returns the status in the @response of a handler; 200 if it has none. */
int idem__lambda_status_of(struct idem_slice response);

/* ---- Results on record -------------------------------------------------- */

/* Empties @to, and writes @form as IDEM_WAY_VALUE. */
void idem__lambda_form_value(struct idem__buffer *to,
                             const struct idem_form *form);

/* Empties @to, and writes @form as IDEM_WAY_ANSWER. @many: as above. @replay: with the
 * headers of a replay. */
void idem__lambda_form_answer(struct idem__buffer *to, bool many,
                              const struct idem_form *form, bool replay);

/* Empties @to, and turns the @response of an HTTP handler into a result that any front end
 * can replay, with the headers that idem__lambda_keeps_header() allows, and never a
 * cookie. @named: the table of outcomes names its status complete. *@ret_result points
 * into @to. False: it is not a response, or no HTTP head can hold it. */
bool idem__lambda_form_record(struct idem__buffer *to,
                              struct idem_slice response, bool named,
                              const char *replay_headers,
                              struct idem_result *ret_result);

#endif
