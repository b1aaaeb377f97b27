/* Reads the fields of a request. */
#include "ui/request.h"

#include <strings.h>

const char *ui_value(const struct ui_request *request, enum MHD_ValueKind kind,
                     const char *name)
{
    return request->server->mhd->lookup_connection_value(request->connection,
                                                         kind, name);
}

bool ui_is_form(const struct ui_request *request)
{
    static const char form[] = MHD_HTTP_POST_ENCODING_FORM_URLENCODED;
    const char *type =
        ui_value(request, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);
    size_t len = sizeof(form) - 1;

    return type != NULL && strncasecmp(type, form, len) == 0 &&
           strchr("; ", type[len]) != NULL; /* Or its end. */
}
