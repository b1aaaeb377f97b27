/* Coroutines: each simulated client has a stack of its own. */
#ifndef SIM_CORO_H
#define SIM_CORO_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

typedef void coro_fn(void *arg);

struct coro {
    coro_fn *run;
    void *arg;
    bool done;      /* run() has returned, or none was started. */
    bool made;      /* Its stack exists. */
    jmp_buf bottom; /* Where run() is called from. */
    jmp_buf here;   /* Where it goes on. */
    jmp_buf back;   /* Who resumed it. */
    bool fresh;     /* It goes on at the bottom. */
    ucontext_t first;
    void *stack;
    size_t stack_len;
    void *shadow[2]; /* For the address sanitizer. */
};

/* Makes @coro run @run(@arg) when it is resumed next. What it did before is
 * forgotten wherever it was: so a client crashes. */
void coro_start(struct coro *coro, coro_fn *run, void *arg);

/* Runs @coro until it yields or its function returns. */
void coro_resume(struct coro *coro);

/* Goes back to who resumed @coro. */
void coro_yield(struct coro *coro);

#endif
