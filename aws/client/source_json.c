/* Reading credentials as endpoints and programs say them. */
#include "aws/client/clock.h"
#include "aws/client/json.h"
#include "aws/client/source.h"
#include "core/error.h"

#include <json-c/json.h>

enum {
    DEPTH_MAX = 8
};

/* ---- Keys -------------------------------------------------------------- */

static int read_object(json_object *object, const char *token, const char *who,
                       struct idem__aws_credentials *ret,
                       struct idem_error *error)
{
    struct idem_slice key = idem__json_text_of(object, "AccessKeyId");
    struct idem_slice secret = idem__json_text_of(object, "SecretAccessKey");
    struct idem_slice expiration = idem__json_text_of(object, "Expiration");
    int rc;

    if (key.len == 0 || secret.len == 0) {
        return idem__error(error, IDEM_ECONFIG,
                           "%s gave no AccessKeyId and SecretAccessKey", who);
    }
    rc = idem__aws_copy_value("AccessKeyId", key, ret->access_key,
                              sizeof(ret->access_key), error);
    if (rc != 0) {
        return rc;
    }
    rc = idem__aws_copy_value("SecretAccessKey", secret, ret->secret_key,
                              sizeof(ret->secret_key), error);
    if (rc != 0) {
        return rc;
    }
    rc = idem__aws_copy_value(token, idem__json_text_of(object, token),
                              ret->token, sizeof(ret->token), error);
    if (rc != 0) {
        return rc;
    }
    ret->expires_ms = IDEM_NEVER;
    if (expiration.len > 0 &&
        !idem__aws_time_parse(expiration, &ret->expires_ms)) {
        return idem__error(error, IDEM_ECONFIG,
                           "%s gave an Expiration that is not a time, such as "
                           "2026-01-31T12:00:00Z",
                           who);
    }
    return 0;
}

/* json-c does not. */
static void wipe(struct idem_slice text)
{
    if (text.len > 0) {
        explicit_bzero((void *)(uintptr_t)text.base, text.len);
    }
}

int idem__aws_read_keys(struct idem_slice json, const char *token,
                        const char *who, struct idem__aws_credentials *ret,
                        struct idem_error *error)
{
    int rc;
    json_object *object = idem__aws_json(json, json_type_object, DEPTH_MAX,
                                         IDEM__AWS_FETCH_MAX, &rc);

    if (object == NULL) {
        rc = rc == IDEM_ENOMEM ? idem__error_plain(error, rc)
                               : idem__error(error, IDEM_ECONFIG,
                                             "%s gave no JSON object", who);
    } else {
        rc = read_object(object, token, who, ret, error);
        wipe(idem__json_text_of(object, "SecretAccessKey"));
        wipe(idem__json_text_of(object, token));
    }
    (void)json_object_put(object);
    return rc;
}
