/* The AWS_* variables of this process. */
#include "aws/env.h"

#include <stdlib.h>

static const char *process_get(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name);
}

const struct idem__aws_env idem__aws_env_process = {
    .ctx = NULL,
    .get = process_get,
};

const char *idem__aws_env_first(const struct idem__aws_env *env,
                                const char *const *names)
{
    for (; *names != NULL; names++) {
        const char *value = env->get(env->ctx, *names);

        if (value != NULL && value[0] != '\0') {
            return value;
        }
    }
    return NULL;
}
