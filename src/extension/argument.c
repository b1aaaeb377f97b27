/* Converts values of SQL to values of <idem.h>. */
#include "core/error.h"
#include "extension/extension.h"

#include <stdio.h>
#include <string.h>

/* Reads a whole number. A driver whose language has only one type of number binds 30 as
 * 30.0, and must get the same fingerprint as another language. Beyond 2^53 a double is
 * not exact. */
static bool is_whole(sqlite3_value *value, sqlite3_int64 *ret)
{
    const double exact = 9007199254740992.0;
    double number = sqlite3_value_double(value);

    if (!(number >= -exact && number <= exact) ||
        (double)(sqlite3_int64)number != number) {
        return false;
    }
    *ret = (sqlite3_int64)number;
    return true;
}

struct idem_slice idem__argument_bytes(sqlite3_value *value,
                                       char digits[IDEM__DIGITS_MAX])
{
    sqlite3_int64 whole;
    const void *base;

    switch (sqlite3_value_type(value)) {
    case SQLITE_NULL:
        return idem_bytes(NULL, 0);
    case SQLITE_FLOAT:
        if (is_whole(value, &whole)) {
            (void)snprintf(digits, IDEM__DIGITS_MAX, "%lld", (long long)whole);
            return idem_str(digits);
        }
        base = sqlite3_value_text(value);
        break;
    case SQLITE_BLOB:
        base = sqlite3_value_blob(value);
        break;
    default:
        base = sqlite3_value_text(value);
    }
    return idem_bytes(base, (size_t)sqlite3_value_bytes(value));
}

static bool is_text(sqlite3_value *value, const char *text)
{
    int len = (int)strlen(text);

    return sqlite3_value_type(value) == SQLITE_TEXT &&
           sqlite3_value_bytes(value) == len &&
           memcmp(sqlite3_value_text(value), text, (size_t)len) == 0;
}

static bool read_number(sqlite3_value *value, sqlite3_int64 *ret)
{
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        *ret = sqlite3_value_int64(value);
        return true;
    case SQLITE_FLOAT:
        return is_whole(value, ret);
    default:
        return false;
    }
}

int idem__argument_ms(const char *name, sqlite3_value *value, bool may_be_never,
                      int64_t *ret_ms, struct idem_error *error)
{
    sqlite3_int64 number;

    if (may_be_never && is_text(value, "never")) {
        *ret_ms = IDEM_NEVER;
        return 0;
    }
    if (!read_number(value, &number) || number < 0) {
        return idem__error(error, IDEM_EINVALID, "%s: give a whole number%s",
                           name, may_be_never ? ", or 'never'" : "");
    }
    *ret_ms = number;
    return 0;
}

int idem__argument_result_of(int code)
{
    switch (code) {
    case IDEM_EUNAVAILABLE:
    case IDEM_EUNKNOWN:
        return SQLITE_BUSY;
    case IDEM_EFULL:
        return SQLITE_FULL;
    case IDEM_ENOMEM:
        return SQLITE_NOMEM;
    case IDEM_EDENIED:
        return SQLITE_READONLY;
    case IDEM_ECORRUPT:
        return SQLITE_CORRUPT;
    case IDEM_ELOST:
        return SQLITE_CONSTRAINT;
    default:
        return SQLITE_ERROR;
    }
}
