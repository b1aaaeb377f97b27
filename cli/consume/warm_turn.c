/* A worker whose command is kept running: it hears its consumer, its supervisor and its
 * command, and reads the lines of that. */
#include "consume/warm.h"
#include "process/io.h"
#include "run/channel.h"
#include "run/supervisor.h"
#include "run/watch.h"
#include "text/error.h"
#include "text/text.h"

#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define LAST_WORDS_MS 200 /* From the end of its output to its own. */

/* ---- What happens ---- */

bool warm_is_over(const struct warm *warm)
{
    return warm->watch.alone;
}

void warm_end_at(struct warm *warm, int64_t ms)
{
    warm->due_ms = ms < warm->due_ms ? ms : warm->due_ms;
}

void warm_break(struct warm *warm, const char *format, ...)
{
    va_list args;

    if (warm->broken[0] != '\0') {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(warm->broken, sizeof(warm->broken), format, args);
    va_end(args);
    cli_say("%s: it is stopped", warm->broken);
    supervisor_say(&warm->supervisor, SUPERVISOR_STOP);
}

static void take_order(struct warm *warm)
{
    int heard = channel_receive(warm->channel, &warm->task, sizeof(warm->task),
                                /* wait= */ false, NULL);

    if (heard == 0) {
        return;
    }
    if (heard > 0 && warm->task.order == WARM_WORK) {
        warm->has_task = true;
        return;
    }
    warm->ending = true;
    if (heard < 0) {
        io_close(&warm->channel);
    } else if (warm->task.order == WARM_STOP) {
        supervisor_say(&warm->supervisor, SUPERVISOR_STOP);
    }
}

/* A command without output can answer nothing. Most often it has just ended. */
static void obey_clock(struct warm *warm)
{
    if (warm->out.fd < 0 && !warm_is_over(warm)) {
        warm_end_at(warm, io_now_ms() + LAST_WORDS_MS);
    }
    if (warm_is_over(warm) || io_now_ms() < warm->due_ms) {
        return;
    }
    if (warm->ending) {
        supervisor_say(&warm->supervisor, SUPERVISOR_STOP);
    } else {
        warm_break(warm, "the command closed its standard output");
    }
    warm->due_ms = INT64_MAX;
}

static int timeout_ms(const struct warm *warm)
{
    int64_t ms = warm->due_ms - io_now_ms();

    if (warm->due_ms == INT64_MAX) {
        return -1;
    }
    return ms < 0 ? 0 : ms > INT_MAX ? INT_MAX : (int)ms;
}

void warm_turn(struct warm *warm)
{
    bool writes = warm->in.written < warm->in.len;
    struct pollfd ready[] = {
        {.fd = warm->has_task ? -1 : warm->channel, .events = POLLIN},
        {.fd = warm_is_over(warm) ? -1 : warm->supervisor.channel,
         .events = POLLIN},
        {.fd = warm->out.too_long ? -1 : warm->out.fd, .events = POLLIN},
        {.fd = writes ? warm->in.fd : -1, .events = POLLOUT},
    };

    (void)poll(ready, 4, timeout_ms(warm));
    if (ready[0].revents != 0) {
        take_order(warm);
    }
    if (ready[2].revents != 0 && warm_reader_move(&warm->out) < 0) {
        warm_break(warm, "out of memory for a line of the command");
    }
    if (ready[3].revents != 0) {
        warm_writer_move(&warm->in);
    }
    if (ready[1].revents != 0) {
        watch_listen(&warm->watch);
    }
    if (warm_is_over(warm)) {
        while (warm_reader_move(&warm->out) > 0) {
        }
    }
    obey_clock(warm);
}

/* ---- Lines ---- */

static void pass_on(struct idem_slice line)
{
    (void)io_write_all(STDERR_FILENO, line.base, line.len + 1);
}

static bool is_id(const char *id, struct idem_slice other)
{
    return id != NULL && strlen(id) == other.len &&
           memcmp(id, other.base, other.len) == 0;
}

/* Of an answer to a message that is not at work. The second one to a message that was
 * answered does no harm; with any other nobody knows what was done. */
static void check_stray(struct warm *warm, const struct warm_answer *answer)
{
    char shown[160];

    (void)cli_escape(answer->id, shown, sizeof(shown));
    if (is_id(warm->ended_id, answer->id)) {
        cli_say(
            "the command answered message %s again; its first answer counts",
            shown);
    } else {
        warm_break(warm,
                   "the command answered message %s, which is not at work",
                   shown);
    }
}

static bool is_same(struct idem_slice a, struct idem_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

bool warm_next_answer(struct warm *warm, struct idem_slice id,
                      struct warm_answer *ret_answer)
{
    struct idem_slice line;

    while (warm_reader_next(&warm->out, &line)) {
        enum warm_line_kind kind = warm_answer_read(line, ret_answer);

        if (kind == WARM_NO_ANSWER || warm->broken[0] != '\0') {
            pass_on(line);
        } else if (id.len == 0 || !is_same(id, ret_answer->id)) {
            check_stray(warm, ret_answer);
        } else if (kind == WARM_BAD) {
            warm_break(warm,
                       "the command gave an outcome that is none of done, "
                       "fail, retry, unknown, release and working");
        } else {
            return true;
        }
        warm_answer_finish(ret_answer);
    }
    if (warm->out.too_long) {
        warm_break(warm, "the command wrote a line of more than %zu bytes",
                   WARM_LINE_MAX);
    }
    return false;
}

/* ---- Its end ---- */

void warm_end_text(const struct warm *warm, char *text, size_t size)
{
    const struct watch *watch = &warm->watch;

    if (warm->broken[0] != '\0') {
        (void)snprintf(text, size, "%s, and was stopped", warm->broken);
    } else if (watch->supervisor_died) {
        (void)snprintf(text, size, "the supervisor of the command was killed");
    } else if (watch->stopping == SUPERVISOR_WHY_LEASE) {
        (void)snprintf(text, size,
                       "the command gave no answer before its lease ended, and "
                       "was stopped");
    } else if (watch->stopping == SUPERVISOR_WHY_MAX_TIME) {
        (void)snprintf(text, size,
                       "the command gave no answer within --max-time, and was "
                       "stopped");
    } else if (watch->stopping == SUPERVISOR_WHY_ORDER) {
        (void)snprintf(text, size, "the command was stopped");
    } else if (watch->end.signal != 0) {
        (void)snprintf(text, size, "the command died of signal %d",
                       watch->end.signal);
    } else {
        (void)snprintf(text, size, "the command ended with status %d",
                       watch->end.exit_status);
    }
}
