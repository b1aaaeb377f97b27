/* Messages on stderr, suggestions for typos, and the end of standard output. */
#include "text/error.h"

#include "process/host.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes the whole line at once, so that the lines of processes that share stderr do
 * not run into each other. */
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

/* Returns the remedy for this kind of error; "" if its text already names one. */
static const char *help_for(const struct idem_error *error)
{
    if (error->code == IDEM_ECORRUPT && strstr(error->text, "idem ") == NULL) {
        return "; run idem store check, or restore a copy";
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

/* ---- Standard output ---- */

int cli_finish_output(int status)
{
    bool failed = ferror(stdout) != 0;

    errno = 0;
    if (fflush(stdout) != 0) {
        failed = true;
    }
    if (!failed) {
        return status;
    }
    cli_say("cannot write to standard output: %s",
            errno != 0 ? strerror(errno) : "an earlier write failed");
    clearerr(stdout);
    return status == CLI_OK || status == CLI_REPLAY ? CLI_OUTPUT_FAILED
                                                    : status;
}

/* ---- Did you mean ---- */

#define WORD_MAX 32

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;

    return least < c ? least : c;
}

/* Returns how many letters must be inserted, deleted, changed or swapped with their
 * neighbour to turn @a into @b. @table[i][j] is that number for the first i letters of
 * @a and the first j of @b. */
static size_t edit_distance(const char *a, size_t a_len, const char *b,
                            size_t b_len)
{
    size_t table[WORD_MAX + 1][WORD_MAX + 1];
    size_t i;
    size_t j;

    for (i = 0; i <= a_len; i++) {
        table[i][0] = i;
    }
    for (j = 0; j <= b_len; j++) {
        table[0][j] = j;
    }
    for (i = 1; i <= a_len; i++) {
        for (j = 1; j <= b_len; j++) {
            table[i][j] = min3(table[i - 1][j] + 1, table[i][j - 1] + 1,
                               table[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1] && table[i - 2][j - 2] < table[i][j]) {
                table[i][j] = table[i - 2][j - 2] + 1;
            }
        }
    }
    return table[a_len][b_len];
}

void cli_nearest_offer(struct cli_nearest *nearest, const char *candidate)
{
    size_t word_len = strlen(nearest->word);
    size_t len = strlen(candidate);
    size_t distance;

    if (word_len > WORD_MAX || len > WORD_MAX) {
        return;
    }
    distance = edit_distance(nearest->word, word_len, candidate, len);
    if (word_len > 1 && strncmp(nearest->word, candidate, word_len) == 0) {
        distance = 1; /* The user typed the beginning of it. */
    }
    if (distance > (len > 4 ? 2 : 1) ||
        (nearest->best != NULL && distance >= nearest->distance)) {
        return;
    }
    nearest->best = candidate;
    nearest->distance = distance;
}
