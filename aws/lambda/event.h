/* JSON in the runtime. Events are read strictly, and taken apart as trees without being
 * written anew; responses are values of json-c; both are written as text. */
#ifndef IDEM_AWS_LAMBDA_EVENT_H
#define IDEM_AWS_LAMBDA_EVENT_H

#include "aws/client/json.h"
#include "key/tree.h"

#include <json-c/json.h>

/* The most records of a batch; SQS sends 10,000. */
#define IDEM__LAMBDA_RECORDS_MAX 10000

/* ---- Events ------------------------------------------------------------- */

/* The member @name of the value @at; 0: there is none. */
uint32_t idem__lambda_child(const struct idem__tree *event, uint32_t at,
                            struct idem_slice name);

/* The value at @place, as event_source.h has them, in @unit or else in the event; 0: none. A
 * null counts where there is nothing else; a "?", "#" or "{}" at the end says nothing here. */
uint32_t idem__lambda_find(const struct idem__tree *event, uint32_t unit,
                           const char *place);

/* The text @at; empty: it is none. 0: nothing. */
struct idem_slice idem__lambda_text_of(const struct idem__tree *event,
                                       uint32_t at);

/* Times in ms since 1970; 0: it is not one. "2026-01-02T12:45:07Z", with or without a
 * fraction of a second, or "1545082649183"; and seconds, whole or not. */
int64_t idem__lambda_time_of(struct idem_slice text);
int64_t idem__lambda_time_seconds(struct idem_slice number);

/* ---- Responses ---------------------------------------------------------- */

/* The value of @text, for the caller to put; NULL: "null", or no JSON. */
struct json_object *idem__lambda_parse(struct idem_slice text);

/* True if @text is one JSON value and nothing else. */
bool idem__lambda_is_json(struct idem_slice text);

/* {"errorType": @type, "errorMessage": @text} into the emptied @to. */
void idem__lambda_error_body(struct idem__buffer *to, const char *type,
                             const char *text);

#endif
