/* Command lines that cannot be followed. */
#include "options/usage.h"

#include "options/command.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

int cli_usage(const struct cli_command *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli_vsay(format, args);
    va_end(args);
    (void)fprintf(stderr, "See: idem %s --help\n", command->name);
    return CLI_USAGE;
}

int cli_unexpected(const struct cli_command *command, const char *argument)
{
    char shown[128];

    return cli_usage(command, "unexpected argument \"%s\"%s%s",
                     cli_escape(idem_str(argument), shown, sizeof(shown)),
                     command->hint != NULL ? "; " : "",
                     command->hint != NULL ? command->hint : "");
}
