/* Reading credentials as endpoints and programs say them. */
#include "aws/client/json.h"
#include "aws/client/source.h"
#include "core/error.h"

#include <json-c/json.h>
#include <time.h>

enum {
    DEPTH_MAX = 8
};

/* ---- Time -------------------------------------------------------------- */

/* @n digits at *@at, which moves on. -1: they are not there. */
static int take_number(const char **at, const char *end, int n)
{
    int number = 0;

    for (; n > 0; n--) {
        if (*at == end || **at < '0' || **at > '9') {
            return -1;
        }
        number = number * 10 + (*(*at)++ - '0');
    }
    return number;
}

static bool take(const char **at, const char *end, const char *any)
{
    if (*at == end || **at == '\0' || strchr(any, **at) == NULL) {
        return false;
    }
    (*at)++;
    return true;
}

/* "Z", or how far the text's time is ahead of it. */
static bool take_zone(const char **at, const char *end, int *ret_minutes)
{
    int sign, hours, minutes;

    *ret_minutes = 0;
    if (take(at, end, "Zz")) {
        return true;
    }
    sign = *at < end && **at == '-' ? -1 : 1;
    if (!take(at, end, "+-")) {
        return false;
    }
    hours = take_number(at, end, 2);
    (void)take(at, end, ":");
    minutes = take_number(at, end, 2);
    *ret_minutes = sign * (hours * 60 + minutes);
    return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60;
}

bool idem__aws_read_time(struct idem_slice text, int64_t *ret_ms)
{
    const char *at = text.len == 0 ? "" : text.base;
    const char *end = at + text.len;
    struct tm tm = {.tm_isdst = 0};
    struct tm again;
    int zone;
    time_t s;

    tm.tm_year = take_number(&at, end, 4) - 1900;
    if (!take(&at, end, "-")) {
        return false;
    }
    tm.tm_mon = take_number(&at, end, 2) - 1;
    if (!take(&at, end, "-")) {
        return false;
    }
    tm.tm_mday = take_number(&at, end, 2);
    if (!take(&at, end, "Tt ")) {
        return false;
    }
    tm.tm_hour = take_number(&at, end, 2);
    if (!take(&at, end, ":")) {
        return false;
    }
    tm.tm_min = take_number(&at, end, 2);
    if (!take(&at, end, ":")) {
        return false;
    }
    tm.tm_sec = take_number(&at, end, 2);
    if (take(&at, end, ".")) {
        while (take(&at, end, "0123456789")) {
        }
    }
    if (!take_zone(&at, end, &zone) || at != end || tm.tm_year < 70 ||
        tm.tm_sec < 0) {
        return false;
    }
    again = tm;
    s = timegm(&again);
    /* A day that no calendar has comes back as another one. */
    if (again.tm_mon != tm.tm_mon || again.tm_mday != tm.tm_mday ||
        again.tm_hour != tm.tm_hour || again.tm_min != tm.tm_min) {
        return false;
    }
    *ret_ms = ((int64_t)s - (int64_t)zone * 60) * 1000;
    return true;
}

/* ---- Keys -------------------------------------------------------------- */

/* The text of a member; len 0: it has none. */
static struct idem_slice member(json_object *object, const char *name)
{
    json_object *value = NULL;

    if (!json_object_object_get_ex(object, name, &value) ||
        json_object_get_type(value) != json_type_string) {
        return idem_bytes(NULL, 0);
    }
    return idem_bytes(json_object_get_string(value),
                      (size_t)json_object_get_string_len(value));
}

static int read_object(json_object *object, const char *token, const char *who,
                       struct idem__aws_credentials *ret,
                       struct idem_error *error)
{
    struct idem_slice key = member(object, "AccessKeyId");
    struct idem_slice secret = member(object, "SecretAccessKey");
    struct idem_slice expiration = member(object, "Expiration");
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
    rc = idem__aws_copy_value(token, member(object, token), ret->token,
                              sizeof(ret->token), error);
    if (rc != 0) {
        return rc;
    }
    ret->expires_ms = IDEM_NEVER;
    if (expiration.len > 0 &&
        !idem__aws_read_time(expiration, &ret->expires_ms)) {
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
        wipe(member(object, "SecretAccessKey"));
        wipe(member(object, token));
    }
    (void)json_object_put(object);
    return rc;
}
