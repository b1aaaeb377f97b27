/* The identity of an operation: keys, scopes and fingerprints of a command line. */
#include "request/identity.h"

#include "options/command.h"
#include "options/read.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <errno.h>
#include <idem/http.h>
#include <idem/key.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Selectors ---- */

static const char key_from[] = "key-from";
static const char fingerprint_from[] = "fingerprint-from";

/* A selector that does not fit its input is wrong usage. */
static int refuse(const char *option, const char *text,
                  const struct idem_error *error)
{
    char shown[96];

    cli_say("--%s %s: %s", option,
            cli_escape(idem_str(text), shown, sizeof(shown)), error->text);
    return error->code == IDEM_ENOMEM ? cli_exit_of(error->code) : CLI_USAGE;
}

int cli_extract_open(const char *option, const char *text,
                     struct idem_selector **ret_selector)
{
    struct idem_error error = {0};

    error.code = idem_selector_create(text, ret_selector, &error);
    return error.code == 0 ? 0 : refuse(option, text, &error);
}

int cli_extract_key(const char *text, struct idem_slice input,
                    struct cli_key_text *ret_key)
{
    struct idem_selector *selector;
    struct idem_error error = {0};
    struct idem_key_text key;
    int status = cli_extract_open(key_from, text, &selector);

    if (status != 0) {
        return status;
    }
    error.code = idem_selector_run(selector, input, /* flags= */ 0, &error);
    if (error.code == 0) {
        error.code = idem_key_of(selector, &key, &error);
    }
    idem_selector_destroy(selector);
    if (error.code != 0) {
        return refuse(key_from, text, &error);
    }
    memcpy(ret_key->bytes, key.text, key.len + 1);
    ret_key->len = key.len;
    return 0;
}

static int read_key_file(const char *file, struct cli_key_text *ret_key)
{
    char *text;
    size_t len;
    int status = cli_read_file("key-file", file, IDEM_KEY_MAX + 1, &text, &len);

    if (status != 0) {
        return status;
    }
    len -= len > 0 && text[len - 1] == '\n' ? 1 : 0;
    if (len == 0 || len > IDEM_KEY_MAX) {
        cli_say(len == 0
                    ? "--key-file: no key in %s"
                    : "--key-file: a key has 1 to 255 bytes; %s holds more",
                file);
        status = CLI_USAGE;
    } else {
        memcpy(ret_key->bytes, text, len);
        ret_key->bytes[len] = '\0';
        ret_key->len = len;
    }
    free(text);
    return status;
}

int cli_read_key(const struct cli_command *command, const char *text,
                 const char *file, struct cli_key_text *ret_key)
{
    if (text == NULL && file == NULL) {
        return cli_usage(command,
                         "no key given: --key KEY, or --key-file FILE");
    }
    if (text != NULL && file != NULL) {
        return cli_usage(command, "give the key once: --key or --key-file");
    }
    if (file != NULL) {
        return read_key_file(file, ret_key);
    }
    if (strlen(text) < 1 || strlen(text) > IDEM_KEY_MAX) {
        return cli_usage(command, "a key has 1 to %d bytes; this one has %zu",
                         IDEM_KEY_MAX, strlen(text));
    }
    ret_key->len = strlen(text);
    memcpy(ret_key->bytes, text, ret_key->len + 1);
    return 0;
}

/* Reads a key in the escaped form in which idem shows it. Commands that begin work do not
 * accept that form: a key must mean the same to all versions. */
static int read_escaped(const struct cli_command *command, const char *text,
                        struct cli_key_text *ret_key)
{
    const char *escaped = text + strlen(CLI_ESCAPED);

    if (!cli_unescape(escaped, ret_key->bytes, IDEM_KEY_MAX, &ret_key->len) ||
        ret_key->len == 0) {
        return cli_usage(command,
                         "%s: a key of 1 to %d bytes follows, with every "
                         "backslash as \\x5c and other bytes as \\xHH",
                         CLI_ESCAPED, IDEM_KEY_MAX);
    }
    ret_key->bytes[ret_key->len] = '\0';
    return 0;
}

int cli_operand_key(const struct cli_command *command, int argc, char **argv,
                    const char *file, struct cli_key_text *ret_key)
{
    if (argc > 1) {
        return cli_usage(command, "one key at a time; quote a key with spaces");
    }
    if (argc == 0 && file == NULL) {
        return cli_usage(command, "no key given; see: idem list");
    }
    if (argc == 1 && file != NULL) {
        return cli_usage(command, "give the key once: KEY or --key-file");
    }
    if (argc == 1 && strncmp(argv[0], CLI_ESCAPED, strlen(CLI_ESCAPED)) == 0) {
        return read_escaped(command, argv[0], ret_key);
    }
    return cli_read_key(command, argc == 1 ? argv[0] : NULL, file, ret_key);
}

int cli_scope(const char *given, struct idem_slice *ret_scope)
{
    const char *scope = given != NULL ? given : secure_getenv("IDEM_SCOPE");

    if (scope != NULL && strlen(scope) > IDEM_SCOPE_MAX) {
        cli_say("IDEM_SCOPE: a scope has at most %d bytes; this one has %zu",
                IDEM_SCOPE_MAX, strlen(scope));
        return CLI_USAGE;
    }
    *ret_scope = idem_str(scope);
    return 0;
}

/* Joins the arguments, each with its NUL. No argument can hold a NUL, so two command
 * lines never give the same bytes; and however many arguments there are, they are one
 * part of a fingerprint. */
static int join_args(int argc, char **argv, char **ret_bytes, size_t *ret_len)
{
    size_t len = 0;
    char *bytes;
    char *p;
    int i;

    for (i = 0; i < argc; i++) {
        len += strlen(argv[i]) + 1;
    }
    bytes = malloc(len + 1);
    if (bytes == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    for (i = 0, p = bytes; i < argc; i++) {
        size_t n = strlen(argv[i]) + 1;

        memcpy(p, argv[i], n);
        p += n;
    }
    *ret_bytes = bytes;
    *ret_len = len;
    return 0;
}

/* Returns 0, or the exit status of @code after an error message. */
static int check_fingerprint(int code)
{
    if (code == 0) {
        return 0;
    }
    cli_say("cannot compute the fingerprint: %s", idem_error_text(code));
    return cli_exit_of(code);
}

static int make_fingerprint(const struct idem_slice *parts, size_t parts_len,
                            uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    return check_fingerprint(idem_fingerprint(parts, parts_len,
                                              /* secret= */ idem_str(NULL),
                                              ret_fingerprint));
}

/* The parts of a fingerprint. The first one names the kind of the others, so that
 * two requests of different kinds never have the same list of parts:
 *
 *     "text"      the text, or the bytes of the file
 *     "argv"      the arguments, each with a NUL after it
 *     "argv+dir"  the same; then the working directory
 *
 * An input is added as the body of an HTTP request is, see idem_http_fingerprint(). The
 * values that --fingerprint-from selects are a fingerprint without other parts. */
static int fingerprint_text(const char *spec,
                            uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    struct idem_slice parts[2];
    char *text;
    size_t len;
    int status;

    status = cli_read_arg("fingerprint", spec, /* text_ok= */ true,
                          IDEM_RESULT_MAX, &text, &len);
    if (status != 0) {
        return status;
    }
    parts[0] = idem_str("text");
    parts[1] = idem_bytes(text, len);
    status = make_fingerprint(parts, 2, ret_fingerprint);
    free(text);
    return status;
}

static int fingerprint_args(const struct idem_slice *parts, size_t parts_len,
                            const struct cli_input *input,
                            uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    const char *type =
        input->is_json ? "application/json" : "application/octet-stream";

    if (input->bytes.base == NULL) {
        return make_fingerprint(parts, parts_len, ret_fingerprint);
    }
    return check_fingerprint(
        idem_http_fingerprint(parts, parts_len, idem_str(type), input->bytes,
                              /* secret= */ idem_str(NULL), ret_fingerprint));
}

static int fingerprint_command(int argc, char **argv, bool in_directory,
                               const struct cli_input *input,
                               uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    char *directory = in_directory ? getcwd(NULL, 0) : NULL;
    struct idem_slice parts[3];
    char *args = NULL;
    size_t len;
    int status;

    if (in_directory && directory == NULL) {
        cli_say("--key-from-args: cannot find the working directory: %s",
                strerror(errno));
        return CLI_USAGE;
    }
    status = join_args(argc, argv, &args, &len);
    if (status == 0) {
        parts[0] = idem_str(in_directory ? "argv+dir" : "argv");
        parts[1] = idem_bytes(args, len);
        parts[2] = idem_str(directory);
        status = fingerprint_args(parts, in_directory ? 3 : 2, input,
                                  ret_fingerprint);
    }
    free(args);
    free(directory);
    return status;
}

int cli_fingerprint(const char *spec, int argc, char **argv, bool in_directory,
                    const struct cli_input *input,
                    uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN],
                    bool *ret_has)
{
    bool automatic = spec == NULL || strcmp(spec, "auto") == 0;

    *ret_has = automatic ? argc > 0 || input->bytes.base != NULL
                         : strcmp(spec, "none") != 0;
    if (!*ret_has) {
        return 0;
    }
    return automatic ? fingerprint_command(argc, argv, in_directory, input,
                                           ret_fingerprint)
                     : fingerprint_text(spec, ret_fingerprint);
}

int cli_fingerprint_from(const char *text, struct idem_slice input,
                         uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    struct idem_selector *selector;
    struct idem_error error = {0};
    struct idem_slice values;
    int status = cli_extract_open(fingerprint_from, text, &selector);

    if (status != 0) {
        return status;
    }
    error.code = idem_selector_run(selector, input, /* flags= */ 0, &error);
    if (error.code == 0) {
        error.code = idem_selector_values(selector, &values, &error);
    }
    status = error.code != 0
                 ? refuse(fingerprint_from, text, &error)
                 : check_fingerprint(idem_http_fingerprint_selected(
                       /* parts= */ NULL, 0, values,
                       /* secret= */ idem_str(NULL), ret_fingerprint));
    idem_selector_destroy(selector);
    return status;
}

int cli_key_from_args(int argc, char **argv, struct cli_key_text *ret_key)
{
    static const struct cli_input none = {.is_json = false};
    uint8_t digest[IDEM_FINGERPRINT_LEN];
    int status;

    status = fingerprint_command(argc, argv, /* in_directory= */ false, &none,
                                 digest);
    if (status != 0) {
        return status;
    }
    /* The first byte of the digest is the version of fingerprints. */
    cli_hex(idem_bytes(digest + 1, sizeof(digest) - 1),
            stpcpy(ret_key->bytes, "args-"));
    ret_key->len = strlen(ret_key->bytes);
    return 0;
}
