/* Classifies an answer of DynamoDB, or the lack of one. Pure. */
#ifndef IDEM_AWS_DYNAMODB_TASK_ANSWER_H
#define IDEM_AWS_DYNAMODB_TASK_ANSWER_H

#include "aws/client/error.h"
#include "aws/client/transport.h"
#include "aws/dynamodb/layout/json.h"
#include "store/remote/machine.h"

struct idem__answer {
    enum idem__said said;
    bool sent;         /* A connection took the request, answered or not. */
    json_object *body; /* Of OK and REFUSED, unless it was {}; else NULL. */
    /* Of REFUSED: the item in the way, inside body; or NULL. */
    json_object *item;
    struct idem_error error; /* Of all but OK and REFUSED. */
    /* Of CALLER_WRITE: the write that was refused, from 1 on. */
    size_t caller_write;
};

/* Reads the answer to a request that is done. Error texts name @table. */
void idem__answer_read(const struct idem__aws_request *request,
                       const char *table, struct idem__answer *ret_answer);

/* Frees the body, and with it the item. */
void idem__answer_finish(struct idem__answer *answer);

#endif
