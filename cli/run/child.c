/* Starts the command: vfork, exec, and the news of whether the exec worked. */
#include "run/child.h"

#include "base/crash.h"
#include "process/descriptors.h"
#include "process/self.h"
#include "run/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static bool becomes(int fd, int standard)
{
    return fd < 0 || dup2(fd, standard) >= 0;
}

/* In the child, which shares our memory until it is the command: nothing may be
 * written here that we read. Returns only if it could not become it. */
static void become(const struct child_plan *plan, pid_t supervisor)
{
    IDEM__CRASH_POINT("run/child/forked");
    (void)setpgid(0, 0);
    if (plan->terminal >= 0) {
        (void)tcsetpgrp(plan->terminal, getpid());
    }
    if (!becomes(plan->input, STDIN_FILENO) ||
        !becomes(plan->out, STDOUT_FILENO) ||
        !becomes(plan->err, STDERR_FILENO)) {
        return;
    }

    /* Without the supervisor nobody ends the work in time. */
    self_end_with(supervisor, SIGKILL);
    signals_reset();
    IDEM__CRASH_POINT("run/child/before-exec");
    cli_cores_back();
    (void)execvpe(plan->argv[0], plan->argv, plan->env);
}

/* The child's report: 0 if it became the command, else an errno. */
static int read_report(int fd)
{
    int why = 0;
    ssize_t n;

    do {
        n = read(fd, &why, sizeof(why));
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(why) ? why : 0;
}

static enum child_start start(const struct child_plan *plan,
                              const int report[2], pid_t *ret_pid)
{
    pid_t supervisor = getpid();
    pid_t pid;
    int why;

    pid = vfork();
    if (pid == 0) {
        become(plan, supervisor);
        (void)io_write_all(report[1], &errno, sizeof(errno));
        _exit(127);
    }
    if (pid < 0) {
        return CHILD_NO_MEANS;
    }
    *ret_pid = pid;
    (void)close(report[1]);
    why = read_report(report[0]);
    if (why == 0) {
        return CHILD_STARTED;
    }
    (void)waitpid(pid, NULL, 0);
    errno = why;
    return why == ENOENT ? CHILD_NOT_FOUND : CHILD_NOT_USABLE;
}

enum child_start child_start(const struct child_plan *plan, pid_t *ret_pid)
{
    int report[2];
    enum child_start how;
    int why;

    if (pipe2(report, O_CLOEXEC) != 0) {
        return CHILD_NO_MEANS;
    }
    how = start(plan, report, ret_pid);
    why = errno;
    (void)close(report[0]);
    if (how == CHILD_NO_MEANS) {
        (void)close(report[1]);
    }
    errno = why;
    return how;
}
