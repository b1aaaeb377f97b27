/* request.h: what `idem begin` and `idem run` ask for alike. */
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
                  "who asks, for people (default: HOST/PID)",                  \
                  .max = IDEM_OWNER_MAX),                                      \
        CLI_VALUE("lease", "TIME", CLI_DURATION, &(c)->lease_ms,               \
                  "how long the key is yours, unless renewed (60s)",           \
                  .min = IDEM_LEASE_MIN_MS, .or_never = true),                 \
        CLI_VALUE("retention", "TIME", CLI_DURATION, &(c)->retention_ms,       \
                  "how long the outcome is replayed (24h)",                    \
                  .as = IDEM_SETTING_RETENTION),                               \
        CLI_VALUE("expect", "TIME", CLI_DURATION, &(c)->expect_ms,             \
                  "call it overdue after this long", .min = 1),                \
        CLI_OPTION_POLICY(&(c)->on_expired_lease,                              \
                          "hold (the default: a person must look), rerun"),    \
        CLI_VALUE("max-attempts", "N", CLI_COUNT, &(c)->attempts_max,          \
                  "give up after N starts; 0: never (5)",                      \
                  .as = IDEM_SETTING_MAX_ATTEMPTS),                            \
        CLI_VALUE("fingerprint", "WHAT", CLI_TEXT, &(c)->fingerprint,          \
                  "what must be the same: auto, none, TEXT, @FILE"),           \
        CLI_VALUE("input", "WHAT", CLI_TEXT, &(c)->input,                      \
                  "the request, kept for people: TEXT, @FILE or -"),           \
        CLI_OPTION_KEY_FROM(&(c)->key_from),                                   \
        CLI_OPTION_FINGERPRINT_FROM(&(c)->fingerprint_from),                   \
        CLI_VALUE("wait", "TIME", CLI_DURATION, &(c)->wait_ms,                 \
                  "how long to wait for another's attempt (0s)",               \
                  .as = IDEM_SETTING_WAIT),                                    \
        CLI_SWITCH("wait-then-run", &(c)->wait_then_run,                       \
                   "start it if that attempt is given up")

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
 * after saying why. Points into itself: @ret_request must not be moved. */
int cli_request_init(struct cli_request *ret_request,
                     const struct cli_command *command,
                     const struct cli_claim *claim, int argc, char **argv);
void cli_request_finish(struct cli_request *request);

#endif
