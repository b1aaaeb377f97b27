/* Coroutines by jumps between stacks.
 *
 * A context is made once for each stack. Every later switch is a setjmp() and a
 * longjmp(), which make no system call, where swapcontext() makes two. */

/* The checked longjmp() refuses to go to another stack. */
#undef _FORTIFY_SOURCE

#include "coro.h"

#include "sanitized.h"

#include <assert.h>
#include <stdlib.h>

#ifdef SIM_SANITIZED
#include <sanitizer/common_interface_defs.h>
enum {
    STACK_LEN = 512 * 1024
};
#else
enum {
    STACK_LEN = 64 * 1024
};
#endif

/* What runs now; the bottom of a stack finds its coroutine here. */
static struct coro *current;

#ifdef SIM_SANITIZED
static const void *main_stack;
static size_t main_stack_len;

static void leaving(struct coro *coro, bool into)
{
    __sanitizer_start_switch_fiber(&coro->shadow[into],
                                   into ? coro->stack : main_stack,
                                   into ? coro->stack_len : main_stack_len);
}

static void arrived(struct coro *coro, bool inside)
{
    /* On the way back the fake stack of whoever resumed is taken up again. */
    if (inside) {
        __sanitizer_finish_switch_fiber(coro->fresh ? NULL : coro->shadow[0],
                                        &main_stack, &main_stack_len);
    } else {
        __sanitizer_finish_switch_fiber(coro->shadow[1], NULL, NULL);
    }
}
#else
static void leaving(struct coro *coro, bool into)
{
    (void)coro;
    (void)into;
}

static void arrived(struct coro *coro, bool inside)
{
    (void)coro;
    (void)inside;
}
#endif

void coro_yield(struct coro *coro)
{
    if (_setjmp(coro->here) == 0) {
        leaving(coro, /* into= */ false);
        _longjmp(coro->back, 1);
    }
    arrived(current, /* inside= */ true);
}

/* The bottom of every stack. A jump to it forgets what lay above. */
static void bottom(void)
{
    (void)_setjmp(current->bottom);
    arrived(current, /* inside= */ true);
    current->fresh = false;
    current->run(current->arg);
    current->done = true;
    coro_yield(current);
    abort(); /* What is done goes on at the bottom or not at all. */
}

static void make(struct coro *coro)
{
    coro->stack_len = STACK_LEN;
    coro->stack = malloc(STACK_LEN);
    if (coro->stack == NULL || getcontext(&coro->first) != 0) {
        abort();
    }
    coro->first.uc_stack.ss_sp = coro->stack;
    coro->first.uc_stack.ss_size = coro->stack_len;
    coro->first.uc_link = NULL;
    makecontext(&coro->first, bottom, 0);
}

void coro_start(struct coro *coro, coro_fn *run, void *arg)
{
    if (coro->stack == NULL) {
        make(coro);
    }
    coro->run = run;
    coro->arg = arg;
    coro->done = false;
    coro->fresh = true;
}

static void jump_in(struct coro *coro)
{
    leaving(coro, /* into= */ true);
    if (!coro->fresh) {
        _longjmp(coro->here, 1);
    }
    if (coro->made) {
        _longjmp(coro->bottom, 1);
    }
    coro->made = true;
    (void)setcontext(&coro->first);
    abort();
}

void coro_resume(struct coro *coro)
{
    assert(!coro->done);
    current = coro;
    if (_setjmp(coro->back) == 0) {
        jump_in(coro);
    }
    arrived(current, /* inside= */ false);
}
