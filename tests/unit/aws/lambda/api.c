/* Tests of where the Runtime API may be. */
#include "aws/lambda/api.h"

#include "test.h"

/* HOST:PORT of this machine, or of its link, and nothing else. */
TEST(address, isOfThisMachine)
{
    static const char *const good[] = {
        "127.0.0.1:9001", "127.1.2.3:1", "169.254.100.1:9001",
        "localhost:8080", "[::1]:65535",
    };
    static const char *const bad[] = {
        "",
        ":",
        "127.0.0.1",
        "127.0.0.1:",
        "localhost",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:9001/x",
        "127.0.0.1:9 ",
        "127.0.0.1:+9",
        "u@127.0.0.1:9",
        "10.0.0.1:9",
        "169.253.0.1:9",
        "127.0.0.1.evil:9",
        "127.0.1:9",
        "[::2]:9",
        "localhosts:9",
        "127.0.0.1:9001\r\nX: y",
    };

    EACH(one, good) {
        assert_true(idem__lambda_api_is_local(*one));
    }
    EACH(one, bad) {
        assert_false(idem__lambda_api_is_local(*one));
    }
}
