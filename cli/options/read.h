/* read.h: the value of an option that may be in a file. */
#ifndef IDEM_CLI_OPTIONS_READ_H
#define IDEM_CLI_OPTIONS_READ_H

#include <stdbool.h>
#include <stddef.h>

/* Reads @spec: "-" is stdin, "@FILE" a file, else (where @text_ok) the text
 * itself. At most @max bytes, and a NUL after them. The caller frees *@ret_data. 0 or
 * an exit status, after an error message. */
int cli_read_arg(const char *option, const char *spec, bool text_ok, size_t max,
                 char **ret_data, size_t *ret_len);

/* The same, but more than @max bytes are not an error: *@ret_len is more than
 * @max then, and the rest was not read. */
int cli_read_some(const char *option, const char *spec, bool text_ok,
                  size_t max, char **ret_data, size_t *ret_len);

/* The same as cli_read_some() for the file @file. */
int cli_read_file(const char *option, const char *file, size_t max,
                  char **ret_data, size_t *ret_len);

#endif
