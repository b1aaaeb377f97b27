/* A compiled program, and the children that run it. */
#ifndef IDEM_KEY_SELECT_H
#define IDEM_KEY_SELECT_H

#include "key/child.h"

struct idem_select {
    const struct idem__libjq *jq;
    jq_state *state;
    struct idem_select_options options;
    char complaint[200]; /* Of the compiler: its first. */

    pid_t owner;              /* The process whose children these are. */
    struct idem__child *idle; /* They wait for a text: at most options.keep. */
    size_t idle_len;
    struct idem__child
        *ending; /* Told to leave; somebody has to wait for them. */
    struct idem_selection *last; /* Of idem_select_run(): its output stays. */
};

/* Ends all children, and waits for them. */
void idem__select_end_children(struct idem_select *select);

#endif
