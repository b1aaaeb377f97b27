/* Running nginx, in the foreground. */
#include "gateway/gateway.h"
#include "process/self.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const int taken[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGCHLD};

struct nginx_run {
    const char *nginx;
    const char *directory;
    struct net_socket *sockets; /* The sockets that nginx takes over. */
    size_t n;
    pid_t pid;
    sigset_t before;  /* Blocked when nginx does not run. */
    sigset_t signals; /* Those that are taken. */
    sigset_t early;   /* Blocked for nginx until it looks at signals. */
};

/* In the child: becomes nginx's master, which ends with this process. It is in a group of
 * its own, so that Ctrl-C at a terminal reaches only this process, which passes it on.
 * Returns only if it fails. */
static void become(const struct nginx_run *run, const char *const *argv,
                   pid_t parent)
{
    char sockets[64] = "";
    size_t len = 0;
    size_t i;

    (void)setpgid(0, 0);
    self_end_with(parent, SIGQUIT);
    for (i = 0; i < run->n; i++) {
        len += (size_t)snprintf(sockets + len, sizeof(sockets) - len, "%d;",
                                run->sockets[i].fd);
        (void)fcntl(run->sockets[i].fd, F_SETFD, 0);
    }
    if (run->n > 0) {
        (void)setenv("NGINX", sockets, /* overwrite= */ 1);
    } else {
        (void)unsetenv("NGINX");
    }
    /* Where the configuration names a socket of its own by a relative path. */
    if (chdir(run->directory) != 0) {
        return;
    }
    (void)sigprocmask(SIG_SETMASK, &run->early, NULL);
    (void)execv(run->nginx, (char *const *)(uintptr_t)argv);
}

static int start(struct nginx_run *run, const char *const *argv)
{
    pid_t parent = getpid();

    run->pid = fork();
    if (run->pid == 0) {
        become(run, argv, parent);
        cli_say("%s cannot be executed: %s", run->nginx, strerror(errno));
        _exit(CLI_CANNOT_EXECUTE);
    }
    if (run->pid < 0) {
        cli_say("cannot start nginx: %s", strerror(errno));
        return CLI_INTERNAL;
    }
    return 0;
}

/* A signal that comes between nginx's start and its first sigsuspend() ends it with an
 * error, or sets a flag that it does not look at until the next one comes: its master
 * would outlive this process, and keep the port. A signal that is blocked waits for
 * that call, which unblocks all; workers begin with none blocked. */
static void take_signals(struct nginx_run *run)
{
    size_t i;

    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&run->signals);
    for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        (void)sigaddset(&run->signals, taken[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &run->signals, &run->before);
    run->early = run->before;
    for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        (void)sigaddset(&run->early, taken[i]);
    }
    (void)sigdelset(&run->early, SIGCHLD);
}

/* nginx writes its pid file once it listens. */
static bool has_begun(const struct nginx_run *run)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s/nginx.pid", run->directory);

    return n < (int)sizeof(path) && access(path, F_OK) == 0;
}

/* Passes @signo on. @asked counts the signals that ask this process to stop; the SIGHUP
 * of a terminal that closes is one of them. */
static void pass_on(const struct nginx_run *run, int signo, int *asked)
{
    size_t i;

    if (signo == SIGINT || signo == SIGTERM ||
        (signo == SIGHUP && cli_stderr_is_tty())) {
        (*asked)++;
        signo = *asked == 1 ? SIGQUIT : SIGTERM;
    }
    (void)kill(run->pid, signo);
    /* nginx closes its copies. A connection to a socket that only this process holds
     * would hang, because nobody accepts it. */
    for (i = 0; i < run->n && (signo == SIGQUIT || signo == SIGTERM); i++) {
        net_remove(&run->sockets[i]);
    }
}

/* True when nginx has ended: *@ret_how as of waitpid(). The first process of a
 * container also has to reap orphans of others, such as probes. */
static bool has_ended(const struct nginx_run *run, int *ret_how)
{
    pid_t pid;

    do {
        pid = waitpid(-1, ret_how, WNOHANG);
    } while (pid > 0 && pid != run->pid);
    return pid == run->pid;
}

static int exit_status(const struct nginx_run *run, int how)
{
    if (WIFSIGNALED(how)) {
        cli_say("nginx was killed by signal %d", WTERMSIG(how));
        /* The workers outlive the master: let them finish their requests. */
        (void)kill(-run->pid, SIGQUIT);
        return CLI_INTERNAL;
    }
    return WEXITSTATUS(how);
}

int gateway_check(const char *nginx, const char *directory)
{
    const char *const argv[] = {nginx, "-t",      "-q", "-e",         "stderr",
                                "-p",  directory, "-c", "nginx.conf", NULL};
    struct nginx_run run = {.nginx = nginx, .directory = directory};
    int status;
    int how = 0;

    (void)sigprocmask(SIG_BLOCK, NULL, &run.early);
    status = start(&run, argv);
    if (status != 0) {
        return status;
    }
    while (waitpid(run.pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(how) && WEXITSTATUS(how) == CLI_CANNOT_EXECUTE) {
        return CLI_CONFIG; /* The child has said why. */
    }
    if (how != 0) {
        cli_say("nginx refuses the configuration; see it with --dry-run");
        return CLI_CONFIG;
    }
    return 0;
}

int gateway_serve(const char *nginx, const char *directory,
                  struct net_socket *sockets, size_t n,
                  void (*started)(void *ctx), void *ctx)
{
    const struct timespec short_time = {.tv_nsec = 5000000};
    const struct timespec long_time = {.tv_sec = 3600};
    const char *const argv[] = {nginx,     "-e", "start.log",  "-p",
                                directory, "-c", "nginx.conf", NULL};
    struct nginx_run run = {.nginx = nginx,
                            .directory = directory,
                            .sockets = sockets,
                            .n = n};
    bool begun = false;
    int asked = 0;
    int how = 0;
    int status;

    take_signals(&run);
    status = start(&run, argv);
    while (status == 0 && !has_ended(&run, &how)) {
        int signo;

        if (!begun && has_begun(&run)) {
            begun = true;
            started(ctx);
        }
        signo =
            sigtimedwait(&run.signals, NULL, begun ? &long_time : &short_time);
        if (signo > 0 && signo != SIGCHLD) {
            pass_on(&run, signo, &asked);
        }
    }
    (void)sigprocmask(SIG_SETMASK, &run.before, NULL);
    return status != 0 ? status : exit_status(&run, how);
}
