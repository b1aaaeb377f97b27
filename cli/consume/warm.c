/* The consumer's side of the workers whose commands are kept running. */
#include "consume/warm.h"

#include "process/clock.h"
#include "process/io.h"
#include "process/memory_file.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PAUSE_FIRST_MS = 100, /* After a command that ended without an answer. */
    PAUSE_LONGEST_MS = 10000,
};

/* ---- Starting ---- */

static void close_all(struct consume_worker *worker)
{
    io_close(&worker->channel);
    io_close(&worker->body_fd);
    io_close(&worker->status_fd);
}

static int open_all(struct consume_worker *worker, int *ret_end)
{
    int ends[2];

    if (channel_open(ends) != 0) {
        return -1;
    }
    *ret_end = ends[1];
    worker->channel = ends[0];
    worker->body_fd = memory_file_open("message");
    worker->status_fd = memory_file_open("status");
    return worker->body_fd < 0 || worker->status_fd < 0 ? -1 : 0;
}

/* 0, or -1 with errno. A spawner that is gone is not asked again. */
static int start(struct consume *consume, struct consume_worker *worker)
{
    struct channel_fds fds = channel_no_fds;
    char order = 0;
    int end = -1;
    int why;
    int rc;

    worker->channel = worker->body_fd = worker->status_fd = -1;
    rc = open_all(worker, &end);
    if (rc == 0) {
        fds.fd[WARM_CHANNEL] = end;
        fds.fd[WARM_BODY] = worker->body_fd;
        fds.fd[WARM_STATUS] = worker->status_fd;
        rc = channel_send(consume->spawner, &order, sizeof(order), &fds);
        if (rc != 0) {
            io_close(&consume->spawner);
        }
    }
    why = errno;
    io_close(&end);
    if (rc != 0) {
        close_all(worker);
        errno = why;
        return -1;
    }
    worker->is_warm = true;
    worker->answered = false;
    worker->told_to_end = false;
    consume->warm++;
    return 0;
}

/* ---- Giving ---- */

static int write_part(int fd, struct idem_slice part)
{
    return part.len == 0 ? 0 : io_write_all(fd, part.base, part.len);
}

static int write_message(const struct consume_worker *worker,
                         const struct idem_message *message)
{
    return ftruncate(worker->status_fd, 0) != 0 ||
                   ftruncate(worker->body_fd, 0) != 0 ||
                   lseek(worker->body_fd, 0, SEEK_SET) != 0 ||
                   write_part(worker->body_fd, message->id) != 0 ||
                   write_part(worker->body_fd, message->group) != 0 ||
                   write_part(worker->body_fd, message->body) != 0
               ? -1
               : 0;
}

static int send_order(const struct consume_worker *worker,
                      enum warm_order order)
{
    struct warm_task task;

    memset(&task, 0, sizeof(task));
    task.order = order;
    return channel_send(worker->channel, &task, sizeof(task), &channel_no_fds);
}

/* Where the worker has just died, its channel says so next. */
static int give(const struct consume *consume,
                const struct consume_worker *worker,
                const struct idem_message *message,
                const struct consume_identity *identity)
{
    uint64_t max = idem_consumer_info(consume->consumer)->max_receives;
    struct warm_task task;

    memset(&task, 0, sizeof(task));
    task.order = WARM_WORK;
    task.identity = *identity;
    task.receives = message->receives;
    task.is_last = max != 0 && message->receives >= max;
    task.id_len = message->id.len;
    task.group_len = message->group.len;
    task.body_len = message->body.len;
    if (write_message(worker, message) != 0) {
        return -1;
    }
    (void)channel_send(worker->channel, &task, sizeof(task), &channel_no_fds);
    return 0;
}

int consume_warm_give(struct consume *consume, struct consume_worker *worker,
                      struct idem_message *message,
                      const struct consume_identity *identity)
{
    if (!worker->is_warm && start(consume, worker) != 0) {
        return -1;
    }
    if (give(consume, worker, message, identity) != 0) {
        return -1;
    }
    worker->message = message;
    (void)snprintf(worker->key, sizeof(worker->key), "%s", identity->key);
    return 0;
}

bool consume_warm_is_ready(const struct consume_worker *worker)
{
    return (worker->is_warm && !worker->told_to_end) ||
           (!worker->is_warm && cli_mono_ms() >= worker->start_at_ms);
}

/* ---- Hearing ---- */

/* Commands that end without having answered anything are started less and less
 * often. */
static void ended(struct consume *consume, struct consume_worker *worker)
{
    int64_t pause_ms = 0;

    worker->failures = worker->answered ? 0 : worker->failures + 1;
    if (worker->failures > 0) {
        pause_ms = worker->failures > 8
                       ? PAUSE_LONGEST_MS
                       : (int64_t)PAUSE_FIRST_MS << (worker->failures - 1);
    }
    worker->start_at_ms =
        cli_mono_ms() +
        (pause_ms < PAUSE_LONGEST_MS ? pause_ms : PAUSE_LONGEST_MS);
    worker->is_warm = false;
    consume->warm--;
    io_close(&worker->channel);
    io_close(&worker->body_fd);
}

/* A message that it had not taken is given to another. */
static enum consume_warm_heard hear_end(struct consume *consume,
                                        struct consume_worker *worker,
                                        struct json_object **ret_line)
{
    bool taken = lseek(worker->status_fd, 0, SEEK_END) > 0;

    ended(consume, worker);
    *ret_line = taken ? consume_status_report_line(worker->status_fd) : NULL;
    io_close(&worker->status_fd);
    if (worker->message == NULL) {
        (void)json_object_put(*ret_line);
        *ret_line = NULL;
        return CONSUME_WARM_ENDED;
    }
    return taken ? CONSUME_WARM_TOLD : CONSUME_WARM_NOT_BEGUN;
}

enum consume_warm_heard consume_warm_hear(struct consume *consume,
                                          struct consume_worker *worker,
                                          struct json_object **ret_line)
{
    struct warm_news news;
    int heard;

    if (!worker->is_warm) {
        return CONSUME_WARM_NOTHING;
    }
    heard = channel_receive(worker->channel, &news, sizeof(news),
                            /* wait= */ false, NULL);
    if (heard == 0) {
        return CONSUME_WARM_NOTHING;
    }
    if (heard > 0) {
        worker->answered = worker->answered || news.answered;
        if (news.kind == WARM_NOT_BEGUN) {
            return CONSUME_WARM_NOT_BEGUN;
        }
        *ret_line = consume_status_report_line(worker->status_fd);
        return CONSUME_WARM_TOLD;
    }
    return hear_end(consume, worker, ret_line);
}

/* ---- Ending ---- */

void consume_warm_end(struct consume *consume, bool now)
{
    size_t i;

    for (i = 0; consume->warm > 0 && i < consume->options->workers; i++) {
        struct consume_worker *worker = &consume->workers[i];

        if (worker->is_warm && (now || !worker->told_to_end)) {
            worker->told_to_end = true;
            (void)send_order(worker, now ? WARM_STOP : WARM_END);
        }
    }
}
