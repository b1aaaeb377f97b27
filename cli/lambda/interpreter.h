/* The first line of a script: which interpreter has to be where it runs? */
#ifndef IDEM_CLI_LAMBDA_INTERPRETER_H
#define IDEM_CLI_LAMBDA_INTERPRETER_H

#include <idem.h>

/* The interpreter that the script of @len bytes at @data names ("#!/bin/sh",
 * "#!/usr/bin/env node"), as it is written there; len 0: it is not a script. Points
 * into @data. */
struct idem_slice cli_interpreter(const char *data, size_t len);

/* True if it is in the runtime provided.al2023 (sh, bash), in a layer (/opt), or in
 * the package itself (/var/task). */
bool cli_interpreter_is_on_lambda(struct idem_slice interpreter);

#endif
