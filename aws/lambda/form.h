/* Results on record as what Lambda is told, and responses as results. */
#ifndef IDEM_AWS_LAMBDA_FORM_H
#define IDEM_AWS_LAMBDA_FORM_H

#include "base/bytes.h"

#include <idem/form.h>
#include <json-c/json.h>

/* Writes @form, by IDEM_WAY_VALUE, into the emptied @to. */
void idem__lambda_form_value(struct idem__buffer *to,
                             const struct idem_form *form);

/* Writes @form, by IDEM_WAY_ANSWER, into the emptied @to. @event, which may be NULL,
 * says which shape the headers must have. @replay: with the headers of a replay. */
void idem__lambda_form_answer(struct idem__buffer *to,
                              struct json_object *event,
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
