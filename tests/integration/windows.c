/* What cli_window_at() says: for each line "PERIOD ZONE SECONDS" of stdin the window that
 * moment is in, as "START END NAME". For periods.py. */
#include "options/command.h"
#include "request/period.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    static const struct cli_command command = {.name = "windows"};
    char text[16];
    char zone[64];
    long long at_s;

    while (scanf("%15s %63s %lld", text, zone, &at_s) == 3) {
        struct cli_period period;
        struct cli_window window;

        if (cli_period_init(&period, &command, "every", text, zone) != 0) {
            return EXIT_FAILURE;
        }
        cli_window_at(&period, at_s * 1000 + 999, &window);
        (void)printf("%lld %lld %s\n", (long long)(window.start_ms / 1000),
                     (long long)(window.end_ms / 1000), window.name);
    }
    return EXIT_SUCCESS;
}
