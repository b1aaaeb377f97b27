/* Credentials of an instance, from its metadata service, version 2: the first request
 * returns a token, which every other one carries. */
#include "aws/client/endpoint.h"
#include "aws/client/source.h"
#include "core/error.h"

#include <stdio.h>
#include <strings.h>

enum {
    CONNECT_MS = 1000,
    TIME_MS = 2000,
    BASE_MAX = 512,
    PATH_MAX_LEN = 256,
    ROLE_MAX = 128,
    TOKEN_MAX = 1024,
};

static const char who[] = "the instance metadata service";

struct session {
    struct idem__aws_ask *ask;
    char base[BASE_MAX]; /* Without a trailing "/". */
    char token_line[TOKEN_MAX + 32];
};

/* Finds the URL of the service. Returns 1 if a variable disables it. */
static int find_service(const struct idem__aws_env *env,
                        struct session *session, struct idem_error *error)
{
    const char *url =
        idem__aws_env_value(env, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *mode =
        idem__aws_env_value(env, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    struct idem__aws_endpoint endpoint;
    bool loopback;
    size_t len;

    if (idem__aws_env_is_true(env, "AWS_EC2_METADATA_DISABLED")) {
        return 1;
    }
    if (url == NULL) {
        url = mode != NULL && strcasecmp(mode, "ipv6") == 0
                  ? "http://[fd00:ec2::254]"
                  : "http://169.254.169.254";
    }
    if (!idem__aws_url_read(idem_str(url), &endpoint, &loopback) ||
        strlen(endpoint.url) >= sizeof(session->base)) {
        return idem__error(
            error, IDEM_ECONFIG,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT is not a URL of the "
            "form http://HOST[:PORT]");
    }
    strcpy(session->base, endpoint.url);
    len = strlen(session->base);
    if (session->base[len - 1] == '/') {
        session->base[len - 1] = '\0';
    }
    return 0;
}

/* Sends a request for @path with @line. Returns 0 if the answer is a 200. */
static int request(struct session *session, const char *method,
                   const char *path, char *line, struct idem_error *error)
{
    struct idem__aws_fetch *fetch = &session->ask->fetch;
    char url[BASE_MAX + PATH_MAX_LEN];
    int rc;

    (void)snprintf(url, sizeof(url), "%s%s", session->base, path);
    fetch->method = method;
    fetch->url = url;
    fetch->header = line;
    fetch->local = true;
    fetch->connect_ms = CONNECT_MS;
    fetch->timeout_ms = TIME_MS;
    rc = idem__aws_try(session->ask, who, error);
    if (rc == 0 && fetch->status != 200) {
        /* 403 means that the service is disabled for this instance, or that a proxy
         * answers in its place: treat it like a service that does not answer. */
        rc = idem__error(error,
                         fetch->status < 500 && fetch->status != 403
                             ? IDEM_ECONFIG
                             : IDEM_EUNAVAILABLE,
                         "%s answered %s %.80s with status %d", who, method,
                         path, fetch->status);
    }
    return rc;
}

static int begin_session(struct idem__aws_ask *ask, struct session *session,
                         struct idem_error *error)
{
    static const char title[] = "X-aws-ec2-metadata-token: ";
    char ttl[] = "X-aws-ec2-metadata-token-ttl-seconds: 21600";
    int rc;

    session->ask = ask;
    rc = find_service(ask->env, session, error);
    if (rc == 0) {
        rc = request(session, "PUT", "/latest/api/token", ttl, error);
    }
    if (rc != 0) {
        return rc;
    }
    memcpy(session->token_line, title, sizeof(title));
    return idem__aws_copy_value(
        "the session token of the instance metadata service",
        idem_bytes(ask->fetch.answer, ask->fetch.answer_len),
        session->token_line + sizeof(title) - 1,
        sizeof(session->token_line) - sizeof(title) + 1, error);
}

/* ---- Credentials ------------------------------------------------------- */

/* Reads the first line of the list of roles, which must be fit for a path. */
static int read_role(const struct idem__aws_fetch *fetch, char *buf, size_t cap,
                     struct idem_error *error)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+=,.@_-";
    size_t len = strcspn(fetch->answer, "\r\n");

    if (len == 0 || len >= cap || strspn(fetch->answer, allowed) < len) {
        return idem__error(error, IDEM_ECONFIG,
                           "%s lists no role: attach an instance profile", who);
    }
    memcpy(buf, fetch->answer, len);
    buf[len] = '\0';
    return 0;
}

static int fetch_keys(struct session *session,
                      struct idem__aws_credentials *ret,
                      struct idem_error *error)
{
    static const char list[] = "/latest/meta-data/iam/security-credentials/";
    struct idem__aws_fetch *fetch = &session->ask->fetch;
    char path[sizeof(list) + ROLE_MAX];
    int rc = request(session, "GET", list, session->token_line, error);

    if (rc == IDEM_ECONFIG && fetch->status == 404) {
        fetch->answer[0] = '\0';
        rc = 0;
    }
    memcpy(path, list, sizeof(list));
    if (rc != 0) {
        return rc;
    }
    rc = read_role(fetch, path + sizeof(list) - 1, ROLE_MAX, error);
    if (rc != 0) {
        return rc;
    }
    rc = request(session, "GET", path, session->token_line, error);
    if (rc != 0) {
        return rc;
    }
    return idem__aws_read_keys(idem_bytes(fetch->answer, fetch->answer_len),
                               "Token", who, ret, error);
}

int idem__aws_source_instance(struct idem__aws_ask *ask,
                              struct idem__aws_credentials *ret,
                              struct idem_error *ret_error)
{
    struct session session;
    int rc = begin_session(ask, &session, ret_error);

    if (rc == 0) {
        rc = fetch_keys(&session, ret, ret_error);
    }
    idem__aws_fetch_wipe(&ask->fetch);
    explicit_bzero(&session, sizeof(session));
    return rc;
}
