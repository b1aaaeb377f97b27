/* idem consume: runs a command once for each message of a queue. */
#include "consume/consume.h"

#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "process/descriptors.h"
#include "request/identity.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <errno.h>
#include <idem/key.h>
#include <idem/setting.h>

const char *const consume_captures[] = {"none", "both", NULL};

static const char *const fingerprints[] = {
    [CONSUME_BODY] = "body",
    [CONSUME_NO_FINGERPRINT] = "none",
    NULL,
};

static struct consume_options options = {
    .on_expired_lease = IDEM_RERUN,
    .workers = 1,
    .lease_ms = 60000,
    .retention_ms = 86400000,
    .attempts_max = 5,
    .kill_after_ms = 5000,
};

static struct cli_option option_table[] = {
    CLI_VALUE("queue", "URL", CLI_TEXT, &options.queue,
              "the queue, by its URL or its name"),
    CLI_SWITCH("insecure", &options.insecure,
               "allow http:// to another machine"),
    CLI_VALUE("workers", "N", CLI_COUNT, &options.workers,
              "messages to work on at the same time (1)", .letter = 'w',
              .min = 1, .max = CONSUME_WORKERS_MAX),
    CLI_VALUE("key-from", "SEL", CLI_TEXT, &options.key_from,
              "select the key from the body (default: the message's id)"),
    CLI_OPTION_SCOPE(&options.scope),
    CLI_VALUE("lease", "TIME", CLI_DURATION, &options.lease_ms,
              "lease duration, unless renewed (60s)", .as = IDEM_SETTING_LEASE),
    CLI_VALUE("retention", "TIME", CLI_DURATION, &options.retention_ms,
              "how long a duplicate is recognised (24h)",
              .as = IDEM_SETTING_RETENTION),
    CLI_OPTION_POLICY(&options.on_expired_lease,
                      "rerun, or hold (a person must look)"),
    CLI_VALUE("max-attempts", "N", CLI_COUNT, &options.attempts_max,
              "give up after N starts; 0: never (5)",
              .as = IDEM_SETTING_MAX_ATTEMPTS),
    CLI_VALUE("fingerprint", "WHAT", CLI_CHOICE, &options.fingerprint,
              "compare duplicates by: body, none", .choices = fingerprints,
              .given = &options.fingerprint_given),
    CLI_VALUE("fingerprint-from", "SEL", CLI_TEXT, &options.fingerprint_from,
              "compare only this selection of the body"),
    CLI_SWITCH("keep-input", &options.keep_input,
               "keep the body with the record, for people"),
    CLI_OPTION_OUTCOME(
        &options.outcome,
        "the meaning of exit statuses (jobs; hold: *=unknown; at "
        "the last receive: *=fail)"),
    CLI_OPTION_MAX_FAILURES(&options.failures_max),
    CLI_VALUE("retry-after", "TIME", CLI_DURATION, &options.retry_after_ms,
              "when a failed message comes back (default: "
              "when its visibility ends)",
              .max = 43200000, .given = &options.retry_after_given),
    CLI_OPTION_MAX_TIME(&options.max_time_ms),
    CLI_OPTION_KILL_AFTER(&options.kill_after_ms),
    CLI_VALUE("capture", "WHAT", CLI_CHOICE, &options.capture,
              "none: leave the output alone; both: record it",
              .choices = consume_captures),
    CLI_SWITCH("until-empty", &options.until_empty,
               "exit once the queue is empty"),
    CLI_VALUE("max", "N", CLI_COUNT, &options.max_messages,
              "exit after N messages"),
    CLI_OPTION_JSON(&options.json),
    CLI_OPTION_VERBOSE(&options.verbose),
    CLI_OPTION_QUIET(&options.quiet),
    CLI_OPTION_STORE(&options.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem consume --queue orders -- ./handle-order",
    "idem consume --queue orders -w 8 --lease 30s -- ./handle-order",
    "idem consume --queue orders --key-from '[.tenant, .orderId]' -- ./charge",
    "idem consume --queue orders --until-empty --json -- ./import",
    NULL,
};

static int check(const struct cli_command *command, int argc)
{
    struct idem_error error = {0};
    char lease[32];

    if (argc < 1) {
        return cli_usage(
            command,
            "no command given: idem consume [OPTION...] --queue URL -- COMMAND [ARG...]");
    }
    if (options.queue == NULL) {
        return cli_usage(command, "no queue given: --queue URL");
    }
    if (idem_outcome_table_read(&options.outcomes, IDEM_ENDINGS_EXIT,
                                options.outcome, &error) != 0) {
        return cli_usage(command, "--outcome: %s", error.text);
    }
    if (options.fingerprint_given && options.fingerprint_from != NULL) {
        return cli_usage(command, "give the fingerprint once: --fingerprint or "
                                  "--fingerprint-from");
    }
    if (options.lease_ms > options.retention_ms) {
        idem_setting_time(options.lease_ms, lease);
        return cli_usage(command, "--retention is shorter than --lease %s",
                         lease);
    }
    return 0;
}

static int check_lease(int64_t min_ms)
{
    char lease[32];
    char min[32];

    if (options.lease_ms >= min_ms) {
        return 0;
    }
    idem_setting_time(options.lease_ms, lease);
    idem_setting_time(min_ms, min);
    cli_say("--lease %s is too short for this store; the shortest is %s", lease,
            min);
    return CLI_USAGE;
}

/* Opens the store once, so that a store that cannot be opened is reported before a
 * message is received. */
static int check_store(void)
{
    struct idem_store *store;
    bool budgets = options.failures_max != 0 || options.retry_after_ms != 0;
    int status =
        cli_open_store(options.store, budgets ? IDEM_OPEN_BUDGETS : 0, &store);

    if (status == 0) {
        status = check_lease(idem_store_lease_min_ms(store));
        idem_close(store);
    }
    return status;
}

static int open_consumer(struct consume *consume)
{
    struct idem_consumer_options to = IDEM_CONSUMER_OPTIONS_INIT;
    struct cli_descriptors noted;
    struct idem_error error = {0};

    to.queue = options.queue;
    to.insecure = options.insecure;
    to.hold_max = (size_t)options.workers;
    if (options.until_empty) {
        to.wait_ms = 1000;
    }
    cli_descriptors_note(&noted);
    error.code = idem_consumer_open(&to, &consume->consumer, &error);
    cli_descriptors_keep(&noted);
    if (error.code == 0) {
        return 0;
    }
    cli_say("the queue: %s", error.text);
    return error.code == IDEM_ENOTFOUND ? CLI_CONFIG : cli_exit_of(error.code);
}

/* ---- Settings of the queue that do not fit this use of it ---- */

/* While the lease of a message runs, nobody else can begin it, even if its owner is
 * dead. */
static void check_visibility(const struct idem_consumer_queue *queue)
{
    char visibility[32], lease[32];

    if (queue->visibility_ms >= options.lease_ms) {
        return;
    }
    idem_setting_time(queue->visibility_ms, visibility);
    idem_setting_time(options.lease_ms, lease);
    cli_say(
        "the queue: its visibility timeout (%s) is shorter than the lease (%s): when a "
        "consumer dies, its message comes back before another may begin it, "
        "and that receive counts; set its VisibilityTimeout to %s, or use a shorter --lease",
        visibility, lease, lease);
}

static void check_dead_letter(const struct idem_consumer_queue *queue)
{
    if (queue->max_receives == 0) {
        cli_say(
            "the queue: it has no dead-letter queue: a message that always fails comes "
            "back until it is too old, and is deleted then");
        return;
    }
    if (queue->dead_letter_missing) {
        cli_say("the queue: its dead-letter queue %.200s does not exist",
                queue->dead_letter);
    }
    if (queue->max_receives == 1) {
        cli_say(
            "the queue: a message goes to its dead-letter queue after one receive (maxReceiveCount), even if a consumer dies before it starts the work");
    }
}

/* Each start of the work takes one receive at least. */
static void check_receives(const struct idem_consumer_queue *queue)
{
    if (options.attempts_max == 0 || queue->max_receives == 0 ||
        options.attempts_max >= queue->max_receives) {
        return;
    }
    cli_say(
        "the queue: it gives a message up after %llu receives, and --max-attempts is "
        "%llu: after that many starts without an outcome, the remaining "
        "receives run nothing",
        (unsigned long long)queue->max_receives,
        (unsigned long long)options.attempts_max);
}

static void check_queue(const struct consume *consume)
{
    const struct idem_consumer_queue *queue =
        idem_consumer_info(consume->consumer);

    check_visibility(queue);
    check_dead_letter(queue);
    check_receives(queue);
}

static int open_selectors(struct consume *consume)
{
    int status = 0;

    if (options.key_from != NULL) {
        status = cli_extract_open("key-from", options.key_from, &consume->key);
    }
    if (status == 0 && options.fingerprint_from != NULL) {
        status = cli_extract_open("fingerprint-from", options.fingerprint_from,
                                  &consume->fingerprint);
    }
    return status;
}

static int act(struct consume *consume)
{
    int status = open_selectors(consume);

    if (status != 0) {
        goto done;
    }
    status = check_store();
    if (status != 0) {
        goto done;
    }
    status = open_consumer(consume);
    if (status != 0) {
        goto done;
    }
    check_queue(consume);
    status = consume_loop(consume);
    consume_summary(consume);
done:
    idem_consumer_close(consume->consumer);
    idem_selector_destroy(consume->key);
    idem_selector_destroy(consume->fingerprint);
    return status;
}

static int consume_main(const struct cli_command *command, int argc,
                        char **argv)
{
    static struct consume consume = {.options = &options};
    int status = check(command, argc);

    consume.command = command;
    consume.argv = argv;
    return status != 0 ? status : act(&consume);
}

const struct cli_command cli_consume = {
    .name = "consume",
    .summary = "run a command once for each message of an SQS queue",
    .usage = "idem consume [OPTION...] --queue URL -- COMMAND [ARG...]",
    .examples = examples,
    .options = option_table,
    .run = consume_main,
    .takes_command = true,
};
