/* Names, texts and kinds of the error codes, all from the list IDEM_ERROR_MAP. */
#include "core/error.h"

#include <errno.h>
#include <stdio.h>

const char *idem_error_name(int code)
{
    switch (code) {
    case IDEM_OK:
        return "OK";
#define IDEM__X(name, value, kind, text)                                       \
    case IDEM_E##name:                                                         \
        return #name;
        IDEM_ERROR_MAP(IDEM__X)
#undef IDEM__X
    default:
        return "(no such code)";
    }
}

const char *idem_error_text(int code)
{
    switch (code) {
    case IDEM_OK:
        return "no error";
#define IDEM__X(name, value, kind, text)                                       \
    case IDEM_E##name:                                                         \
        return text;
        IDEM_ERROR_MAP(IDEM__X)
#undef IDEM__X
    default:
        return "no error has this code";
    }
}

enum idem_kind idem_error_kind(int code)
{
    switch (code) {
#define IDEM__X(name, value, kind, text)                                       \
    case IDEM_E##name:                                                         \
        return IDEM_KIND_##kind;
        IDEM_ERROR_MAP(IDEM__X)
#undef IDEM__X
    default:
        return IDEM_KIND_NONE;
    }
}

int idem__error_code_of(int why)
{
    switch (why) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return IDEM_EFULL;
    case ENOMEM:
        return IDEM_ENOMEM;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENOTDIR:
        return IDEM_EDENIED;
    /* The other reasons may be temporary, so callers may retry. */
    default:
        return IDEM_EUNAVAILABLE;
    }
}

int idem__verror(struct idem_error *error, int code, const char *format,
                 va_list args)
{
    if (error != NULL) {
        error->code = code;
        (void)vsnprintf(error->text, sizeof(error->text), format, args);
    }
    return code;
}

int idem__error(struct idem_error *error, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)idem__verror(error, code, format, args);
    va_end(args);
    return code;
}

int idem__error_plain(struct idem_error *error, int code)
{
    return idem__error(error, code, "%s", idem_error_text(code));
}
