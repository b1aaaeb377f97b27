/* The AWS_* variables that every AWS user expects to count. */
#ifndef IDEM_AWS_CLIENT_ENV_H
#define IDEM_AWS_CLIENT_ENV_H

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

/* The variables that we know of as they are now, for threads of our own: the
 * process may change its environment at any time, and getenv() is not safe
 * beside that. */
struct idem__aws_env_copy;

/* IDEM_ENOMEM. */
int idem__aws_env_copy(const struct idem__aws_env *env,
                       struct idem__aws_env_copy **ret_copy);

/* Wipes and frees; NULL is allowed. */
void idem__aws_env_copy_free(struct idem__aws_env_copy *copy);

/* The reader of @copy, for as long as it lives. */
struct idem__aws_env idem__aws_env_of(const struct idem__aws_env_copy *copy);

/* The value of @name, or NULL if it is not set or empty. */
const char *idem__aws_env_value(const struct idem__aws_env *env,
                                const char *name);

/* True if the value of @name is "true", in any case. */
bool idem__aws_env_is_true(const struct idem__aws_env *env, const char *name);

#endif
