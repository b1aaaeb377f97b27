/* Content types. */
#include "http/media_type.h"

#include <strings.h>

bool idem__media_type_is(struct idem_slice type, const char *name)
{
    size_t len = strlen(name);

    return type.len == len && strncasecmp(type.base, name, len) == 0;
}

struct idem_slice idem__media_type(struct idem_slice type)
{
    const char *p = type.base;
    const char *end = type.len == 0 ? NULL : memchr(p, ';', type.len);
    size_t len = end == NULL ? type.len : (size_t)(end - p);

    while (len > 0 && (p[len - 1] == ' ' || p[len - 1] == '\t')) {
        len--;
    }
    return idem_bytes(p, len);
}

bool idem__media_type_is_json(struct idem_slice type)
{
    static const char suffix[] = "+json";
    struct idem_slice name = idem__media_type(type);
    size_t len = sizeof(suffix) - 1;

    return idem__media_type_is(name, "application/json") ||
           (name.len > len &&
            strncasecmp((const char *)name.base + name.len - len, suffix,
                        len) == 0);
}
