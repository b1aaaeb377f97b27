/* Key and fingerprint from a JSON text, with selectors. */
#include "request/extract.h"

#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <idem/key.h>
#include <stdlib.h>

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

int cli_extract_parts(const char *text, struct idem_slice input,
                      char **ret_bytes, size_t *ret_len)
{
    struct idem_selector *selector;
    struct idem_error error = {0};
    struct idem_slice values;
    char *bytes = NULL;
    int status = cli_extract_open(fingerprint_from, text, &selector);

    if (status != 0) {
        return status;
    }
    error.code = idem_selector_run(selector, input, /* flags= */ 0, &error);
    if (error.code == 0) {
        error.code = idem_selector_values(selector, &values, &error);
    }
    if (error.code != 0) {
        status = refuse(fingerprint_from, text, &error);
    } else {
        bytes = malloc(values.len + 1);
    }
    if (bytes != NULL) {
        memcpy(bytes, values.base, values.len);
        *ret_bytes = bytes;
        *ret_len = values.len;
    } else if (status == 0) {
        cli_say("out of memory");
        status = CLI_INTERNAL;
    }
    idem_selector_destroy(selector);
    return status;
}
