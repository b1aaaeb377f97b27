/* Credentials that a program prints: credential_process. */
#include "aws/client/source.h"
#include "base/host.h"
#include "core/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORDS_MAX = 64,
    COMMAND_MAX = 4096,
    TIME_MS = 30000,
    LOOK_MS = 10, /* Between two checks whether it has exited. */
};

/* ---- Words ------------------------------------------------------------- */

/* Takes the next word out of *@at, in place. False: there is none, or its quotation mark
 * is not closed. */
static bool take_word(char **at, char **ret_word)
{
    char *from = *at;
    char *to;
    char quote = '\0';

    while (*from == ' ' || *from == '\t') {
        from++;
    }
    if (*from == '\0') {
        return false;
    }
    *ret_word = to = from;
    for (; *from != '\0'; from++) {
        if (quote == '\0' && (*from == ' ' || *from == '\t')) {
            break;
        }
        if (*from == quote) {
            quote = '\0';
        } else if (quote == '\0' && (*from == '"' || *from == '\'')) {
            quote = *from;
        } else if (*from == '\\' && quote != '\'' && from[1] != '\0' &&
                   (quote == '\0' || strchr("\"\\", from[1]) != NULL)) {
            *to++ = *++from;
        } else {
            *to++ = *from;
        }
    }
    *at = *from == '\0' ? from : from + 1;
    *to = '\0';
    return quote == '\0';
}

static int split(char *command, char *words[WORDS_MAX + 1],
                 struct idem_error *error)
{
    size_t n = 0;

    while (n < WORDS_MAX && take_word(&command, &words[n])) {
        n++;
    }
    words[n] = NULL;
    if (n == 0 || *command != '\0') {
        return idem__error(
            error, IDEM_ECONFIG,
            "credential_process is not a command: it is empty, lacks a "
            "quotation mark, or more than %d words",
            WORDS_MAX);
    }
    return 0;
}

/* ---- The program ------------------------------------------------------- */

/* Starts the program in a process group of its own, with @out as its standard output and
 * no signals blocked. Returns 0 or an errno. */
static int start(char *const *words, int out, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc != 0) {
        return rc;
    }
    rc = posix_spawnattr_init(&attributes);
    if (rc != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return rc;
    }
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    rc =
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    rc |= posix_spawn_file_actions_adddup2(&actions, out, 1);
    rc |= posix_spawnattr_setsigmask(&attributes, &none);
    rc |= posix_spawnattr_setsigdefault(&attributes, &all);
    rc |= posix_spawnattr_setpgroup(&attributes, 0);
    rc |= posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                                    POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
    if (rc != 0) {
        rc = ENOMEM;
    } else {
        rc = posix_spawnp(ret_pid, words[0], &actions, &attributes, words,
                          environ);
    }
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Waits for @fd (-1: none) for @ms at most. False: ask->stop is readable. */
static bool wait_for(const struct idem__aws_ask *ask, int fd, int64_t ms)
{
    struct pollfd fds[] = {{.fd = ask->stop, .events = POLLIN},
                           {.fd = fd, .events = POLLIN}};

    (void)poll(fds, 2, ms < 0 ? 0 : (int)ms);
    return fds[0].revents == 0;
}

/* Reads all that it prints. False: that did not end in time, or is too long. */
static bool read_output(struct idem__aws_ask *ask, int fd, int64_t end_ms)
{
    struct idem__aws_fetch *fetch = &ask->fetch;

    fetch->answer_len = 0;
    for (;;) {
        int64_t left_ms = end_ms - idem__mono_ms();
        ssize_t n;

        if (left_ms <= 0 || !wait_for(ask, fd, left_ms)) {
            return false;
        }
        n = read(fd, fetch->answer + fetch->answer_len,
                 IDEM__AWS_FETCH_MAX - fetch->answer_len);
        if (n == 0) {
            return fetch->answer_len < IDEM__AWS_FETCH_MAX;
        }
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
        fetch->answer_len += n > 0 ? (size_t)n : 0;
    }
}

/* Returns its exit status; 256: it was killed by a signal, or did not exit in time, and
 * then we kill it. 0 if the program that uses this library has reaped it before us. */
static int finish(const struct idem__aws_ask *ask, pid_t pid, int64_t end_ms)
{
    int status = 0;
    pid_t rc;

    for (;;) {
        rc = waitpid(pid, &status, WNOHANG);
        if (rc != 0 || idem__mono_ms() >= end_ms ||
            !wait_for(ask, -1, LOOK_MS)) {
            break;
        }
    }
    if (rc == pid) {
        return WIFEXITED(status) ? WEXITSTATUS(status) : 256;
    }
    if (rc < 0) {
        return 0;
    }
    (void)kill(-pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return 256;
}

static int run(struct idem__aws_ask *ask, char *const *words,
               struct idem_error *error)
{
    int64_t end_ms = idem__mono_ms() + TIME_MS;
    int fds[2];
    pid_t pid;
    bool whole;
    int rc;

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    /* Only our end is non-blocking: the program expects a usual pipe. */
    (void)fcntl(fds[1], F_SETFL, 0);
    rc = start(words, fds[1], &pid);
    (void)close(fds[1]);
    if (rc != 0) {
        (void)close(fds[0]);
        return idem__error(error, IDEM_ECONFIG,
                           "credential_process: cannot run %.80s: %s", words[0],
                           strerror(rc));
    }
    whole = read_output(ask, fds[0], end_ms);
    (void)close(fds[0]);
    rc = finish(ask, pid, whole ? end_ms : 0);
    if (!whole) {
        return idem__error(
            error, IDEM_EUNAVAILABLE,
            "credential_process: %.80s did not finish within %d seconds, or "
            "printed too much",
            words[0], TIME_MS / 1000);
    }
    if (rc != 0) {
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "credential_process: %.80s %s %d; run it by hand to "
                           "see why",
                           words[0],
                           rc < 256 ? "exited with status" : "failed,", rc);
    }
    return 0;
}

int idem__aws_source_process(struct idem__aws_ask *ask,
                             struct idem_slice command,
                             struct idem__aws_credentials *ret,
                             struct idem_error *error)
{
    char copy[COMMAND_MAX];
    char *words[WORDS_MAX + 1];
    int rc;

    if (command.len >= sizeof(copy)) {
        return idem__error(error, IDEM_ECONFIG,
                           "credential_process is longer than %d characters",
                           COMMAND_MAX - 1);
    }
    memcpy(copy, command.base, command.len);
    copy[command.len] = '\0';
    rc = split(copy, words, error);
    if (rc != 0) {
        goto done;
    }
    rc = run(ask, words, error);
    if (rc != 0) {
        goto done;
    }
    rc = idem__aws_read_keys(idem_bytes(ask->fetch.answer,
                                        ask->fetch.answer_len),
                             "SessionToken", "credential_process", ret, error);
done:
    idem__aws_fetch_wipe(&ask->fetch);
    return rc;
}
