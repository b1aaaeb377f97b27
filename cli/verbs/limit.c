/* idem limit: counts a request against a limit, once. */
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "process/host.h"
#include "request/period.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/text.h"

#include <idem/limit.h>
#include <stdlib.h>

static struct {
    const char *name;
    const char *subject;
    const char *request;
    uint64_t at_ms;
    bool has_at;
    uint64_t max;
    const char *per;
    const char *zone;
    uint64_t cost;
    int64_t late_ms;
    bool json;
    bool quiet;
    const char *store;
} args = {.cost = 1, .late_ms = IDEM_LIMIT_DAY};

/* Sets the calendar window that the event is in. */
static int read_period(const struct cli_command *command,
                       struct idem_limit_request *limit)
{
    struct cli_period period;
    struct cli_window window;
    int status = cli_period_init(&period, command, "per", args.per, args.zone);

    if (status == 0) {
        cli_window_at(&period, limit->at_ms, &window);
        limit->start_ms = window.start_ms;
        limit->per_ms = window.end_ms - window.start_ms;
    }
    return status;
}

/* Reads --per: a length of time, whose windows are counted from 1970, or a window of a
 * calendar. Without --zone, the words up to "day" are lengths, in UTC. "week" and
 * "month" always follow the calendar: weeks counted from 1970 would begin on Thursdays,
 * and months differ in length. */
static int read_per(const struct cli_command *command,
                    struct idem_limit_request *limit)
{
    static const char *const words[][2] = {{"second", "1s"},
                                           {"minute", "1m"},
                                           {"hour", "1h"},
                                           {"day", "1d"}};
    const struct idem_setting per_time = {.kind = IDEM_SETTING_TIME,
                                          .min = IDEM_LIMIT_SECOND,
                                          .max = IDEM_LIMIT_PER_MAX};
    struct idem_error error = {0};
    const char *text = args.per;
    size_t i;

    if (args.zone != NULL || strcmp(text, "week") == 0 ||
        strcmp(text, "month") == 0) {
        return read_period(command, limit);
    }
    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(args.per, words[i][0]) == 0) {
            text = words[i][1];
        }
    }
    if (idem_setting_read(&per_time, "--per", text, &limit->per_ms, &error) !=
        0) {
        return cli_usage(command, "%s", error.text);
    }
    return 0;
}

static int check(const struct cli_command *command, int argc)
{
    if (argc > 0) {
        return cli_usage(command, "idem limit takes no arguments");
    }
    if (args.name == NULL || args.subject == NULL || args.request == NULL) {
        return cli_usage(
            command,
            "missing --name, --subject or --request: the limit, its subject, the request");
    }
    if (args.max == 0 || args.per == NULL) {
        return cli_usage(command,
                         "missing --max or --per: how much, and in what time");
    }
    if (args.cost > args.max) {
        return cli_usage(command, "--cost must not exceed --max");
    }
    return 0;
}

/* Reads the time that idem lambda gives a handler, which is the same for a retry of the
 * same event. */
static int read_event_time(const struct cli_command *command)
{
    const char *text = secure_getenv("IDEM_EVENT_MS");
    char shown[64];

    if (args.has_at || text == NULL || text[0] == '\0') {
        return 0;
    }
    if (strlen(text) > 15 || strspn(text, "0123456789") != strlen(text)) {
        return cli_usage(command,
                         "IDEM_EVENT_MS: \"%s\" is not a time in milliseconds "
                         "since 1970",
                         cli_escape(idem_str(text), shown, sizeof(shown)));
    }
    args.at_ms = strtoull(text, NULL, 10);
    args.has_at = true;
    return 0;
}

static void print_text(const struct idem_limited *limited)
{
    char of[32] = "";
    char end[32];

    /* A repeated answer may have been given for a larger max. */
    if (limited->remaining < args.max) {
        (void)snprintf(of, sizeof(of), " of %llu",
                       (unsigned long long)args.max);
    }
    cli_time_text(limited->end_ms, end);
    (void)printf("%s: %llu%s left until %s%s\n",
                 limited->admitted ? "admitted" : "refused",
                 (unsigned long long)limited->remaining, of, end,
                 limited->repeated ? ", as before" : "");
}

static int print_json(const struct idem_limit_request *limit,
                      const struct idem_limited *limited)
{
    int64_t left_ms = limited->end_ms - cli_now_ms();
    struct cli_json json;

    cli_json_init(&json);
    cli_json_bool(&json, "admitted", limited->admitted);
    cli_json_bool(&json, "repeated", limited->repeated);
    cli_json_count(&json, "remaining", limited->remaining);
    cli_json_count(&json, "max", limit->max);
    cli_json_ms(&json, "at_ms", limit->at_ms);
    cli_json_ms(&json, "start_ms", limited->start_ms);
    cli_json_ms(&json, "end_ms", limited->end_ms);
    if (!limited->admitted) {
        cli_json_ms(&json, "retry_after_ms", left_ms > 0 ? left_ms : 0);
    }
    return cli_json_print(&json);
}

static int ask(const struct idem_limit_request *limit)
{
    struct idem_error error = {0};
    struct idem_limited limited;
    struct idem_store *store;
    int status = cli_open_store(args.store, /* flags= */ 0, &store);

    if (status != 0) {
        return status;
    }
    error.code = idem_limit(store, limit, &limited, &error);
    idem_close(store);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    if (args.json) {
        status = print_json(limit, &limited);
    } else if (!args.quiet) {
        print_text(&limited);
    }
    return status != 0 || limited.admitted ? status : CLI_BUSY;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct idem_limit_request limit = IDEM_LIMIT_INIT;
    int status = check(command, argc);

    (void)argv;
    if (status == 0) {
        status = read_event_time(command);
    }
    limit.at_ms = args.has_at ? (int64_t)args.at_ms : cli_now_ms();
    if (status == 0) {
        status = read_per(command, &limit);
    }
    if (status != 0) {
        return status;
    }
    limit.name = idem_str(args.name);
    limit.subject = idem_str(args.subject);
    limit.request = idem_str(args.request);
    limit.max = args.max;
    limit.cost = args.cost;
    limit.late_ms = args.late_ms;
    return ask(&limit);
}

static struct cli_option options[] = {
    CLI_VALUE("name", "NAME", CLI_TEXT, &args.name, "the name of the limit",
              .letter = 'n', .max = IDEM_LIMIT_NAME_MAX),
    CLI_VALUE("subject", "WHO", CLI_TEXT, &args.subject,
              "the user or tenant to limit", .letter = 'u',
              .max = IDEM_LIMIT_NAME_MAX),
    CLI_VALUE("request", "ID", CLI_TEXT, &args.request,
              "the request's id, the same for each retry", .letter = 'r',
              .max = IDEM_LIMIT_NAME_MAX),
    CLI_VALUE("at", "MS", CLI_COUNT, &args.at_ms,
              "when the event happened, since 1970, the same for each retry "
              "(default: $IDEM_EVENT_MS, else now)",
              .min = 0, .max = 253402300799999, .given = &args.has_at),
    CLI_VALUE("max", "N", CLI_COUNT, &args.max,
              "admit at most N requests in one window", .letter = 'm', .min = 1,
              .max = IDEM_LIMIT_MAX),
    CLI_VALUE("per", "TIME", CLI_TEXT, &args.per,
              "the window: second, minute, hour, day, week, month, or a time "
              "such as 90s",
              .letter = 'p'),
    CLI_VALUE("zone", "NAME", CLI_TEXT, &args.zone,
              "time zone of --per: Europe/Berlin (UTC)"),
    CLI_VALUE("cost", "N", CLI_COUNT, &args.cost,
              "how much the request counts (default: 1)", .min = 1,
              .max = IDEM_LIMIT_MAX),
    CLI_VALUE("late", "TIME", CLI_DURATION, &args.late_ms,
              "how long after its window a request may come (default: 1d)",
              .min = 1),
    CLI_OPTION_JSON(&args.json),
    CLI_SWITCH("quiet", &args.quiet, "print nothing, only set the exit status",
               .letter = 'q'),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem limit -n uploads -u u1 -r r1 --max 8 --per day",
    "idem limit -n plan -u t1 -r q8 -m 50000 -p month --zone Europe/Berlin",
    "idem limit -qn mail -u \"$user\" -r \"$id\" --at \"$ms\" -m 100 -p hour || "
    "exit 75",
    "idem limit -n api -u t1 -r q7 -m 50000 -p 1m --cost 20 --json | jq "
    ".remaining",
    NULL,
};

const struct cli_command cli_limit = {
    .name = "limit",
    .summary = "count a request against a limit, once",
    .usage = "idem limit [OPTION...] -n NAME -u WHO -r ID --max N --per TIME",
    .examples = examples,
    .options = options,
    .run = run,
};
