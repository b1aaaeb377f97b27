/* Finds the handler, and runs it. */
#include "aws/lambda/lambda.h"

#include "base/heap.h"
#include "base/process.h"
#include "core/error.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- Functions for handlers -------------------------------------------- */

int64_t idem__lambda_left_ms(const struct idem_lambda_invocation *now)
{
    struct timespec t = {0, 0};

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return now->deadline_ms - ((int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000);
}

int64_t idem_lambda_remaining_ms(const struct idem_lambda_call *call)
{
    struct idem_lambda_invocation now = {.deadline_ms = call->deadline_ms};
    int64_t left = idem__lambda_left_ms(&now);

    return left < 0 ? 0 : left;
}

static struct idem__lambda_run *run_of(struct idem_lambda_call *call)
{
    return (struct idem__lambda_run *)(void *)call;
}

int idem_lambda_answer(struct idem_lambda_call *call, struct idem_slice json)
{
    struct idem__lambda_run *run = run_of(call);

    idem__buffer_reset(&run->answer, run->answer.cap);
    idem__buffer_add(&run->answer, json.base, json.len);
    if (run->answer.failed) {
        run->no_memory = true;
        return IDEM_ENOMEM;
    }
    return 0;
}

__attribute__((format(printf, 3, 0))) static int set_error(
    struct idem_lambda_call *call, const char *type, const char *format,
    va_list args, bool nothing)
{
    struct idem__lambda_run *run = run_of(call);
    char text[IDEM__LAMBDA_TEXT_MAX];

    (void)vsnprintf(text, sizeof(text), format, args);
    idem__lambda_run_error(run, IDEM__LAMBDA_ERROR, idem_str(type),
                           idem_str(text));
    run->nothing = nothing;
    return IDEM_EINVALID;
}

int idem_lambda_error(struct idem_lambda_call *call, const char *type,
                      const char *format, ...)
{
    va_list args;
    int rc;

    va_start(args, format);
    rc = set_error(call, type, format, args, /* nothing= */ false);
    va_end(args);
    return rc;
}

int idem_lambda_release(struct idem_lambda_call *call, const char *type,
                        const char *format, ...)
{
    va_list args;
    int rc;

    va_start(args, format);
    rc = set_error(call, type, format, args, /* nothing= */ true);
    va_end(args);
    return rc;
}

void idem__lambda_run_error(struct idem__lambda_run *run,
                            enum idem__lambda_end end, struct idem_slice type,
                            struct idem_slice text)
{
    const char *p = type.base;
    size_t len = 0;
    size_t i;

    for (i = 0; i < type.len && len + 1 < sizeof(run->type); i++) {
        if (isalnum((unsigned char)p[i]) || strchr("._-", p[i]) != NULL) {
            run->type[len++] = p[i];
        }
    }
    run->type[len] = '\0';
    if (len == 0) {
        (void)snprintf(run->type, sizeof(run->type), "Handler.Error");
    }
    (void)snprintf(run->text, sizeof(run->text), "%.*s", (int)text.len,
                   text.len == 0 ? "" : (const char *)text.base);
    run->end = end;
}

/* ---- Finding it -------------------------------------------------------- */

static char *path_of(const struct idem_lambda_options *options)
{
    const char *directory = options->directory;
    bool whole = options->handler[0] == '/' || directory == NULL;
    char *path = NULL;

    if (asprintf(&path, "%s%s%s", whole ? "" : directory, whole ? "" : "/",
                 options->handler) < 0) {
        return NULL;
    }
    return path;
}

int idem__lambda_handler_init(struct idem_lambda *lambda,
                              struct idem_error *ret_error)
{
    const struct idem_lambda_options *options = lambda->options;

    lambda->run = options->run;
    if (lambda->run != NULL) {
        return 0;
    }
    if (options->handler == NULL || options->handler[0] == '\0') {
        return idem__error(
            ret_error, IDEM_EINVALID,
            "no handler given: _HANDLER names an executable that reads the "
            "event from standard input");
    }
    lambda->program = path_of(options);
    if (lambda->program == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    (void)idem__adopt_orphans();
    if (access(lambda->program, X_OK) != 0) {
        return idem__error(ret_error, IDEM_ECONFIG,
                           "the handler %.100s cannot be executed: %s; name "
                           "an executable, which reads the event from standard "
                           "input, not FILE.FUNCTION",
                           lambda->program, strerror(errno));
    }
    return 0;
}

void idem__lambda_handler_finish(struct idem_lambda *lambda)
{
    free(lambda->program);
    lambda->program = NULL;
    idem__buffer_free(&lambda->work.answer);
}

/* ---- Running it -------------------------------------------------------- */

static const char *or_empty(const char *text)
{
    return text == NULL ? "" : text;
}

/* Wipes all that the run before has left. */
static void clear(struct idem__lambda_run *run)
{
    struct idem__buffer answer = run->answer;

    if (answer.base != NULL) {
        explicit_bzero(answer.base, answer.cap);
    }
    memset(run, 0, sizeof(*run));
    run->answer = answer;
    idem__buffer_reset(&run->answer, /* keep= */ 64 << 10);
}

static void fill_call(struct idem_lambda *lambda, struct idem_slice event,
                      const struct idem_attempt *attempt)
{
    const struct idem_lambda_invocation *now = lambda->now;
    struct idem_lambda_call *call = &lambda->work.call;

    call->size = sizeof(*call);
    call->request_id = now->request_id;
    call->function_arn = or_empty(now->function_arn);
    call->trace_id = or_empty(now->trace_id);
    call->client_context = or_empty(now->client_context);
    call->cognito_identity = or_empty(now->cognito_identity);
    call->deadline_ms = now->deadline_ms;
    call->event = event;
    call->attempt = attempt;
    call->ctx = lambda->options->ctx;
    call->event_ms = lambda->event_ms;
}

static void run_function(struct idem_lambda *lambda)
{
    struct idem__lambda_run *run = &lambda->work;
    int rc = lambda->run(&run->call);

    if (rc == 0) {
        run->end = IDEM__LAMBDA_DONE;
    } else if (run->end != IDEM__LAMBDA_ERROR) {
        idem__lambda_run_error(run, IDEM__LAMBDA_ERROR,
                               idem_str("Handler.Error"),
                               idem_str("the handler failed"));
    }
}

static void useless(struct idem__lambda_run *run, const char *type,
                    const char *text)
{
    idem__lambda_run_error(run, IDEM__LAMBDA_USELESS, idem_str(type),
                           idem_str(text));
}

/* Checks the response. If it cannot be sent, the work was done all the same, so its
 * outcome must not say that nothing happened. */
static void check_answer(struct idem__lambda_run *run)
{
    if (run->no_memory) {
        useless(run, "Idem.BadResponse", "no memory for the response");
    } else if (run->too_long || run->answer.len > IDEM_LAMBDA_RESPONSE_MAX) {
        run->too_long = true;
        useless(run, "Function.ResponseSizeTooLarge",
                "the response is longer than 6 MiB");
    } else if (run->answer.len == 0) {
        idem__buffer_str(&run->answer, "null");
    } else if (!idem__lambda_is_json(idem__buffer_slice(&run->answer))) {
        useless(run, "Idem.BadResponse", "the response is not JSON");
    }
}

void idem__lambda_handler_run(struct idem_lambda *lambda,
                              struct idem_slice event,
                              const struct idem_attempt *attempt)
{
    clear(&lambda->work);
    fill_call(lambda, event, attempt);
    lambda->ran++;
    if (lambda->run != NULL) {
        run_function(lambda);
    } else {
        idem__lambda_program_run(lambda);
    }
    if (lambda->work.end == IDEM__LAMBDA_DONE) {
        check_answer(&lambda->work);
    }
    if (lambda->work.noise_len > 0) {
        idem__lambda_log(
            lambda->now, "WARN", NULL,
            "%zu bytes before the response on standard output were "
            "left out: write them to standard error",
            lambda->work.noise_len);
    }
}
