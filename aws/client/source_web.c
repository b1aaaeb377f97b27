/* Assumes a role at STS for the token of a web identity. */
#include "aws/client/clock.h"
#include "aws/client/endpoint.h"
#include "aws/client/source.h"
#include "base/bytes.h"
#include "core/error.h"

#include <stdio.h>

enum {
    CONNECT_MS = 3000,
    TIME_MS = 10000,
};

static const char who[] = "STS";

/* A role to be assumed. */
struct role {
    const char *arn;
    const char *session; /* NULL: a name of ours. */
    const char *token;   /* The token of the web identity. */
};

/* ---- The answer -------------------------------------------------------- */

static const char *find(const char *from, const char *end, const char *word)
{
    size_t len = strlen(word);

    return (size_t)(end - from) < len
               ? NULL
               : memmem(from, (size_t)(end - from), word, len);
}

/* Finds the content of the first element @name without attributes. */
static bool element(struct idem_slice xml, const char *name,
                    struct idem_slice *ret_inside)
{
    const char *end = (const char *)xml.base + xml.len;
    const char *from, *to;
    char mark[64];

    (void)snprintf(mark, sizeof(mark), "<%s>", name);
    from = find(xml.base, end, mark);
    if (from == NULL) {
        return false;
    }
    from += strlen(mark);
    (void)snprintf(mark, sizeof(mark), "</%s>", name);
    to = find(from, end, mark);
    if (to == NULL) {
        return false;
    }
    *ret_inside = idem_bytes(from, (size_t)(to - from));
    return true;
}

/* Returns the content of that element if it is plain text; len 0: there is no such
 * element, or it has markup. */
static struct idem_slice text_in(struct idem_slice xml, const char *name)
{
    struct idem_slice text = {NULL, 0};

    if (!element(xml, name, &text) || memchr(text.base, '<', text.len) ||
        memchr(text.base, '&', text.len)) {
        return idem_bytes(NULL, 0);
    }
    return text;
}

int idem__aws_read_role(struct idem_slice xml,
                        struct idem__aws_credentials *ret,
                        struct idem_error *error)
{
    static const char *const names[] = {"AccessKeyId", "SecretAccessKey",
                                        "SessionToken"};
    struct idem_slice keys = {NULL, 0};
    struct idem_slice values[3];
    size_t i;
    int rc;

    if (!element(xml, "Credentials", &keys)) {
        return idem__error(error, IDEM_ECONFIG,
                           "STS gave an answer without credentials");
    }
    for (i = 0; i < 3; i++) {
        values[i] = text_in(keys, names[i]);
        if (values[i].len == 0) {
            return idem__error(error, IDEM_ECONFIG,
                               "STS gave credentials without %s", names[i]);
        }
    }
    rc = idem__aws_credentials_set(ret, names, values, error);
    if (rc == 0 &&
        !idem__aws_time_parse(text_in(keys, "Expiration"), &ret->expires_ms)) {
        rc = idem__error(error, IDEM_ECONFIG,
                         "STS gave credentials without an Expiration");
    }
    return rc;
}

/* Copies @words, cut to @cap, and replaces what is not printable by blanks. */
static void copy_words(struct idem_slice words, char *buf, size_t cap)
{
    const char *p = words.base;
    size_t i;

    for (i = 0; i < words.len && i + 1 < cap; i++) {
        buf[i] = p[i];
        if (p[i] < ' ' || p[i] > '~') {
            buf[i] = ' ';
        }
    }
    buf[i] = '\0';
}

static int say_refusal(const struct idem__aws_fetch *fetch,
                       const struct role *role, struct idem_error *error)
{
    struct idem_slice answer = idem_bytes(fetch->answer, fetch->answer_len);
    char code[48], message[80];

    copy_words(text_in(answer, "Code"), code, sizeof(code));
    copy_words(text_in(answer, "Message"), message, sizeof(message));
    return idem__error(error,
                       fetch->status < 500 ? IDEM_ECONFIG : IDEM_EUNAVAILABLE,
                       "STS refused the role %.80s: status %d%s%s%s%s",
                       role->arn, fetch->status, code[0] == '\0' ? "" : ", ",
                       code, message[0] == '\0' ? "" : ": ", message);
}

/* ---- The request ------------------------------------------------------- */

static void add_value(struct idem__buffer *form, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
    static const char hex[] = "0123456789ABCDEF";

    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        char escape[] = {'%', hex[c >> 4], hex[c & 15]};

        if (strchr(plain, c) != NULL) {
            idem__buffer_add(form, value, 1);
        } else {
            idem__buffer_add(form, escape, sizeof(escape));
        }
    }
}

static void add_field(struct idem__buffer *form, const char *name,
                      const char *value)
{
    if (value != NULL && value[0] != '\0') {
        idem__buffer_str(form, form->len == 0 ? "" : "&");
        idem__buffer_str(form, name);
        idem__buffer_str(form, "=");
        add_value(form, value);
    }
}

static void make_form(const struct role *role, struct idem__buffer *form)
{
    add_field(form, "Action", "AssumeRoleWithWebIdentity");
    add_field(form, "Version", "2011-06-15");
    add_field(form, "RoleArn", role->arn);
    add_field(form, "RoleSessionName",
              role->session == NULL ? "idem" : role->session);
    add_field(form, "WebIdentityToken", role->token);
}

static int find_endpoint(const struct idem__aws_ask *ask,
                         const struct idem__aws_profiles *profiles,
                         struct idem__aws_endpoint *ret,
                         struct idem_error *error)
{
    struct idem__aws_endpoint_options options = {
        .service = "sts",
        .service_env = "STS",
        .profiles = profiles,
    };
    int rc = idem__aws_endpoint_resolve(&options, ask->env, ret, error);

    if (rc != 0 && ask->region[0] != '\0') {
        options.region = idem_str(ask->region);
        rc = idem__aws_endpoint_resolve(&options, ask->env, ret, error);
    }
    return rc;
}

/* Assumes the role at the STS of the user's region, or of ask->region. */
static int assume(struct idem__aws_ask *ask,
                  const struct idem__aws_profiles *profiles,
                  const struct role *role, struct idem__aws_credentials *ret,
                  struct idem_error *error)
{
    struct idem__aws_fetch *fetch = &ask->fetch;
    char type[] =
        "Content-Type: application/x-www-form-urlencoded; charset=utf-8";
    struct idem__buffer form = {.base = NULL};
    struct idem__aws_endpoint endpoint;
    int rc = find_endpoint(ask, profiles, &endpoint, error);

    if (rc != 0) {
        return rc;
    }
    make_form(role, &form);
    if (form.failed) {
        idem__buffer_free(&form);
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    fetch->method = "POST";
    fetch->url = endpoint.url;
    fetch->header = type;
    fetch->body = idem__buffer_slice(&form);
    fetch->ca_file = idem__aws_env_value(ask->env, "AWS_CA_BUNDLE");
    fetch->local = endpoint.local;
    fetch->connect_ms = CONNECT_MS;
    fetch->timeout_ms = TIME_MS;
    rc = idem__aws_try(ask, who, error);
    if (rc == 0) {
        rc = fetch->status == 200
                 ? idem__aws_read_role(idem_bytes(fetch->answer,
                                                  fetch->answer_len),
                                       ret, error)
                 : say_refusal(fetch, role, error);
    }
    explicit_bzero(form.base, form.len);
    idem__buffer_free(&form);
    idem__aws_fetch_wipe(fetch);
    return rc;
}

/* ---- A web identity of the environment --------------------------------- */

int idem__aws_source_web(struct idem__aws_ask *ask,
                         struct idem__aws_credentials *ret,
                         struct idem_error *ret_error)
{
    static const char name[] = "AWS_WEB_IDENTITY_TOKEN_FILE";
    const char *path = idem__aws_env_value(ask->env, name);
    char token[IDEM__AWS_TOKEN_MAX + 1];
    struct role role = {
        .arn = idem__aws_env_value(ask->env, "AWS_ROLE_ARN"),
        .session = idem__aws_env_value(ask->env, "AWS_ROLE_SESSION_NAME"),
        .token = token,
    };
    struct idem__aws_profiles profiles;
    int rc;

    if (path == NULL) {
        return 1;
    }
    if (role.arn == NULL) {
        return idem__error(
            ret_error, IDEM_ECONFIG,
            "%s is set, but AWS_ROLE_ARN, the role for its token, is not",
            name);
    }
    rc = idem__aws_profiles_load(ask->env, &profiles, ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = idem__aws_read_token(name, path, token, sizeof(token), ret_error);
    if (rc == 0) {
        rc = assume(ask, &profiles, &role, ret, ret_error);
    }
    explicit_bzero(token, sizeof(token));
    idem__aws_profiles_finish(&profiles);
    return rc;
}
