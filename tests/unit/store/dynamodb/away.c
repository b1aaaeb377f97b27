/* A store whose table cannot be reached: every claim is refused, and after a while
 * without asking. */
#include "base/host.h"
#include "store/dynamodb/breaker.h"
#include "test.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    AT_ONCE = 50,
    TRIED_MAX = 200, /* By then it is asked for ever. */
};

/* A port of this host on which nobody listens. */
static int closed_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(s >= 0);
    assert_int_equal(bind(s, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(s, (struct sockaddr *)&address, &len), 0);
    (void)close(s);
    return ntohs(address.sin_port);
}

static struct idem_store *open_away(void)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_store *store = NULL;
    char url[128];
    int rc;

    assert_int_equal(setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1), 0);
    assert_int_equal(setenv("AWS_SECRET_ACCESS_KEY", "secret", 1), 0);
    (void)snprintf(url, sizeof(url),
                   "dynamodb://idem?region=eu-west-1&endpoint="
                   "http://127.0.0.1:%d",
                   closed_port());
    options.timeout_ms = 2000;
    rc = idem_open(url, &options, &store, &why);
    if (rc == IDEM_ECONFIG) {
        test_skip(why.text);
    }
    assert_ok(rc);
    return store;
}

/* ROW(24) While the service is away, claims fail, each after some tries; and soon
 * at once, but for one now and then. Nothing is ever started. */
TEST(away, isNotAskedForEver)
{
    struct idem_store *store = open_away();
    int64_t began_ms = idem__mono_ms();
    unsigned tried = 0;
    unsigned at_once = 0;

    while (tried < TRIED_MAX && at_once < AT_ONCE) {
        struct idem_request request = IDEM_REQUEST_INIT;
        struct idem_attempt *attempt = NULL;

        request.key = idem_str("k");
        request.on_expired_lease = IDEM_HOLD;
        assert_int_equal(idem_begin(store, &request, &attempt, &why),
                         IDEM_EUNAVAILABLE);
        assert_null(attempt);
        if (strstr(why.text, "has not answered for") != NULL) {
            assert_true(idem__mono_ms() - began_ms >= IDEM__BREAKER_AWAY_MS);
            at_once++;
            (void)usleep(20000);
        } else {
            print_message("# %s\n", why.text);
            tried++;
        }
    }
    print_message("# %u claims asked, %u were refused at once\n", tried,
                  at_once);
    assert_true(tried > 0);
    assert_int_equal(at_once, AT_ONCE);
    idem_close(store);
}
