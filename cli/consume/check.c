/* Finds the settings of the queue that do not fit this use of it. */
#include "consume/consume.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <idem/setting.h>
#include <stdarg.h>

static void warn(unsigned *warnings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void warn(unsigned *warnings, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    cli_say("the queue: %s", text);
    (*warnings)++;
}

/* While the lease runs its owner is at work, or dead: nobody else can begin. */
static void check_visibility(const struct consume_options *options,
                             const struct idem_consumer_queue *queue,
                             unsigned *warnings)
{
    int64_t visibility_ms = options->visibility_ms != 0 ? options->visibility_ms
                                                        : queue->visibility_ms;
    char visibility[32], lease[32];

    if (visibility_ms >= options->lease_ms) {
        return;
    }
    idem_setting_time(visibility_ms, visibility);
    idem_setting_time(options->lease_ms, lease);
    warn(warnings,
         "its visibility timeout (%s) is shorter than the lease (%s): when a "
         "consumer dies, its message comes back before another may begin it, "
         "and that receive counts; use --visibility %s, or a shorter --lease",
         visibility, lease, lease);
}

static void check_dead_letter(const struct idem_consumer_queue *queue,
                              unsigned *warnings)
{
    if (queue->max_receives == 0) {
        warn(warnings,
             "it has no dead-letter queue: a message that always fails comes "
             "back until it is too old, and is deleted then");
        return;
    }
    if (queue->dead_letter_missing) {
        warn(warnings, "its dead-letter queue %.200s does not exist",
             queue->dead_letter);
    }
    if (queue->max_receives == 1) {
        warn(
            warnings,
            "a message goes to its dead-letter queue after one receive (maxReceiveCount), even if a consumer dies before it starts the work");
    }
}

/* Each start of the work takes one receive at least. */
static void check_receives(const struct consume_options *options,
                           const struct idem_consumer_queue *queue,
                           unsigned *warnings)
{
    if (options->attempts_max == 0 || queue->max_receives == 0 ||
        options->attempts_max >= queue->max_receives) {
        return;
    }
    warn(warnings,
         "it gives a message up after %llu receives, and --max-attempts is "
         "%llu: after so many starts whose end nobody knows, the receives "
         "that are left run nothing",
         (unsigned long long)queue->max_receives,
         (unsigned long long)options->attempts_max);
}

int consume_check(const struct consume *consume)
{
    const struct idem_consumer_queue *queue =
        idem_consumer_info(consume->consumer);
    unsigned warnings = 0;

    check_visibility(consume->options, queue, &warnings);
    check_dead_letter(queue, &warnings);
    check_receives(consume->options, queue, &warnings);
    if (warnings > 0 && consume->options->strict) {
        cli_say("nothing was received, because of --strict");
        return CLI_CONFIG;
    }
    return 0;
}
