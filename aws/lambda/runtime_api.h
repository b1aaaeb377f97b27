/* A client of Lambda's Runtime API, version 2018-06-01, over plain HTTP. */
#ifndef IDEM_AWS_LAMBDA_RUNTIME_API_H
#define IDEM_AWS_LAMBDA_RUNTIME_API_H

#include "aws/lambda/lambda.h"

/* The maximum of an event in bytes; Lambda's own limit is 6 MiB. */
#define IDEM__LAMBDA_EVENT_MAX ((size_t)16 << 20)

struct idem__lambda_api;

/* @address: "HOST:PORT" of this machine. See idem_lambda_serve(). */
int idem__lambda_api_create(const char *address,
                            struct idem__lambda_api **ret_api,
                            struct idem_error *ret_error);
void idem__lambda_api_destroy(struct idem__lambda_api *api);

/* True if @address is "HOST:PORT" of this machine or its link. */
bool idem__lambda_api_is_local(const char *address);

/* Waits for the next delivery without a limit, and never sends the request twice. The
 * texts of *@ret_now are valid until the next call. *@ret_fault: NULL, or what is wrong
 * with the delivery, whose request id is valid all the same.
 *
 * IDEM_EUNAVAILABLE  No delivery came, or none that could be answered.
 * / */
int idem__lambda_api_next(struct idem__lambda_api *api,
                          struct idem_lambda_invocation *ret_now,
                          const char **ret_fault, struct idem_error *ret_error);

enum idem__lambda_post {
    IDEM__LAMBDA_ACCEPTED = 1,
    IDEM__LAMBDA_REFUSED, /* 4xx, such as 413: it is too long. */
    IDEM__LAMBDA_BROKEN,  /* 5xx: the process must end. */
    IDEM__LAMBDA_NO_ANSWER,
};

/* Sends the response to @request_id, or (with @error_type) its error. Sets *@ret_status to
 * the status of the answer; 0: none came. */
enum idem__lambda_post idem__lambda_api_post(struct idem__lambda_api *api,
                                             const char *request_id,
                                             const char *error_type,
                                             struct idem_slice body,
                                             long *ret_status);

/* Reports that the function cannot be initialized. */
enum idem__lambda_post idem__lambda_api_init_error(struct idem__lambda_api *api,
                                                   const char *error_type,
                                                   struct idem_slice body);

#endif
