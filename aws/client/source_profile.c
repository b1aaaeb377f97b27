/* Credentials of a profile in the shared files. */
#include "aws/client/source.h"
#include "core/error.h"

#include <stdio.h>

#define VALUE_MAX 4096

/* Copies a setting of a profile to @buf; "": there is none. */
static int setting(const struct idem__aws_profiles *profiles,
                   const char *profile, const char *name, char *buf, size_t cap,
                   struct idem_error *error)
{
    struct idem_slice value;
    int rc = idem__aws_profiles_get(profiles, profile, name, &value, error);

    buf[0] = '\0';
    if (rc == 1 && value.len >= cap) {
        return idem__error(error, IDEM_ECONFIG,
                           "%s of the profile \"%.60s\" is longer than %zu "
                           "characters",
                           name, profile, cap - 1);
    }
    if (rc == 1) {
        memcpy(buf, value.base, value.len);
        buf[value.len] = '\0';
    }
    return rc;
}

/* ---- Keys -------------------------------------------------------------- */

static const char *const key_names[] = {"aws_access_key_id",
                                        "aws_secret_access_key",
                                        "aws_session_token"};

/* Takes all keys from one file, since those of two files do not belong together. Returns 1
 * if it has none. */
static int find_keys(const struct idem__aws_profiles *profiles,
                     const struct idem__aws_file *file, const char *profile,
                     struct idem__aws_credentials *ret,
                     struct idem_error *error)
{
    struct idem_slice values[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    size_t i;

    for (i = 0; i < 3; i++) {
        int rc = idem__aws_profiles_get_from(profiles, file, profile,
                                             key_names[i], &values[i], error);

        if (rc < 0) {
            return rc;
        }
    }
    if (values[0].len == 0 && values[1].len == 0) {
        return 1;
    }
    if (values[0].len == 0 || values[1].len == 0) {
        return idem__error(error, IDEM_ECONFIG,
                           "the profile \"%.60s\" in %.100s has one of "
                           "aws_access_key_id and aws_secret_access_key, but "
                           "not the other",
                           profile, file->path);
    }
    return idem__aws_credentials_set(ret, key_names, values, error);
}

static int static_keys(const struct idem__aws_profiles *profiles,
                       const char *profile, struct idem__aws_credentials *ret,
                       struct idem_error *error)
{
    int rc = find_keys(profiles, &profiles->credentials, profile, ret, error);

    return rc != 1
               ? rc
               : find_keys(profiles, &profiles->config, profile, ret, error);
}

/* ---- Others ------------------------------------------------------------ */

/* Refuses a setting that only the AWS CLI can use, and suggests to have it do so. */
static int refuse(const char *profile, const char *what,
                  struct idem_error *error)
{
    return idem__error(error, IDEM_ECONFIG,
                       "the profile \"%.40s\" has %s, which idem does not use: "
                       "set AWS_PROFILE to a profile with credential_process = "
                       "aws configure export-credentials --profile %.40s",
                       profile, what, profile);
}

static int refuse_others(const struct idem__aws_profiles *profiles,
                         const char *profile, struct idem_error *error)
{
    static const char *const names[] = {"sso_session", "sso_start_url",
                                        "sso_account_id", "login_session",
                                        NULL};
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

/* ---- A role for a web identity ----------------------------------------- */

struct role_settings {
    char arn[VALUE_MAX];
    char session[128];
    char duration[16];
    char token_path[VALUE_MAX];
};

static int read_settings(const struct idem__aws_profiles *profiles,
                         const char *profile, struct role_settings *settings,
                         struct idem_error *error)
{
    const struct {
        const char *name;
        char *buf;
        size_t cap;
    } all[] = {
        {"role_arn", settings->arn, sizeof(settings->arn)},
        {"role_session_name", settings->session, sizeof(settings->session)},
        {"duration_seconds", settings->duration, sizeof(settings->duration)},
        {"web_identity_token_file", settings->token_path,
         sizeof(settings->token_path)},
    };
    size_t i;

    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        int rc = setting(profiles, profile, all[i].name, all[i].buf, all[i].cap,
                         error);

        if (rc < 0) {
            return rc;
        }
    }
    return settings->arn[0] != '\0' ? 0 : 1;
}

/* Assumes the role of the profile. Returns 1 if it has none. Refuses a role that needs
 * another profile's keys, a second factor or the like: the profile's own keys, if it has
 * any, are not the ones that the user wants for the work. */
static int take_role(struct idem__aws_ask *ask,
                     const struct idem__aws_profiles *profiles,
                     struct idem__aws_credentials *ret,
                     struct idem_error *error)
{
    struct role_settings settings;
    char token[IDEM__AWS_TOKEN_MAX + 1];
    struct idem__aws_role role = {
        .arn = settings.arn,
        .session = settings.session,
        .duration = settings.duration,
        .token = token,
    };
    int rc = read_settings(profiles, profiles->name, &settings, error);

    if (rc != 0) {
        return rc;
    }
    if (settings.token_path[0] == '\0') {
        return refuse(profiles->name, "role_arn", error);
    }
    rc = idem__aws_read_token("web_identity_token_file", settings.token_path,
                              token, sizeof(token), error);
    if (rc == 0) {
        rc = idem__aws_assume(ask, profiles, &role, ret, error);
    }
    explicit_bzero(token, sizeof(token));
    return rc;
}

/* ---- A profile --------------------------------------------------------- */

static int resolve(struct idem__aws_ask *ask,
                   const struct idem__aws_profiles *profiles,
                   struct idem__aws_credentials *ret, struct idem_error *error)
{
    char value[VALUE_MAX];
    int rc = take_role(ask, profiles, ret, error);

    if (rc == 1) {
        rc = static_keys(profiles, profiles->name, ret, error);
    }
    if (rc == 1) {
        rc = refuse_others(profiles, profiles->name, error);
    }
    if (rc != 1) {
        return rc;
    }
    rc = setting(profiles, profiles->name, "credential_process", value,
                 sizeof(value), error);
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
    rc = resolve(ask, &profiles, ret, ret_error);
    idem__aws_profiles_finish(&profiles);
    return rc;
}
