/* common.h: options that several commands have. */
#ifndef IDEM_CLI_OPTIONS_COMMON_H
#define IDEM_CLI_OPTIONS_COMMON_H

#include "options/command.h"
#include "text/screen.h"

#define CLI_OPTION_JSON(to)                                                    \
    CLI_SWITCH("json", to, "answer in JSON", .letter = 'j')

#define CLI_OPTION_SCOPES(to)                                                  \
    CLI_VALUE("scope", "SCOPE", CLI_ANY_TEXT, to,                              \
              "only this scope (default: all)", .letter = 's',                 \
              .max = IDEM_SCOPE_MAX)

#define CLI_OPTION_DRY_RUN(to, text)                                           \
    CLI_SWITCH("dry-run", to, (text), .letter = 'n')

#define CLI_OPTION_WHO(to)                                                     \
    CLI_VALUE("owner", "NAME", CLI_TEXT, to,                                   \
              "who decides (default: $IDEM_OWNER, or USER@HOST)",              \
              .max = IDEM_OWNER_MAX)

#define CLI_OPTION_FENCE(to, is_given)                                         \
    CLI_VALUE("fence", "N", CLI_COUNT, to,                                     \
              "only if the record still has this fence", .min = 1,             \
              .given = (is_given))

/* Options that run, consume and other commands share. */
#define CLI_OPTION_MAX_TIME(to)                                                \
    CLI_VALUE("max-time", "TIME", CLI_DURATION, to,                            \
              "stop the command after this long", .min = 1)

#define CLI_OPTION_OUTCOME(to, text)                                           \
    CLI_VALUE("outcome", "TABLE", CLI_TEXT, to, (text))

#define CLI_OPTION_POLICY(to, text)                                            \
    CLI_VALUE("on-expired-lease", "POLICY", CLI_CHOICE, to, (text),            \
              .as = IDEM_SETTING_POLICY)

/* These two apply to attempts that end with a retry. */
#define CLI_OPTION_MAX_FAILURES(to)                                            \
    CLI_VALUE("max-failures", "N", CLI_COUNT, to,                              \
              "the N-th retry makes the record failed",                        \
              .as = IDEM_SETTING_MAX_FAILURES)

#define CLI_OPTION_RETRY_AFTER(to)                                             \
    CLI_VALUE("retry-after", "TIME", CLI_DURATION, to,                         \
              "pause after a retry before the next start",                     \
              .as = IDEM_SETTING_RETRY_AFTER)

#define CLI_OPTION_KILL_AFTER(to)                                              \
    CLI_VALUE("kill-after", "TIME", CLI_DURATION, to,                          \
              "time between SIGTERM and SIGKILL (5s)")

#define CLI_OPTION_VERBOSE(to)                                                 \
    CLI_SWITCH("verbose", to, "report more on stderr", .letter = 'v')

#define CLI_OPTION_QUIET(to)                                                   \
    CLI_SWITCH("quiet", to, "report only errors", .letter = 'q')

#define CLI_OPTION_NO_PROGRESS                                                 \
    CLI_SWITCH("quiet", &cli_progress_off, "show no progress on a terminal",   \
               .letter = 'q')

#endif
