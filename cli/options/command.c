/* The commands of the program, the page that --help prints, and the errors of command
 * lines. */
#include "options/command.h"

#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "text/text.h"

#include <stdio.h>

static const struct cli_command *const none[] = {NULL};

const struct cli_command *const *cli_commands = none;

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

/* Lines that are longer are hard to read, and shorter ones have no room for the
 * names of options. */
#define WIDTH_MIN 60
#define WIDTH_MAX 100

/* "  -k, --key KEY" in @buf. Returns its length. */
static int option_text(const struct cli_option *option, char buf[64])
{
    char letter[4] = "   ";

    if (option->letter != 0) {
        (void)snprintf(letter, sizeof(letter), "-%c,", option->letter);
    }
    return snprintf(buf, 64, "  %s --%s%s%s", letter, option->name,
                    option->arg != NULL ? " " : "",
                    option->arg != NULL ? option->arg : "");
}

/* The column in which the help of every option of @command begins. */
static int help_column(const struct cli_command *command)
{
    const struct cli_option *o;
    char text[64];
    int column = 0;

    for (o = command->options; o->name != NULL; o++) {
        int len = option_text(o, text);

        column = len + 2 > column ? len + 2 : column;
    }
    return column;
}

/* The number of bytes of @text that fit on a line of @room: whole words
 * only. */
static int line_len(const char *text, int room)
{
    int len = (int)strlen(text);

    if (len <= room) {
        return len;
    }
    for (len = room; len > 0 && text[len] != ' '; len--) {
    }
    return len > 0 ? len : room;
}

static int help_width(void)
{
    int width = cli_width();

    if (width < WIDTH_MIN) {
        return WIDTH_MIN;
    }
    return width < WIDTH_MAX ? width : WIDTH_MAX;
}

static void print_option(const struct cli_option *option, int column)
{
    const char *help = option->help;
    char left[64];

    (void)option_text(option, left);
    do {
        int len = line_len(help, help_width() - column);

        (void)printf("%-*s%.*s\n", column, left, len, help);
        left[0] = '\0';
        help += len;
        help += *help == ' ' ? 1 : 0;
    } while (*help != '\0');
}

void cli_print_help(const struct cli_command *command)
{
    const struct cli_option *option;
    const char *const *line;
    int column = help_column(command);

    (void)printf("idem %s: %s\n\nUsage: %s\n\nExamples:\n", command->name,
                 command->summary, command->usage);
    for (line = command->examples; *line != NULL; line++) {
        (void)printf("%s%s\n", **line != '\0' ? "  " : "", *line);
    }
    if (command->options->name != NULL) {
        (void)printf("\nOptions:\n");
    }
    for (option = command->options; option->name != NULL; option++) {
        if (option->group != NULL) {
            (void)printf("%s:\n", option->group);
        }
        print_option(option, column);
    }
}

void cli_print_version(void)
{
    (void)printf("idem %s\n", IDEM_VERSION);
}

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
