/* Requests about the table itself, one at a time, blocking. */
#ifndef IDEM_AWS_DYNAMODB_TABLE_ADMIN_H
#define IDEM_AWS_DYNAMODB_TABLE_ADMIN_H

#include "aws/dynamodb/store.h"

/* A handle that nobody else uses. */
struct idem__admin {
    struct idem__dynamodb_store *store;
    struct idem__buffer out; /* The request. */
    struct idem__aws_request request;
    int64_t try_ms;   /* For one request ... */
    int64_t again_ms; /* ... which is not made again after that time. */
};

/* The errors of idem_dynamodb_open(). */
int idem__admin_open(const char *place, struct idem__admin *ret_admin,
                     struct idem_error *ret_error);

/* The same for whoever changes nothing. */
int idem__admin_open_readonly(const char *place, struct idem__admin *ret_admin,
                              struct idem_error *ret_error);
void idem__admin_close(struct idem__admin *admin);

/* Starts a request: {"TableName":"...". */
void idem__admin_begin(struct idem__admin *admin);

/* Sends it to @target. Throttles, and failures where @safe, are tried again. The
 * caller finishes *@ret_answer, which may be any; IDEM_EUNAVAILABLE in it means
 * that the service is away. */
void idem__admin_call(struct idem__admin *admin, const char *target, bool safe,
                      struct idem__answer *ret_answer);

#endif
