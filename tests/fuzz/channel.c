/* The channel between the runner and its supervisor. What is sent is received, with
 * the same descriptors in the same places; a packet of another size, however many
 * descriptors come with it, is no message; and no descriptor is ever left open
 * that its reader does not know of.
 */
#include "fuzz.h"
#include "run/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PACKET_MAX = 64,
    ROOM = 16
};

static int ends[2];

/* The number that a new descriptor would get: the same before and after, if none
 * was left open. */
static int next_free(void)
{
    int fd = dup(ends[0]);

    must(fd >= 0);
    must(close(fd) == 0);
    return fd;
}

static bool same_file(int a, int b)
{
    struct stat st[2];

    must(fstat(a, &st[0]) == 0 && fstat(b, &st[1]) == 0);
    return st[0].st_ino == st[1].st_ino && st[0].st_dev == st[1].st_dev;
}

static void close_all(const struct channel_fds *fds)
{
    size_t i;

    for (i = 0; i < CHANNEL_FDS; i++) {
        if (fds->fd[i] >= 0) {
            must(close(fds->fd[i]) == 0);
        }
    }
}

static void send_and_receive(struct tape *tape)
{
    struct channel_fds sent = channel_no_fds;
    struct channel_fds got;
    uint8_t message[PACKET_MAX];
    struct idem_slice bytes;
    size_t i;

    for (i = 0; i < CHANNEL_FDS; i++) {
        sent.fd[i] = take_bool(tape) ? ends[i & 1] : -1;
    }
    bytes = take_bytes(tape, PACKET_MAX);
    must(channel_send(ends[0], bytes.base, bytes.len, &sent) == 0);
    must(channel_receive(ends[1], message, bytes.len, true, &got) == 1);
    must(bytes.len == 0 || memcmp(message, bytes.base, bytes.len) == 0);
    for (i = 0; i < CHANNEL_FDS; i++) {
        must((got.fd[i] >= 0) == (sent.fd[i] >= 0));
        must(got.fd[i] < 0 || same_file(got.fd[i], sent.fd[i]));
        must(got.fd[i] < 0 || fcntl(got.fd[i], F_GETFD) == FD_CLOEXEC);
    }
    close_all(&got);
    must(channel_receive(ends[1], message, bytes.len, false, NULL) == 0);
}

/* Any packet, from somebody who does not keep to the rules. */
static void send_anything(struct tape *tape)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(ROOM * sizeof(int))];
    } control = {.bytes = {0}};
    unsigned fds = take_up_to(tape, ROOM);
    bool with_fds = take_bool(tape);
    size_t want = take_up_to(tape, PACKET_MAX);
    struct idem_slice packet = take_bytes(tape, PACKET_MAX + 1);
    struct iovec part = {.iov_base = (void *)(uintptr_t)packet.base,
                         .iov_len = packet.len};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    struct channel_fds got = channel_no_fds;
    uint8_t message[PACKET_MAX];
    unsigned i;
    int rc;

    if (fds > 0) {
        int *row = (int *)(void *)CMSG_DATA(&control.header);

        for (i = 0; i < fds; i++) {
            row[i] = ends[i & 1];
        }
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(fds * sizeof(int));
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(fds * sizeof(int));
    }
    must(sendmsg(ends[0], &header, MSG_NOSIGNAL) == (ssize_t)packet.len);
    rc = channel_receive(ends[1], message, want, false, with_fds ? &got : NULL);
    must(rc == (packet.len == want + 1 ? 1 : -1));
    must(rc != 1 || want == 0 ||
         memcmp(message, (const uint8_t *)packet.base + 1, want) == 0);
    if (rc == 1) {
        close_all(&got);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    int before;

    must(channel_open(ends) == 0);
    before = next_free();
    while (tape.left > 0) {
        if (take_bool(&tape)) {
            send_and_receive(&tape);
        } else {
            send_anything(&tape);
        }
        must(next_free() == before);
    }
    must(close(ends[0]) == 0);
    must(channel_receive(ends[1], &before, sizeof(before), true, NULL) == -1);
    must(close(ends[1]) == 0);
    return 0;
}
