/* Which HTTP requests have keys, and which of them need one. */
#ifndef IDEM_AWS_LAMBDA_ROUTE_H
#define IDEM_AWS_LAMBDA_ROUTE_H

#include <idem/lambda.h>

/* IDEM_EINVALID: a list of the options is not valid; the sentence names it. */
int idem__lambda_routes_check(const struct idem_lambda_options *options,
                              struct idem_error *ret_error);

/* True if a request of @method to @path has its key looked for: the methods and
 * routes of the options name it. */
bool idem__lambda_route_has_key(const struct idem_lambda_options *options,
                                struct idem_slice method,
                                struct idem_slice path);

/* True if such a request is refused without a key. */
bool idem__lambda_route_needs_key(const struct idem_lambda_options *options,
                                  struct idem_slice method,
                                  struct idem_slice path);

#endif
