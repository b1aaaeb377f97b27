/* table.h: purging a table of DynamoDB, and templates that create one. */
#ifndef IDEM_CLI_DYNAMODB_TABLE_H
#define IDEM_CLI_DYNAMODB_TABLE_H

#include <idem.h>
#include <idem/dynamodb.h>
#include <stdbool.h>

/* True if @store is a table of DynamoDB. */
bool cli_is_table(const struct idem_store *store);

/* Purges at most @max records (0: all) from the table of @store, with at most
 * @units_per_second (0: IDEM_DYNAMODB_PURGE_UNITS), and prints the result with the units
 * that it used. An exit status. */
int cli_purge_table(struct idem_store *store, uint64_t max,
                    uint64_t units_per_second, bool json);

/* ---- Templates ---- */

enum cli_template_format {
    CLI_TEMPLATE_CLOUDFORMATION, /* YAML. */
    CLI_TEMPLATE_SAM,            /* YAML. */
    CLI_TEMPLATE_JSON,           /* Of CloudFormation. */
    CLI_TEMPLATE_TERRAFORM,
    CLI_TEMPLATE_CLI, /* Commands of the AWS command line. */
};

/* The names of the formats, in their order; ends with NULL. */
extern const char *const cli_template_formats[];

struct cli_command;

/* Prints the template of the table that @store_url (NULL: $IDEM_STORE) names, or of
 * "idem". Leaves out the index if the URL says so. Returns an exit status. */
int cli_template(const struct cli_command *command, const char *store_url,
                 enum cli_template_format format);

/* The files of cli/dynamodb/templates, by line; each ends with NULL. A line
 * "@include FILE" of such a file is replaced by those of another.
 *
 * A line is printed as it is, but for
 *
 *     @TABLE@       the name of the table
 *     @REGION@      " --region NAME" where the region is known
 *     @index|       at its start: only for a table with its index
 *     @no-index|    only for one without */

extern const char *const cli_template_cloudformation_yaml[];
extern const char *const cli_template_cloudformation_json[];
extern const char *const cli_template_sam_yaml[];
extern const char *const cli_template_terraform_tf[];
extern const char *const cli_template_commands_sh[];

#endif
