/* What the templates have in common. */
#ifndef CLI_TEMPLATE_PARTS_H
#define CLI_TEMPLATE_PARTS_H

#include <stdbool.h>

enum {
    CLI_TEMPLATE_TABLE_MAX = 255
};

struct cli_template {
    char table[CLI_TEMPLATE_TABLE_MAX + 1];
    char region[64]; /* "": not said. */
    bool index;
    bool limits; /* Its users count requests in it. */
};

/* IAM actions on the table: of who runs and replays; with limits, besides; of
 * operators, besides; and theirs on the index. Each ends with NULL. */
extern const char *const cli_template_use[];
extern const char *const cli_template_limit[];
extern const char *const cli_template_operate[];
extern const char *const cli_template_operate_index[];

#define CLI_TEMPLATE_USE_SAYS                                                  \
    "Runs operations once with idem, and replays them."
#define CLI_TEMPLATE_OPERATE_SAYS                                              \
    "Looks after the table of idem: lists, resolves, purges, checks."

/* Those of cli_template_limit[] if @t says so, else NULL. */
const char *const *cli_template_more(const struct cli_template *t);

/* GlobalSecondaryIndexes, in JSON. */
extern const char cli_template_index[];

/* Prints it for CloudFormation, or for SAM; in JSON, or as YAML. */
void cli_template_stack(const struct cli_template *t, bool sam, bool json);

void cli_template_terraform(const struct cli_template *t);

/* Commands of the AWS command line. */
void cli_template_commands(const struct cli_template *t);

#endif
