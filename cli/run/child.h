/* child.h: starts the command. */
#ifndef IDEM_CLI_RUN_CHILD_H
#define IDEM_CLI_RUN_CHILD_H

#include <idem.h>
#include <sys/types.h>

/* The attempt that the command is to serve. */
struct child_task {
    uint64_t fence;
    uint32_t attempts;
    bool takeover;
    char token[IDEM_TOKEN_MAX];
};

struct child_plan {
    char *const *argv;
    int input; /* Becomes its standard input; -1: ours is inherited. */
    int out;   /* Become its outputs; -1: ours are. */
    int err;
    int terminal; /* Where its group gets the foreground; -1: nowhere. */
};

enum child_start {
    CHILD_STARTED,
    CHILD_NO_MEANS,   /* No pipe or no process could be had. */
    CHILD_NOT_FOUND,  /* The program does not exist. */
    CHILD_NOT_USABLE, /* There is, and it cannot be executed. */
    CHILD_TOO_LATE,   /* The lease was over before. */
};

/* How the command ended. */
struct child_end {
    int exit_status; /* If signal is 0. */
    int signal;
    bool cut_short; /* We stopped it before it ended. */
    int64_t at_ms;  /* When waitid() reported it, on the clock of
                       io_now_ms(). */
};

/* Starts @plan in a process group (or session) of its own, whose number is *@ret_pid,
 * with default signal handling; the kernel kills it when we die. Unless this returns
 * CHILD_STARTED, nothing of the command has run, no process is left, and errno has the
 * reason. All signals must be blocked. */
enum child_start child_start(const struct child_plan *plan, pid_t *ret_pid);

/* ---- What the command is told about its attempt ------------------------- */

/* Sets IDEM_KEY and IDEM_SCOPE of @request, IDEM_FENCE, IDEM_ATTEMPTS, IDEM_TAKEOVER
 * and IDEM_TOKEN of @task, IDEM_WINDOW where @window is not empty and IDEM_STORE where
 * @store_url is not NULL in the environment of this process, which the command
 * inherits. 0, or -1: out of memory. */
int child_environment(const struct idem_request *request,
                      struct idem_slice window, const struct child_task *task,
                      const char *store_url);

#endif
