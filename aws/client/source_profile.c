/* Credentials of a profile in the shared files. */
#include "aws/client/source.h"
#include "core/error.h"

#include <stdio.h>

/* The setting of a profile, as text; "": nothing. */
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

/* Settings that we do not carry out ourselves, and the way to use them all the
 * same. */
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

/* ---- Roles ------------------------------------------------------------- */

struct search {
    struct idem__aws_ask *ask;
    const struct idem__aws_profiles *profiles;
    int depth;
};

static int resolve(struct search *search, const char *profile,
                   struct idem__aws_credentials *ret, struct idem_error *error);

/* The caller that asks for the role of a profile with credential_source. */
static int named_source(struct search *search, const char *profile,
                        const char *name, struct idem__aws_credentials *ret,
                        struct idem_error *error)
{
    int rc;

    if (strcmp(name, "Environment") == 0) {
        rc = idem__aws_keys_of_env(search->ask->env, ret, error);
    } else if (strcmp(name, "EcsContainer") == 0) {
        rc = idem__aws_source_container(search->ask, ret, error);
    } else if (strcmp(name, "Ec2InstanceMetadata") == 0) {
        rc = idem__aws_source_instance(search->ask, ret, error);
    } else {
        return idem__error(error, IDEM_ECONFIG,
                           "credential_source of the profile \"%.60s\" is none "
                           "of Environment, Ec2InstanceMetadata, EcsContainer",
                           profile);
    }
    return rc != 1 ? rc
                   : idem__error(error, IDEM_ECONFIG,
                                 "the profile \"%.60s\" wants the credentials "
                                 "of %.40s, and there are none",
                                 profile, name);
}

/* The caller that asks for the role of a profile. */
static int find_signer(struct search *search, const char *profile,
                       struct idem__aws_credentials *ret,
                       struct idem_error *error)
{
    char source[VALUE_MAX];
    int rc = setting(search->profiles, profile, "source_profile", source,
                     sizeof(source), error);

    if (rc == 1 && strcmp(source, profile) == 0) {
        rc = static_keys(search->profiles, profile, ret, error);
    } else if (rc == 1) {
        rc = resolve(search, source, ret, error);
    } else if (rc == 0) {
        rc = setting(search->profiles, profile, "credential_source", source,
                     sizeof(source), error);
        return rc == 1  ? named_source(search, profile, source, ret, error)
               : rc < 0 ? rc
                        : idem__error(
                              error, IDEM_ECONFIG,
                              "the profile \"%.60s\" has a role_arn, and "
                              "neither source_profile, credential_source nor "
                              "web_identity_token_file says who asks for it",
                              profile);
    }
    return rc != 1
               ? rc
               : idem__error(error, IDEM_ECONFIG,
                             "the profile \"%.40s\" takes its role with the "
                             "credentials of the profile \"%.40s\", which "
                             "has none",
                             profile, source);
}

struct role_settings {
    char arn[VALUE_MAX];
    char session[128];
    char external_id[VALUE_MAX];
    char duration[16];
    char token_path[VALUE_MAX];
    char mfa[VALUE_MAX];
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
        {"external_id", settings->external_id, sizeof(settings->external_id)},
        {"duration_seconds", settings->duration, sizeof(settings->duration)},
        {"web_identity_token_file", settings->token_path,
         sizeof(settings->token_path)},
        {"mfa_serial", settings->mfa, sizeof(settings->mfa)},
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

/* 1: the profile has no role. */
static int take_role(struct search *search, const char *profile,
                     struct idem__aws_credentials *ret,
                     struct idem_error *error)
{
    struct role_settings settings;
    struct idem__aws_credentials signer = {.serial = 0};
    char token[IDEM__AWS_TOKEN_MAX + 1];
    struct idem__aws_role role = {
        .arn = settings.arn,
        .session = settings.session,
        .external_id = settings.external_id,
        .duration = settings.duration,
        .signer = &signer,
    };
    int rc = read_settings(search->profiles, profile, &settings, error);

    if (rc != 0) {
        return rc;
    }
    if (settings.mfa[0] != '\0') {
        return refuse(profile, "mfa_serial", error);
    }
    if (settings.token_path[0] != '\0') {
        role.web_token = token;
        rc =
            idem__aws_read_token("web_identity_token_file", settings.token_path,
                                 token, sizeof(token), error);
    } else {
        rc = find_signer(search, profile, &signer, error);
    }
    if (rc == 0) {
        rc = idem__aws_assume(search->ask, search->profiles, &role, ret, error);
    }
    explicit_bzero(token, sizeof(token));
    idem__aws_credentials_wipe(&signer);
    return rc;
}

/* ---- A profile --------------------------------------------------------- */

static int resolve(struct search *search, const char *profile,
                   struct idem__aws_credentials *ret, struct idem_error *error)
{
    enum {
        DEPTH_MAX = 5
    };
    char value[VALUE_MAX];
    int rc;

    if (search->depth++ == DEPTH_MAX) {
        return idem__error(
            error, IDEM_ECONFIG,
            "source_profile leads through more than %d profiles, "
            "or in a circle, at \"%.60s\"",
            DEPTH_MAX, profile);
    }
    rc = take_role(search, profile, ret, error);
    if (rc == 1) {
        rc = static_keys(search->profiles, profile, ret, error);
    }
    if (rc == 1) {
        rc = refuse_others(search->profiles, profile, error);
    }
    if (rc != 1) {
        return rc;
    }
    rc = setting(search->profiles, profile, "credential_process", value,
                 sizeof(value), error);
    if (rc == 1) {
        return idem__aws_source_process(search->ask, value, ret, error);
    }
    return rc < 0 ? rc : 1;
}

int idem__aws_source_profile(struct idem__aws_ask *ask,
                             struct idem__aws_credentials *ret,
                             struct idem_error *ret_error)
{
    struct idem__aws_profiles profiles;
    struct search search = {.ask = ask, .profiles = &profiles};
    int rc = idem__aws_profiles_load(ask->env, &profiles, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = resolve(&search, profiles.name, ret, ret_error);
    idem__aws_profiles_finish(&profiles);
    return rc;
}
