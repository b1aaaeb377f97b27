/* --pty: a terminal of the command's own. */
#include "run/pty.h"

#include "process/io.h"
#include "run/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* After the end of our stdin the command is looked at so often: whether it has read
 * the last end of file, and needs another. */
#define END_AGAIN_MS 100

void pty_init(struct pty *pty)
{
    memset(pty, 0, sizeof(*pty));
    pty->master = -1;
    pty->slave = -1;
    pty->outer = -1;
}

/* ---- Our terminal ---- */

static int find_outer(void)
{
    static const int fds[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    size_t i;

    for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        if (isatty(fds[i]) == 1) {
            return io_copy(fds[i]);
        }
    }
    return open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

/* We may read our terminal and set it. One that is not the terminal of our session
 * has no foreground. */
static bool is_foreground(void)
{
    pid_t group = tcgetpgrp(STDIN_FILENO);

    return group == getpgrp() || (group < 0 && errno == ENOTTY);
}

bool pty_sets_outer(const struct pty *pty)
{
    return pty->has_outer && pty->feeds;
}

static void make_raw(struct pty *pty)
{
    if (pty_sets_outer(pty) && !pty->is_raw && is_foreground()) {
        pty->is_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &pty->raw) == 0;
    }
}

static void make_as_before(struct pty *pty)
{
    if (pty->is_raw && is_foreground()) {
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &pty->before);
    }
    pty->is_raw = false;
}

static bool is_alike(const struct termios *a, const struct termios *b)
{
    return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag &&
           a->c_lflag == b->c_lflag;
}

void pty_restore(const struct termios *before)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    struct termios raw = *before;
    struct termios now;

    cfmakeraw(&raw);
    if (fd >= 0 && tcgetattr(fd, &now) == 0 && is_alike(&now, &raw)) {
        (void)tcsetattr(fd, TCSADRAIN, before);
    }
    io_close(&fd);
}

void pty_resize(struct pty *pty)
{
    struct winsize size;

    if (pty->outer >= 0 && ioctl(pty->outer, TIOCGWINSZ, &size) == 0) {
        (void)ioctl(pty->master, TIOCSWINSZ, &size);
    }
}

/* ---- The start ---- */

static void look_at_outer(struct pty *pty)
{
    pty->outer = find_outer();
    pty->has_outer = tcgetattr(STDIN_FILENO, &pty->before) == 0;
    pty->raw = pty->before;
    cfmakeraw(&pty->raw);
}

/* Without a terminal of ours: what most terminals are. */
static struct winsize size_of(const struct pty *pty)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};

    if (pty->outer >= 0) {
        (void)ioctl(pty->outer, TIOCGWINSZ, &size);
    }
    return size;
}

/* Input that nobody types is not echoed: it would be mixed with the output. */
static int set_slave(struct pty *pty)
{
    struct termios set;

    if (pty->has_outer) {
        return tcsetattr(pty->slave, TCSANOW, &pty->before);
    }
    if (tcgetattr(pty->slave, &set) != 0) {
        return -1;
    }
    set.c_lflag &= ~(tcflag_t)ECHO;
    return tcsetattr(pty->slave, TCSANOW, &set);
}

static int open_pair(struct pty *pty)
{
    char name[64];

    pty->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (pty->master < 0 || grantpt(pty->master) != 0 ||
        unlockpt(pty->master) != 0) {
        return -1;
    }
    errno = ptsname_r(pty->master, name, sizeof(name));
    if (errno != 0) {
        return -1;
    }
    pty->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return pty->slave < 0 ? -1 : 0;
}

int pty_open(struct pty *pty, bool feeds)
{
    struct winsize size;

    look_at_outer(pty);
    pty->feeds = feeds;
    size = size_of(pty);
    if (open_pair(pty) != 0 || ioctl(pty->slave, TIOCSWINSZ, &size) != 0) {
        return -1;
    }
    return set_slave(pty);
}

int pty_reader(const struct pty *pty)
{
    return io_copy(pty->master);
}

void pty_begin(struct pty *pty)
{
    make_raw(pty);
}

/* ---- Input ---- */

static bool may_read(const struct pty *pty)
{
    return pty->feeds && !pty->at_end && (!pty->has_outer || pty->is_raw);
}

struct pollfd pty_poll(const struct pty *pty)
{
    struct pollfd waits = {.fd = -1};

    if (pty->slave < 0) {
        return waits;
    }
    if (pty->len > 0) {
        waits.fd = pty->master;
        waits.events = POLLOUT;
    } else if (may_read(pty)) {
        waits.fd = STDIN_FILENO;
        waits.events = POLLIN;
    }
    return waits;
}

static void hold(struct pty *pty, const char *bytes, size_t len)
{
    memmove(pty->held, bytes, len);
    pty->off = 0;
    pty->len = len;
}

static void push(struct pty *pty)
{
    ssize_t n = write(pty->master, pty->held + pty->off, pty->len);

    if (n > 0) {
        pty->off += (size_t)n;
        pty->len -= (size_t)n;
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        pty->len = 0;
        pty->at_end = true;
    }
}

/* The character that stops would stop nobody: the command's group has no parent in
 * its session, and the kernel leaves such groups alone. So we stop it, unless one of
 * its own groups is in the foreground (a shell with job control), or it reads
 * single keys and knows better. */
static bool stops(const struct pty *pty, char c, pid_t group)
{
    struct termios set;

    return tcgetattr(pty->master, &set) == 0 && (set.c_lflag & ISIG) != 0 &&
           (set.c_lflag & ICANON) != 0 && c != '\0' &&
           (cc_t)c == set.c_cc[VSUSP] && tcgetpgrp(pty->master) == group;
}

static void pull(struct pty *pty, pid_t group)
{
    char bytes[PTY_INPUT_MAX];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        pty->at_end = true;
        pty_tick(pty);
    } else if (pty->is_raw && n == 1 && stops(pty, bytes[0], group)) {
        pty_stop(pty, group);
    } else {
        pty->is_split = bytes[n - 1] != '\n';
        hold(pty, bytes, (size_t)n);
        push(pty);
    }
}

void pty_move(struct pty *pty, const struct pollfd *ready, pid_t group)
{
    if (ready->fd < 0 || ready->revents == 0) {
        return;
    }
    if (pty->len > 0) {
        push(pty);
    } else {
        pull(pty, group);
    }
}

/* ---- The end of our stdin ---- */

int pty_wait_ms(const struct pty *pty)
{
    return pty->slave >= 0 && pty->feeds && pty->at_end ? END_AGAIN_MS : -1;
}

/* An end of file of a terminal ends one reader. The next one gets another, as it
 * would from a pipe: as soon as nothing of the last is to be read. */
void pty_tick(struct pty *pty)
{
    struct pollfd unread = {.fd = pty->slave, .events = POLLIN};
    struct termios set;
    char end[2];

    if (pty_wait_ms(pty) < 0 || pty->len > 0 ||
        tcgetattr(pty->master, &set) != 0 || (set.c_lflag & ICANON) == 0 ||
        (!pty->is_split && poll(&unread, 1, 0) != 0)) {
        return;
    }
    end[0] = (char)set.c_cc[VEOF];
    end[1] = end[0];
    hold(pty, end, pty->is_split ? 2 : 1); /* The first ends the line. */
    pty->is_split = false;
    push(pty);
}

/* ---- Stopping, and the end ---- */

void pty_continued(struct pty *pty)
{
    make_raw(pty);
    pty_resize(pty);
}

void pty_stop(struct pty *pty, pid_t group)
{
    pid_t front = tcgetpgrp(pty->master);

    make_as_before(pty);
    (void)kill(-group, SIGSTOP);
    if (front > 0 && front != group) {
        (void)kill(-front, SIGSTOP);
    }
    signals_stop_self();
    pty_continued(pty);
    if (front > 0 && front != group) {
        (void)kill(-front, SIGCONT);
    }
    (void)kill(-group, SIGCONT);
}

void pty_end(struct pty *pty)
{
    io_close(&pty->slave);
}

void pty_give_back(struct pty *pty)
{
    make_as_before(pty);
}

void pty_finish(struct pty *pty)
{
    make_as_before(pty);
    io_close(&pty->slave);
    io_close(&pty->master);
    io_close(&pty->outer);
}
