/* Credentials of a container, from the endpoint that its host provides. */
#include "aws/client/endpoint.h"
#include "aws/client/source.h"
#include "base/heap.h"
#include "core/error.h"

#include <errno.h>
#include <stdio.h>

enum {
    CONNECT_MS = 2000,
    TIME_MS = 5000,
    URL_MAX = 2048,
};

/* ---- Shared by the sources that use HTTP ------------------------------- */

int idem__aws_try(struct idem__aws_ask *ask, const char *who,
                  struct idem_error *error)
{
    struct idem_error why;
    int tries;
    int rc;

    ask->fetch.stop = ask->stop;
    for (tries = 0; tries < 2; tries++) {
        rc = idem__aws_fetch(&ask->fetch, &why);
        if (rc != IDEM_EUNAVAILABLE && (rc != 0 || ask->fetch.status < 500)) {
            break;
        }
    }
    return rc == 0 ? 0 : idem__error(error, rc, "%s: %s", who, why.text);
}

int idem__aws_read_token(const char *name, const char *path, char *buf,
                         size_t cap, struct idem_error *error)
{
    char *text = NULL;
    size_t size, len;
    int rc = idem__aws_file_read(path, cap, &text, &size);

    if (rc == IDEM_ENOMEM) {
        return idem__error_plain(error, rc);
    }
    if (rc != 0) {
        return idem__error(error, rc, "cannot read %.100s, which %s names: %s",
                           path, name, idem__aws_file_why());
    }
    for (len = size;
         len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'); len--) {
    }
    rc = idem__aws_copy_value(name, idem_bytes(text, len), buf, cap, error);
    if (rc == 0 && len == 0) {
        rc = idem__error(error, IDEM_ECONFIG,
                         "%.100s, which %s names, is empty", path, name);
    }
    explicit_bzero(text, size);
    idem__free(text);
    return rc;
}

/* ---- The address ------------------------------------------------------- */

/* True for a host that may be asked without TLS: this machine, and the addresses at which
 * ECS and EKS answer. */
static bool is_trusted(const char *host, bool loopback)
{
    static const char *const hosts[] = {"169.254.170.2", "169.254.170.23",
                                        "[fd00:ec2::23]", NULL};
    size_t i;

    for (i = 0; hosts[i] != NULL; i++) {
        size_t len = strlen(hosts[i]);

        if (strncmp(host, hosts[i], len) == 0 &&
            (host[len] == '\0' || host[len] == ':')) {
            return true;
        }
    }
    return loopback;
}

static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~' || *text == '#') {
            return false;
        }
    }
    return true;
}

static int check_url(const char *name, const char *url, bool *ret_local,
                     struct idem_error *error)
{
    struct idem__aws_endpoint endpoint;
    bool loopback = false;

    if (!is_plain(url) ||
        !idem__aws_url_read(idem_bytes(url, strcspn(url, "?")), &endpoint,
                            &loopback)) {
        return idem__error(error, IDEM_ECONFIG,
                           "%s is not a URL of the form "
                           "http://HOST[:PORT]/PATH[?QUERY]",
                           name);
    }
    if (!endpoint.tls && !is_trusted(endpoint.host, loopback)) {
        return idem__error(error, IDEM_ECONFIG,
                           "%s names %.60s, which may not be asked over plain "
                           "http: only this machine, 169.254.170.2, "
                           "169.254.170.23 and [fd00:ec2::23] may; use https",
                           name, endpoint.host);
    }
    *ret_local = endpoint.local || !endpoint.tls;
    return 0;
}

/* Finds the URL of the endpoint. Returns 1 if no variable names one. */
static int find_url(const struct idem__aws_env *env, char url[URL_MAX],
                    bool *ret_local, struct idem_error *error)
{
    static const char relative[] = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
    static const char full[] = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    const char *name = relative;
    const char *value = idem__aws_env_value(env, relative);
    const char *before = "http://169.254.170.2";

    if (value == NULL) {
        name = full;
        value = idem__aws_env_value(env, full);
        before = "";
    } else if (value[0] != '/') {
        return idem__error(error, IDEM_ECONFIG, "%s does not begin with a /",
                           name);
    }
    if (value == NULL) {
        return 1;
    }
    if (strlen(before) + strlen(value) >= URL_MAX) {
        return idem__error(error, IDEM_ECONFIG, "%s is too long", name);
    }
    strcpy(url, before);
    strcat(url, value);
    return check_url(name, url, ret_local, error);
}

/* ---- The request ------------------------------------------------------- */

/* Makes the Authorization line; "" if no variable has a token. */
static int make_line(const struct idem__aws_env *env, char *line, size_t cap,
                     struct idem_error *error)
{
    static const char title[] = "Authorization: ";
    static const char in_file[] = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
    static const char direct[] = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
    const char *path = idem__aws_env_value(env, in_file);
    const char *token = idem__aws_env_value(env, direct);
    size_t len = sizeof(title) - 1;

    line[0] = '\0';
    if (path == NULL && token == NULL) {
        return 0;
    }
    memcpy(line, title, len);
    if (path != NULL) {
        return idem__aws_read_token(in_file, path, line + len, cap - len,
                                    error);
    }
    /* It may contain a blank: "Basic abcd". */
    if (strlen(token) >= cap - len || strpbrk(token, "\r\n") != NULL) {
        return idem__error(error, IDEM_ECONFIG,
                           "%s is too long, or has a line end", direct);
    }
    strcpy(line + len, token);
    return 0;
}

int idem__aws_source_container(struct idem__aws_ask *ask,
                               struct idem__aws_credentials *ret,
                               struct idem_error *ret_error)
{
    static const char who[] = "the container's credentials endpoint";
    struct idem__aws_fetch *fetch = &ask->fetch;
    char line[IDEM__AWS_TOKEN_MAX + 32];
    char url[URL_MAX];
    int rc = find_url(ask->env, url, &fetch->local, ret_error);

    if (rc == 0) {
        rc = make_line(ask->env, line, sizeof(line), ret_error);
    }
    if (rc != 0) {
        return rc;
    }
    fetch->method = "GET";
    fetch->url = url;
    fetch->header = line[0] == '\0' ? NULL : line;
    fetch->ca_file = idem__aws_env_value(ask->env, "AWS_CA_BUNDLE");
    fetch->connect_ms = CONNECT_MS;
    fetch->timeout_ms = TIME_MS;
    rc = idem__aws_try(ask, who, ret_error);
    if (rc != 0) {
        goto done;
    }
    if (fetch->status != 200) {
        rc = idem__error(ret_error,
                         fetch->status < 500 ? IDEM_ECONFIG : IDEM_EUNAVAILABLE,
                         "%s answered with status %d", who, fetch->status);
        goto done;
    }
    rc = idem__aws_read_keys(idem_bytes(fetch->answer, fetch->answer_len),
                             "Token", who, ret, ret_error);
done:
    explicit_bzero(line, sizeof(line));
    idem__aws_fetch_wipe(fetch);
    return rc;
}
