/* The nonce and the messages that all parts of `idem run` share. */
#include "run/run.h"

#include "process/host.h"
#include "record/verdict.h"
#include "text/error.h"
#include "text/screen.h"

#include <stdarg.h>
#include <stdlib.h>

/* ---- The nonce of the one attempt that a run may begin ---- */

static int draw(void *ctx, void *buf, size_t len)
{
    struct run_nonce *nonce = ctx;

    if (nonce->is_due && len == sizeof(nonce->bytes)) {
        nonce->is_due = false;
        memcpy(buf, nonce->bytes, len);
        return 0;
    }
    return cli_random(buf, len);
}

struct idem_host run_nonce_host(struct run_nonce *nonce)
{
    struct idem_host host = {.ctx = nonce, .random = draw};

    return host;
}

/* ---- idem's own line on stderr ---- */

bool run_says(const struct run *run, enum run_news news)
{
    const struct run_options *o = run->options;

    switch (news) {
    case RUN_DETAIL:
        return o->verbose && !o->quiet;
    case RUN_REMARK:
        return (o->verbose || cli_stderr_is_tty()) && !o->quiet;
    case RUN_NOTICE:
        return !o->quiet;
    case RUN_ERROR:
        break;
    }
    return true;
}

static void say(const struct run *run, const struct idem_record *to_resolve,
                const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Write the line in one piece: several runs may share one stderr. */
static void say(const struct run *run, const struct idem_record *to_resolve,
                const char *format, va_list args)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (f == NULL) {
        cli_say("out of memory");
        return;
    }
    (void)vfprintf(f, format, args);
    if (to_resolve != NULL) {
        cli_print_resolve(f, to_resolve, run->options->store);
    }
    (void)fclose(f);
    cli_say("%s", text != NULL ? text : "out of memory");
    free(text);
}

void run_say(const struct run *run, enum run_news news, const char *format, ...)
{
    va_list args;

    if (run_says(run, news)) {
        va_start(args, format);
        say(run, /* to_resolve= */ NULL, format, args);
        va_end(args);
    }
}

void run_say_resolve(const struct run *run, enum run_news news,
                     const char *format, ...)
{
    va_list args;

    if (run_says(run, news)) {
        va_start(args, format);
        say(run, run->attempt->record, format, args);
        va_end(args);
    }
}
