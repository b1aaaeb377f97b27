/* overview.h: the overview of `idem help`. */
#ifndef IDEM_CLI_OVERVIEW_H
#define IDEM_CLI_OVERVIEW_H

#include <stdio.h>

void cli_print_overview(FILE *f);

#endif
