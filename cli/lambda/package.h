/* package.h: the parts of a package for Lambda. */
#ifndef IDEM_CLI_LAMBDA_PACKAGE_H
#define IDEM_CLI_LAMBDA_PACKAGE_H

#include <idem.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- The launcher at the top of a package; see aws/lambda/bootstrap.c --- */

/* The bytes of the executable. */
extern const unsigned char cli_bootstrap[];
extern const size_t cli_bootstrap_len;

/* The first line of a script: which interpreter has to be where it runs? */

/* The interpreter that the script of @len bytes at @data names ("#!/bin/sh",
 * "#!/usr/bin/env node"), as it is written there; len 0: it is not a script. Points
 * into @data. */
struct idem_slice cli_interpreter(const char *data, size_t len);

/* True if it is in the runtime provided.al2023 (sh, bash), in a layer (/opt), or in
 * the package itself (/var/task). */
bool cli_interpreter_is_on_lambda(struct idem_slice interpreter);

/* ---- Writing a zip file ------------------------------------------------- */

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
