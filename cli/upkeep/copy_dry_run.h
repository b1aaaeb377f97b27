/* copy_dry_run.h: idem store copy --dry-run. */
#ifndef IDEM_CLI_UPKEEP_COPY_DRY_RUN_H
#define IDEM_CLI_UPKEEP_COPY_DRY_RUN_H

#include "upkeep/copying.h"

/* Prints how many records a copy of @from to @to_url would take over, about, and the
 * units that it would use of tables. Changes nothing; the target need not be there. An
 * exit status. */
int cli_copy_dry_run(struct idem_store *from, const char *to_url,
                     const struct cli_copy_options *options, bool json);

#endif
