/* Starts the command: its environment, vfork, exec, and the report of a failed exec. */
#include "run/child.h"

#include "base/crash.h"
#include "process/descriptors.h"
#include "process/self.h"
#include "run/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Its environment ---- */

static int set(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int set(const char *name, const char *format, ...)
{
    va_list args;
    char *text;
    int len;
    int rc;

    va_start(args, format);
    len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0) {
        return -1;
    }
    rc = setenv(name, text, /* overwrite= */ 1);
    free(text);
    return rc;
}

/* The options have refused a key or scope that contains a NUL. */
static int set_bytes(const char *name, struct idem_slice bytes)
{
    return set(name, "%.*s", (int)bytes.len,
               bytes.len > 0 ? (const char *)bytes.base : "");
}

int child_environment(const struct idem_request *request,
                      struct idem_slice window, const struct child_task *task,
                      const char *store_url)
{
    /* Drop those of an attempt around us; a variable may be there more than once. */
    static const char *const own[] = {"IDEM_SCOPE",    "IDEM_KEY",
                                      "IDEM_FENCE",    "IDEM_ATTEMPTS",
                                      "IDEM_TAKEOVER", "IDEM_TOKEN",
                                      "IDEM_WINDOW"};
    size_t i;

    for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        (void)unsetenv(own[i]);
    }
    if (set_bytes("IDEM_SCOPE", request->scope) != 0 ||
        set_bytes("IDEM_KEY", request->key) != 0 ||
        set("IDEM_FENCE", "%llu", (unsigned long long)task->fence) != 0 ||
        set("IDEM_ATTEMPTS", "%u", (unsigned)task->attempts) != 0 ||
        set("IDEM_TAKEOVER", "%d", task->takeover) != 0 ||
        set("IDEM_TOKEN", "%s", task->token) != 0 ||
        (window.len > 0 && set_bytes("IDEM_WINDOW", window) != 0)) {
        return -1;
    }
    return store_url == NULL ? 0 : set("IDEM_STORE", "%s", store_url);
}

/* ---- Its start ---- */

static bool becomes(int fd, int standard)
{
    return fd < 0 || dup2(fd, standard) >= 0;
}

/* Runs in the vforked child, which shares our memory until exec: it must write nothing
 * that the parent reads. Returns only if it did not become the command. */
static void become(const struct child_plan *plan, pid_t supervisor)
{
    IDEM__CRASH_POINT("run/child/forked");
    (void)setpgid(0, 0); /* A group of its own, to be signalled as one. */
    if (plan->terminal >= 0) {
        (void)tcsetpgrp(plan->terminal, getpid());
    }
    if (!becomes(plan->input, STDIN_FILENO) ||
        !becomes(plan->out, STDOUT_FILENO) ||
        !becomes(plan->err, STDERR_FILENO)) {
        return;
    }

    /* Without the supervisor nobody would stop the command in time: they die together. */
    self_end_with(supervisor, SIGKILL);
    signals_reset();
    IDEM__CRASH_POINT("run/child/before-exec");
    cli_cores_back();
    /* Only a failure comes back from here. */
    (void)execvp(plan->argv[0], plan->argv);
}

/* The child's report: 0 if it became the command, for exec closed the pipe; else an
 * errno. */
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
    /* If this copy stayed open, the read below would never end. */
    (void)close(report[1]);
    why = read_report(report[0]);
    if (why == 0) {
        return CHILD_STARTED;
    }
    /* It never became the command. Reaped now, it is not mistaken for work that is left. */
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
