/* Finds, signals and reaps all descendants. */
#include "run/kin.h"

#include "run/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGAIN_MS 10 /* Between two rounds of killing. */

struct process {
    pid_t pid;
    pid_t parent;
    bool is_kin;
};

struct census {
    struct process *list;
    size_t len;
    size_t size;
};

void kin_adopt(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* The name of a program may hold anything: what counts stands behind its last
 * parenthesis. 0 if the process is gone. */
static pid_t parent_of(int proc, const char *name)
{
    char text[512];
    const char *after;
    char path[32];
    ssize_t n;
    int parent;
    int fd;

    (void)snprintf(path, sizeof(path), "%.16s/stat", name);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    n = read(fd, text, sizeof(text) - 1);
    io_close(&fd);
    text[n > 0 ? n : 0] = '\0';
    after = strrchr(text, ')');
    return after != NULL && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent
                                                                       : 0;
}

static int add(struct census *census, pid_t pid, pid_t parent)
{
    if (census->len == census->size) {
        size_t size = census->size == 0 ? 256 : census->size * 2;
        struct process *list =
            reallocarray(census->list, size, sizeof(*census->list));

        if (list == NULL) {
            return -1;
        }
        census->list = list;
        census->size = size;
    }
    census->list[census->len++] =
        (struct process){.pid = pid, .parent = parent};
    return 0;
}

/* True if the numbers in /proc are those that kill() takes. */
static bool is_our_proc(int proc)
{
    char name[16];
    ssize_t n = readlinkat(proc, "self", name, sizeof(name) - 1);

    name[n > 0 ? n : 0] = '\0';
    return atoi(name) == getpid();
}

static int take_census(struct census *census)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    int rc = 0;

    if (proc == NULL) {
        return -1;
    }
    if (!is_our_proc(dirfd(proc))) {
        rc = -1;
    }
    while (rc == 0 && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        pid_t parent = pid > 0 ? parent_of(dirfd(proc), entry->d_name) : 0;

        if (parent > 0) {
            rc = add(census, pid, parent);
        }
    }
    (void)closedir(proc);
    return rc;
}

static bool is_kin(const struct census *census, pid_t pid)
{
    size_t i;

    for (i = 0; i < census->len; i++) {
        if (census->list[i].pid == pid) {
            return census->list[i].is_kin;
        }
    }
    return false;
}

/* Numbers are given out again, so a child may come before its parent. */
static void mark_kin(struct census *census)
{
    pid_t own = getpid();
    bool found = true;

    while (found) {
        size_t i;

        found = false;
        for (i = 0; i < census->len; i++) {
            struct process *p = &census->list[i];

            if (!p->is_kin && (p->parent == own || is_kin(census, p->parent))) {
                p->is_kin = true;
                found = true;
            }
        }
    }
}

void kin_signal(int signo, pid_t group)
{
    struct census census = {.list = NULL};
    size_t i;

    if (take_census(&census) == 0) {
        mark_kin(&census);
        for (i = 0; i < census.len; i++) {
            if (census.list[i].is_kin) {
                (void)kill(census.list[i].pid, signo);
            }
        }
    } else if (group > 0) {
        (void)kill(-group, signo);
    }
    free(census.list);
}

bool kin_reap(pid_t spared)
{
    for (;;) {
        siginfo_t info = {0};

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
            return errno == ECHILD;
        }
        if (info.si_pid == 0 || info.si_pid == spared) {
            return false;
        }
        (void)waitpid(info.si_pid, NULL, WNOHANG);
    }
}

bool kin_end(pid_t group, int ms)
{
    int64_t until_ms = io_now_ms() + ms;

    while (!kin_reap(/* spared= */ 0)) {
        if (io_now_ms() >= until_ms) {
            return false;
        }
        kin_signal(SIGKILL, group);
        (void)poll(NULL, 0, AGAIN_MS);
    }
    return true;
}
