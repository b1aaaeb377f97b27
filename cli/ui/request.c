/* Reads the fields of a request. */
#include "ui/request.h"

const char *ui_value(const struct ui_request *request, enum MHD_ValueKind kind,
                     const char *name)
{
    return request->server->mhd->lookup_connection_value(request->connection,
                                                         kind, name);
}
