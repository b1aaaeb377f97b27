/* extract.h: key and fingerprint from a JSON text, with the jq programs of
 * --key-from and --fingerprint-from. */
#ifndef IDEM_CLI_REQUEST_EXTRACT_H
#define IDEM_CLI_REQUEST_EXTRACT_H

#include "request/identity.h"

struct idem_select;

/* Compiles the program of --@option. @several: it may give more than one value.
 * 0 with a program for idem_select_destroy(), or an exit status after saying
 * why. */
int cli_extract_open(const char *option, const char *program, bool several,
                     struct idem_select **ret_select);

/* The value that @program of --key-from selects of @input. 0 or an exit status,
 * after saying why. */
int cli_extract_key(const char *program, struct idem_slice input,
                    struct cli_key_text *ret_key);

/* The values that @program of --fingerprint-from selects of @input: compact
 * JSON, an array of the values, to be freed. 0 or an exit status, after saying
 * why. */
int cli_extract_parts(const char *program, struct idem_slice input,
                      char **ret_bytes, size_t *ret_len);

#endif
