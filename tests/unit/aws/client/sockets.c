/* Tests of the client's set of sockets. */
#include "aws/client/client.h"

#include "base/wait.h"
#include "heap.h"
#include "test.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MAX = 2
};

struct pair {
    int here, there;
};

static struct pair make_pair(void)
{
    int ends[2];
    struct pair pair;

    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
                       0);
    pair.here = ends[0];
    pair.there = ends[1];
    return pair;
}

static void close_pair(struct pair *pair)
{
    (void)close(pair->here);
    (void)close(pair->there);
}

static bool readable(int fd)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};

    return poll(&pollfd, 1, 0) == 1;
}

/* What is ready, as bits: 1 << i for pairs[i]. */
static unsigned ready(struct idem__sockets *sockets, const struct pair *pairs,
                      size_t len)
{
    struct pollfd events[16];
    int n = idem__sockets_ready(sockets, events, 16);
    unsigned bits = 0;
    size_t i;

    while (n-- > 0) {
        for (i = 0; i < len; i++) {
            if (events[n].fd == pairs[i].here) {
                bits |= 1U << i;
            }
        }
    }
    return bits;
}

/* True if the other end of @pair has nothing to say any more. */
static bool ended(const struct pair *pair)
{
    char byte;

    return recv(pair->there, &byte, 1, MSG_DONTWAIT) == 0;
}

/* A socket is reported while it is wanted and ready; one that nobody wants does not
 * keep the descriptor readable. Kept ones and others behave alike. */
TEST(sockets, reportsWhatIsWanted)
{
    struct idem__sockets sockets;
    struct pair pairs[2 * MAX + 2];
    size_t i;

    assert_ok(idem__sockets_open(&sockets, MAX));
    for (i = 0; i < COUNT(pairs); i++) {
        pairs[i] = make_pair();
        idem__sockets_opened(&sockets, pairs[i].here);
        assert_int_equal(idem__sockets_want(&sockets, pairs[i].here, POLLIN,
                                            /* is_new= */ true),
                         0);
    }
    assert_int_equal(ready(&sockets, pairs, COUNT(pairs)), 0);
    for (i = 0; i < COUNT(pairs); i++) {
        assert_int_equal(write(pairs[i].there, "x", 1), 1);
        assert_int_equal(ready(&sockets, pairs, COUNT(pairs)), 1U << i);
        assert_int_equal(idem__sockets_want(&sockets, pairs[i].here, 0, false),
                         0);
        assert_int_equal(ready(&sockets, pairs, COUNT(pairs)), 0);
        assert_false(readable(sockets.watch));
        assert_int_equal(idem__sockets_want(&sockets, pairs[i].here,
                                            POLLIN | POLLOUT, true),
                         0);
        assert_int_equal(ready(&sockets, pairs, COUNT(pairs)), 1U << i);
        assert_int_equal(idem__sockets_want(&sockets, pairs[i].here, POLLIN,
                                            false),
                         0);
        assert_int_equal(ready(&sockets, pairs, COUNT(pairs)), 1U << i);
        assert_int_equal(idem__sockets_want(&sockets, pairs[i].here, 0, false),
                         0);
        assert_int_equal(ready(&sockets, pairs, COUNT(pairs)), 0);
    }
    for (i = 0; i < COUNT(pairs); i++) {
        idem__sockets_closing(&sockets, pairs[i].here);
        close_pair(&pairs[i]);
    }
    assert_int_equal(sockets.kept_len, 0);
    idem__sockets_close(&sockets);
}

/* A kept socket that says something while nobody wants it has said it for nothing:
 * it is ended, and its next reader finds only that. A quiet one stays. */
TEST(sockets, endsWhatSpeaksWhileItIsIdle)
{
    struct idem__sockets sockets;
    struct pair pairs[2] = {make_pair(), make_pair()};
    char bytes[8];

    assert_ok(idem__sockets_open(&sockets, MAX));
    EACH(row, pairs) {
        idem__sockets_opened(&sockets, row->here);
        assert_int_equal(idem__sockets_want(&sockets, row->here, POLLIN, true),
                         0);
        assert_int_equal(idem__sockets_want(&sockets, row->here, 0, false), 0);
    }
    assert_int_equal(write(pairs[0].there, "HTTP/1.1", 8), 8);
    assert_int_equal(ready(&sockets, pairs, COUNT(pairs)), 0);
    assert_true(ended(&pairs[0]));
    assert_int_equal(recv(pairs[0].here, bytes, 8, MSG_DONTWAIT), 0);
    assert_false(readable(sockets.watch));

    assert_false(ended(&pairs[1]));
    assert_int_equal(write(pairs[1].there, "HTTP/1.1", 8), 8);
    assert_int_equal(idem__sockets_want(&sockets, pairs[1].here, POLLIN, true),
                     0);
    assert_int_equal(ready(&sockets, pairs, COUNT(pairs)), 2);
    assert_int_equal(recv(pairs[1].here, bytes, 8, MSG_DONTWAIT), 8);
    EACH(row, pairs) {
        idem__sockets_closing(&sockets, row->here);
        close_pair(row);
    }
    idem__sockets_close(&sockets);
}

/* A number that is used again for another socket is another socket, also while a
 * copy of the first is still open elsewhere. */
TEST(sockets, forgetsWhatIsClosed)
{
    struct idem__sockets sockets;
    struct pair first = make_pair(), second;
    int copy = dup(first.here);

    assert_return_code(copy, 0);
    assert_ok(idem__sockets_open(&sockets, MAX));
    idem__sockets_opened(&sockets, first.here);
    assert_int_equal(idem__sockets_want(&sockets, first.here, POLLIN, true), 0);
    assert_int_equal(idem__sockets_want(&sockets, first.here, 0, false), 0);
    idem__sockets_closing(&sockets, first.here);
    assert_int_equal(write(first.there, "x", 1), 1);
    (void)close(first.here);

    second = make_pair();
    assert_int_equal(second.here, first.here);
    idem__sockets_opened(&sockets, second.here);
    assert_int_equal(idem__sockets_want(&sockets, second.here, POLLIN, true),
                     0);
    assert_int_equal(ready(&sockets, &second, 1), 0);
    assert_false(readable(sockets.watch));
    assert_int_equal(write(second.there, "y", 1), 1);
    assert_int_equal(ready(&sockets, &second, 1), 1);

    idem__sockets_closing(&sockets, second.here);
    idem__sockets_closing(&sockets, second.here);
    (void)close(copy);
    (void)close(first.there);
    close_pair(&second);
    idem__sockets_close(&sockets);
}

/* A wake is among what is ready. */
TEST(sockets, reportsAWake)
{
    struct idem__sockets sockets;
    struct pollfd event;

    assert_ok(idem__sockets_open(&sockets, MAX));
    assert_int_equal(idem__sockets_ready(&sockets, &event, 1), 0);
    idem__event_set(sockets.wake);
    assert_int_equal(idem__sockets_ready(&sockets, &event, 1), 1);
    assert_int_equal(event.fd, sockets.wake);
    idem__sockets_close(&sockets);
}

/* Without memory opening fails, and what it made can be closed. */
TEST(sockets, failWithoutMemory)
{
    struct idem__sockets sockets;

    heap_fail(0, /* on= */ false);
    assert_code(IDEM_ENOMEM, idem__sockets_open(&sockets, MAX));
    assert_true(heap_fail_never());
    idem__sockets_close(&sockets);
}
