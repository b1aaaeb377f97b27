/* identity.h: keys, scopes and fingerprints from the command line. */
#ifndef IDEM_CLI_REQUEST_IDENTITY_H
#define IDEM_CLI_REQUEST_IDENTITY_H

#include "options/command.h"

#include <idem.h>

struct cli_command;

struct cli_key_text {
    char bytes[IDEM_KEY_MAX + 1]; /* With a NUL after the last one. */
    size_t len;
};

/* The key of an attempt: exactly one of @text (--key) and @file (--key-file)
 * must be given. One newline at the end of a file is dropped; all other bytes are
 * the key as they are. 0 or an exit status, after an error message. */
int cli_read_key(const struct cli_command *command, const char *text,
                 const char *file, struct cli_key_text *ret_key);

/* The key of a command that takes it as its only operand, or with --key-file.
 * 0 or an exit status, after an error message. */
int cli_operand_key(const struct cli_command *command, int argc, char **argv,
                    const char *file, struct cli_key_text *ret_key);

/* --key-from-args: "args-" and the hex digits of a digest of the command line.
 * 0 or an exit status, after an error message. */
int cli_key_from_args(int argc, char **argv, struct cli_key_text *ret_key);

/* --scope, else $IDEM_SCOPE, else the empty scope. Its bytes live as long as
 * the process. 0 or an exit status, after an error message. */
int cli_scope(const char *given, struct idem_slice *ret_scope);

/* --input; bytes.base is NULL where there is none. */
struct cli_input {
    struct idem_slice bytes;
    bool is_json; /* The key is selected from it: it is compared as JSON. */
};

/* --fingerprint: "auto" (or NULL) means the command line, with the working directory if
 * @in_directory, and with @input if there is one; "none" means no fingerprint; "@FILE"
 * means the bytes of a file; any other text means itself. *@ret_has is false if there is
 * nothing to compute one from. 0 or an exit status, after an error message. */
int cli_fingerprint(const char *spec, int argc, char **argv, bool in_directory,
                    const struct cli_input *input,
                    uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN],
                    bool *ret_has);

/* --fingerprint-from: the fingerprint of the values that @text selects from @input. 0 or
 * an exit status, after an error message. */
int cli_fingerprint_from(const char *text, struct idem_slice input,
                         uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN]);

/* ---- Options for keys, scopes and fingerprints ------------------------- */

#define CLI_OPTION_SCOPE(to)                                                   \
    CLI_VALUE("scope", "SCOPE", CLI_ANY_TEXT, to,                              \
              "the tenant of the key (default: $IDEM_SCOPE)", .letter = 's',   \
              .max = IDEM_SCOPE_MAX)

#define CLI_OPTION_KEY(to, text)                                               \
    CLI_VALUE("key", "KEY", CLI_TEXT, to, (text), .letter = 'k',               \
              .max = IDEM_KEY_MAX)

#define CLI_OPTION_KEY_FILE(to)                                                \
    CLI_VALUE("key-file", "FILE", CLI_TEXT, to,                                \
              "read the key from FILE, drop a final newline")

#define CLI_OPTION_KEY_FROM(to)                                                \
    CLI_VALUE("key-from", "SEL", CLI_TEXT, to, "select the key from the input")

#define CLI_OPTION_FINGERPRINT_FROM(to)                                        \
    CLI_VALUE("fingerprint-from", "SEL", CLI_TEXT, to,                         \
              "compare only what this selects")

/* ---- Selectors of --key-from and --fingerprint-from --------------------- */

struct idem_selector;

/* Compiles the selector of --@option. 0 with a selector for
 * idem_selector_destroy(), or an exit status after an error message. */
int cli_extract_open(const char *option, const char *text,
                     struct idem_selector **ret_selector);

/* The key that the selector of --key-from selects from @input. 0 or an exit status,
 * after an error message. */
int cli_extract_key(const char *text, struct idem_slice input,
                    struct cli_key_text *ret_key);

#endif
