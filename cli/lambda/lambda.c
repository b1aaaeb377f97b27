/* idem lambda: the runtime for AWS Lambda, and its actions invoke and sources. */
#include "options/commands.h"

#include "options/command.h"
#include "options/common.h"
#include "options/read.h"
#include "process/host.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/text.h"

#include <idem/lambda.h>
#include <stdlib.h>
#include <time.h>

#define EVENT_MAX ((size_t)16 << 20)

static struct {
    const char *handler;
    const char *store;
    const char *request_id;
    int64_t time_ms;
    bool json;
} args = {.time_ms = 30000};

/* ---- The runtime ------------------------------------------------------- */

static int serve(const struct cli_command *command)
{
    if (secure_getenv("AWS_LAMBDA_RUNTIME_API") == NULL) {
        return cli_usage(
            command,
            "AWS_LAMBDA_RUNTIME_API is not set: only Lambda sets it; to try a "
            "handler here: idem lambda invoke");
    }
    return idem_lambda_main(/* run= */ NULL);
}

/* ---- sources ----------------------------------------------------------- */

static int print_source_json(const struct idem_lambda_source *source)
{
    struct cli_json json;

    cli_json_init(&json);
    cli_json_text(&json, "name", source->name);
    cli_json_text(&json, "key", source->key);
    cli_json_text(&json, "strength",
                  idem_lambda_strength_name(source->strength));
    cli_json_text(&json, "busy", source->busy);
    cli_json_text(&json, "failure", source->failure);
    cli_json_text(&json, "sample", source->sample);
    return cli_json_print(&json);
}

static int sources(void)
{
    const struct idem_lambda_source *source;
    int status = 0;
    size_t i;

    for (i = 0; status == 0 && (source = idem_lambda_source_at(i)) != NULL;
         i++) {
        if (args.json) {
            status = print_source_json(source);
        } else {
            (void)printf("%-16s  %-15s  %s\n", source->name,
                         idem_lambda_strength_name(source->strength),
                         source->key);
        }
    }
    return status;
}

/* ---- invoke ------------------------------------------------------------ */

/* Makes a new id, as every delivery has one. */
static void make_request_id(char id[40])
{
    struct timespec t = {0, 0};

    (void)clock_gettime(CLOCK_REALTIME, &t);
    (void)snprintf(id, 40, "local-%lld-%09ld", (long long)t.tv_sec, t.tv_nsec);
}

static void print_json_line(struct idem_slice json)
{
    const char *text = json.base;

    (void)fwrite(text, 1, json.len, stdout);
    if (json.len == 0 || text[json.len - 1] != '\n') {
        (void)putchar('\n');
    }
}

static int handle(struct idem_lambda *lambda, struct idem_slice event)
{
    struct idem_lambda_invocation now = IDEM_LAMBDA_INVOCATION_INIT;
    struct idem_lambda_response response;
    char id[40];

    make_request_id(id);
    now.request_id = args.request_id == NULL ? id : args.request_id;
    now.deadline_ms = cli_now_ms() + args.time_ms;
    now.event = event;
    if (idem_lambda_handle(lambda, &now, &response) != 0) {
        cli_say("the event could not be handled");
        return CLI_INTERNAL;
    }
    print_json_line(response.json);
    return response.is_error ? CLI_NO_RECORD : CLI_OK;
}

static int invoke_with(const char *store_url, struct idem_slice event)
{
    struct idem_lambda_options options = IDEM_LAMBDA_OPTIONS_INIT;
    struct idem_error error = {0};
    struct idem_lambda *lambda;
    int status;

    options.function = "local";
    error.code = idem_lambda_options_env(&options, &error);
    if (error.code == 0) {
        options.store = store_url;
        if (args.handler != NULL) {
            options.handler = args.handler;
        }
        error.code = idem_lambda_open(&options, &lambda, &error);
    }
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    status = handle(lambda, event);
    idem_lambda_close(lambda);
    return status;
}

static int invoke(const char *file)
{
    char *store_url;
    char *event;
    size_t len;
    int status = strcmp(file, "-") == 0
                     ? cli_read_some("EVENT", file, /* text_ok= */ false,
                                     EVENT_MAX, &event, &len)
                     : cli_read_file("EVENT", file, EVENT_MAX, &event, &len);

    if (status != 0) {
        return status;
    }
    if (len > EVENT_MAX) {
        cli_say("an event has at most %zu bytes", EVENT_MAX);
        free(event);
        return CLI_USAGE;
    }
    status = cli_store_url(args.store, /* make= */ true, &store_url);
    if (status == 0) {
        status = invoke_with(store_url, idem_bytes(event, len));
        free(store_url);
    }
    free(event);
    return status;
}

/* ---- The command ------------------------------------------------------- */

static int run(const struct cli_command *command, int argc, char **argv)
{
    char shown[128];

    if (argc == 0) {
        return serve(command);
    }
    if (argc == 1 && strcmp(argv[0], "sources") == 0) {
        return sources();
    }
    if (argc == 2 && strcmp(argv[0], "invoke") == 0) {
        return invoke(argv[1]);
    }
    if (strcmp(argv[0], "invoke") == 0) {
        return cli_usage(command, "invoke takes one event: idem lambda invoke "
                                  "EVENT.json");
    }
    return cli_usage(command,
                     "unexpected argument \"%s\"; give sources or invoke "
                     "EVENT.json, or nothing, to run a function",
                     cli_escape(idem_str(argv[0]), shown, sizeof(shown)));
}

static struct cli_option options[] = {
    CLI_VALUE("handler", "PROGRAM", CLI_TEXT, &args.handler,
              "the handler, an executable (default: $_HANDLER)"),
    CLI_VALUE("max-time", "TIME", CLI_DURATION, &args.time_ms,
              "invoke: how long the function may take (default: 30s)", .min = 1,
              .max = 900000),
    CLI_VALUE("request", "ID", CLI_TEXT, &args.request_id,
              "invoke: the id of this delivery (default: a new one)",
              .max = 128),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem lambda invoke --handler ./charge event.json   # try it here",
    "idem lambda sources               # where keys come from",
    NULL,
};

static const char *const what[] = {"invoke", "sources", NULL};

const struct cli_command cli_lambda = {
    .name = "lambda",
    .summary = "run an AWS Lambda function once for each event",
    .usage = "idem lambda [OPTION...] [sources|invoke EVENT.json]",
    .examples = examples,
    .options = options,
    .run = run,
    .operands = what,
};
