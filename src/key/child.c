/* Processes that run one jq program. */
#include "key/child.h"

#include "base/family.h"
#include "base/heap.h"
#include "core/error.h"
#include "key/evaluate.h"
#include "key/request.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    HEAD_LEN = 2 * sizeof(uint32_t), /* Code or form, and how many bytes. */
    CHANNEL = 3,                     /* The child's end. */
    STACK = 64 * 1024,
    GRACE_MS = 1000,
    KEEP = 64 * 1024,
};

enum form {
    JSON = 1,
    REQUEST
};

/* ---- The child: its surroundings --------------------------------------- */

/* Time that is over, a crash, no memory: the end of the descriptor says it. A child
 * that died of a signal would be an alert in nginx's log, and a core. */
static void leave(int signo)
{
    (void)signo;
    _exit(1);
}

static const int mortal[] = {SIGXCPU, SIGABRT, SIGSEGV, SIGBUS,
                             SIGFPE,  SIGILL,  SIGSYS};

/* All other signals stay blocked: their handlers are the parent's, and what is sent
 * to the whole group (Ctrl-C) is for the parent to answer. */
static void take_signals(void)
{
    static char stack[STACK];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = leave, .sa_flags = SA_ONSTACK};
    sigset_t set;
    size_t i;

    (void)sigaltstack(&alternate, NULL);
    (void)sigemptyset(&set);
    for (i = 0; i < sizeof(mortal) / sizeof(mortal[0]); i++) {
        (void)sigaction(mortal[i], &action, NULL);
        (void)sigaddset(&set, mortal[i]);
    }
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Nothing of the parent's stays open here: neither the sockets that a server listens
 * on nor a client's connection, which would not end before this process. */
static bool close_all(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct rlimit most;
    int i;

    if (null < 0) {
        return false;
    }
    for (i = 0; i < CHANNEL; i++) { /* libjq complains on one of them. */
        if (i != fd && dup2(null, i) < 0) {
            return false;
        }
    }
    if (dup2(fd, CHANNEL) < 0) {
        return false;
    }
#ifdef SYS_close_range
    if (syscall(SYS_close_range, CHANNEL + 1, ~0U, 0) == 0) {
        return true;
    }
#endif
    if (getrlimit(RLIMIT_NOFILE, &most) != 0) {
        return false;
    }
    for (i = CHANNEL + 1; i < (int)most.rlim_cur; i++) {
        (void)close(i);
    }
    return true;
}

/* ---- The child: limits ---- */

/* Only the soft ones: they move with each text. */
static void limit(int what, uint64_t soft)
{
    struct rlimit r;

    if (getrlimit(what, &r) == 0) {
        r.rlim_cur = soft < r.rlim_max ? soft : r.rlim_max;
        (void)setrlimit(what, &r);
    }
}

/* The bytes that this process has mapped. */
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

/* For the case that nobody ends it. */
static void limit_time(int64_t timeout_ms)
{
    struct rusage used;

    if (getrusage(RUSAGE_SELF, &used) == 0) {
        limit(RLIMIT_CPU, (uint64_t)(used.ru_utime.tv_sec +
                                     used.ru_stime.tv_sec + timeout_ms / 1000) +
                              2);
    }
}

/* ---- The child: its work ---- */

static void put(int fd, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;

    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

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

/* False: the parent has no more. */
static bool get(int fd, void *bytes, size_t len)
{
    uint8_t *p = bytes;

    while (len > 0) {
        ssize_t n = read(fd, p, len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        p += n;
        len -= (size_t)n;
    }
    return true;
}

static void tell(int code, struct idem_slice text)
{
    struct idem__buffer bytes = {NULL, 0, 0, false};
    uint32_t head[2] = {(uint32_t)code, (uint32_t)text.len};

    idem__buffer_add(&bytes, head, sizeof(head));
    idem__buffer_add(&bytes, text.base, text.len);
    if (bytes.failed) {
        _exit(1);
    }
    put(CHANNEL, bytes.base, bytes.len);
    idem__buffer_free(&bytes);
}

static int evaluate(struct idem__evaluation *e,
                    const struct idem__child_text *text,
                    struct idem__buffer *json, struct idem_slice *ret_output,
                    struct idem_error *error)
{
    struct idem_slice input = text->json;
    int rc = 0;

    limit(RLIMIT_AS, RLIM_INFINITY);
    limit_time(e->options->timeout_ms);
    if (text->request != NULL) {
        idem__buffer_reset(json, KEEP);
        rc = idem__request_json(text->request, json, error);
        input = idem__buffer_slice(json);
    }
    if (rc == 0) {
        rc = idem__evaluate_read(e, input, error);
    }
    if (rc == 0) {
        uint64_t have = mapped();

        if (have == 0) {
            _exit(1);
        }
        limit(RLIMIT_AS, have + e->options->memory_max);
        rc = idem__evaluate_run(e, ret_output, error);
    }
    return rc;
}

static void answer(struct idem__evaluation *e,
                   const struct idem__child_text *text,
                   struct idem__buffer *json)
{
    struct idem_error error = {0};
    struct idem_slice output;
    int rc = evaluate(e, text, json, &output, &error);

    tell(rc, rc == 0 ? output : idem_str(error.text));
}

/* The next text, until the parent closes its end. */
static void serve(struct idem__evaluation *e, struct idem__buffer *json)
{
    struct idem__buffer bytes = {NULL, 0, 0, false};
    struct idem__buffer headers = {NULL, 0, 0, false};
    uint32_t head[2];

    while (get(CHANNEL, head, sizeof(head))) {
        struct idem__child_text text = {NULL, {NULL, 0}};
        struct idem_select_request request;
        uint8_t *to;

        idem__buffer_reset(&bytes, KEEP);
        to = head[1] <= IDEM__CHILD_TEXT_MAX
                 ? idem__buffer_room(&bytes, head[1])
                 : NULL;
        if (to == NULL || !get(CHANNEL, to, head[1])) {
            break;
        }
        text.json = idem_bytes(to, head[1]);
        if (head[0] == REQUEST) {
            if (idem__request_unpack(text.json, &headers, &request) != 0) {
                break;
            }
            text.request = &request;
        }
        answer(e, &text, json);
    }
}

static void child(const struct idem__child_job *job,
                  const struct idem__child_text *text, bool keep, int fd,
                  pid_t parent)
{
    struct idem__evaluation evaluation = {.jq = job->jq,
                                          .state = job->state,
                                          .options = job->options};
    struct idem__buffer json = {NULL, 0, 0, false};

    /* A heap of the caller's may have a lock, held by a thread that is not here. */
    idem_heap_set(NULL);
    idem__die_with_parent(SIGKILL);
    take_signals();
    if (getppid() != parent || !close_all(fd)) {
        _exit(1);
    }
    limit(RLIMIT_CORE, 0);
    answer(&evaluation, text, &json);
    if (keep) {
        serve(&evaluation, &json);
    }
    _exit(0);
}

/* ---- The parent -------------------------------------------------------- */

static int fork_child(const struct idem__child_job *job,
                      const struct idem__child_text *text, bool keep,
                      struct idem__child *c, struct idem_error *error)
{
    pid_t parent = getpid();
    sigset_t all, before;
    int fds[2];
    int why;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "cannot make a socket for the selection: %s",
                           strerror(errno));
    }
    /* Blocked until there is a pidfd: a handler that waits for every child must not
     * free the number meanwhile. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    c->pid = fork();
    if (c->pid == 0) {
        child(job, text, keep, fds[1], parent);
    }
    why = errno;
    c->pidfd = c->pid > 0 ? idem__child_open(c->pid) : -1;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)close(fds[1]);
    if (c->pid < 0) {
        (void)close(fds[0]);
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "cannot start a process for the selection: %s",
                           strerror(why));
    }
    c->fd = fds[0];
    (void)fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
    return 0;
}

int idem__child_start(const struct idem__child_job *job,
                      const struct idem__child_text *text, bool keep,
                      struct idem__child **ret_child,
                      struct idem_error *ret_error)
{
    struct idem__child *c = idem__zalloc(sizeof(*c));
    int rc;

    if (c == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = fork_child(job, text, keep, c, ret_error);
    if (rc != 0) {
        idem__free(c);
        return rc;
    }
    c->runs = 1;
    *ret_child = c;
    return 0;
}

bool idem__child_send(struct idem__child *child,
                      const struct idem__child_text *text)
{
    struct idem__buffer bytes = {NULL, 0, 0, false};
    size_t len = text->request != NULL ? idem__request_packed_len(text->request)
                                       : text->json.len;
    uint32_t head[2] = {text->request != NULL ? REQUEST : JSON, (uint32_t)len};
    bool sent;
    char byte;

    /* It has nothing to say unasked; if it is gone, here is the end. */
    if (len > IDEM__CHILD_TEXT_MAX ||
        recv(child->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0 ||
        errno != EAGAIN) {
        return false;
    }
    idem__buffer_add(&bytes, head, sizeof(head));
    if (text->request != NULL) {
        idem__request_pack(text->request, &bytes);
    } else {
        idem__buffer_add(&bytes, text->json.base, len);
    }
    /* All of it has room: the socket is empty. */
    sent = !bytes.failed && send(child->fd, bytes.base, bytes.len,
                                 MSG_NOSIGNAL) == (ssize_t)bytes.len;
    idem__buffer_free(&bytes);
    child->runs += sent;
    return sent;
}

/* Up to @len bytes are there then. 1: not yet; -1: there are no more. */
static int fill(int fd, struct idem__buffer *bytes, size_t len)
{
    while (bytes->len < len) {
        uint8_t *to = idem__buffer_room(bytes, len - bytes->len);
        ssize_t n;

        if (to == NULL) {
            return -1;
        }
        n = recv(fd, to, len - bytes->len, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return 1;
        }
        if (n <= 0) {
            return -1;
        }
        bytes->len += (size_t)n;
    }
    return 0;
}

bool idem__child_read(struct idem__child *child, size_t max,
                      struct idem__buffer *bytes, int *ret_code,
                      struct idem_slice *ret_text)
{
    uint32_t head[2] = {0, 0};
    int rc = fill(child->fd, bytes, HEAD_LEN);

    if (rc == 0) {
        memcpy(head, bytes->base, sizeof(head));
        if (head[1] > max ||
            ((int)head[0] != 0 && (int)head[0] != IDEM_EINVALID &&
             (int)head[0] != IDEM_ENOMEM)) {
            rc = -1; /* A child that says so has come to harm. */
        } else {
            rc = fill(child->fd, bytes, HEAD_LEN + head[1]);
        }
    }
    if (rc > 0) {
        return false;
    }
    *ret_code = rc < 0 ? (bytes->failed ? IDEM_ENOMEM : 1) : (int)head[0];
    *ret_text = rc < 0 ? idem_bytes("", 0)
                       : idem_bytes(bytes->base + HEAD_LEN, head[1]);
    return true;
}

/* ---- The end ---- */

/* Without a pidfd the number may be another's as soon as somebody else waited for it:
 * blocked signals keep nginx's handler from doing so in between. */
static void send_signal(const struct idem__child *child, int signo)
{
    siginfo_t info;
    sigset_t all, before;

    if (idem__child_signal(child->pidfd, signo)) {
        return;
    }
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) ==
        0) {
        (void)kill(child->pid, signo);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void idem__child_end(struct idem__child *child, bool at_work)
{
    if (child->fd >= 0) {
        (void)close(child->fd);
        child->fd = -1;
    }
    if (at_work) {
        send_signal(child, SIGXCPU);
    }
}

/* It leaves by itself, unless something holds it: a stop, a debugger. */
static void hurry(const struct idem__child *child)
{
    struct pollfd p = {.fd = child->pidfd, .events = POLLIN};

    if (child->pidfd < 0 || poll(&p, 1, GRACE_MS) != 1) {
        send_signal(child, SIGKILL);
    }
}

bool idem__child_gone(struct idem__child *child, bool wait)
{
    if (wait) {
        hurry(child);
    }
    if (idem__child_wait(child->pidfd, child->pid, wait ? 0 : WNOHANG) == 0) {
        return false;
    }
    idem__child_forget(child);
    return true;
}

void idem__child_forget(struct idem__child *child)
{
    if (child->fd >= 0) {
        (void)close(child->fd);
    }
    if (child->pidfd >= 0) {
        (void)close(child->pidfd);
    }
    idem__free(child);
}
