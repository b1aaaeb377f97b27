/* Content types. */
#ifndef IDEM_HTTP_MEDIA_TYPE_H
#define IDEM_HTTP_MEDIA_TYPE_H

#include <idem.h>

/* @type without its parameters. */
struct idem_slice idem__media_type(struct idem_slice type);

/* True if @type is @name, in any case. */
bool idem__media_type_is(struct idem_slice type, const char *name);

/* True for application/json and what ends with +json, with any parameters. */
bool idem__media_type_is_json(struct idem_slice type);

#endif
