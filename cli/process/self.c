/* This process: its name, its limits, the signals it gets, and the programs that it
 * starts. */
#include "process/self.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

void self_set_name(const char *name)
{
    (void)prctl(PR_SET_NAME, name);
}

void self_end_with(pid_t parent, int signo)
{
    (void)prctl(PR_SET_PDEATHSIG, signo);
    /* A parent that ended before the request sends nothing. */
    if (getppid() != parent) {
        _exit(128 + signo);
    }
}

static struct rlimit was;
static bool off;

void cli_cores_off(void)
{
    struct rlimit none;

    if (getrlimit(RLIMIT_CORE, &was) == 0) {
        none = was;
        none.rlim_cur = 0;
        off = setrlimit(RLIMIT_CORE, &none) == 0;
    }
}

void cli_cores_back(void)
{
    if (off) {
        (void)setrlimit(RLIMIT_CORE, &was);
    }
}

static bool was_ignored;

void cli_filesize_no_signal(void)
{
    was_ignored = signal(SIGXFSZ, SIG_IGN) == SIG_IGN;
}

static void cli_filesize_signals(sigset_t *ret_set)
{
    (void)sigemptyset(ret_set);
    if (!was_ignored) {
        (void)sigaddset(ret_set, SIGXFSZ);
    }
}

static void end(int signo)
{
    _exit(128 + signo);
}

void cli_first_process(void)
{
    static const int fatal[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    struct sigaction action;
    size_t i;

    if (getpid() != 1) {
        return;
    }
    for (i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        if (sigaction(fatal[i], NULL, &action) == 0 &&
            action.sa_handler == SIG_DFL) {
            action.sa_handler = end;
            (void)sigaction(fatal[i], &action, NULL);
        }
    }
}

int signal_fd_open(const sigset_t *set)
{
    return signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signal_fd_next(int fd)
{
    struct signalfd_siginfo info;

    if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return 0;
    }
    return (int)info.ssi_signo;
}

int cli_stop_fd(void)
{
    sigset_t set;
    int fd;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    fd = signal_fd_open(&set);
    if (fd < 0) {
        (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    }
    return fd;
}

bool cli_stop_within(int fd, int64_t ms)
{
    struct pollfd stop = {.fd = fd, .events = POLLIN};

    while (ms > 0) {
        int part = ms > INT_MAX ? INT_MAX : (int)ms;
        int n = poll(&stop, 1, part);

        if (n > 0) {
            return true;
        }
        ms -= n == 0 ? part : 0;
    }
    return false;
}

static bool is_among(char *const *own, size_t len, const char *entry)
{
    size_t name_len = strcspn(entry, "=") + 1;
    size_t i;

    for (i = 0; i < len; i++) {
        if (strncmp(own[i], entry, name_len) == 0) {
            return true;
        }
    }
    return false;
}

char **cli_environment_with(char *const *own, size_t len)
{
    size_t n = len;
    char **list;
    size_t i;

    for (i = 0; environ[i] != NULL; i++) {
    }
    list = calloc(len + i + 1, sizeof(*list));
    if (list == NULL) {
        return NULL;
    }
    memcpy(list, own, len * sizeof(*list));
    for (i = 0; environ[i] != NULL; i++) {
        if (!is_among(own, len, environ[i])) {
            list[n++] = environ[i];
        }
    }
    return list;
}

int cli_spawn(const struct cli_program *program, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t usual;
    int rc;

    cli_filesize_signals(&usual);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP |
                                              POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawnattr_setsigdefault(&attr, &usual);
    (void)posix_spawnattr_setsigmask(&attr, &program->blocked);
    (void)posix_spawn_file_actions_init(&actions);
    rc = program->input >= 0
             ? posix_spawn_file_actions_adddup2(&actions, program->input,
                                                STDIN_FILENO)
             : posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
                                                "/dev/null", O_RDONLY, 0);
    if (rc != 0) {
        goto done;
    }
    rc = posix_spawn_file_actions_adddup2(&actions, program->from, program->to);
    if (rc != 0) {
        goto done;
    }
    rc = posix_spawn(ret_pid, program->path, &actions, &attr, program->argv,
                     program->env);

done:
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attr);
    return rc;
}
