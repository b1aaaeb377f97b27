/* Credentials of a profile in the shared files. */
#include "aws/client/source.h"
#include "core/error.h"

/* ---- Keys -------------------------------------------------------------- */

static const char *const key_names[] = {"aws_access_key_id",
                                        "aws_secret_access_key",
                                        "aws_session_token"};

/* Takes all keys from one file, since those of two files do not belong together. Returns 1
 * if it has none. */
static int find_keys(const struct idem__aws_profiles *profiles,
                     const struct idem__aws_file *file,
                     struct idem__aws_credentials *ret,
                     struct idem_error *error)
{
    struct idem_slice values[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    size_t i;

    for (i = 0; i < 3; i++) {
        int rc = idem__aws_profiles_get_from(profiles, file, key_names[i],
                                             &values[i], error);

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
                           profiles->name, file->path);
    }
    return idem__aws_credentials_set(ret, key_names, values, error);
}

static int static_keys(const struct idem__aws_profiles *profiles,
                       struct idem__aws_credentials *ret,
                       struct idem_error *error)
{
    int rc = find_keys(profiles, &profiles->credentials, ret, error);

    return rc != 1 ? rc : find_keys(profiles, &profiles->config, ret, error);
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

/* Refuses the first of the settings @names that the profile has. Returns 1 if it has
 * none. */
static int refuse_any(const struct idem__aws_profiles *profiles,
                      const char *const *names, struct idem_error *error)
{
    struct idem_slice value;

    for (; *names != NULL; names++) {
        int rc = idem__aws_profiles_get(profiles, *names, &value, error);

        if (rc != 0) {
            return rc < 0 ? rc : refuse(profiles->name, *names, error);
        }
    }
    return 1;
}

/* ---- A profile --------------------------------------------------------- */

/* The own keys of a profile with a role are not the ones that the user wants for the
 * work, and those of a profile that signs in are. */
static int resolve(struct idem__aws_ask *ask,
                   const struct idem__aws_profiles *profiles,
                   struct idem__aws_credentials *ret, struct idem_error *error)
{
    static const char *const roles[] = {"role_arn", NULL};
    static const char *const sign_ins[] = {"sso_session", "sso_start_url",
                                           "sso_account_id", "login_session",
                                           NULL};
    struct idem_slice command;
    int rc = refuse_any(profiles, roles, error);

    if (rc == 1) {
        rc = static_keys(profiles, ret, error);
    }
    if (rc == 1) {
        rc = refuse_any(profiles, sign_ins, error);
    }
    if (rc != 1) {
        return rc;
    }
    rc =
        idem__aws_profiles_get(profiles, "credential_process", &command, error);
    if (rc == 1) {
        return idem__aws_source_process(ask, command, ret, error);
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
