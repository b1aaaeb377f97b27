/* Runs a compiled jq program in a process of its own.
 *
 * libjq cannot be stopped, and ends the process when there is no memory. The child
 * has limits; the parent kills it when its time is up.
 */
#ifndef IDEM_KEY_CHILD_H
#define IDEM_KEY_CHILD_H

#include "base/buffer.h"
#include "key/libjq.h"

enum idem__child_said {
    IDEM__CHILD_NOTHING = 0, /* It never came to this text. */
    IDEM__CHILD_OUTPUT = 'o',
    IDEM__CHILD_EMPTY = '0',
    IDEM__CHILD_SEVERAL = '2',
    IDEM__CHILD_LONG = 'l',
    IDEM__CHILD_ERROR = 'e', /* The bytes are what jq says. */
};

struct idem__child_answer {
    enum idem__child_said said;
    size_t at; /* Where its bytes are in the answers ... */
    size_t len;
};

struct idem__child_job {
    const struct idem__libjq *jq;
    jq_state *state; /* The program. */
    size_t output_max;
    uint64_t memory_max;
    int64_t timeout_ms;
    struct idem_slice texts[2]; /* The second may be empty: there is none. */
};

/* How the child ended. */
enum idem__child_end {
    IDEM__CHILD_DONE = 0,
    IDEM__CHILD_LATE,
    IDEM__CHILD_DIED,
};

/* Runs the program over the texts; what came of each is in @ret_answers, and its
 * bytes in @ret_bytes, which is emptied first. No other thread may use the program
 * meanwhile.
 *
 * IDEM_EUNAVAILABLE  There is no process or pipe to be had.
 * IDEM_ENOMEM
 */
int idem__child_run(const struct idem__child_job *job,
                    struct idem__child_answer ret_answers[2],
                    struct idem__buffer *ret_bytes,
                    enum idem__child_end *ret_end,
                    struct idem_error *ret_error);

#endif
