/* extract.h: key and fingerprint from a JSON text, with the selectors of
 * --key-from and --fingerprint-from. */
#ifndef IDEM_CLI_REQUEST_EXTRACT_H
#define IDEM_CLI_REQUEST_EXTRACT_H

#include "request/identity.h"

struct idem_selector;

/* Compiles the selector of --@option. 0 with a selector for
 * idem_selector_destroy(), or an exit status after saying why. */
int cli_extract_open(const char *option, const char *text,
                     struct idem_selector **ret_selector);

/* The key that the selector of --key-from makes of @input. 0 or an exit status,
 * after saying why. */
int cli_extract_key(const char *text, struct idem_slice input,
                    struct cli_key_text *ret_key);

/* The values that the selector of --fingerprint-from selects: canonical JSON, an
 * array of the values, to be freed. 0 or an exit status, after saying why. */
int cli_extract_parts(const char *text, struct idem_slice input,
                      char **ret_bytes, size_t *ret_len);

#endif
