/* purge_table.h: idem purge of a DynamoDB table, and what it costs. */
#ifndef IDEM_CLI_DYNAMODB_PURGE_TABLE_H
#define IDEM_CLI_DYNAMODB_PURGE_TABLE_H

#include <idem.h>

struct cli_purge_options {
    uint64_t max;              /* Records; 0: all. */
    uint64_t rate;             /* Records in a second; 0: no limit. */
    uint64_t units_per_second; /* 0: IDEM_DYNAMODB_PURGE_UNITS. */
    bool dry_run;
    bool json;
    bool verbose;
};

/* Purges the table of @store, or says from a sample what that would be, and prints
 * what came of it with the units. An exit status. */
int cli_purge_table(struct idem_store *store,
                    const struct cli_purge_options *options);

#endif
