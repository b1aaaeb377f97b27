/* Processes that run one jq program: each has one text at a time.
 *
 * libjq cannot be stopped, and ends its process when memory runs out. A child
 * has limits; the parent ends it when its time is up. The end of the descriptor
 * is what counts, never the status: in many programs (nginx, Node.js) somebody
 * else waits for every child.
 *
 *     parent                                child
 *     start() ---- fork ------------------> evaluates the text that it was born with
 *     read()  <--- code, length, bytes ---- answers, and goes on while it is kept
 *     send()  ---- form, length, bytes ---> evaluates the next text
 *     end()   ---- end of file -----------> leaves
 */
#ifndef IDEM_KEY_CHILD_H
#define IDEM_KEY_CHILD_H

#include "base/buffer.h"
#include "key/libjq.h"

#include <idem/key.h>
#include <sys/types.h>

enum {
    IDEM__CHILD_TEXT_MAX =
        64 * 1024,               /* That a child which waits is sent; a larger
                                         text is one to be born with. */
    IDEM__CHILD_RUNS_MAX = 1000, /* After so many another one takes over, so
                                         that what libjq may leak stays small. */
};

/* A JSON text, or a request that becomes one in the child. */
struct idem__child_text {
    const struct idem_select_request *request; /* NULL: json counts. */
    struct idem_slice json;
};

struct idem__child_job {
    const struct idem__libjq *jq;
    jq_state *state; /* The program. */
    const struct idem_select_options *options;
};

struct idem__child {
    struct idem__child *next; /* The owner's. */
    pid_t pid;
    int pidfd; /* -1: this kernel has none. */
    int fd;    /* Readable when there is an answer, or none to come. */
    unsigned runs;
};

/* Starts a child, which evaluates @text. @keep: it stays for more of them.
 *
 * IDEM_EUNAVAILABLE  A process or socket could not be made.
 * IDEM_ENOMEM
 */
int idem__child_start(const struct idem__child_job *job,
                      const struct idem__child_text *text, bool keep,
                      struct idem__child **ret_child,
                      struct idem_error *ret_error);

/* Gives a child that waits its next text. False: it is gone, or the text is too
 * long: start another one. */
bool idem__child_send(struct idem__child *child,
                      const struct idem__child_text *text);

/* Reads what has come into @bytes, which is empty at first. True: there is no more to
 * come, and *@ret_code is what idem__evaluate_run() returned, with the output or the
 * sentence in *@ret_text; or 1: the child ended without an answer. */
bool idem__child_read(struct idem__child *child, size_t max,
                      struct idem__buffer *bytes, int *ret_code,
                      struct idem_slice *ret_text);

/* Lets it end, at once if it is at work; idem__child_gone() must follow. */
void idem__child_end(struct idem__child *child, bool at_work);

/* Frees a child that has ended, and returns true. @wait: kills and waits for it. */
bool idem__child_gone(struct idem__child *child, bool wait);

/* Frees what a fork has copied: the child is another process's. */
void idem__child_forget(struct idem__child *child);

#endif
