/* reading.h: the records of a store that were noted by name, read in batches. */
#ifndef IDEM_CLI_UPKEEP_READING_H
#define IDEM_CLI_UPKEEP_READING_H

#include "record/names.h"

/* Called for each record that is still there. With @code IDEM_ECORRUPT it cannot be
 * trusted, and only @record's scope and key are set. 0, or an exit status. */
typedef int cli_read_fn(void *ctx, int code, const struct idem_record *record);

/* Reads all of @names, and shows progress as @doing. 0, or an exit status after saying
 * why it went no further. */
int cli_read_named(struct idem_store *store, struct cli_names *names,
                   const char *doing, cli_read_fn *each, void *ctx);

#endif
