/* request.h: the request that a command line makes, its owner and its result. */
#ifndef IDEM_CLI_REQUEST_REQUEST_H
#define IDEM_CLI_REQUEST_REQUEST_H

#include "options/command.h"
#include "options/common.h"
#include "request/identity.h"

#include <idem.h>

struct cli_claim {
    const char *key;
    const char *key_file;
    const char *scope;
    const char *owner;
    const char *fingerprint;
    const char *input;
    const char *key_from; /* Selectors of the input. */
    const char *fingerprint_from;
    bool from_args; /* Only run offers it. */
    bool by_caller; /* The owner is the process that called us. */
    int64_t lease_ms;
    int64_t retention_ms;
    int64_t expect_ms;
    int on_expired_lease; /* enum idem_on_expired_lease; 0: not given. */
    uint64_t attempts_max;
    int64_t wait_ms;
    bool wait_then_run;
};

#define CLI_CLAIM_INIT                                                         \
    {                                                                          \
        .lease_ms = 60000, .retention_ms = 86400000, .attempts_max = 5         \
    }

/* The rows of these options, for the middle of a table. */
#define CLI_CLAIM_OPTIONS(c)                                                   \
    CLI_VALUE("key", "KEY", CLI_TEXT, &(c)->key,                               \
              "the idempotency key, 1 to 255 bytes", .letter = 'k',            \
              .max = IDEM_KEY_MAX),                                            \
        CLI_OPTION_KEY_FILE(&(c)->key_file), CLI_OPTION_SCOPE(&(c)->scope),    \
        CLI_VALUE("owner", "OWNER", CLI_TEXT, &(c)->owner,                     \
                  "the caller's name (default: HOST/PID)",                     \
                  .max = IDEM_OWNER_MAX),                                      \
        CLI_VALUE("lease", "TIME", CLI_DURATION, &(c)->lease_ms,               \
                  "lease duration, unless renewed (60s)",                      \
                  .min = IDEM_LEASE_MIN_MS, .or_never = true),                 \
        CLI_VALUE("retention", "TIME", CLI_DURATION, &(c)->retention_ms,       \
                  "how long the outcome is replayed (24h)",                    \
                  .as = IDEM_SETTING_RETENTION),                               \
        CLI_VALUE("expect", "TIME", CLI_DURATION, &(c)->expect_ms,             \
                  "report the work as overdue after this time", .min = 1),     \
        CLI_OPTION_POLICY(&(c)->on_expired_lease,                              \
                          "hold (the default: a person must look), rerun"),    \
        CLI_VALUE("max-attempts", "N", CLI_COUNT, &(c)->attempts_max,          \
                  "give up after N starts; 0: never (5)",                      \
                  .as = IDEM_SETTING_MAX_ATTEMPTS),                            \
        CLI_VALUE("fingerprint", "WHAT", CLI_TEXT, &(c)->fingerprint,          \
                  "request fingerprint: auto, none, TEXT, @FILE"),             \
        CLI_VALUE("input", "WHAT", CLI_TEXT, &(c)->input,                      \
                  "the request, kept for people: TEXT, @FILE or -"),           \
        CLI_OPTION_KEY_FROM(&(c)->key_from),                                   \
        CLI_OPTION_FINGERPRINT_FROM(&(c)->fingerprint_from),                   \
        CLI_VALUE("wait", "TIME", CLI_DURATION, &(c)->wait_ms,                 \
                  "how long to wait for another's attempt (0s)",               \
                  .as = IDEM_SETTING_WAIT),                                    \
        CLI_SWITCH("wait-then-run", &(c)->wait_then_run,                       \
                   "start the work if that attempt gives up")

/* A request that owns what it points to. */
struct cli_request {
    struct idem_request request;
    struct cli_key_text key;
    char owner[IDEM_OWNER_MAX + 1];
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];
    char *input;
};

/* Reads and checks everything that @claim names, before any store is touched.
 * @argc and @argv: the command line, for the fingerprint. 0 or an exit status,
 * after an error message. Points into itself: @ret_request must not be moved. */
int cli_request_init(struct cli_request *ret_request,
                     const struct cli_command *command,
                     const struct cli_claim *claim, int argc, char **argv);
void cli_request_finish(struct cli_request *request);

/* ---- The names of the caller ---- */

/* "HOST/PID" with the process @pid, or what --owner or $IDEM_OWNER says. */
void cli_owner(const char *given, long pid, char buf[IDEM_OWNER_MAX + 1]);

/* The person who decides: "USER@HOST", or what --owner or $IDEM_OWNER says. */
void cli_who(const char *given, char buf[IDEM_OWNER_MAX + 1]);

/* ---- Results given on the command line ---- */

struct cli_result_spec {
    const char *content_type;
    uint64_t exit;
    bool exit_given;
    uint64_t http_status;
    bool http_given;
};

#define CLI_RESULT_OPTIONS(r)                                                  \
    CLI_VALUE("content-type", "TYPE", CLI_TEXT, &(r)->content_type,            \
              "type of the result, such as application/json", .max = 255),     \
        CLI_VALUE("exit", "N", CLI_COUNT, &(r)->exit,                          \
                  "the exit status that idem run replays", .max = 255,         \
                  .given = &(r)->exit_given),                                  \
        CLI_VALUE("http-status", "N", CLI_COUNT, &(r)->http_status,            \
                  "the result is an HTTP response with this status",           \
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
 * itself; NULL: an empty one. A result that is too long becomes a tombstone, never
 * an error: the work was done. Points into itself: @ret_result must not be
 * moved. 0 or an exit status, after an error message. */
int cli_result_init(struct cli_result *ret_result, const char *option,
                    const char *text, const struct cli_result_spec *spec);
void cli_result_finish(struct cli_result *result);

/* If @spec does not name the form of @result, it takes the form of @before, the result
 * on record: an HTTP response, with status 200, or the output of a command, with exit
 * status 0. */
void cli_result_adopt(struct cli_result *result,
                      const struct cli_result_spec *spec,
                      const struct idem_result *before);

#endif
