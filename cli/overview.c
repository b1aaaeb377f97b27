/* The overview of `idem help`. */
#include "overview.h"

#include "options/command.h"
#include "options/commands.h"

/* The commands in groups: each begins with the one that it names. */
static const struct {
    const struct cli_command *first;
    const char *title;
} groups[] = {
    {&cli_run, "Do something once"},
    {&cli_begin, "The same in steps, in a script of any language"},
    {&cli_show, "Look"},
    {&cli_resolve, "Decide, as a person"},
    {&cli_store, "Care for the records"},
    {&cli_key, "More"},
};

static void print_title(FILE *f, const struct cli_command *command)
{
    size_t i;

    for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (groups[i].first == command) {
            (void)fprintf(f, "\n%s:\n", groups[i].title);
        }
    }
}

void cli_print_overview(FILE *f)
{
    size_t i;

    (void)fputs(
        "idem: one recorded outcome for each idempotency key\n"
        "\n"
        "  idem run -k KEY -- CMD    run CMD once; replay it after\n"
        "  idem watch --once         list what failed or needs a person\n"
        "  idem show KEY             show all that is known about a key\n",
        f);
    for (i = 0; cli_commands[i] != NULL; i++) {
        print_title(f, cli_commands[i]);
        (void)fprintf(f, "  %-15s%s\n", cli_commands[i]->name,
                      cli_commands[i]->summary);
    }
    (void)fputs("  help           show this, or the help of a command\n"
                "\n"
                "The records are in --store URL, else $IDEM_STORE, else in\n"
                "~/.local/state/idem/idem.db (root: /var/lib/idem/idem.db).\n"
                "\n"
                "See: idem help COMMAND, idem COMMAND --help, man idem\n",
                f);
}
