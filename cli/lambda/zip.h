/* Writing a zip file. */
#ifndef IDEM_CLI_LAMBDA_ZIP_H
#define IDEM_CLI_LAMBDA_ZIP_H

#include <stdbool.h>
#include <stddef.h>

struct cli_zip;

/* Makes the file @path, in the place of one that is there. NULL, after saying why:
 * it cannot be written, or zlib is missing. */
struct cli_zip *cli_zip_create(const char *path);

/* Adds @len @bytes as @name. The same content gives the same file: no times are in
 * it. False, after saying why. */
bool cli_zip_add(struct cli_zip *zip, const char *name, const void *bytes,
                 size_t len, bool executable);

/* Completes the file, unless @failed: then it is removed. 0 or an exit status,
 * after saying why. *@ret_len is the size of the file. */
int cli_zip_finish(struct cli_zip *zip, bool failed, size_t *ret_len);

#endif
