/* Key and fingerprint from a JSON text, with jq programs. */
#include "request/extract.h"

#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <idem/key.h>
#include <stdlib.h>

static const char key_from[] = "key-from";
static const char fingerprint_from[] = "fingerprint-from";

/* A program that does not fit its input is wrong usage; the rest is of this
 * host: libjq is missing, or a process could not be made. */
static int refuse(const char *option, const char *program,
                  const struct idem_error *error)
{
    char shown[96];

    cli_say("--%s %s: %s", option,
            cli_escape(idem_str(program), shown, sizeof(shown)), error->text);
    return cli_exit_of(error->code);
}

int cli_extract_open(const char *option, const char *program, bool several,
                     struct idem_select **ret_select)
{
    struct idem_select_options options = IDEM_SELECT_OPTIONS_INIT;
    struct idem_error error = {0};

    options.several = several;
    error.code = idem_select_create(program, &options, ret_select, &error);
    return error.code == 0 ? 0 : refuse(option, program, &error);
}

/* Runs @program once. 0 with *@ret_output, which is valid as long as
 * *@ret_select; or an exit status. */
static int run_once(const char *option, const char *program, bool several,
                    struct idem_slice input, struct idem_select **ret_select,
                    struct idem_slice *ret_output)
{
    struct idem_select *select;
    struct idem_error error = {0};
    int status = cli_extract_open(option, program, several, &select);

    if (status != 0) {
        return status;
    }
    error.code = idem_select_run(select, input, ret_output, &error);
    if (error.code != 0) {
        idem_select_destroy(select);
        return refuse(option, program, &error);
    }
    *ret_select = select;
    return 0;
}

static int take_key(struct idem_slice text, struct cli_key_text *ret_key)
{
    if (text.len == 0) {
        cli_say("--%s: the program selects an empty text, which cannot be a "
                "key",
                key_from);
        return CLI_USAGE;
    }
    if (text.len > IDEM_KEY_MAX) {
        cli_say("--%s: a key has 1 to %d bytes; the program selects %zu; "
                "select a shorter member",
                key_from, IDEM_KEY_MAX, text.len);
        return CLI_USAGE;
    }
    memcpy(ret_key->bytes, text.base, text.len);
    ret_key->bytes[text.len] = '\0';
    ret_key->len = text.len;
    return 0;
}

int cli_extract_key(const char *program, struct idem_slice input,
                    struct cli_key_text *ret_key)
{
    struct idem_select *select;
    struct idem_slice output;
    int status = run_once(key_from, program, /* several= */ false, input,
                          &select, &output);

    if (status != 0) {
        return status;
    }
    status = take_key(idem_select_text(select, output), ret_key);
    idem_select_destroy(select);
    return status;
}

int cli_extract_parts(const char *program, struct idem_slice input,
                      char **ret_bytes, size_t *ret_len)
{
    struct idem_select *select;
    struct idem_slice output;
    int status = run_once(fingerprint_from, program, /* several= */ true, input,
                          &select, &output);
    char *bytes;

    if (status != 0) {
        return status;
    }
    bytes = malloc(output.len + 1);
    if (bytes == NULL) {
        cli_say("out of memory");
        status = CLI_INTERNAL;
    } else {
        memcpy(bytes, output.base, output.len);
        *ret_bytes = bytes;
        *ret_len = output.len;
    }
    idem_select_destroy(select);
    return status;
}
