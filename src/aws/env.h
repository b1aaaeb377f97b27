/* The AWS_* variables that every AWS user expects to count. */
#ifndef IDEM_AWS_ENV_H
#define IDEM_AWS_ENV_H

#include <idem.h>

/* Where variables are read, so that tests and embedding programs can bring
 * their own. */
struct idem__aws_env {
    void *ctx;
    const char *(*get)(void *ctx, const char *name); /* NULL: not set. */
};

/* The environment of this process. */
extern const struct idem__aws_env idem__aws_env_process;

/* The value of the first of @names (ends with NULL) that is set and not empty,
 * else NULL. */
const char *idem__aws_env_first(const struct idem__aws_env *env,
                                const char *const *names);

#endif
