/* common.h: options that several commands have. */
#ifndef IDEM_CLI_OPTIONS_COMMON_H
#define IDEM_CLI_OPTIONS_COMMON_H

#include "options/command.h"
#include "text/progress.h"
#include "text/screen.h"

#define CLI_OPTION_JSON(to)                                                    \
    {                                                                          \
        .name = "json", .letter = 'j', .kind = CLI_FLAG, .target = (to),       \
        .help = "answer in JSON"                                               \
    }

#define CLI_OPTION_SCOPES(to)                                                  \
    {                                                                          \
        .name = "scope", .letter = 's', .kind = CLI_ANY_TEXT, .target = (to),  \
        .arg = "SCOPE", .max = IDEM_SCOPE_MAX,                                 \
        .help = "only this scope (default: all)"                               \
    }

#define CLI_OPTION_DRY_RUN(to, text)                                           \
    {                                                                          \
        .name = "dry-run", .letter = 'n', .kind = CLI_FLAG, .target = (to),    \
        .help = (text)                                                         \
    }

#define CLI_OPTION_WHO(to)                                                     \
    {                                                                          \
        .name = "who", .kind = CLI_TEXT, .target = (to), .arg = "NAME",        \
        .max = IDEM_OWNER_MAX,                                                 \
        .help = "who decides (default: $IDEM_OWNER, or USER@HOST)"             \
    }

#define CLI_OPTION_FENCE(to, is_given)                                         \
    {                                                                          \
        .name = "fence", .kind = CLI_COUNT, .target = (to), .arg = "N",        \
        .min = 1, .max = INT64_MAX, .given = (is_given),                       \
        .help = "only if it is still this attempt (default: see first)"        \
    }

/* Messages that idem run and idem consume share. */
#define CLI_OPTION_MAX_TIME(to)                                                \
    {                                                                          \
        .name = "max-time", .kind = CLI_DURATION, .target = (to),              \
        .arg = "TIME", .min = 1, .max = IDEM_DURATION_MAX_MS,                  \
        .help = "stop the command after this long"                             \
    }

#define CLI_OPTION_OUTCOME(to, text)                                           \
    {                                                                          \
        .name = "outcome", .kind = CLI_TEXT, .target = (to), .arg = "TABLE",   \
        .help = (text)                                                         \
    }

/* Both are about endings that are to be run again. */
#define CLI_OPTION_MAX_FAILURES(to)                                            \
    {                                                                          \
        .name = "max-failures", .kind = CLI_COUNT, .target = (to), .arg = "N", \
        .min = 1, .max = UINT32_MAX,                                           \
        .help = "the N-th that ends in retry is for a person"                  \
    }

#define CLI_OPTION_RETRY_AFTER(to)                                             \
    {                                                                          \
        .name = "retry-after", .kind = CLI_DURATION, .target = (to),           \
        .arg = "TIME", .max = IDEM_DURATION_MAX_MS,                            \
        .help = "after a retry, nobody starts before this"                     \
    }

#define CLI_OPTION_KILL_AFTER(to)                                              \
    {                                                                          \
        .name = "kill-after", .kind = CLI_DURATION, .target = (to),            \
        .arg = "TIME", .max = IDEM_DURATION_MAX_MS,                            \
        .help = "from SIGTERM to SIGKILL for what must stop (5s)"              \
    }

#define CLI_OPTION_VERBOSE(to)                                                 \
    {                                                                          \
        .name = "verbose", .letter = 'v', .kind = CLI_FLAG, .target = (to),    \
        .help = "say more on stderr"                                           \
    }

#define CLI_OPTION_QUIET(to)                                                   \
    {                                                                          \
        .name = "quiet", .letter = 'q', .kind = CLI_FLAG, .target = (to),      \
        .help = "say nothing but errors"                                       \
    }

#define CLI_OPTION_NO_PROGRESS                                                 \
    {                                                                          \
        .name = "quiet", .letter = 'q', .kind = CLI_FLAG,                      \
        .target = &cli_progress_off, .help = "show no progress on a terminal"  \
    }

#define CLI_OPTION_COLOR                                                       \
    {                                                                          \
        .name = "color", .kind = CLI_CHOICE, .target = &cli_color,             \
        .arg = "WHEN", .choices = cli_color_names,                             \
        .help = "paint: auto (on a terminal), always, never"                   \
    }

#define CLI_OPTION_NO_PAGER                                                    \
    {                                                                          \
        .name = "no-pager", .kind = CLI_FLAG, .target = &cli_no_pager,         \
        .help = "print to the terminal, whatever $PAGER says"                  \
    }

#endif
