/* Which parts of a body an answer is about. Pure. */
#ifndef IDEM_AWS_DYNAMODB_TASK_PARTS_H
#define IDEM_AWS_DYNAMODB_TASK_PARTS_H

#include "aws/dynamodb/layout/request.h"

/* The number of the part that is named @name; false: it is none of @parts. */
bool idem__parts_number(const struct idem__parts *parts, struct idem_slice name,
                        uint32_t *ret_i);

/* Marks in @done, which is parts->done, the next @carried parts that are not done,
 * but for those in @unprocessed (NULL: none), the entries of a BatchWriteItem that
 * came back. Returns how many it marked. */
uint32_t idem__parts_mark(const struct idem__parts *parts, bool *done,
                          unsigned carried, json_object *unprocessed);

#endif
