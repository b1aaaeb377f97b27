/* Starts an `idem run` for one message. */
#include "consume/consume.h"
#include "process/descriptors.h"
#include "process/self.h"
#include "run/work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    STATUS_FD = 3, /* The descriptor in the worker. */
    ARGS_MAX = 48,
    OWN_LEN = 4,
};

/* ---- The options of `idem run` ---- */

struct args {
    const char *list[ARGS_MAX];
    size_t len;
    char texts[8][40]; /* The values that are numbers. */
    size_t texts_len;
};

static void add(struct args *args, const char *option, const char *value)
{
    args->list[args->len++] = option;
    if (value != NULL) {
        args->list[args->len++] = value;
    }
}

static void add_ms(struct args *args, const char *option, int64_t ms)
{
    char *text = args->texts[args->texts_len++];

    (void)snprintf(text, sizeof(args->texts[0]), "%lldms", (long long)ms);
    add(args, option, ms == IDEM_NEVER ? "never" : text);
}

static void add_count(struct args *args, const char *option, uint64_t count)
{
    char *text = args->texts[args->texts_len++];

    (void)snprintf(text, sizeof(args->texts[0]), "%llu",
                   (unsigned long long)count);
    add(args, option, text);
}

/* Returns the outcome of an exit status other than 0. Such a status does not say whether
 * the work had an effect, so the next receive runs it again, or a person looks. If the
 * queue gives the message up after this receive, the record must say that it failed, and
 * not that it may be tried again. */
static const char *failure(const struct consume *consume,
                           const struct idem_message *message)
{
    const struct consume_options *o = consume->options;
    uint64_t max = idem_consumer_info(consume->consumer)->max_receives;

    if (max != 0 && message->receives >= max) {
        return "fail";
    }
    return o->on_expired_lease == IDEM_HOLD ? "unknown" : "retry";
}

/* True if @status means a failure that the user's table does not name: `idem run` by
 * itself would record it as done. */
static bool is_open(const struct consume_options *o, int status)
{
    bool named;

    return idem_outcome_of_status(&o->outcomes, status, &named) ==
               IDEM_STATUS_COMPLETED &&
           !named && status != 0;
}

/* Makes the table for a worker: the user's table, and the failures that it does not name.
 * The caller frees *@ret_text. 0 or -1. */
static int make_outcome(const struct consume *consume,
                        const struct idem_message *message, char **ret_text)
{
    const struct consume_options *o = consume->options;
    const char *before = o->outcome != NULL ? " " : "";
    size_t len;
    FILE *f = open_memstream(ret_text, &len);
    int from;
    int to;

    if (f == NULL) {
        return -1;
    }
    (void)fputs(o->outcome != NULL ? o->outcome : "", f);
    for (from = 0; from <= UINT8_MAX; from = to + 1) {
        to = from;
        if (!is_open(o, from)) {
            continue;
        }
        while (to < UINT8_MAX && is_open(o, to + 1)) {
            to++;
        }
        (void)fprintf(f, "%s%d-%d", before, from, to);
        before = ",";
    }
    if (*before == ',') {
        (void)fprintf(f, "=%s", failure(consume, message));
    }
    return fclose(f) == 0 ? 0 : -1;
}

/* False at the last receive of a message, or under hold: it must not be run again. */
static bool may_retry(const char *outcome)
{
    struct idem_outcome_table outcomes;

    return idem_outcome_table_read(&outcomes, IDEM_ENDINGS_EXIT, outcome,
                                   NULL) == 0 &&
           ending_may_be_retry(&outcomes);
}

static void fill(struct args *args, const struct consume *consume,
                 const struct consume_identity *identity, const char *outcome)
{
    const struct consume_options *o = consume->options;

    memset(args, 0, sizeof(*args));
    add(args, "idem", "run");
    add(args, "--status-fd", "3");
    add(args, "--key", identity->key);
    add(args, "--fingerprint", identity->fingerprint);
    if (o->scope != NULL) {
        add(args, "--scope", o->scope);
    }
    add_ms(args, "--lease", o->lease_ms);
    add_ms(args, "--retention", o->retention_ms);
    add(args, "--on-expired-lease",
        o->on_expired_lease == IDEM_HOLD ? "hold" : "rerun");
    add_count(args, "--max-attempts", o->attempts_max);
    add(args, "--outcome", outcome);
    if (o->failures_max != 0 && may_retry(outcome)) {
        add_count(args, "--max-failures", o->failures_max);
    }
    if (o->retry_after_ms != 0 && may_retry(outcome)) {
        add_ms(args, "--retry-after", o->retry_after_ms);
    }
    add(args, "--capture", consume_captures[o->capture]);
    add_ms(args, "--kill-after", o->kill_after_ms);
    if (o->max_time_ms != 0) {
        add_ms(args, "--max-time", o->max_time_ms);
    }
    if (o->keep_input) {
        add(args, "--input", "-");
    }
    if (o->store != NULL) {
        add(args, "--store", o->store);
    }
    add(args, o->verbose ? "--verbose" : "--quiet", NULL);
}

/* The options, "--" and the command; to be freed. NULL: out of memory. */
static char **join(const struct args *args, char **command)
{
    size_t n = 0;
    size_t i;
    char **list;

    while (command[n] != NULL) {
        n++;
    }
    list = calloc(args->len + n + 2, sizeof(*list));
    if (list == NULL) {
        return NULL;
    }
    for (i = 0; i < args->len; i++) {
        list[i] = (char *)(uintptr_t)args->list[i];
    }
    list[i++] = (char *)(uintptr_t) "--";
    memcpy(list + i, command, n * sizeof(*list));
    return list;
}

/* ---- The environment ---- */

static int set(char **to, const char *name, struct idem_slice value)
{
    return asprintf(to, "IDEM_%s=%.*s", name, (int)value.len,
                    value.len > 0 ? (const char *)value.base : "") < 0
               ? -1
               : 0;
}

/* Makes the variables that describe the message. 0 or -1; the caller frees the texts in
 * any case. */
static int name_message(char *own[OWN_LEN], const struct idem_message *message)
{
    char receives[24];
    char sent[24] = "";

    (void)snprintf(receives, sizeof(receives), "%llu",
                   (unsigned long long)message->receives);
    if (message->sent_ms != 0) {
        (void)snprintf(sent, sizeof(sent), "%lld", (long long)message->sent_ms);
    }
    return set(&own[0], "MESSAGE_ID", message->id) != 0 ||
                   set(&own[1], "MESSAGE_RECEIVES", idem_str(receives)) != 0 ||
                   set(&own[2], "MESSAGE_GROUP", message->group) != 0 ||
                   set(&own[3], "EVENT_MS", idem_str(sent)) != 0
               ? -1
               : 0;
}

/* ---- Starting ---- */

/* 0 or an errno. */
static int start(const struct consume *consume, const struct args *args,
                 const struct idem_message *message, int status_fd,
                 pid_t *ret_pid)
{
    struct cli_program worker = {
        .path = SELF_PROGRAM,
        .argv = join(args, consume->argv),
        .input =
            memory_file_of("message", message->body.base, message->body.len),
        .from = status_fd,
        .to = STATUS_FD,
        .blocked = consume->before,
    };
    char *own[OWN_LEN] = {NULL};
    int rc = ENOMEM;
    size_t i;

    if (name_message(own, message) == 0) {
        worker.env = cli_environment_with(own, OWN_LEN);
    }
    if (worker.argv != NULL && worker.env != NULL && worker.input >= 0) {
        rc = cli_spawn(&worker, ret_pid);
    }
    for (i = 0; i < OWN_LEN; i++) {
        free(own[i]);
    }
    free(worker.env);
    free(worker.argv);
    io_close(&worker.input);
    return rc;
}

/* Opens the file at a descriptor above STATUS_FD: a dup2() of a descriptor to itself
 * would leave it close-on-exec. */
static int open_status(void)
{
    int low = memory_file_open("status");
    int fd;

    if (low < 0) {
        return -1;
    }
    fd = fcntl(low, F_DUPFD_CLOEXEC, STATUS_FD + 1);
    (void)close(low);
    return fd;
}

int consume_worker_start(struct consume *consume, struct consume_worker *worker,
                         struct idem_message *message,
                         const struct consume_identity *identity)
{
    struct args args;
    char *outcome = NULL;
    int rc;

    worker->status_fd = open_status();
    if (worker->status_fd < 0) {
        return -1;
    }
    rc = ENOMEM;
    if (make_outcome(consume, message, &outcome) == 0) {
        fill(&args, consume, identity, outcome);
        rc = start(consume, &args, message, worker->status_fd, &worker->pid);
    }
    free(outcome);
    if (rc != 0) {
        (void)close(worker->status_fd);
        worker->pid = 0;
        worker->status_fd = -1;
        errno = rc;
        return -1;
    }
    worker->message = message;
    (void)snprintf(worker->key, sizeof(worker->key), "%s", identity->key);
    return 0;
}
