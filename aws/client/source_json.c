/* Reads credentials from the JSON of endpoints and programs. */
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
    const char *const names[] = {"AccessKeyId", "SecretAccessKey", token};
    const struct idem_slice values[] = {
        idem__json_text_of(object, names[0]),
        idem__json_text_of(object, names[1]),
        idem__json_text_of(object, names[2]),
    };
    struct idem_slice expiration = idem__json_text_of(object, "Expiration");
    int rc;

    if (values[0].len == 0 || values[1].len == 0) {
        return idem__error(error, IDEM_ECONFIG,
                           "%s gave no AccessKeyId and SecretAccessKey", who);
    }
    rc = idem__aws_credentials_set(ret, names, values, error);
    if (rc != 0) {
        return rc;
    }
    if (expiration.len > 0 &&
        !idem__aws_time_parse(expiration, &ret->expires_ms)) {
        return idem__error(error, IDEM_ECONFIG,
                           "%s gave an Expiration that is not a time, such as "
                           "2026-01-31T12:00:00Z",
                           who);
    }
    return 0;
}

/* Wipes a string in place, because json-c does not. */
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
