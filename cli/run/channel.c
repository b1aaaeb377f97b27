/* Messages with descriptors beside them, over a pair of sockets. */
#include "run/channel.h"

#include "base/crash.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PAUSE_MS = 10,
    TRIES_MAX = 50
};

const struct channel_fds channel_no_fds = {{-1, -1, -1, -1}};

/* Room for the descriptors, aligned as the kernel wants it. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(CHANNEL_FDS * sizeof(int))];
};

/* True if the call that failed may succeed after the pause made here: a lack of
 * memory passes, and says nothing about the other end. */
static bool may_try_again(unsigned *tries)
{
    if (errno == EINTR) {
        return true;
    }
    if ((errno != ENOMEM && errno != ENOBUFS) || ++*tries > TRIES_MAX) {
        return false;
    }
    (void)poll(NULL, 0, PAUSE_MS);
    return true;
}

int channel_open(int ret_ends[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_ends);
}

/* A bit for each descriptor that is present, and those packed in a row. */
static uint8_t gather(const struct channel_fds *fds, int row[CHANNEL_FDS],
                      size_t *ret_len)
{
    uint8_t present = 0;
    size_t i;

    *ret_len = 0;
    for (i = 0; i < CHANNEL_FDS; i++) {
        if (fds->fd[i] >= 0) {
            present |= (uint8_t)(1U << i);
            row[(*ret_len)++] = fds->fd[i];
        }
    }
    return present;
}

/* Closes those that do not fit. */
static void scatter(uint8_t present, const int *row, size_t len,
                    struct channel_fds *fds)
{
    size_t next = 0;
    size_t i;

    for (i = 0; i < CHANNEL_FDS; i++) {
        fds->fd[i] = (present >> i & 1U) != 0 && next < len ? row[next++] : -1;
    }
    while (next < len) {
        (void)close(row[next++]);
    }
}

int channel_send(int end, const void *message, size_t len,
                 const struct channel_fds *fds)
{
    int row[CHANNEL_FDS];
    size_t row_len;
    uint8_t present = gather(fds, row, &row_len);
    union control control = {.bytes = {0}};
    struct iovec parts[] = {
        {.iov_base = &present, .iov_len = 1},
        {.iov_base = (void *)(uintptr_t)message, .iov_len = len},
    };
    struct msghdr packet = {.msg_iov = parts, .msg_iovlen = 2};
    unsigned tries = 0;
    ssize_t n;

    if (row_len > 0) {
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(row_len * sizeof(int));
        memcpy(CMSG_DATA(&control.header), row, row_len * sizeof(int));
        packet.msg_control = control.bytes;
        packet.msg_controllen = CMSG_SPACE(row_len * sizeof(int));
    }
    do {
        n = sendmsg(end, &packet, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && may_try_again(&tries));
    IDEM__CRASH_POINT("run/channel/sent");
    return n < 0 ? -1 : 0;
}

void channel_fall_silent(int end)
{
    (void)shutdown(end, SHUT_WR);
}

static void take_fds(struct msghdr *packet, uint8_t present,
                     struct channel_fds *ret_fds)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(packet);
    int row[CHANNEL_FDS];
    size_t len = 0;

    if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
        len = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(row, CMSG_DATA(header), len * sizeof(int));
    }
    scatter(present, row, len, ret_fds);
}

int channel_receive(int end, void *message, size_t len, bool wait,
                    struct channel_fds *ret_fds)
{
    uint8_t present = 0;
    union control control = {.bytes = {0}};
    struct iovec parts[] = {
        {.iov_base = &present, .iov_len = 1},
        {.iov_base = message, .iov_len = len},
    };
    struct msghdr packet = {.msg_iov = parts, .msg_iovlen = 2};
    int flags = MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT);
    bool is_message;
    unsigned tries = 0;
    ssize_t n;

    if (ret_fds != NULL) {
        packet.msg_control = control.bytes;
        packet.msg_controllen = sizeof(control.bytes);
    }
    /* The other end was closed before it had read everything. The messages that
     * it sent before are still here. */
    do {
        n = recvmsg(end, &packet, flags);
    } while (n < 0 && (errno == ECONNRESET || may_try_again(&tries)));
    if (n < 0 && errno == EAGAIN) {
        return 0;
    }
    is_message = n == (ssize_t)len + 1 && (packet.msg_flags & MSG_TRUNC) == 0;
    if (n >= 0 && ret_fds != NULL) {
        /* Without a valid message its descriptors have no place either: close them. */
        take_fds(&packet, is_message ? present : 0, ret_fds);
    }
    IDEM__CRASH_POINT("run/channel/received");
    return is_message ? 1 : -1;
}
