/* parse.h: a command line, by the table of its command. */
#ifndef IDEM_CLI_OPTIONS_PARSE_H
#define IDEM_CLI_OPTIONS_PARSE_H

struct cli_command;

/* Parses the options of @command. @argv[0] is the command's name; on success
 * its operands are @argv[*@ret_first] to the end, moved after the options ("--"
 * removed). A command that takes a command line requires "--" before it. Returns 0, or
 * CLI_USAGE after an error message; -h/--help prints the page to stdout and exits 0. */
int cli_parse(const struct cli_command *command, int argc, char **argv,
              int *ret_first);

#endif
