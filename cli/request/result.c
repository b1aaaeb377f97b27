/* Results that are said on the command line. */
#include "request/result.h"

#include "options/command.h"
#include "options/read.h"
#include "text/error.h"

#include <idem/form.h>
#include <stdio.h>
#include <stdlib.h>

/* As much as idem run keeps by default, and every other store of libidem. */
#define RESULT_MAX ((size_t)16 << 20)

static int read_bytes(struct cli_result *r, const char *option,
                      const char *text)
{
    size_t len;
    int status;

    status = cli_read_some(option, text, /* text_ok= */ true, RESULT_MAX,
                           &r->bytes, &len);
    if (status != 0) {
        return status;
    }
    if (len > RESULT_MAX) {
        cli_say("--%s: too long to be kept; only that it was done is recorded",
                option);
        r->result.not_kept = true;
        return 0;
    }
    r->result.bytes = idem_bytes(r->bytes, len);
    return 0;
}

int cli_result_check(const struct cli_command *command,
                     const struct cli_result_spec *spec)
{
    return spec->exit_given && spec->http_given
               ? cli_usage(command, "choose one: --exit or --http-status")
               : 0;
}

static void set_meta(struct cli_result *r, const char *word, unsigned number)
{
    (void)snprintf(r->meta, sizeof(r->meta), "%s %u\n", word, number);
    r->result.meta = idem_str(r->meta);
}

int cli_result_init(struct cli_result *ret_result, const char *option,
                    const char *text, const struct cli_result_spec *spec)
{
    memset(ret_result, 0, sizeof(*ret_result));
    ret_result->result.content_type = idem_str(spec->content_type);
    if (spec->exit_given) {
        set_meta(ret_result, "exit", (unsigned)spec->exit);
    } else if (spec->http_given) {
        set_meta(ret_result, "HTTP", (unsigned)spec->http_status);
    }
    return text == NULL ? 0 : read_bytes(ret_result, option, text);
}

void cli_result_adopt(struct cli_result *result,
                      const struct cli_result_spec *spec,
                      const struct idem_result *before)
{
    struct idem_form form;

    idem_form_read(before, &form);
    if (spec->exit_given || spec->http_given) {
        return;
    }
    if (form.kind == IDEM_FORM_HTTP) {
        set_meta(result, "HTTP", 200);
    } else if (form.has_exit) {
        set_meta(result, "exit", 0);
    }
}

void cli_result_finish(struct cli_result *result)
{
    free(result->bytes);
    memset(result, 0, sizeof(*result));
}
