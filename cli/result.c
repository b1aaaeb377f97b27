/* Results that are said on the command line. */
#include "result.h"

#include "cli.h"

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

int cli_result_init(struct cli_result *ret_result, const char *option,
                    const char *text, const struct cli_result_spec *spec)
{
    memset(ret_result, 0, sizeof(*ret_result));
    ret_result->result.content_type = idem_str(spec->content_type);
    if (spec->exit_given) {
        (void)snprintf(ret_result->meta, sizeof(ret_result->meta), "exit %u\n",
                       (unsigned)spec->exit);
        ret_result->result.meta = idem_str(ret_result->meta);
    }
    return text == NULL ? 0 : read_bytes(ret_result, option, text);
}

void cli_result_finish(struct cli_result *result)
{
    free(result->bytes);
    memset(result, 0, sizeof(*result));
}
