/* Receives, begins and ends messages, until it is told to stop. */
#include "consume/consume.h"
#include "process/host.h"
#include "process/self.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LONGEST_MS = 60000,
    FLUSH_MS = 10000, /* For the last deletions. */
    AGAIN_MS = 1000,
    TROUBLE_MS = 60000, /* Between two messages about the queue. */
};

static void stop(struct consume *consume)
{
    consume->stopping = true;
    idem_consumer_stop(consume->consumer);
}

/* ---- Ends ---- */

/* While the store is unavailable, each receive would count against a message that nobody
 * can begin, so receiving pauses. The messages that are held are begun again from time to
 * time, and so find out when the store is back. */
static void note_store(struct consume *consume, enum consume_fate fate)
{
    bool away = fate == CONSUME_AWAY;

    if (away != consume->paused) {
        consume->paused = away;
        idem_consumer_pause(consume->consumer, away);
        consume_progress_end(consume);
        cli_say(away ? "store unavailable; receiving paused"
                     : "store available; receiving again");
    }
}

static void note_failure(struct consume *consume, const char *word)
{
    if (consume->status == 0) {
        consume->status = strcmp(word, "unknown") == 0    ? CLI_UNKNOWN
                          : strcmp(word, "mismatch") == 0 ? CLI_MISMATCH
                                                          : CLI_FAILED;
    }
}

static void leave(struct consume *consume, struct idem_message *message)
{
    const struct consume_options *o = consume->options;

    idem_consumer_leave(consume->consumer, message,
                        o->retry_after_given ? o->retry_after_ms : -1);
}

static void apply(struct consume *consume, struct idem_message *message,
                  const struct consume_verdict *verdict, int idem_status)
{
    switch (verdict->fate) {
    case CONSUME_DONE:
        idem_consumer_delete(consume->consumer, message);
        break;
    case CONSUME_LEAVE:
        note_failure(consume, verdict->word);
        leave(consume, message);
        break;
    case CONSUME_KEEP:
    case CONSUME_AWAY:
        idem_consumer_keep(consume->consumer, message, verdict->ms);
        break;
    case CONSUME_STOP:
        consume->status = idem_status;
        idem_consumer_leave(consume->consumer, message, 0);
        stop(consume);
        break;
    }
}

/* @line: the worker's report on its message, or NULL. */
static void take_end(struct consume *consume, struct consume_worker *worker,
                     struct json_object *line)
{
    struct idem_message *message = worker->message;
    struct consume_verdict verdict;
    struct consume_status_report report;

    worker->message = NULL;
    consume->running--;
    consume_status_report_read(line, &report);
    verdict = consume_classify(&report, message->given);
    if (report.told) {
        note_store(consume, verdict.fate);
    }
    consume_report(consume, message, worker->key, &verdict, /* why= */ NULL,
                   line);
    apply(consume, message, &verdict, report.idem_status);
    (void)json_object_put(line);
}

/* One SIGCHLD may announce several ends, so this looks at every worker. Only after its
 * end has a worker written its whole report. */
static void take_ends(struct consume *consume)
{
    size_t i;

    for (i = 0; i < consume->options->workers; i++) {
        struct consume_worker *worker = &consume->workers[i];
        int how;

        if (worker->pid != 0 && waitpid(worker->pid, &how, WNOHANG) > 0) {
            struct json_object *line =
                consume_status_report_line(worker->status_fd);

            (void)close(worker->status_fd);
            worker->pid = 0;
            take_end(consume, worker, line);
        }
    }
}

/* ---- Starts ---- */

static struct consume_worker *free_worker(struct consume *consume)
{
    size_t i;

    for (i = 0; i < consume->options->workers; i++) {
        if (consume->workers[i].message == NULL) {
            return &consume->workers[i];
        }
    }
    return NULL;
}

static void refuse(struct consume *consume, struct idem_message *message,
                   const struct idem_error *error)
{
    static const struct consume_verdict no_key = {.fate = CONSUME_LEAVE,
                                                  .word = "no key"};

    consume_report(consume, message, /* key= */ NULL, &no_key, error->text,
                   /* line= */ NULL);
    note_failure(consume, no_key.word);
    leave(consume, message);
}

static void begin(struct consume *consume, struct consume_worker *worker,
                  struct idem_message *message)
{
    struct idem_error error = {0};
    struct consume_identity identity;
    int rc = consume_identify(consume, message, &identity, &error);

    if (rc == IDEM_EUNAVAILABLE || rc == IDEM_ENOMEM) {
        idem_consumer_keep(consume->consumer, message, AGAIN_MS);
    } else if (rc != 0) {
        refuse(consume, message, &error);
    } else if (consume_worker_start(consume, worker, message, &identity) != 0) {
        cli_say("cannot start a worker: %s", strerror(errno));
        idem_consumer_keep(consume->consumer, message, AGAIN_MS);
    } else {
        consume->running++;
    }
}

static void begin_what_can(struct consume *consume)
{
    const struct consume_options *o = consume->options;
    struct idem_message *message;
    struct consume_worker *worker;

    while (!consume->stopping && (worker = free_worker(consume)) != NULL &&
           (message = idem_consumer_next(consume->consumer)) != NULL) {
        consume->begun += message->given == 1;
        begin(consume, worker, message);
        if (o->max_messages != 0 && consume->begun >= o->max_messages) {
            stop(consume);
        }
    }
}

/* ---- The loop ---- */

/* After the first signal no message is begun, and the work in progress goes on to its
 * end. Each later signal is passed on to that work, and its `idem run` decides what
 * becomes of it. */
static void told_to_stop(struct consume *consume, int signo)
{
    size_t i;

    if (consume->told++ == 0) {
        if (!consume->options->quiet && consume->running > 0) {
            consume_progress_end(consume);
            cli_say("stopping; %zu in progress", consume->running);
        }
        stop(consume);
        return;
    }
    for (i = 0; i < consume->options->workers; i++) {
        if (consume->workers[i].pid != 0) {
            (void)kill(consume->workers[i].pid, signo);
        }
    }
}

static void take_signals(struct consume *consume)
{
    int signo;

    while ((signo = signal_fd_next(consume->signal_fd)) != 0) {
        if (signo == SIGCHLD) {
            take_ends(consume);
        } else {
            told_to_stop(consume, signo);
        }
    }
}

/* A queue that does not answer is asked again for as long as it takes. */
static void tell_trouble(struct consume *consume)
{
    const char *trouble = idem_consumer_trouble(consume->consumer);
    int64_t now_ms = cli_mono_ms();

    if (trouble != NULL && !consume->stopping && !consume->options->quiet &&
        now_ms >= consume->trouble_ms) {
        consume->trouble_ms = now_ms + TROUBLE_MS;
        consume_progress_end(consume);
        cli_say("the queue: %s; retrying", trouble);
    }
}

static void work(struct consume *consume)
{
    struct idem_error error = {0};

    if (idem_consumer_work(consume->consumer, &error) != 0 &&
        !consume->stopping) {
        consume_progress_end(consume);
        cli_say("%s; stopping", error.text);
        consume->status =
            error.code == IDEM_ENOTFOUND ? CLI_CONFIG : cli_exit_of(error.code);
        stop(consume);
    }
    tell_trouble(consume);
    if (consume->options->until_empty && !consume->stopping &&
        consume->running == 0 && idem_consumer_is_empty(consume->consumer)) {
        stop(consume);
    }
}

static void wait_for_news(struct consume *consume)
{
    struct pollfd news[2] = {
        {.fd = consume->signal_fd, .events = POLLIN},
        {.fd = idem_consumer_fd(consume->consumer), .events = POLLIN},
    };
    int64_t ms = idem_consumer_due_ms(consume->consumer) - cli_mono_ms();

    if (ms > 0) {
        (void)poll(news, 2, (int)(ms < LONGEST_MS ? ms : LONGEST_MS));
    }
}

/* After a stop it waits for the work in progress, and then for the last requests to the
 * queue. */
static bool is_over(struct consume *consume, int64_t *flush_until_ms)
{
    if (!consume->stopping || consume->running > 0) {
        return false;
    }
    if (*flush_until_ms == 0) {
        *flush_until_ms = cli_mono_ms() + FLUSH_MS;
    }
    return idem_consumer_busy(consume->consumer) == 0 ||
           cli_mono_ms() >= *flush_until_ms;
}

static int take_over_signals(struct consume *consume)
{
    static const int taken[] = {SIGCHLD, SIGHUP, SIGINT, SIGTERM};
    sigset_t set;
    size_t i;

    /* An inherited SIG_IGN would reap the workers before waitpid() could find them. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&set);
    for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        (void)sigaddset(&set, taken[i]);
    }
    consume->signal_fd = signal_fd_open(&set);
    return consume->signal_fd < 0
               ? -1
               : sigprocmask(SIG_BLOCK, &set, &consume->before);
}

/* After a signal the exit status does not report messages that have failed: a stop that
 * was asked for is not a failure. */
static int end_status(const struct consume *consume)
{
    bool is_about_messages = consume->status == CLI_FAILED ||
                             consume->status == CLI_UNKNOWN ||
                             consume->status == CLI_MISMATCH;

    return consume->told > 0 && is_about_messages ? 0 : consume->status;
}

int consume_loop(struct consume *consume)
{
    int64_t flush_until_ms = 0;

    if (take_over_signals(consume) != 0) {
        cli_say("cannot watch for signals: %s", strerror(errno));
        return CLI_UNAVAILABLE;
    }
    for (;;) {
        take_signals(consume);
        work(consume);
        begin_what_can(consume);
        if (is_over(consume, &flush_until_ms)) {
            break;
        }
        consume_progress(consume);
        wait_for_news(consume);
    }
    (void)close(consume->signal_fd);
    return end_status(consume);
}
