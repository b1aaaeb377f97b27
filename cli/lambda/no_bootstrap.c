/* A build without the launcher of packages. */
#include "lambda/package.h"

const unsigned char cli_bootstrap[] = {0};
const size_t cli_bootstrap_len = 0;
