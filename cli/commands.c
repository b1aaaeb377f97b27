/* The table of all commands. */
#include "commands.h"

#include "options/commands.h"

/* In the order of the overview's groups. */
const struct cli_command *const cli_all_commands[] = {
    &cli_run,     &cli_consume,   &cli_gateway, &cli_lambda,  &cli_limit,
    &cli_begin,   &cli_complete,  &cli_fail,    &cli_release, &cli_retry,
    &cli_unknown, &cli_renew,     &cli_serve,   &cli_show,    &cli_list,
    &cli_ui,      &cli_stats,     &cli_watch,   &cli_doctor,  &cli_resolve,
    &cli_reopen,  &cli_reconcile, &cli_store,   &cli_export,  &cli_import,
    &cli_purge,   &cli_key,       NULL,
};
