/* Checking what callers give. */
#ifndef IDEM_API_CHECK_H
#define IDEM_API_CHECK_H

#include <idem.h>

/* 0, or IDEM_EINVALID with a sentence that names the member and its range. */
int idem__check_names(struct idem_slice scope, struct idem_slice key,
                      struct idem_error *error);
int idem__check_request(const struct idem_request *request,
                        struct idem_error *error);
int idem__check_duration(const char *name, int64_t ms, int64_t min_ms,
                         bool may_be_never, struct idem_error *error);

#endif
