/* period.h: calendar windows, in a time zone: which one a moment is in. */
#ifndef IDEM_CLI_REQUEST_PERIOD_H
#define IDEM_CLI_REQUEST_PERIOD_H

#include <stdint.h>

struct cli_command;

enum cli_period_unit {
    CLI_PERIOD_PART, /* Of a day: minutes or hours. */
    CLI_PERIOD_DAY,
    CLI_PERIOD_WEEK, /* From Monday on, as in ISO 8601. */
    CLI_PERIOD_MONTH,
};

struct cli_period {
    enum cli_period_unit unit;
    int64_t part_s; /* CLI_PERIOD_PART: its length, which divides a day. */
    const char *zone_file; /* In /usr/share/zoneinfo; NULL: UTC. */
    char zone_path[256];
};

#define CLI_WINDOW_NAME_MAX 40

/* From @start_ms to before @end_ms, since 1970. */
struct cli_window {
    int64_t start_ms;
    int64_t end_ms;
    /* "2026-11", "2026-W48", "2026-11-27", "2026-10-25T02+0100",
     * "2026-10-25T02:15+0100/15m". Two windows of one period never have the same. */
    char name[CLI_WINDOW_NAME_MAX];
};

/* Reads --@option's @text: minute, hour, day, week, month, or minutes or hours that
 * divide a day; and the name of a time zone, NULL for UTC. Points into itself:
 * @ret_period must not be moved. 0, or a usage error. */
int cli_period_init(struct cli_period *ret_period,
                    const struct cli_command *command, const char *option,
                    const char *text, const char *zone);

/* The window that @at_ms is in. Windows of a period follow each other without a gap.
 * Changes TZ while it works: call it in a process with one thread. */
void cli_window_at(const struct cli_period *period, int64_t at_ms,
                   struct cli_window *ret_window);

#endif
