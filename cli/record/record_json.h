/* record_json.h: a record as an answer in JSON. */
#ifndef IDEM_CLI_RECORD_RECORD_JSON_H
#define IDEM_CLI_RECORD_RECORD_JSON_H

#include "text/json.h"

#include <idem.h>
#include <stdbool.h>

/* Everything that may be shown of @record; with its bytes if @with_bytes. The
 * nonce may not: it is a credential. */
void cli_json_record(struct cli_json *json, const struct idem_record *record,
                     bool with_bytes);

#endif
