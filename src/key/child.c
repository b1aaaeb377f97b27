/* Runs a compiled jq program in a process of its own. */
#include "key/child.h"

#include "base/host.h"
#include "core/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    HEAD_LEN = 1 + sizeof(uint32_t), /* What it is, and how many bytes. */
    ERROR_MAX = 160,
};

/* ---- The child --------------------------------------------------------- */

static void put(int fd, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;

    while (len > 0) {
        ssize_t n = write(fd, p, len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            _exit(1);
        }
        p += n;
        len -= (size_t)n;
    }
}

static void tell(int fd, enum idem__child_said said, const void *bytes,
                 size_t len)
{
    char head[HEAD_LEN] = {(char)said};
    uint32_t len32 = (uint32_t)len;

    memcpy(head + 1, &len32, sizeof(len32));
    put(fd, head, sizeof(head));
    put(fd, bytes, len);
}

/* What the program threw: a string, or any other value. */
static void tell_error(const struct idem__libjq *jq, int fd, jv thrown)
{
    int len;

    if (jq->jv_get_kind(thrown) != JV_KIND_STRING) {
        thrown = jq->jv_dump_string(thrown, 0);
    }
    len = jq->jv_string_length_bytes(jq->jv_copy(thrown));
    tell(fd, IDEM__CHILD_ERROR, jq->jv_string_value(thrown),
         len > ERROR_MAX ? ERROR_MAX : (size_t)len);
}

static void run_text(const struct idem__child_job *job, int fd,
                     struct idem_slice text)
{
    const struct idem__libjq *jq = job->jq;
    jv value = jq->jv_parse_sized(text.base, (int)text.len);
    jv first, more;
    size_t len;

    if (jq->jv_get_kind(value) == JV_KIND_INVALID) {
        tell_error(jq, fd, jq->jv_invalid_get_msg(value));
        return;
    }
    jq->jq_start(job->state, value, 0);
    first = jq->jq_next(job->state);
    more = jq->jv_get_kind(first) == JV_KIND_INVALID ? jq->jv_copy(first)
                                                     : jq->jq_next(job->state);
    if (jq->jq_halted(job->state)) {
        tell(fd, IDEM__CHILD_ERROR, "it halts", strlen("it halts"));
    } else if (jq->jv_get_kind(more) != JV_KIND_INVALID) {
        tell(fd, IDEM__CHILD_SEVERAL, NULL, 0);
    } else if (jq->jv_invalid_has_msg(jq->jv_copy(more))) {
        tell_error(jq, fd, jq->jv_invalid_get_msg(more));
    } else if (jq->jv_get_kind(first) == JV_KIND_INVALID) {
        tell(fd, IDEM__CHILD_EMPTY, NULL, 0);
    } else {
        first = jq->jv_dump_string(first, 0);
        len = (size_t)jq->jv_string_length_bytes(jq->jv_copy(first));
        if (len > job->output_max) {
            tell(fd, IDEM__CHILD_LONG, NULL, 0);
        } else {
            tell(fd, IDEM__CHILD_OUTPUT, jq->jv_string_value(first), len);
        }
    }
}

static void limit(int what, uint64_t soft)
{
    struct rlimit r = {soft, soft};

    (void)setrlimit(what, &r);
}

/* What this process has mapped, in bytes. */
static uint64_t mapped(void)
{
    char text[64];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0) {
        (void)close(fd);
    }
    if (n <= 0) {
        return 0;
    }
    text[n] = '\0';
    return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Signals stay blocked: their handlers are the parent's. */
static void child(const struct idem__child_job *job, int fd, pid_t parent)
{
    uint64_t seconds = (uint64_t)job->timeout_ms / 1000 + 2;
    uint64_t have = mapped();
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || null < 0 || have == 0) {
        _exit(1);
    }
    (void)dup2(null,
               STDERR_FILENO); /* libjq and the C library complain here. */
    (void)signal(SIGABRT, SIG_DFL);
    (void)signal(SIGSEGV, SIG_DFL);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, seconds);
    limit(RLIMIT_AS, have + job->memory_max);
    run_text(job, fd, job->texts[0]);
    if (job->texts[1].len > 0) {
        run_text(job, fd, job->texts[1]);
    }
    _exit(0);
}

/* ---- The parent -------------------------------------------------------- */

static int start(const struct idem__child_job *job, int fds[2], pid_t *ret_pid,
                 struct idem_error *error)
{
    pid_t parent = getpid();
    sigset_t all, before;

    if (pipe2(fds, O_CLOEXEC) != 0) {
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "cannot make a pipe for the selection: %s",
                           strerror(errno));
    }
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    *ret_pid = fork();
    if (*ret_pid == 0) {
        child(job, fds[1], parent);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)close(fds[1]);
    if (*ret_pid < 0) {
        (void)close(fds[0]);
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "cannot start a process for the selection: %s",
                           strerror(errno));
    }
    return 0;
}

/* All that the child says; IDEM__CHILD_LATE where it takes too long. */
static enum idem__child_end listen_to(int fd, int64_t timeout_ms,
                                      struct idem__buffer *bytes)
{
    int64_t until_ms = idem__time_add(idem__mono_ms(), timeout_ms);

    for (;;) {
        int64_t left_ms = until_ms - idem__mono_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        uint8_t *to = idem__buffer_room(bytes, 4096);
        ssize_t n;

        if (to == NULL) {
            return IDEM__CHILD_DIED;
        }
        if (left_ms <= 0) {
            return IDEM__CHILD_LATE;
        }
        if (poll(&p, 1, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms) <= 0) {
            continue;
        }
        n = read(fd, to, 4096);
        if (n == 0) {
            return IDEM__CHILD_DONE;
        }
        if (n < 0 && errno != EINTR) {
            return IDEM__CHILD_DIED;
        }
        bytes->len += n > 0 ? (size_t)n : 0;
    }
}

/* Splits what was said. */
static void read_answers(const struct idem__buffer *bytes,
                         struct idem__child_answer answers[2])
{
    size_t at = 0;
    int i;

    for (i = 0; i < 2 && bytes->len - at >= HEAD_LEN; i++) {
        uint32_t len;

        memcpy(&len, bytes->base + at + 1, sizeof(len));
        if (len > bytes->len - at - HEAD_LEN) {
            return;
        }
        answers[i].said = (enum idem__child_said)bytes->base[at];
        answers[i].at = at + HEAD_LEN;
        answers[i].len = len;
        at += HEAD_LEN + len;
    }
}

int idem__child_run(const struct idem__child_job *job,
                    struct idem__child_answer ret_answers[2],
                    struct idem__buffer *ret_bytes,
                    enum idem__child_end *ret_end, struct idem_error *ret_error)
{
    int fds[2];
    pid_t pid;
    int rc = start(job, fds, &pid, ret_error);

    if (rc != 0) {
        return rc;
    }
    idem__buffer_reset(ret_bytes, 64 * 1024);
    *ret_end = listen_to(fds[0], job->timeout_ms, ret_bytes);
    (void)close(fds[0]);
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }

    memset(ret_answers, 0, 2 * sizeof(*ret_answers));
    if (ret_bytes->failed) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    read_answers(ret_bytes, ret_answers);
    return 0;
}
