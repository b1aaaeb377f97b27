/* The meaning of an answer of DynamoDB, or of the lack of one. Pure. */
#ifndef IDEM_AWS_DYNAMODB_TASK_ANSWER_H
#define IDEM_AWS_DYNAMODB_TASK_ANSWER_H

#include "aws/client/error.h"
#include "aws/client/transport.h"
#include "aws/dynamodb/layout/json.h"
#include "store/remote/machine.h"

struct idem__answer {
    enum idem__said said; /* OK: body is the answer. */
    bool sent;            /* Something came back: the service is there. */
    json_object *body;    /* OK, REFUSED: what came; else, or if that was an
                          empty object, NULL. */
    json_object *item;    /* REFUSED: the item in the way, in body; or NULL. */
    struct idem_error error; /* All but OK and REFUSED: code and sentence. */
    size_t
        caller_write; /* CALLER_WRITE: which write of the caller's, from 1 on. */
};

/* Reads the answer of a request that is done; messages name @table. */
void idem__answer_read(const struct idem__aws_request *request,
                       const char *table, struct idem__answer *ret_answer);

/* Frees what it holds. */
void idem__answer_finish(struct idem__answer *answer);

#endif
