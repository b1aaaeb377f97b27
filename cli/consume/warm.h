/* warm.h: commands that are kept running, and given a line for each message
 * (`idem consume --lines`).
 *
 *     consumer ---- fork, before anything is open ----> spawner
 *        |   <- channel: tasks down, news up ->            | fork
 *        '------------------------------------------> worker
 *                                                        |  pipes: lines in, answers out
 *                                            supervisor --> command
 *
 *     warm.c          the consumer's side of the workers
 *     warm_spawner.c  the process that starts them, so that none is forked off a
 *                     process with a thread, a store or a connection
 *     warm_worker.c   a worker from its start to its end
 *     warm_turn.c     all that it hears, and the lines of the command
 *     warm_start.c    the start of its command
 *     warm_work.c     one message in it: the claim, the line, the outcome
 *     warm_pipes.c    lines to the command, and from it
 *     warm_message.c  the line for a message
 *     warm_answer.c   what a line of the command's says
 *
 * A worker has one command, in the charge of a supervisor (run/supervisor.h), and ends with
 * it; the consumer starts another. If the consumer dies, its workers end the
 * message that they are at, record it, and close the input of their commands. If a
 * worker dies, its supervisor ends the command and tells the store.
 */
#ifndef IDEM_CLI_CONSUME_WARM_H
#define IDEM_CLI_CONSUME_WARM_H

#include "consume/consume.h"
#include "request/request.h"
#include "run/channel.h"
#include "run/run.h"
#include "run/supervisor.h"
#include "run/terminal.h"
#include "run/watch.h"

#include <stdio.h>

#define WARM_LINE_MAX ((size_t)1 << 20) /* Bytes of a line of the command's. */

struct warm;

/* ---- Between the consumer and a worker ---------------------------------- */

enum warm_order {
    WARM_WORK = 1, /* The message is in the body file. */
    WARM_END,      /* End the message at work, if any, and then the command. */
    WARM_STOP,     /* End it now. */
};

struct warm_task {
    enum warm_order order;
    struct consume_identity identity;
    uint64_t receives;
    bool is_last; /* The queue allows no other receive. */
    size_t id_len;
    size_t group_len;
    size_t body_len; /* They follow one another in the body file. */
};

enum warm_news_kind {
    WARM_TOLD = 1,  /* The outcome of the message is in the status file. */
    WARM_NOT_BEGUN, /* The command ended before it read of it: nothing ran. */
};

struct warm_news {
    enum warm_news_kind kind;
    bool answered; /* By the command. */
};

/* Which descriptor is which beside the order to start a worker. */
enum warm_fd {
    WARM_CHANNEL,
    WARM_BODY,
    WARM_STATUS,
};

/* Starts the command of @warm. 0, or an exit status after saying why. */
int warm_start(struct warm *warm);

/* In the spawner's child. */
void warm_worker(const struct consume *consume, const struct channel_fds *fds)
    __attribute__((noreturn));

/* ---- What the command says ---------------------------------------------- */

enum warm_line_kind {
    WARM_NO_ANSWER, /* Any other line. */
    WARM_ANSWER,
    WARM_BAD, /* Meant as an answer, but with an outcome that is none. */
};

enum warm_outcome {
    WARM_DONE,
    WARM_FAIL,
    WARM_RETRY,
    WARM_UNKNOWN,
    WARM_RELEASE,
    WARM_WORKING, /* It goes on: the lease is renewed. */
};

struct warm_answer {
    enum warm_outcome outcome;
    struct idem_slice id;
    struct idem_slice error;  /* Of the member "error"; may be empty. */
    struct idem_slice result; /* JSON text as it was written; empty: none. */
    bool has_fence;           /* It says which delivery it answers. */
    uint64_t fence;
    struct json_object *object; /* The text that id and error point into. */
};

/* Reads @line, without its newline. The answer points into it until
 * warm_answer_finish(), which is allowed whatever this returned. */
enum warm_line_kind warm_answer_read(struct idem_slice line,
                                     struct warm_answer *ret_answer);
void warm_answer_finish(struct warm_answer *answer);

/* "done" ...; for people. */
const char *warm_outcome_name(enum warm_outcome outcome);

/* ---- The line for a message --------------------------------------------- */

struct warm_message {
    struct idem_slice id;
    struct idem_slice group;
    struct idem_slice body;
    uint64_t receives;
};

/* The line with its newline, to be freed; NULL: out of memory. */
char *warm_message_line(const struct warm_message *message,
                        const struct idem_attempt *attempt, const char *token,
                        size_t *ret_len);

/* ---- Pipes -------------------------------------------------------------- */

/* Lines to the command. @line is the caller's, and stays until it is written. */
struct warm_writer {
    int fd; /* Non-blocking; -1: closed. */
    const char *line;
    size_t len;
    size_t written;
};

/* Writes what can be written now. */
void warm_writer_move(struct warm_writer *writer);

/* True if the command has read nothing of the line. Of a command that has ended
 * this is final. */
bool warm_writer_is_unread(const struct warm_writer *writer);

/* Lines from it. */
struct warm_reader {
    int fd; /* Non-blocking; -1: it is over. */
    char *buf;
    size_t len;   /* Bytes in it ... */
    size_t taken; /* ... of which so many were given out. */
    size_t size;
    bool too_long; /* A line was, and nothing more is read. */
};

/* Reads what is there, a pipeful at most. 1: something was; 0: nothing; -1: out of
 * memory. */
int warm_reader_move(struct warm_reader *reader);

/* The next whole line, without its newline, until the reader is moved. */
bool warm_reader_next(struct warm_reader *reader, struct idem_slice *ret_line);
void warm_reader_finish(struct warm_reader *reader);

/* ---- A worker ----------------------------------------------------------- */

struct warm {
    const struct consume *consume;
    int channel; /* -1: the consumer is gone. */
    int body_fd;
    int status_fd;
    bool has_task; /* The order to work, in task. */
    struct warm_task task;
    bool ending; /* Nothing more is to be begun. */
    struct run run;
    struct run_options options;
    struct cli_claim claim;
    struct terminal terminal; /* None: for the watch. */
    struct supervisor supervisor;
    struct watch watch; /* The supervisor's report on the command. */
    struct warm_writer in;
    struct warm_reader out;
    int64_t due_ms; /* When the command is ended; INT64_MAX: it is not. */
    char broken
        [160]; /* Why its answers are not taken any more; empty: they are. */
    char *ended_id; /* Of the message that it answered last; NULL: none. */
    int refused;    /* It could not be started: the exit status for it. */
};

/* Waits until something happens, and takes in all of it but the lines. */
void warm_turn(struct warm *warm);

/* True once the command and its descendants have ended, or cannot be ended. */
bool warm_is_over(const struct warm *warm);

/* Ends the command at @ms, by io_now_ms(), if it has not ended before. */
void warm_end_at(struct warm *warm, int64_t ms);

/* Ends the command, because of @format. */
void warm_break(struct warm *warm, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The next line that answers the message @id (empty: none is at work). Passes
 * on output that is not an answer, says what is wrong with the others, and
 * breaks for an answer to a message that was not given. True with @ret_answer,
 * to be finished. */
bool warm_next_answer(struct warm *warm, struct idem_slice id,
                      struct warm_answer *ret_answer);

/* "the command ended with status 3" */
void warm_end_text(const struct warm *warm, char *text, size_t size);

/* Works on the message of warm->task, and tells the consumer what became of it. */
void warm_work(struct warm *warm);

#endif
