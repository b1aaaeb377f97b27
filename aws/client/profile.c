/* Reads the shared files of AWS, and finds the settings of the profile in use. */
#include "aws/client/settings.h"

#include "base/heap.h"
#include "core/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Files ------------------------------------------------------------- */

/* Reads up to @cap bytes into @text. Returns how many there were, or -1. */
static ssize_t read_all(int fd, char *text, size_t cap)
{
    size_t len = 0;

    while (len < cap) {
        ssize_t n = read(fd, text + len, cap - len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -1;
        }
        if (n == 0) {
            break;
        }
        len += (size_t)n;
    }
    return (ssize_t)len;
}

/* Opens a file, or a device such as /dev/null. A pipe would wait for its writer, and
 * O_NONBLOCK returns from open() without one. */
static int open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode)) {
        (void)close(fd);
        errno = ESPIPE;
        return -1;
    }
    return fd;
}

const char *idem__aws_file_why(void)
{
    return errno == ESPIPE ? "it is a pipe, not a file" : strerror(errno);
}

int idem__aws_file_read(const char *path, size_t max, char **ret_text,
                        size_t *ret_len)
{
    int fd = open_file(path);
    int why;
    ssize_t len;
    char *text;

    if (fd < 0) {
        return IDEM_ECONFIG;
    }
    text = idem__alloc(max + 2);
    if (text == NULL) {
        (void)close(fd);
        return IDEM_ENOMEM;
    }
    len = read_all(fd, text, max + 1);
    why = len < 0 ? errno : EFBIG;
    (void)close(fd);
    if (len < 0 || (size_t)len > max) {
        explicit_bzero(text, max + 2);
        idem__free(text);
        errno = why;
        return IDEM_ECONFIG;
    }
    text[len] = '\0';
    *ret_text = text;
    *ret_len = (size_t)len;
    return 0;
}

/* Sets the path of the file: by @variable, or in ~/.aws. "": unknown, or too long. */
static void find_file(const struct idem__aws_env *env, const char *variable,
                      const char *own, struct idem__aws_file *file)
{
    const char *path = idem__aws_env_value(env, variable);
    const char *home = idem__aws_env_value(env, "HOME");
    int len = 0;

    if (path == NULL && home != NULL) {
        len = snprintf(file->path, sizeof(file->path), "%s/.aws/%s", home, own);
    } else if (path != NULL && strncmp(path, "~/", 2) == 0 && home != NULL) {
        len = snprintf(file->path, sizeof(file->path), "%s%s", home, path + 1);
    } else if (path != NULL) {
        len = snprintf(file->path, sizeof(file->path), "%s", path);
    }
    if (len < 0 || (size_t)len >= sizeof(file->path)) {
        file->path[0] = '\0';
    }
}

/* Checks every line of the file. The error does not show the line, which may be a
 * secret. */
static int check_lines(const struct idem__aws_file *file,
                       struct idem_error *error)
{
    struct idem__aws_ini_line line;
    struct idem__aws_ini ini;
    const char *flaw = "";
    int rc;

    idem__aws_ini_begin(&ini, idem_bytes(file->text, file->len));
    do {
        rc = idem__aws_ini_next(&ini, &line, &flaw);
    } while (rc == 1);
    return rc == 0 ? 0
                   : idem__error(error, rc, "%.150s:%u: %s", file->path,
                                 ini.number, flaw);
}

static int load_file(struct idem__aws_file *file, struct idem_error *error)
{
    int rc;

    if (file->path[0] == '\0') {
        return 0;
    }
    rc = idem__aws_file_read(file->path, IDEM__AWS_INI_MAX, &file->text,
                             &file->len);
    if (rc == IDEM_ENOMEM) {
        return idem__error_plain(error, rc);
    }
    if (rc != 0 && errno != ENOENT && errno != ENOTDIR && errno != EACCES) {
        return idem__error(error, rc, "cannot read %.150s: %s", file->path,
                           idem__aws_file_why());
    }
    if (rc != 0) {
        return 0;
    }
    return check_lines(file, error);
}

static void finish_file(struct idem__aws_file *file)
{
    if (file->text != NULL) {
        explicit_bzero(file->text, file->len);
        idem__free(file->text);
    }
}

/* ---- Profiles ---------------------------------------------------------- */

static int find_name(const struct idem__aws_env *env,
                     struct idem__aws_profiles *profiles,
                     struct idem_error *error)
{
    static const char *const names[] = {"AWS_PROFILE", "AWS_DEFAULT_PROFILE",
                                        NULL};
    const char *name = idem__aws_env_first(env, names);

    profiles->named = name != NULL;
    if (name == NULL) {
        name = "default";
    }
    if (strlen(name) >= sizeof(profiles->name)) {
        return idem__error(error, IDEM_ECONFIG,
                           "AWS_PROFILE is longer than %d characters",
                           IDEM__AWS_PROFILE_MAX);
    }
    strcpy(profiles->name, name);
    return 0;
}

static struct idem_slice text_of(const struct idem__aws_file *file)
{
    return idem_bytes(file->text == NULL ? "" : file->text, file->len);
}

/* In the config file a profile is [profile NAME], and the default one may be [default],
 * too. In the credentials file it is [NAME]. */
static bool is_default(const char *profile)
{
    return strcmp(profile, "default") == 0;
}

static bool has_profile(const struct idem__aws_profiles *profiles,
                        const char *profile)
{
    struct idem_slice name = idem_str(profile);
    struct idem_slice config = text_of(&profiles->config);

    return idem__aws_ini_has(text_of(&profiles->credentials), "", name) ||
           idem__aws_ini_has(config, "profile", name) ||
           (is_default(profile) && idem__aws_ini_has(config, "", name));
}

int idem__aws_profiles_load(const struct idem__aws_env *env,
                            struct idem__aws_profiles *ret_profiles,
                            struct idem_error *ret_error)
{
    struct idem__aws_profiles profiles = {.named = false};
    int rc;

    find_file(env, "AWS_SHARED_CREDENTIALS_FILE", "credentials",
              &profiles.credentials);
    find_file(env, "AWS_CONFIG_FILE", "config", &profiles.config);
    rc = find_name(env, &profiles, ret_error);
    if (rc != 0) {
        goto done;
    }
    rc = load_file(&profiles.credentials, ret_error);
    if (rc != 0) {
        goto done;
    }
    rc = load_file(&profiles.config, ret_error);
    if (rc != 0) {
        goto done;
    }
    if (profiles.named && !has_profile(&profiles, profiles.name)) {
        rc = idem__error(ret_error, IDEM_ECONFIG,
                         "AWS_PROFILE: no profile \"%.60s\" in %.60s or %.60s",
                         profiles.name, profiles.config.path,
                         profiles.credentials.path);
    }
done:
    if (rc != 0) {
        idem__aws_profiles_finish(&profiles);
        return rc;
    }
    *ret_profiles = profiles;
    return 0;
}

void idem__aws_profiles_finish(struct idem__aws_profiles *profiles)
{
    finish_file(&profiles->credentials);
    finish_file(&profiles->config);
    memset(profiles, 0, sizeof(*profiles));
}

int idem__aws_profiles_get_from(const struct idem__aws_profiles *profiles,
                                const struct idem__aws_file *file,
                                const char *name, struct idem_slice *ret_value,
                                struct idem_error *ret_error)
{
    struct idem_slice section = idem_str(profiles->name);
    struct idem_slice text = text_of(file);
    bool config = file == &profiles->config;
    int rc = idem__aws_ini_find(text, config ? "profile" : "", section,
                                /* outer= */ NULL, name, ret_value);

    if (rc == 0 && config && is_default(profiles->name)) {
        rc = idem__aws_ini_find(text, "", section, /* outer= */ NULL, name,
                                ret_value);
    }
    if (rc < 0) {
        return idem__error(ret_error, rc,
                           "%s of the profile \"%.60s\" in %.100s spans "
                           "several lines; write it on one",
                           name, profiles->name, file->path);
    }
    return rc;
}

int idem__aws_profiles_get(const struct idem__aws_profiles *profiles,
                           const char *name, struct idem_slice *ret_value,
                           struct idem_error *ret_error)
{
    int rc = idem__aws_profiles_get_from(profiles, &profiles->credentials, name,
                                         ret_value, ret_error);

    return rc != 0 ? rc
                   : idem__aws_profiles_get_from(profiles, &profiles->config,
                                                 name, ret_value, ret_error);
}

int idem__aws_profiles_url(const struct idem__aws_profiles *profiles,
                           const char *service, struct idem_slice *ret_url,
                           struct idem_error *ret_error)
{
    struct idem_slice services;
    int rc = idem__aws_profiles_get(profiles, "services", &services, ret_error);

    if (rc == 1) {
        rc = idem__aws_ini_find(text_of(&profiles->config), "services",
                                services, service, "endpoint_url", ret_url);
        if (rc < 0) {
            return idem__error(ret_error, rc,
                               "endpoint_url of %s in %.100s spans several "
                               "lines; write it on one",
                               service, profiles->config.path);
        }
    }
    if (rc != 0) {
        return rc;
    }
    return idem__aws_profiles_get(profiles, "endpoint_url", ret_url, ret_error);
}
