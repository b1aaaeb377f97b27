/* The idem program: finds the command and runs it. */
#include "commands.h"
#include "options/command.h"
#include "options/parse.h"
#include "overview.h"
#include "process/descriptors.h"
#include "process/self.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <idem/sqlite.h>

static int unknown_command(const char *name)
{
    struct cli_nearest nearest = {.word = name};
    char shown[128];
    size_t i;

    (void)cli_escape(idem_str(name), shown, sizeof(shown));
    for (i = 0; cli_commands[i] != NULL; i++) {
        cli_nearest_offer(&nearest, cli_commands[i]->name);
    }
    cli_nearest_offer(&nearest, "help");
    if (nearest.best != NULL) {
        cli_say("unknown command \"%s\"; did you mean: idem %s", shown,
                nearest.best);
    } else {
        cli_say("unknown command \"%s\"; see: idem help", shown);
    }
    return CLI_USAGE;
}

/* `idem help` and `idem help CMD`. */
static int help(int argc, char **argv)
{
    const struct cli_command *command;

    if (argc == 1) {
        cli_print_overview(stdout);
        return CLI_OK;
    }
    if (argc > 2) {
        cli_say("help takes one command: idem help COMMAND");
        return CLI_USAGE;
    }
    command = cli_command_find(argv[1]);
    if (command == NULL) {
        return unknown_command(argv[1]);
    }
    cli_print_help(command);
    return CLI_OK;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    int first;
    int status;

    status = cli_parse(command, argc, argv, &first);
    if (status != 0) {
        return status;
    }
    return command->run(command, argc - first, argv + first);
}

static int dispatch(int argc, char **argv)
{
    const struct cli_command *command;
    const char *name = argc > 0 ? argv[0] : "";

    if (argc < 1) {
        cli_print_overview(stderr);
        return CLI_USAGE;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0 ||
        (strcmp(name, "version") == 0 && argc == 1)) {
        cli_print_version();
        return CLI_OK;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 ||
        strcmp(name, "-h") == 0) {
        return help(argc, argv);
    }
    command = cli_command_find(name);
    return command != NULL ? run(command, argc, argv) : unknown_command(name);
}

int main(int argc, char **argv)
{
    int skip = argc > 0 ? 1 : 0;

    cli_open_std_fds();
    cli_first_process();
    cli_commands = cli_all_commands;
    cli_cores_off();
    cli_filesize_no_signal();
    (void)idem_sqlite_disable_memory_count();
    return cli_finish_output(dispatch(argc - skip, argv + skip));
}
