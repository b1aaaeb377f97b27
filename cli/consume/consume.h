/* consume.h: what the parts of `idem consume` share.
 *
 *     consume.c     options; the steps in their order
 *     loop.c        receives, begins and ends messages, until it is told to stop
 *     worker.c      starts an `idem run` for one message
 *     message.c     the key of a message, and what becomes of it
 *     report.c      reads a worker's report, and writes lines for people and programs
 *
 * A message is worked on by a process that is `idem run` itself: its supervisor, its
 * lease, its journal and its rules are those of that command. If this process
 * dies, they go on to their end; the message comes back, and is replayed.
 */
#ifndef IDEM_CLI_CONSUME_CONSUME_H
#define IDEM_CLI_CONSUME_CONSUME_H

#include "options/command.h"

#include <idem/consume.h>
#include <idem/key.h>
#include <idem/outcome.h>
#include <json-c/json.h>
#include <signal.h>
#include <sys/types.h>

#define CONSUME_WORKERS_MAX 256

enum consume_fingerprint {
    CONSUME_BODY,
    CONSUME_NO_FINGERPRINT,
};

struct consume_options {
    const char *queue;
    bool insecure;
    uint64_t workers;
    const char *key_from; /* NULL: the id of the message. */
    const char *scope;
    int64_t lease_ms;
    int64_t retention_ms;
    int on_expired_lease; /* enum idem_on_expired_lease */
    uint64_t attempts_max;
    int fingerprint; /* enum consume_fingerprint */
    bool fingerprint_given;
    const char *fingerprint_from; /* NULL: as fingerprint says. */
    bool keep_input;
    const char *outcome; /* The table, as text; NULL: the defaults. */
    struct idem_outcome_table outcomes;
    uint64_t failures_max; /* 0: no budget. */
    int64_t retry_after_ms;
    bool retry_after_given;
    int64_t max_time_ms;
    int64_t kill_after_ms;
    int capture; /* Index into consume_captures. */
    bool until_empty;
    uint64_t max_messages;
    bool json;
    bool verbose;
    bool quiet;
    const char *store;
};

extern const char *const consume_captures[]; /* "none", "both", NULL. */

/* ---- report.c, message.c ---- */

/* The report of `idem run` on a message. */
struct consume_status_report {
    bool told; /* False: there is none. */
    int idem_status;
    bool executed;
    bool recorded;
    const char *verdict; /* "": none. Both point into the line. */
    const char *status;
    bool journaled;        /* Outcomes that were not recorded wait in the
                              journal. */
    int64_t lease_left_ms; /* -1: not said; IDEM_NEVER: it does not end. */
};

/* Reads the line of JSON in the file @fd; the caller releases it with json_object_put().
 * NULL: the file holds less than a whole line. */
struct json_object *consume_status_report_line(int fd);

/* @line may be NULL. */
void consume_status_report_read(struct json_object *line,
                                struct consume_status_report *ret_report);

enum consume_fate {
    CONSUME_DONE = 1, /* On record as completed: it may be deleted. */
    CONSUME_LEAVE,    /* It failed: the queue's redrive policy decides. */
    CONSUME_KEEP,     /* Another attempt may be at work: begin it later. */
    CONSUME_AWAY,     /* The store is unavailable: all messages wait. */
    CONSUME_STOP,     /* Nothing can be done for any message. */
};

struct consume_verdict {
    enum consume_fate fate;
    const char *word; /* "done", "replayed", "failed" ... */
    int64_t ms;       /* KEEP, AWAY: after how long it is begun again. */
};

/* @given: how often the message was begun here. */
struct consume_verdict consume_classify(
    const struct consume_status_report *report, uint64_t given);

/* ---- message.c ---- */

#define CONSUME_FINGERPRINT_MAX (2 * IDEM_FINGERPRINT_LEN + 1)

struct consume;

struct consume_identity {
    char key[IDEM_KEY_MAX + 1];
    char fingerprint[CONSUME_FINGERPRINT_MAX]; /* For --fingerprint of run. */
};

/* 0, or an enum idem_code with a sentence. */
int consume_identify(const struct consume *consume,
                     const struct idem_message *message,
                     struct consume_identity *ret_identity,
                     struct idem_error *ret_error);

/* ---- worker.c ---- */

struct consume_worker {
    struct idem_message *message; /* NULL: the worker is free. */
    int status_fd;                /* The file that gets its report. */
    char key[IDEM_KEY_MAX + 1];
    pid_t pid; /* Of the `idem run` for the message. */
};

struct consume_counts {
    uint64_t done;
    uint64_t replayed;
    uint64_t failed;
    uint64_t unknown;
    uint64_t busy;
    uint64_t away;
};

struct consume {
    const struct cli_command *command;
    const struct consume_options *options;
    char **argv; /* The command; NULL at its end. */
    struct idem_consumer *consumer;
    struct idem_selector *key; /* NULL: the id of a message is its key. */
    struct idem_selector *fingerprint; /* NULL: as the options say. */
    struct consume_worker workers[CONSUME_WORKERS_MAX];
    size_t running; /* Workers with a message. */
    int signal_fd;
    sigset_t before;
    unsigned told; /* How many signals to stop have come. */
    bool stopping;
    bool paused;
    uint64_t begun;
    int status; /* For the end: the first that is not 0. */
    int64_t shown_ms;
    int64_t trouble_ms; /* Trouble is not reported again before then. */
    struct consume_counts counts;
};

/* Starts `idem run` for @message, with its body as input. 0, or -1 with errno. */
int consume_worker_start(struct consume *consume, struct consume_worker *worker,
                         struct idem_message *message,
                         const struct consume_identity *identity);

/* ---- loop.c ---- */

/* Works until it is told to stop, or has done what it was asked for. Returns the exit
 * status. */
int consume_loop(struct consume *consume);

/* ---- report.c ---- */

/* Counts and reports what became of @message. @key is NULL if it has none, and @why says
 * why; @line is the report of `idem run`, or NULL. */
void consume_report(struct consume *consume, const struct idem_message *message,
                    const char *key, const struct consume_verdict *verdict,
                    const char *why, struct json_object *line);

/* Shows a line of progress on a terminal, but not too often. */
void consume_progress(struct consume *consume);

/* Takes that line off the terminal. */
void consume_progress_end(const struct consume *consume);
void consume_summary(const struct consume *consume);

#endif
