/* The launcher at the top of a package; see aws/lambda/bootstrap.c. */
#ifndef IDEM_CLI_LAMBDA_BOOTSTRAP_H
#define IDEM_CLI_LAMBDA_BOOTSTRAP_H

#include <stddef.h>

/* The bytes of the executable. */
extern const unsigned char cli_bootstrap[];
extern const size_t cli_bootstrap_len;

#endif
