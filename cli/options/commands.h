/* commands.h: the commands of idem, each defined in the room that is named here. */
#ifndef IDEM_CLI_OPTIONS_COMMANDS_H
#define IDEM_CLI_OPTIONS_COMMANDS_H

#include "options/command.h"

/* cli/verbs */
extern const struct cli_command cli_begin, cli_complete, cli_fail, cli_release,
    cli_retry, cli_unknown, cli_renew, cli_limit, cli_key;

/* cli/decide */
extern const struct cli_command cli_resolve, cli_reopen, cli_reconcile;

/* cli/upkeep */
extern const struct cli_command cli_store, cli_export, cli_import, cli_purge;

/* cli/inspect */
extern const struct cli_command cli_show, cli_list, cli_stats, cli_watch,
    cli_doctor;

/* cli/run */
extern const struct cli_command cli_run;

/* cli/serve */
extern const struct cli_command cli_serve;

/* cli/consume */
extern const struct cli_command cli_consume;

/* cli/gateway */
extern const struct cli_command cli_gateway;

/* cli/lambda */
extern const struct cli_command cli_lambda;

/* cli/ui */
extern const struct cli_command cli_ui;

#endif
