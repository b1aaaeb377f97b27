/* Messages between the runner and its supervisor. */
#include "run/channel.h"

#include "test.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

ssize_t __real_sendmsg(int end, const struct msghdr *packet, int flags);
ssize_t __real_recvmsg(int end, struct msghdr *packet, int flags);
ssize_t __wrap_sendmsg(int end, const struct msghdr *packet, int flags);
ssize_t __wrap_recvmsg(int end, struct msghdr *packet, int flags);
/* Their names where long has 32 bits and a time 64. */
ssize_t __wrap___sendmsg64(int end, const struct msghdr *packet, int flags);
ssize_t __wrap___recvmsg64(int end, struct msghdr *packet, int flags);

static int left; /* So many of the next calls fail, */
static int how;  /* in this way. */

static bool fails(void)
{
    if (left == 0) {
        return false;
    }
    left--;
    errno = how;
    return true;
}

ssize_t __wrap_sendmsg(int end, const struct msghdr *packet, int flags)
{
    return fails() ? -1 : __real_sendmsg(end, packet, flags);
}

ssize_t __wrap_recvmsg(int end, struct msghdr *packet, int flags)
{
    return fails() ? -1 : __real_recvmsg(end, packet, flags);
}

ssize_t __wrap___sendmsg64(int end, const struct msghdr *packet, int flags)
{
    return __wrap_sendmsg(end, packet, flags);
}

ssize_t __wrap___recvmsg64(int end, struct msghdr *packet, int flags)
{
    return __wrap_recvmsg(end, packet, flags);
}

/* The number that the next descriptor gets; it rises with every one that is open. */
static int next_fd(void)
{
    int fd = dup(0);

    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    return fd;
}

/* Nothing need come with a message, and what comes need not be wanted. Whoever
 * sends to nobody is told, without a signal; so is who cannot wait for room. */
TEST(channel, carriesAMessageAlone)
{
    struct channel_fds sent = {{0, 1, -1, -1}};
    char message[8] = "";
    int next;
    int ends[2];
    int i;

    assert_int_equal(channel_open(ends), 0);
    next = next_fd();
    assert_int_equal(channel_send(ends[0], "alone", 6, &channel_no_fds), 0);
    assert_int_equal(channel_receive(ends[1], message, 6, true, NULL), 1);
    assert_string_equal(message, "alone");
    assert_int_equal(channel_send(ends[0], "other", 6, &sent), 0);
    assert_int_equal(channel_receive(ends[1], message, 6, true, NULL), 1);
    assert_string_equal(message, "other");
    assert_int_equal(channel_receive(ends[1], message, 6, false, NULL), 0);
    assert_int_equal(next_fd(), next);
    for (i = 0; channel_send(ends[0], "much", 5, &channel_no_fds) == 0; i++) {
        assert_true(i < 1000000);
    }
    (void)close(ends[1]);
    assert_int_equal(channel_send(ends[0], "nobody", 7, &sent), -1);
    (void)close(ends[0]);
}

/* What passes is waited for; what does not pass is not waited for for ever. */
TEST(channel, outlastsWhatPasses)
{
    static const struct {
        int how;
        int times;
        bool sent;
        bool received;
    } rows[] = {
        {EINTR, 100, true, true}, {ENOBUFS, 3, true, true},
        {ENOMEM, 3, true, true},  {ECONNRESET, 1, false, true},
        {EBADF, 1, false, false}, {ENOMEM, 1000, false, false},
    };

    EACH(row, rows) {
        char message[2] = "";
        int ends[2];

        assert_int_equal(channel_open(ends), 0);
        how = row->how;
        left = row->times;
        assert_int_equal(channel_send(ends[0], "m", 2, &channel_no_fds),
                         row->sent ? 0 : -1);
        left = 0;
        assert_int_equal(channel_send(ends[0], "n", 2, &channel_no_fds), 0);
        left = row->times;
        assert_int_equal(channel_receive(ends[1], message, 2, true, NULL),
                         row->received ? 1 : -1);
        left = 0;
        if (row->received) {
            assert_string_equal(message, row->sent ? "m" : "n");
        }
        (void)close(ends[0]);
        (void)close(ends[1]);
    }
}
