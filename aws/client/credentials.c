/* Credentials from the environment. */
#include "aws/client/credentials.h"

#include "base/heap.h"
#include "core/error.h"

void idem__aws_credentials_wipe(struct idem__aws_credentials *credentials)
{
    explicit_bzero(credentials, sizeof(*credentials));
}

int idem__aws_copy_value(const char *name, struct idem_slice value, char *buf,
                         size_t cap, struct idem_error *error)
{
    const char *p = value.base;
    size_t i;

    if (value.len >= cap) {
        return idem__error(error, IDEM_ECONFIG,
                           "%s is longer than %zu characters", name, cap - 1);
    }
    for (i = 0; i < value.len; i++) {
        if (p[i] <= ' ' || p[i] > '~') {
            return idem__error(
                error, IDEM_ECONFIG,
                "%s contains an invalid character, such as a space or a line "
                "end",
                name);
        }
        buf[i] = p[i];
    }
    buf[i] = '\0';
    return 0;
}

int idem__aws_credentials_set(struct idem__aws_credentials *ret,
                              const char *const names[3],
                              const struct idem_slice values[3],
                              struct idem_error *error)
{
    const struct {
        char *buf;
        size_t cap;
    } to[3] = {
        {ret->access_key, sizeof(ret->access_key)},
        {ret->secret_key, sizeof(ret->secret_key)},
        {ret->token, sizeof(ret->token)},
    };
    int rc = 0;
    size_t i;

    ret->expires_ms = IDEM_NEVER;
    for (i = 0; rc == 0 && i < 3; i++) {
        rc = idem__aws_copy_value(names[i], values[i], to[i].buf, to[i].cap,
                                  error);
    }
    return rc;
}

struct env_provider {
    struct idem__aws_provider base;
    struct idem__aws_credentials credentials;
};

static int env_get(struct idem__aws_provider *provider, int64_t now_ms,
                   const struct idem__aws_credentials **ret,
                   struct idem_error *ret_error)
{
    (void)now_ms;
    (void)ret_error;
    *ret = &((struct env_provider *)(void *)provider)->credentials;
    return 0;
}

static void env_destroy(struct env_provider *env)
{
    explicit_bzero(env, sizeof(*env));
    idem__free(env);
}

static void env_close(struct idem__aws_provider *provider)
{
    env_destroy((struct env_provider *)(void *)provider);
}

static int keys_of_env(const struct idem__aws_env *env,
                       struct idem__aws_credentials *ret,
                       struct idem_error *error)
{
    static const char *const names[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN"};
    struct idem_slice values[3];
    size_t i;

    for (i = 0; i < 3; i++) {
        values[i] = idem_str(idem__aws_env_value(env, names[i]));
        if (i < 2 && values[i].len == 0) {
            return idem__error(error, IDEM_ECONFIG,
                               "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
                               "belong together: %s is not set",
                               names[i]);
        }
    }
    return idem__aws_credentials_set(ret, names, values, error);
}

/* Provides AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and perhaps AWS_SESSION_TOKEN, which
 * it reads once. */
static int open_env(const struct idem__aws_env *env,
                    struct idem__aws_provider **ret_provider,
                    struct idem_error *ret_error)
{
    struct env_provider *provider = idem__zalloc(sizeof(*provider));
    int rc;

    if (provider == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    provider->base.name = "the environment";
    provider->base.get = env_get;
    provider->base.close = env_close;
    rc = keys_of_env(env, &provider->credentials, ret_error);
    if (rc != 0) {
        env_destroy(provider);
        return rc;
    }
    *ret_provider = &provider->base;
    return 0;
}

int idem__aws_provider_default(const struct idem__aws_env *env,
                               const char *region,
                               struct idem__aws_provider **ret_provider,
                               struct idem_error *ret_error)
{
    static const char *const names[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY", NULL};

    if (idem__aws_env_first(env, names) != NULL) {
        return open_env(env, ret_provider, ret_error);
    }
    return idem__aws_provider_chain(env, region, ret_provider, ret_error);
}

void idem__aws_provider_close(struct idem__aws_provider *provider)
{
    if (provider != NULL) {
        provider->close(provider);
    }
}
