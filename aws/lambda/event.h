/* Events as JSON: read strictly, and taken apart without being written anew. */
#ifndef IDEM_AWS_LAMBDA_EVENT_H
#define IDEM_AWS_LAMBDA_EVENT_H

#include "key/tree.h"

#include <json-c/json.h>

/* The most records of a batch; SQS sends 10,000. */
#define IDEM__LAMBDA_RECORDS_MAX 10000

/* Reads @text into @tree, which is zeroed or was used before, and its value, which
 * the caller puts; NULL is what "null" is. The errors of idem__tree_read(): what two
 * readers would understand differently is refused. */
int idem__lambda_read(struct idem__tree *tree, struct idem_slice text,
                      struct json_object **ret_value,
                      struct idem_error *ret_error);

/* The value alone, for the caller to put; NULL: "null", or no JSON. */
struct json_object *idem__lambda_parse(struct idem_slice text);

/* True if @text is one JSON value and nothing else. */
bool idem__lambda_is_json(struct idem_slice text);

/* The text of the next record of the event in @tree, an object whose member
 * "Records" is an array, in its order; *@at is 0 at first. It has as many as the
 * array. */
struct idem_slice idem__lambda_record_text(const struct idem__tree *tree,
                                           uint32_t *at);

/* A member that is text, or an empty slice. @object may be NULL. */
struct idem_slice idem__lambda_text(struct json_object *object,
                                    const char *name);

/* A member that is an object, or NULL. @object may be NULL. */
struct json_object *idem__lambda_object(struct json_object *object,
                                        const char *name);

#endif
