/* Runs the user's hook with the alert as JSON on its standard input. */
#include "inspect/watch.h"
#include "process/descriptors.h"
#include "process/host.h"
#include "process/self.h"
#include "text/error.h"
#include "text/json.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TOO_LONG = 124,    /* As timeout(1) has it. */
    NOT_STARTED = 127, /* As a shell has it. */
    LOOK_MS = 10
};

/* A file in memory, at its beginning; -1 with errno. */
static int text_file(const struct cli_json *json)
{
    int fd = memory_file_open("idem-hook");
    FILE *f = fd < 0 ? NULL : fdopen(dup(fd), "w");
    bool written;

    if (f == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return -1;
    }
    written = cli_json_write(json, f) == 0;
    if (fclose(f) != 0 || !written || lseek(fd, 0, SEEK_SET) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static int start(const char *command, const char *text, int input,
                 pid_t *ret_pid)
{
    char *argv[] = {(char[]){"sh"},
                    (char[]){"-c"},
                    strdup(command),
                    (char[]){"idem"},
                    strdup(text != NULL ? text : ""),
                    NULL};
    struct cli_program shell = {.path = "/bin/sh",
                                .argv = argv,
                                .input = input,
                                .from = STDERR_FILENO,
                                .to = STDOUT_FILENO};
    int rc = ENOMEM;

    (void)sigemptyset(&shell.blocked);
    if (argv[2] != NULL && argv[4] != NULL) {
        rc = cli_spawn(&shell, ret_pid);
    }
    free(argv[2]);
    free(argv[4]);
    return rc;
}

static int await(pid_t pid, int64_t timeout_ms)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    int64_t until_ms = cli_mono_ms() + timeout_ms;
    bool late = false;
    int how = 0;
    pid_t got;

    while ((got = waitpid(pid, &how, WNOHANG)) == 0 ||
           (got < 0 && errno == EINTR)) {
        if (!late && cli_mono_ms() >= until_ms) {
            /* The whole group: the shell may be waiting for a child of its own. */
            late = true;
            (void)kill(-pid, SIGKILL);
        }
        (void)nanosleep(&pause, NULL);
    }
    if (late) {
        return TOO_LONG;
    }
    return got == pid && WIFEXITED(how) ? WEXITSTATUS(how)
                                        : 128 + WTERMSIG(how);
}

int cli_hook(const char *command, const struct cli_json *json, const char *text,
             int64_t timeout_ms)
{
    int input = text_file(json);
    pid_t pid;
    int rc;

    if (input < 0) {
        cli_say("cannot write to the hook: %s", strerror(errno));
        return NOT_STARTED;
    }
    rc = start(command, text, input, &pid);
    (void)close(input);
    if (rc != 0) {
        cli_say("cannot start the hook: %s", strerror(rc));
        return NOT_STARTED;
    }
    return await(pid, timeout_ms);
}
