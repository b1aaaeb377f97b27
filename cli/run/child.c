/* Starts the command: its environment, vfork, exec, and the report of a failed exec. */
#include "run/child.h"

#include "base/crash.h"
#include "process/descriptors.h"
#include "process/self.h"
#include "run/signals.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Its environment ---- */

static int set(struct environment *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int set(struct environment *e, const char *format, ...)
{
    va_list args;
    int len;

    assert(e->own_len < ENVIRONMENT_OWN_MAX);
    va_start(args, format);
    len = vasprintf(&e->own[e->own_len], format, args);
    va_end(args);
    if (len < 0) {
        return -1;
    }
    e->own_len++;
    return 0;
}

/* Checked before: no key or scope here contains a NUL. */
static int set_bytes(struct environment *e, const char *name,
                     struct idem_slice bytes)
{
    const char *text = bytes.len > 0 ? bytes.base : "";

    return set(e, "%s=%.*s", name, (int)bytes.len, text);
}

static int set_task(struct environment *e, const struct idem_request *request,
                    const struct child_task *task)
{
    return set_bytes(e, "IDEM_KEY", request->key) != 0 ||
                   set(e, "IDEM_FENCE=%llu", (unsigned long long)task->fence) !=
                       0 ||
                   set(e, "IDEM_ATTEMPTS=%u", (unsigned)task->attempts) != 0 ||
                   set(e, "IDEM_TAKEOVER=%d", task->takeover) != 0 ||
                   set(e, "IDEM_TOKEN=%s", task->token) != 0
               ? -1
               : 0;
}

static int set_own(struct environment *e, const struct idem_request *request,
                   struct idem_slice window, const struct child_task *task,
                   const char *store_url)
{
    if (set_bytes(e, "IDEM_SCOPE", request->scope) != 0 ||
        set_task(e, request, task) != 0) {
        return -1;
    }
    if (window.len > 0 && set_bytes(e, "IDEM_WINDOW", window) != 0) {
        return -1;
    }
    return store_url == NULL ? 0 : set(e, "IDEM_STORE=%s", store_url);
}

static bool is_any_of(const char *const *list, size_t len, const char *entry)
{
    size_t name_len = strcspn(entry, "=") + 1;
    size_t i;

    for (i = 0; i < len; i++) {
        if (strncmp(list[i], entry, name_len) == 0) {
            return true;
        }
    }
    return false;
}

/* True if the command does not inherit @entry: we set it, or it describes the
 * attempt around us. */
static bool is_own(const struct environment *e, const char *entry)
{
    static const char *const about_attempts[] = {
        "IDEM_KEY=",      "IDEM_FENCE=", "IDEM_ATTEMPTS=",
        "IDEM_TAKEOVER=", "IDEM_TOKEN=", "IDEM_WINDOW="};

    return is_any_of((const char *const *)e->own, e->own_len, entry) ||
           is_any_of(about_attempts,
                     sizeof(about_attempts) / sizeof(about_attempts[0]), entry);
}

static size_t count(char *const *list)
{
    size_t n = 0;

    while (list != NULL && list[n] != NULL) {
        n++;
    }
    return n;
}

static int make_list(struct environment *e)
{
    size_t given = count(environ);
    size_t len = 0;
    size_t i;

    e->list = calloc(e->own_len + given + 1, sizeof(*e->list));
    if (e->list == NULL) {
        return -1;
    }
    for (i = 0; i < e->own_len; i++) {
        e->list[len++] = e->own[i];
    }
    for (i = 0; i < given; i++) {
        if (!is_own(e, environ[i])) {
            e->list[len++] = environ[i];
        }
    }
    return 0;
}

int environment_init(struct environment *environment,
                     const struct idem_request *request,
                     struct idem_slice window, const struct child_task *task,
                     const char *store_url)
{
    memset(environment, 0, sizeof(*environment));
    if (set_own(environment, request, window, task, store_url) != 0 ||
        make_list(environment) != 0) {
        environment_finish(environment);
        return -1;
    }
    return 0;
}

void environment_finish(struct environment *environment)
{
    size_t i;

    for (i = 0; i < environment->own_len; i++) {
        free(environment->own[i]);
    }
    free(environment->list);
    memset(environment, 0, sizeof(*environment));
}

/* ---- Its start ---- */

static bool becomes(int fd, int standard)
{
    return fd < 0 || dup2(fd, standard) >= 0;
}

/* In the vforked child, which shares our memory until exec: write nothing that the
 * parent reads. Returns only if exec failed. */
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

    /* The command must not outlive the supervisor, which would stop it in time. */
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
