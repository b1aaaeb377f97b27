/* result.h: results that are said on the command line. */
#ifndef IDEM_CLI_REQUEST_RESULT_H
#define IDEM_CLI_REQUEST_RESULT_H

#include "options/command.h"

struct cli_result_spec {
    const char *content_type;
    uint64_t exit;
    bool exit_given;
    uint64_t http_status;
    bool http_given;
};

#define CLI_RESULT_OPTIONS(r)                                                  \
    CLI_VALUE("content-type", "TYPE", CLI_TEXT, &(r)->content_type,            \
              "what the result is, such as application/json", .max = 255),     \
        CLI_VALUE("exit", "N", CLI_COUNT, &(r)->exit,                          \
                  "the exit status that idem run replays", .max = 255,         \
                  .given = &(r)->exit_given),                                  \
        CLI_VALUE("http-status", "N", CLI_COUNT, &(r)->http_status,            \
                  "the result is an answer of HTTP with this status",          \
                  .min = 200, .max = 599, .given = &(r)->http_given)

/* 0, or an exit status after saying which of @spec exclude each other. */
int cli_result_check(const struct cli_command *command,
                     const struct cli_result_spec *spec);

/* A result that owns what it points to. */
struct cli_result {
    struct idem_result result;
    char *bytes;
    char meta[16];
};

/* Reads the result that @option names by @text: "-", "@FILE" or the text
 * itself; NULL: an empty one. One that is too long becomes a tombstone, never
 * an error: the work was done. Points into itself: @ret_result must not be
 * moved. 0 or an exit status, after saying why. */
int cli_result_init(struct cli_result *ret_result, const char *option,
                    const char *text, const struct cli_result_spec *spec);
void cli_result_finish(struct cli_result *result);

/* Where @spec does not say what @result is, it is what @before, the result on record,
 * was: an answer of HTTP, with status 200, or of a command, with exit status 0. */
void cli_result_adopt(struct cli_result *result,
                      const struct cli_result_spec *spec,
                      const struct idem_result *before);

#endif
