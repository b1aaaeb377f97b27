/* The AWS_* variables of this process. */
#include "aws/client/settings.h"

#include "base/heap.h"

#include <stdlib.h>
#include <strings.h>

/* The variables that the sources of credentials read, on a thread, from a copy. */
static const char *const variables[] = {
    "AWS_ACCESS_KEY_ID",
    "AWS_CA_BUNDLE",
    "AWS_CONFIG_FILE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_DEFAULT_PROFILE",
    "AWS_DEFAULT_REGION",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_STS",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_USE_FIPS_ENDPOINT",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "HOME",
};

enum {
    VARIABLES = sizeof(variables) / sizeof(variables[0])
};

struct idem__aws_env_copy {
    char *values[VARIABLES]; /* NULL: not set. */
};

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

const char *idem__aws_env_value(const struct idem__aws_env *env,
                                const char *name)
{
    const char *const names[] = {name, NULL};

    return idem__aws_env_first(env, names);
}

bool idem__aws_env_is_true(const struct idem__aws_env *env, const char *name)
{
    const char *value = env->get(env->ctx, name);

    return value != NULL && strcasecmp(value, "true") == 0;
}

/* ---- Copies ------------------------------------------------------------ */

static const char *copy_get(void *ctx, const char *name)
{
    const struct idem__aws_env_copy *copy = ctx;
    size_t i;

    for (i = 0; i < VARIABLES; i++) {
        if (strcmp(variables[i], name) == 0) {
            return copy->values[i];
        }
    }
    return NULL;
}

int idem__aws_env_copy(const struct idem__aws_env *env,
                       struct idem__aws_env_copy **ret_copy)
{
    struct idem__aws_env_copy *copy = idem__zalloc(sizeof(*copy));
    size_t i;

    if (copy == NULL) {
        return IDEM_ENOMEM;
    }
    for (i = 0; i < VARIABLES; i++) {
        const char *value = env->get(env->ctx, variables[i]);
        size_t len = value == NULL ? 0 : strlen(value) + 1;

        if (value == NULL) {
            continue;
        }
        copy->values[i] = idem__alloc(len);
        if (copy->values[i] == NULL) {
            idem__aws_env_copy_free(copy);
            return IDEM_ENOMEM;
        }
        memcpy(copy->values[i], value, len);
    }
    *ret_copy = copy;
    return 0;
}

void idem__aws_env_copy_free(struct idem__aws_env_copy *copy)
{
    size_t i;

    if (copy == NULL) {
        return;
    }
    for (i = 0; i < VARIABLES; i++) {
        if (copy->values[i] != NULL) {
            explicit_bzero(copy->values[i], strlen(copy->values[i]));
            idem__free(copy->values[i]);
        }
    }
    idem__free(copy);
}

struct idem__aws_env idem__aws_env_of(const struct idem__aws_env_copy *copy)
{
    struct idem__aws_env env = {.ctx = (void *)(uintptr_t)copy,
                                .get = copy_get};

    return env;
}
