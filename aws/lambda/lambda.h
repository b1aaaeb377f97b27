/* The structures that the files of the runtime share: the function, and one
 * delivery to it. */
#ifndef IDEM_AWS_LAMBDA_LAMBDA_H
#define IDEM_AWS_LAMBDA_LAMBDA_H

#include <idem/lambda.h>
#include <idem/outcome.h>
#include <idem/queue.h>

#include "aws/lambda/event.h"

#include <strings.h>

#define IDEM__LAMBDA_TYPE_MAX 128 /* Bytes of an error's class, with its NUL. */
#define IDEM__LAMBDA_TEXT_MAX 1024 /* Bytes of an error's message. */

/* A program is stopped so long before the deadline, in ms, and a batch waits no longer
 * for its store: what is left is for the response. */
#define IDEM__LAMBDA_STOP_MS 500

/* How a handler ended. */
enum idem__lambda_end {
    IDEM__LAMBDA_DONE = 1,
    IDEM__LAMBDA_ERROR,   /* It said so: type and text. */
    IDEM__LAMBDA_STOPPED, /* It was stopped, or died, midway; likewise. */
    IDEM__LAMBDA_SILENT,  /* It ended well, without a response; likewise. */
    IDEM__LAMBDA_USELESS, /* Done, but its response cannot be sent; likewise. */
    IDEM__LAMBDA_NOT_RUN, /* It could not be started; likewise. */
};

/* One run of a handler. call is the first member: the public functions find the
 * run by it. */
struct idem__lambda_run {
    struct idem_lambda_call call;
    enum idem__lambda_end end;
    struct idem__buffer answer;
    char type[IDEM__LAMBDA_TYPE_MAX];
    char text[IDEM__LAMBDA_TEXT_MAX];
    bool no_memory;
    bool too_long;    /* The answer: it was not kept. */
    size_t noise_len; /* Bytes that a program wrote before its answer. */
    bool nothing;     /* ERROR: the handler says that nothing happened. */
};

/* The uses of the selectors in the options. */
enum idem__lambda_what {
    IDEM__LAMBDA_KEY,
    IDEM__LAMBDA_SCOPE,
    IDEM__LAMBDA_FINGERPRINT,
    IDEM__LAMBDA_WHATS_LEN
};

struct idem_selector;
struct idem__lambda_hider;
struct idem__lambda_metrics;

/* See ends.h. */
struct idem__lambda_ends {
    struct idem_queue *queue; /* NULL: nothing was sent yet. */
    struct idem__lambda_ending *first;
    struct idem__lambda_ending *last;
    size_t left_bytes; /* Of those that nobody waits for any more. */
};

struct idem_lambda {
    const struct idem_lambda_options *options;
    struct idem_outcome_table outcomes;
    struct idem_store *store;
    char *program; /* NULL: no executable. */
    idem_lambda_fn *run;
    struct idem_selector *selects[IDEM__LAMBDA_WHATS_LEN]; /* NULL: none. */
    struct idem__lambda_metrics *metrics; /* NULL: nothing is counted. */
    struct idem__lambda_ends ends;
    struct idem__lambda_hider *hider; /* NULL: nothing was hidden yet. */

    /* This delivery. */
    const struct idem_lambda_invocation *now;
    struct idem__lambda_run work;
    struct idem__tree tree;    /* Of the event. */
    struct idem__buffer event; /* Of one record. */
    struct idem__buffer input; /* The part of it that is kept. */
    struct idem__buffer response;
    char error_type[IDEM__LAMBDA_TYPE_MAX];
    bool many; /* Headers have lists of values, as some balancers want them. */
    int64_t event_ms; /* When what the handler runs on happened; 0: not said. */
    int64_t retry_after_s; /* For HTTP, where another try is worth it. */
    unsigned ran;
    bool warned; /* That the key is a weak one. */
};

/* How long this delivery may still take, in ms; negative: its time is over. */
int64_t idem__lambda_left_ms(const struct idem_lambda_invocation *now);

/* From now on the store has @ms for each operation, and no more than the options say:
 * a store that works in our thread, as a file does, waits so long for a lock that is
 * not ours, whatever its queue is reaped with. */
void idem__lambda_allow(const struct idem_lambda *lambda, int64_t ms);

/* ---- Settings ----------------------------------------------------------- */

/* True if @word is one of @list, in whatever case. */
static inline bool idem__lambda_is_in_list(const char *list,
                                           struct idem_slice word)
{
    while (*list != '\0') {
        size_t len = strcspn(list, ",");

        if (len == word.len && strncasecmp(list, word.base, len) == 0) {
            return true;
        }
        list += len;
        list += *list == ',' ? 1 : 0;
    }
    return false;
}

/* IDEM_EINVALID (the sentence names the variable), IDEM_ECONFIG, IDEM_ENOMEM */
int idem__lambda_selects_init(struct idem_lambda *lambda,
                              struct idem_error *ret_error);
void idem__lambda_selects_finish(struct idem_lambda *lambda);

/* True if there is a selector for @what. */
bool idem__lambda_selects_has(const struct idem_lambda *lambda,
                              enum idem__lambda_what what);

/* Appends what the selector for @what selects of @json: a text as idem_key_of() makes
 * one, of IDEM__LAMBDA_FINGERPRINT the values.
 *
 * IDEM_EINVALID   It selects nothing that will do; the sentence names the variable.
 * IDEM_ENOTFOUND  The key is not there.
 * IDEM_ENOMEM
 */
int idem__lambda_select(struct idem_lambda *lambda, enum idem__lambda_what what,
                        struct idem_slice json, struct idem__buffer *to,
                        struct idem_error *ret_error);

/* ---- The log ------------------------------------------------------------ */

/* One more member of a line; text that is no UTF-8 is shown as it can be. */
struct idem__lambda_field {
    const char *name;       /* NULL: the end. */
    struct idem_slice text; /* base NULL: number is the value. */
    uint64_t number;
};

/* @level: "INFO", "WARN", "ERROR". @now may be NULL: no delivery. @fields may be
 * NULL, else ends with a name of NULL. The line goes out in one write. */
void idem__lambda_log(const struct idem_lambda_invocation *now,
                      const char *level,
                      const struct idem__lambda_field *fields,
                      const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Makes lambda->metrics where the options ask for it; IDEM_ENOMEM. */
int idem__lambda_metrics_init(struct idem_lambda *lambda,
                              struct idem_error *ret_error);

/* The store is closed. */
void idem__lambda_metrics_finish(struct idem_lambda *lambda);

/* Has the store that is opened with @options counted. */
void idem__lambda_metrics_observe(const struct idem_lambda *lambda,
                                  struct idem_open_options *options);

/* Writes what was counted since the last time to the log, if there is any. */
void idem__lambda_metrics_log(struct idem_lambda *lambda);

/* ---- The handler -------------------------------------------------------- */

/* Finds what the options name. @lambda then has run or program.
 *
 * IDEM_EINVALID  Nothing is named.
 * IDEM_ECONFIG   It is not there or cannot be used.
 * IDEM_ENOMEM
 */
int idem__lambda_handler_init(struct idem_lambda *lambda,
                              struct idem_error *ret_error);
void idem__lambda_handler_finish(struct idem_lambda *lambda);

/* Runs it on @event (with a NUL after it) under @attempt, which may be NULL.
 * How it ended is in lambda->work. */
void idem__lambda_handler_run(struct idem_lambda *lambda,
                              struct idem_slice event,
                              const struct idem_attempt *attempt);

/* One that is a program. */
void idem__lambda_program_run(struct idem_lambda *lambda);

/* How the run failed: @type is cut and cleaned to the letters of a class. */
void idem__lambda_run_error(struct idem__lambda_run *run,
                            enum idem__lambda_end end, struct idem_slice type,
                            struct idem_slice text);

/* Ours, without the Runtime API's address and (unless the options say so) without
 * credentials, and with what lambda->work.call says; NULL: no memory. */
char **idem__lambda_environment(const struct idem_lambda *lambda);

void idem__lambda_environment_free(char **env);

#endif
