/* Credentials of a profile in the shared files. */
#include "aws/source.h"
#include "core/error.h"

#include <stdio.h>

/* What a profile says of a setting, as text; "": nothing. */
#define VALUE_MAX 4096

static int setting(const struct idem__aws_profiles *profiles,
                   const char *profile, const char *name, char *buf, size_t cap,
                   struct idem_error *error)
{
    struct idem_slice value;
    int rc = idem__aws_profiles_get(profiles, profile, name, &value, error);

    buf[0] = '\0';
    if (rc == 1 && value.len >= cap) {
        return idem__error(error, IDEM_ECONFIG,
                           "%s of the profile \"%.60s\" is longer than the %zu "
                           "characters that it may have",
                           name, profile, cap - 1);
    }
    if (rc == 1) {
        memcpy(buf, value.base, value.len);
        buf[value.len] = '\0';
    }
    return rc;
}

/* ---- Keys -------------------------------------------------------------- */

struct keys {
    struct idem_slice access_key;
    struct idem_slice secret_key;
    struct idem_slice token;
};

/* All of them from one file: those of two do not belong together. */
static int find_keys(const struct idem__aws_profiles *profiles,
                     const struct idem__aws_file *file, const char *profile,
                     struct keys *keys, struct idem_error *error)
{
    const struct {
        const char *name;
        struct idem_slice *value;
    } all[] = {
        {"aws_access_key_id", &keys->access_key},
        {"aws_secret_access_key", &keys->secret_key},
        {"aws_session_token", &keys->token},
    };
    size_t i;

    memset(keys, 0, sizeof(*keys));
    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        int rc = idem__aws_profiles_get_from(profiles, file, profile,
                                             all[i].name, all[i].value, error);

        if (rc < 0) {
            return rc;
        }
    }
    if (keys->access_key.len == 0 && keys->secret_key.len == 0) {
        return 1;
    }
    if (keys->access_key.len == 0 || keys->secret_key.len == 0) {
        return idem__error(error, IDEM_ECONFIG,
                           "the profile \"%.60s\" in %.100s has one of "
                           "aws_access_key_id and aws_secret_access_key, but "
                           "not the other",
                           profile, file->path);
    }
    return 0;
}

static int static_keys(const struct idem__aws_profiles *profiles,
                       const char *profile, struct idem__aws_credentials *ret,
                       struct idem_error *error)
{
    struct keys keys;
    int rc = find_keys(profiles, &profiles->credentials, profile, &keys, error);

    if (rc == 1) {
        rc = find_keys(profiles, &profiles->config, profile, &keys, error);
    }
    if (rc != 0) {
        return rc;
    }
    ret->expires_ms = IDEM_NEVER;
    rc = idem__aws_copy_value("aws_access_key_id", keys.access_key,
                              ret->access_key, sizeof(ret->access_key), error);
    if (rc == 0) {
        rc = idem__aws_copy_value("aws_secret_access_key", keys.secret_key,
                                  ret->secret_key, sizeof(ret->secret_key),
                                  error);
    }
    if (rc == 0) {
        rc = idem__aws_copy_value("aws_session_token", keys.token, ret->token,
                                  sizeof(ret->token), error);
    }
    return rc;
}

/* ---- Others ------------------------------------------------------------ */

/* What we do not do ourselves, and how it is done all the same. */
static int refuse(const char *profile, const char *what,
                  struct idem_error *error)
{
    return idem__error(error, IDEM_ECONFIG,
                       "the profile \"%.40s\" uses %s, which idem does not do "
                       "itself: eval \"$(aws configure export-credentials "
                       "--profile %.40s --format env)\" sets what it needs",
                       profile, what, profile);
}

static int refuse_others(const struct idem__aws_profiles *profiles,
                         const char *profile, struct idem_error *error)
{
    static const char *const names[] = {"role_arn",      "sso_session",
                                        "sso_start_url", "sso_account_id",
                                        "login_session", NULL};
    struct idem_slice value;
    size_t i;

    for (i = 0; names[i] != NULL; i++) {
        int rc =
            idem__aws_profiles_get(profiles, profile, names[i], &value, error);

        if (rc != 0) {
            return rc < 0 ? rc : refuse(profile, names[i], error);
        }
    }
    return 1;
}

static int resolve(struct idem__aws_ask *ask,
                   const struct idem__aws_profiles *profiles,
                   const char *profile, struct idem__aws_credentials *ret,
                   struct idem_error *error)
{
    char value[VALUE_MAX];
    int rc = static_keys(profiles, profile, ret, error);

    if (rc == 1) {
        rc = refuse_others(profiles, profile, error);
    }
    if (rc != 1) {
        return rc;
    }
    rc = setting(profiles, profile, "credential_process", value, sizeof(value),
                 error);
    if (rc == 1) {
        return idem__aws_source_process(ask, value, ret, error);
    }
    return rc < 0 ? rc : 1;
}

int idem__aws_source_profile(struct idem__aws_ask *ask,
                             struct idem__aws_credentials *ret,
                             struct idem_error *ret_error)
{
    struct idem__aws_profiles profiles;
    int rc = idem__aws_profiles_load(ask->env, &profiles, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = resolve(ask, &profiles, profiles.name, ret, ret_error);
    idem__aws_profiles_finish(&profiles);
    return rc;
}
