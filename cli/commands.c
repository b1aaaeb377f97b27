/* The table of commands. Help, completion and main() all read it. */
#include "cli.h"
#include "options/help.h"

/* In the order of the overview's groups. */
const struct cli_command *const cli_commands[] = {
    &cli_run,
    &cli_consume,
    &cli_gateway,
    &cli_lambda,
    &cli_stepfunctions,
    &cli_limit,
    &cli_begin,
    &cli_complete,
    &cli_fail,
    &cli_release,
    &cli_retry,
    &cli_unknown,
    &cli_renew,
    &cli_show,
    &cli_list,
    &cli_top,
    &cli_ui,
    &cli_stats,
    &cli_watch,
    &cli_doctor,
    &cli_resolve,
    &cli_reopen,
    &cli_reconcile,
    &cli_store,
    &cli_export,
    &cli_import,
    &cli_purge,
    &cli_key,
    &cli_completion,
    NULL,
};

const struct cli_command *cli_command_find(const char *name)
{
    size_t i;

    for (i = 0; cli_commands[i] != NULL; i++) {
        if (strcmp(cli_commands[i]->name, name) == 0) {
            return cli_commands[i];
        }
    }
    return NULL;
}
