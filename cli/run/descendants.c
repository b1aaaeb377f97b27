/* Finds, signals and reaps all descendants.
 *
 * A process that adopts orphans has every descendant below it, whatever group or
 * session it moved to. waitid() proves that none is left: it fails with ECHILD. /proc
 * only serves to find those to signal; where it cannot be read, the signal goes to
 * the group of the command. */
#include "run/descendants.h"

#include "process/descriptors.h"
#include "process/host.h"
#include "text/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGAIN_MS 10 /* Between two rounds of killing. */

struct process {
    pid_t pid;
    pid_t parent;
    char state;
    bool is_descendant;
};

struct process_tree {
    struct process *list;
    size_t len;
    size_t size;
};

bool descendants_can_be_adopted(void)
{
    int adopts;

    return prctl(PR_GET_CHILD_SUBREAPER, &adopts) == 0;
}

int descendants_adopt(void)
{
    /* The kernel gives us every orphan below us instead of init. */
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Reads PID/@what of /proc. The length, or 0 if the process is gone. */
static size_t read_about(int proc, const char *name, const char *what,
                         char *buf, size_t size)
{
    char path[32];
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof(path), "%.16s/%s", name, what);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    n = read(fd, buf, size - 1);
    io_close(&fd);
    buf[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* The name of a program may hold anything: the fields follow its last
 * parenthesis. A parent of 0: the process is gone. */
static struct process inspect(int proc, const char *name)
{
    struct process process = {.pid = (pid_t)atoi(name)};
    const char *fields;
    char text[512];

    if (read_about(proc, name, "stat", text, sizeof(text)) == 0) {
        return process;
    }
    fields = strrchr(text, ')');
    if (fields == NULL ||
        sscanf(fields + 1, " %c %d", &process.state, &process.parent) != 2) {
        process.parent = 0;
    }
    return process;
}

static int add(struct process_tree *tree, const struct process *process)
{
    if (tree->len == tree->size) {
        size_t size = tree->size == 0 ? 256 : tree->size * 2;
        struct process *list =
            reallocarray(tree->list, size, sizeof(*tree->list));

        if (list == NULL) {
            return -1;
        }
        tree->list = list;
        tree->size = size;
    }
    tree->list[tree->len++] = *process;
    return 0;
}

/* True if /proc shows our own PID namespace, so that its numbers are those of kill(). */
static bool is_our_proc(int proc)
{
    char name[16];
    ssize_t n = readlinkat(proc, "self", name, sizeof(name) - 1);

    name[n > 0 ? n : 0] = '\0';
    return atoi(name) == getpid();
}

static int list_processes(struct process_tree *tree)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    int rc = 0;

    if (proc == NULL) {
        return -1;
    }
    /* The PIDs of another namespace belong to strangers in this one. */
    if (!is_our_proc(dirfd(proc))) {
        rc = -1;
    }
    while (rc == 0 && (entry = readdir(proc)) != NULL) {
        struct process process = {.parent = 0};

        if (atoi(entry->d_name) > 0) {
            process = inspect(dirfd(proc), entry->d_name);
        }
        if (process.parent > 0) {
            rc = add(tree, &process);
        }
    }
    (void)closedir(proc);
    return rc;
}

static bool is_descendant(const struct process_tree *tree, pid_t pid)
{
    size_t i;

    for (i = 0; i < tree->len; i++) {
        if (tree->list[i].pid == pid) {
            return tree->list[i].is_descendant;
        }
    }
    return false;
}

/* PIDs wrap around, so a child may be listed before its parent: repeat until nothing
 * changes. */
static void mark_descendants(struct process_tree *tree)
{
    pid_t own = getpid();
    bool found = true;

    while (found) {
        size_t i;

        found = false;
        for (i = 0; i < tree->len; i++) {
            struct process *p = &tree->list[i];

            if (!p->is_descendant &&
                (p->parent == own || is_descendant(tree, p->parent))) {
                p->is_descendant = true;
                found = true;
            }
        }
    }
}

void descendants_signal(int signo, pid_t group)
{
    struct process_tree tree = {.list = NULL};
    size_t i;

    if (list_processes(&tree) == 0) {
        mark_descendants(&tree);
        for (i = 0; i < tree.len; i++) {
            if (tree.list[i].is_descendant) {
                (void)kill(tree.list[i].pid, signo);
            }
        }
    } else if (group > 0) {
        /* Without /proc the signal reaches only the group. A process that has left it goes
         * on, and is reported as a survivor in the end. */
        (void)kill(-group, signo);
    }
    free(tree.list);
}

/* Children that were cloned without SIGCHLD count too: __WALL. */
bool descendants_reap(pid_t spared)
{
    for (;;) {
        siginfo_t info = {0};

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) !=
            0) {
            return errno == ECHILD;
        }
        /* Some still run, or only the spared one is left: nothing is proved. */
        if (info.si_pid == 0 || info.si_pid == spared) {
            return false;
        }
        (void)waitpid(info.si_pid, NULL, WNOHANG | __WALL);
    }
}

bool descendants_end(pid_t group, int ms,
                     struct descendants_survivor *ret_survivor)
{
    int64_t until_ms = io_now_ms() + ms;

    while (!descendants_reap(/* spared= */ 0)) {
        if (io_now_ms() >= until_ms) {
            descendants_find_survivor(ret_survivor);
            return false;
        }
        /* Each round lists the processes anew: one may have been forked since the last. */
        descendants_signal(SIGKILL, group);
        (void)poll(NULL, 0, AGAIN_MS);
    }
    return true;
}

/* ---- For people -------------------------------------------------------- */

/* Prefer a live process to a zombie that its parent has not reaped. */
static const struct process *choose(const struct process_tree *tree)
{
    const struct process *chosen = NULL;
    size_t i;

    for (i = 0; i < tree->len; i++) {
        const struct process *p = &tree->list[i];

        if (p->is_descendant && (chosen == NULL || chosen->state == 'Z')) {
            chosen = p;
        }
    }
    return chosen;
}

static void describe(const struct process *process,
                     struct descendants_survivor *ret_survivor)
{
    char comm[sizeof(ret_survivor->name) + 1]; /* And its newline. */
    struct stat st;
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)process->pid);
    ret_survivor->pid = process->pid;
    ret_survivor->state = process->state;
    ret_survivor->uid = stat(path, &st) == 0 ? st.st_uid : 0;
    ret_survivor->denied = kill(process->pid, 0) != 0 && errno == EPERM;
    if (read_about(AT_FDCWD, path, "comm", comm, sizeof(comm)) > 0) {
        (void)snprintf(ret_survivor->name, sizeof(ret_survivor->name), "%.*s",
                       (int)strcspn(comm, "\n"), comm);
    }
}

void descendants_find_survivor(struct descendants_survivor *ret_survivor)
{
    struct process_tree tree = {.list = NULL};
    const struct process *chosen;

    memset(ret_survivor, 0, sizeof(*ret_survivor));
    if (list_processes(&tree) == 0) {
        mark_descendants(&tree);
        chosen = choose(&tree);
        if (chosen != NULL) {
            describe(chosen, ret_survivor);
        }
    }
    free(tree.list);
}

void descendants_describe(const struct descendants_survivor *survivor,
                          char *buf, size_t size)
{
    char name[4 * sizeof(survivor->name)];
    int pid = (int)survivor->pid;

    if (pid == 0) {
        (void)snprintf(buf, size,
                       "it may have left processes that /proc does not show");
        return;
    }
    (void)cli_escape(idem_str(survivor->name), name, sizeof(name));
    if (survivor->denied) {
        (void)snprintf(buf, size,
                       "process %d (%s) is still alive: it belongs to another "
                       "user (uid %u), and this user may not signal it",
                       pid, name, (unsigned)survivor->uid);
    } else if (survivor->state == 'D') {
        (void)snprintf(buf, size,
                       "process %d (%s) is still alive: it is in an "
                       "uninterruptible sleep, which SIGKILL does not end",
                       pid, name);
    } else {
        (void)snprintf(buf, size,
                       "process %d (%s) is still alive: SIGKILL has not ended "
                       "it",
                       pid, name);
    }
}
