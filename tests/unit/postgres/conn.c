/* Tests of postgres/conn.c that need no server. */
#include "postgres/conn.h"

#include "test.h"

#include <fcntl.h>
#include <unistd.h>

/* In a process without a standard input the first descriptor is 0. */
TEST(conn, givesBackEachDescriptor)
{
    struct idem__pg_conn conn = {.watch = -1, .event = -1};
    struct idem__pg_place place = {.len = 0};
    struct idem_host host = {.ctx = NULL};
    int input = dup(STDIN_FILENO);

    assert_true(input > 0);
    assert_int_equal(close(STDIN_FILENO), 0);
    assert_ok(idem__pg_conn_init(&conn, &place, &host));
    assert_int_equal(conn.watch, STDIN_FILENO);
    idem__pg_conn_finish(&conn);
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
    assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(close(input), 0);
}
