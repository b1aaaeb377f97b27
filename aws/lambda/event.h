/* JSON in the runtime. Events are read strictly, as trees whose parts keep their original
 * text; responses are values of json-c. Both are written as text. */
#ifndef IDEM_AWS_LAMBDA_EVENT_H
#define IDEM_AWS_LAMBDA_EVENT_H

#include "aws/client/json.h"
#include "key/tree.h"

#include <json-c/json.h>

/* The maximum of records in a batch, which is that of SQS. */
#define IDEM__LAMBDA_RECORDS_MAX 10000

/* ---- Events ------------------------------------------------------------- */

/* Returns the member @name of the value @at; 0: none. */
uint32_t idem__lambda_child(const struct idem__tree *event, uint32_t at,
                            struct idem_slice name);

/* Returns the value at @place (see event_source.h) in @unit or else in the event; 0: none.
 * Of alternatives a null counts only if no other one is there. Ignores "?", "#" and "{}"
 * at the end. */
uint32_t idem__lambda_find(const struct idem__tree *event, uint32_t unit,
                           const char *place);

/* Returns the text at @at; empty if that is not a text, or 0. */
struct idem_slice idem__lambda_text_of(const struct idem__tree *event,
                                       uint32_t at);

/* Return a time in ms since 1970; 0: it is not one. time_of() reads
 * "2026-01-02T12:45:07Z", with or without a fraction of a second, or "1545082649183";
 * time_seconds() reads seconds, with or without a fraction. */
int64_t idem__lambda_time_of(struct idem_slice text);
int64_t idem__lambda_time_seconds(struct idem_slice number);

/* ---- Responses ---------------------------------------------------------- */

/* Parses @text; the caller puts the value. NULL: "null", not JSON, or memory ran out. */
struct json_object *idem__lambda_parse(struct idem_slice text);

/* True if @text is one JSON value and nothing else. */
bool idem__lambda_is_json(struct idem_slice text);

/* Empties @to, and writes {"errorType": @type, "errorMessage": @text} to it. */
void idem__lambda_error_body(struct idem__buffer *to, const char *type,
                             const char *text);

#endif
