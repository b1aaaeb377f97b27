/* Which words `idem completion` finds for an option. */
#include "completion/completion.h"
#include "options/command.h"

const char *cli_complete_asks(const struct cli_option *option)
{
    static const char *const rows[][2] = {
        {"key", "keys"},        {"scope", "scopes"}, {"fields", "fields"},
        {"status", "statuses"}, {NULL, NULL},
    };
    size_t i;

    for (i = 0; rows[i][0] != NULL; i++) {
        if (strcmp(rows[i][0], option->name) == 0) {
            return rows[i][1];
        }
    }
    return NULL;
}
