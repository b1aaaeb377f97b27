/* Errors: one sentence on stderr, and the exit status that goes with it. */
#include "text/error.h"

#include "text/exit_status.h"
#include "text/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* One write for the whole line, so that lines of several processes that share
 * stderr do not run into each other. */
void cli_vsay(const char *format, va_list args)
{
    char *sentence = NULL;

    if (vasprintf(&sentence, format, args) < 0) {
        (void)fputs("idem: out of memory\n", stderr);
        return;
    }
    cli_progress_hide();
    (void)fprintf(stderr, "idem: %s\n", sentence);
    free(sentence);
}

void cli_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli_vsay(format, args);
    va_end(args);
}

int cli_exit_of(int code)
{
    switch ((enum idem_code)code) {
    case IDEM_OK:
        return CLI_OK;
    case IDEM_EINVALID:
        return CLI_USAGE;
    case IDEM_EUNAVAILABLE:
    case IDEM_EUNKNOWN: /* The same command again settles it. */
        return CLI_UNAVAILABLE;
    case IDEM_ELOST:
        return CLI_NOT_RECORDED;
    case IDEM_EFULL:
        return CLI_FULL;
    case IDEM_ECORRUPT:
        return CLI_CORRUPT;
    case IDEM_EDENIED:
        return CLI_DENIED;
    case IDEM_ECONFIG:
        return CLI_CONFIG;
    case IDEM_ENOTFOUND:
        return CLI_NO_RECORD;
    case IDEM_ENOMEM:
        break;
    }
    return CLI_INTERNAL;
}

/* The remedy for a kind of error wherever it comes from, unless the error says
 * so itself. */
static const char *help_for(const struct idem_error *error)
{
    if (error->code == IDEM_ECORRUPT && strstr(error->text, "idem ") == NULL) {
        return "; see what is left: idem store check, and put a copy back";
    }
    if (error->code == IDEM_EUNAVAILABLE && strstr(error->text, "; ") == NULL &&
        strstr(error->text, ": check ") == NULL) {
        return "; see: idem doctor";
    }
    return "";
}

static bool is_away(const struct idem_error *error)
{
    return error->code == IDEM_EUNAVAILABLE || error->code == IDEM_EUNKNOWN;
}

int cli_fail_before(const char *undone, const struct idem_error *error)
{
    bool tells = is_away(error) && undone[0] != '\0';

    cli_say("%s%s%s%s",
            error->text[0] != '\0' ? error->text : idem_error_text(error->code),
            tells ? "; " : "", tells ? undone : "", help_for(error));
    return cli_exit_of(error->code);
}

int cli_fail_with(const struct idem_error *error)
{
    return cli_fail_before("", error);
}
