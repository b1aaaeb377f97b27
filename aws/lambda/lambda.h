/* The structures that the files of the runtime share: the function, and one delivery to
 * it. */
#ifndef IDEM_AWS_LAMBDA_LAMBDA_H
#define IDEM_AWS_LAMBDA_LAMBDA_H

#include <idem/lambda.h>
#include <idem/outcome.h>
#include <idem/queue.h>

#include "aws/lambda/event.h"

#include <strings.h>

#define IDEM__LAMBDA_TYPE_MAX 128 /* Bytes of an error's class, with its NUL. */
#define IDEM__LAMBDA_TEXT_MAX 1024 /* Bytes of an error's message. */

/* So many ms before the deadline a program is stopped, and a batch stops waiting for its
 * store. The rest of the time is for the response. */
#define IDEM__LAMBDA_STOP_MS 500

/* How a handler ended. */
enum idem__lambda_end {
    IDEM__LAMBDA_DONE = 1,
    /* Each of these has a type and a text: */
    IDEM__LAMBDA_ERROR,   /* It returned an error. */
    IDEM__LAMBDA_STOPPED, /* It was stopped, or died, midway. */
    IDEM__LAMBDA_SILENT,  /* It ended with success, but wrote no response. */
    IDEM__LAMBDA_USELESS, /* Done, but its response cannot be sent. */
    IDEM__LAMBDA_NOT_RUN, /* It could not be started. */
};

/* One run of a handler. call is the first member, because the public functions find the
 * run by it. */
struct idem__lambda_run {
    struct idem_lambda_call call;
    enum idem__lambda_end end;
    struct idem__buffer answer;
    char type[IDEM__LAMBDA_TYPE_MAX];
    char text[IDEM__LAMBDA_TEXT_MAX];
    bool no_memory;
    bool too_long;    /* The answer was too long, and was not kept. */
    size_t noise_len; /* Bytes that a program wrote before its answer. */
    bool nothing;     /* ERROR: the handler reports that nothing happened. */
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
    size_t left_bytes; /* Of the ends that earlier deliveries have left. */
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
    struct idem__tree tree;    /* The event. */
    struct idem__buffer event; /* An event with one record. */
    struct idem__buffer input; /* The part of the event that is kept. */
    struct idem__buffer response;
    char error_type[IDEM__LAMBDA_TYPE_MAX];
    bool many; /* Headers have lists of values, for some load balancers. */
    int64_t event_ms;      /* When the event happened; 0: unknown. */
    int64_t retry_after_s; /* For HTTP, if another try may succeed. */
    unsigned ran;
    bool warned; /* The log has the warning of a weak key. */
};

/* Returns how long this delivery may still take, in ms; negative: its time is over. */
int64_t idem__lambda_left_ms(const struct idem_lambda_invocation *now);

/* Gives the store @ms for each operation from now on, but not more than the options. A
 * store that works in our thread, such as a file, waits this long for a lock of another
 * process, whatever deadline its queue is reaped with. */
void idem__lambda_allow(const struct idem_lambda *lambda, int64_t ms);

/* ---- Settings ----------------------------------------------------------- */

/* True if @word is in the comma-separated @list, regardless of case. */
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

/* Compiles the selectors of the options. IDEM_EINVALID (the message names the variable),
 * IDEM_ECONFIG, IDEM_ENOMEM */
int idem__lambda_selects_init(struct idem_lambda *lambda,
                              struct idem_error *ret_error);
void idem__lambda_selects_finish(struct idem_lambda *lambda);

/* True if there is a selector for @what. */
bool idem__lambda_selects_has(const struct idem_lambda *lambda,
                              enum idem__lambda_what what);

/* Appends what the selector for @what selects from @json: a text made by idem_key_of(), or
 * for IDEM__LAMBDA_FINGERPRINT the values.
 *
 * IDEM_EINVALID   It selects nothing usable; the message names the variable.
 * IDEM_ENOTFOUND  The key is missing.
 * IDEM_ENOMEM
 */
int idem__lambda_select(struct idem_lambda *lambda, enum idem__lambda_what what,
                        struct idem_slice json, struct idem__buffer *to,
                        struct idem_error *ret_error);

/* ---- The log ------------------------------------------------------------ */

/* One more member of a line. Bytes of a text that are not UTF-8 become U+FFFD. */
struct idem__lambda_field {
    const char *name;       /* NULL: the end. */
    struct idem_slice text; /* base NULL: number is the value. */
    uint64_t number;
};

/* Writes a line to the log. @level: "INFO", "WARN", "ERROR". @now: NULL outside a
 * delivery. @fields: NULL, or ends with a name of NULL. */
void idem__lambda_log(const struct idem_lambda_invocation *now,
                      const char *level,
                      const struct idem__lambda_field *fields,
                      const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Creates lambda->metrics if the options request it. IDEM_ENOMEM. */
int idem__lambda_metrics_init(struct idem_lambda *lambda,
                              struct idem_error *ret_error);

/* Call it after the store is closed. */
void idem__lambda_metrics_finish(struct idem_lambda *lambda);

/* Sets @options so that the operations of the store opened with them are counted. */
void idem__lambda_metrics_observe(const struct idem_lambda *lambda,
                                  struct idem_open_options *options);

/* Logs the counts since the last call, if there are any. */
void idem__lambda_metrics_log(struct idem_lambda *lambda);

/* ---- The handler -------------------------------------------------------- */

/* Finds the handler that the options name, and sets lambda->run or lambda->program.
 *
 * IDEM_EINVALID  They name none.
 * IDEM_ECONFIG   It does not exist or cannot be executed.
 * IDEM_ENOMEM
 */
int idem__lambda_handler_init(struct idem_lambda *lambda,
                              struct idem_error *ret_error);
void idem__lambda_handler_finish(struct idem_lambda *lambda);

/* Runs the handler on @event (with a NUL after it) under @attempt, which may be NULL.
 * lambda->work has how it ended. */
void idem__lambda_handler_run(struct idem_lambda *lambda,
                              struct idem_slice event,
                              const struct idem_attempt *attempt);

/* Runs a handler that is a program. */
void idem__lambda_program_run(struct idem_lambda *lambda);

/* Sets how the run failed. Cuts @type, and removes what is not allowed in a class. */
void idem__lambda_run_error(struct idem__lambda_run *run,
                            enum idem__lambda_end end, struct idem_slice type,
                            struct idem_slice text);

/* Makes the environment of a program: ours without the address of the Runtime API and,
 * unless the options pass them, without credentials, but with the members of
 * lambda->work.call. NULL: memory ran out. */
char **idem__lambda_environment(const struct idem_lambda *lambda);

void idem__lambda_environment_free(char **env);

#endif
