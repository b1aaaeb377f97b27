/* Answers: of HTTP handlers as they are put on record and replayed, ours, and results on
 * record as what Lambda is told. */
#ifndef IDEM_AWS_LAMBDA_HTTP_H
#define IDEM_AWS_LAMBDA_HTTP_H

#include "aws/lambda/event.h"

#include <idem/exchange.h>

/* True if a replay may have the header @name, of a response that is put on record: the
 * content type, what idem_http_header_kept() names, and @replay_headers (may be NULL). */
bool idem__lambda_keeps_header(struct idem_slice name,
                               const char *replay_headers);

/* True if @map has a member @name, in whatever case. */
bool idem__lambda_has_name(struct json_object *map, const char *name);

/* True if @value is an object with a status: without, all of it is a body. */
bool idem__lambda_is_response(struct json_object *value);

/* Appends one header to the object of headers in @to; @many: as below. */
void idem__lambda_header(struct idem__buffer *to, bool many, const char *name,
                         struct idem_slice value);

/* Writes the emptied @to as a response of ours. @many: for a balancer that sends many
 * values for each header, and takes no others. @retry_s: in so many seconds another try
 * is worth it; 0: in none. @error: that of the record. */
void idem__lambda_problem(struct idem__buffer *to, bool many,
                          enum idem_http_problem_kind kind, int64_t retry_s,
                          struct idem_slice error);

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

/* ---- Results on record -------------------------------------------------- */

/* Writes @form, by IDEM_WAY_VALUE, into the emptied @to. */
void idem__lambda_form_value(struct idem__buffer *to,
                             const struct idem_form *form);

/* Writes @form, by IDEM_WAY_ANSWER, into the emptied @to. @many: as above. @replay: with
 * the headers of a replay. */
void idem__lambda_form_answer(struct idem__buffer *to, bool many,
                              const struct idem_form *form, bool replay);

/* Takes @response, a handler's for HTTP, apart into an answer of HTTP, which any front
 * end can replay: of its headers what idem_http_header_kept() and @replay_headers
 * name, and never a cookie. @named: the table names its status complete. @ret_result points into @to, which is emptied first. False:
 * it is not a response, or is one that no head of HTTP can hold. */
bool idem__lambda_form_record(struct idem__buffer *to,
                              struct idem_slice response, bool named,
                              const char *replay_headers,
                              struct idem_result *ret_result);

#endif
