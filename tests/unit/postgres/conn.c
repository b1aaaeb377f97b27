/* Tests of postgres/conn.c and params.c that need no server, and of idem_postgres_inspect(). */
#include "postgres/conn.h"

#include "postgres/params.h"
#include "temp.h"
#include "test.h"
#include "threads.h"

#include <fcntl.h>
#include <idem/operator.h>
#include <idem/postgres.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

/* ---- Parameters in the binary form ---- */

static const char *values[IDEM__PG_PARAMS_MAX];
static int lengths[IDEM__PG_PARAMS_MAX];
static int formats[IDEM__PG_PARAMS_MAX];

/* Each form, byte by byte, twice: what is cleared leaves nothing. */
TEST(params, areWritten)
{
    static const char array[] = "\0\0\0\1\0\0\0\1\0\0\0\x11\0\0\0\3\0\0\0\1"
                                "\0\0\0\2ab\0\0\0\0\xff\xff\xff\xff";
    static const char numbers[] = "\0\0\0\1\0\0\0\1\0\0\0\x14\0\0\0\1\0\0\0\1"
                                  "\0\0\0\x8\xff\xff\xff\xff\xff\xff\xff\xfe";
    static const char empty[] = "\0\0\0\0\0\0\0\1\0\0\0\x11";
    struct idem__pg_params params = {.len = 0};
    size_t place;
    int round;

    for (round = 0; round < 2; round++) {
        (void)idem__pg_params_bytes(&params, idem_str("a\\'b"));
        (void)idem__pg_params_bytes(&params, idem_str(""));
        (void)idem__pg_params_number(&params, 258);
        place = idem__pg_params_array(&params, IDEM__PG_BYTEAS);
        idem__pg_params_add_bytes(&params, place, idem_str("ab"));
        idem__pg_params_add_bytes(&params, place, idem_str(""));
        idem__pg_params_add_null(&params, place);
        place = idem__pg_params_array(&params, IDEM__PG_INT8S);
        idem__pg_params_add_number(&params, place, -2);
        (void)idem__pg_params_array(&params, IDEM__PG_BYTEAS);
        assert_true(idem__pg_params_finish(&params, values, lengths, formats));
        assert_int_equal(params.len, 6);
        assert_int_equal(lengths[0], 4);
        assert_memory_equal(values[0], "a\\'b", 4);
        assert_int_equal(lengths[1], 0);
        assert_non_null(values[1]); /* Not NULL of SQL. */
        assert_int_equal(lengths[2], 8);
        assert_memory_equal(values[2], "\0\0\0\0\0\0\1\2", 8);
        assert_int_equal(lengths[3], sizeof(array) - 1);
        assert_memory_equal(values[3], array, sizeof(array) - 1);
        assert_int_equal(lengths[4], sizeof(numbers) - 1);
        assert_memory_equal(values[4], numbers, sizeof(numbers) - 1);
        assert_int_equal(lengths[5], sizeof(empty) - 1);
        assert_memory_equal(values[5], empty, sizeof(empty) - 1);
        assert_int_equal(formats[5], 1);
        idem__pg_params_reset(&params);
    }
    idem__pg_params_free(&params);
}

/* ---- Facts of a store at work ---- */

enum {
    OPERATIONS = 20
};

struct work {
    struct idem_store *store;
    int listener;
    bool done; /* Atomic. */
};

/* A server that ends each connection at once. */
static void listen_at(struct work *work, const char *folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof(address.sun_path),
                   "%.80s/.s.PGSQL.5432", folder);
    work->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(work->listener >= 0);
    assert_int_equal(bind(work->listener, (struct sockaddr *)&address,
                          sizeof(address)),
                     0);
    assert_int_equal(listen(work->listener, 50), 0);
}

static void hang_up(void *ctx)
{
    struct work *work = ctx;
    int client;

    while ((client = accept(work->listener, NULL, NULL)) >= 0) {
        (void)close(client);
    }
}

static void operate(void *ctx)
{
    struct work *work = ctx;
    struct idem_error error;
    unsigned i;

    for (i = 0; i < OPERATIONS; i++) {
        struct idem_answer *answer = NULL;

        (void)idem_get(work->store, idem_str(""), idem_str("k"), &answer,
                       &error);
        idem_answer_destroy(answer);
    }
    __atomic_store_n(&work->done, true, __ATOMIC_RELEASE);
}

/* Any thread may ask while another one works; tools/sanitize thread sees to that. What is
 * told never goes back. */
TEST(inspect, mayBeCalledBesideOperations)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_postgres_info info = IDEM_POSTGRES_INFO_INIT;
    struct work work = {.done = false};
    struct thread *server;
    struct thread *thread;
    uint64_t before = 0;
    char place[200];
    const char *folder = temp_path("server");

    assert_int_equal(mkdir(folder, 0700), 0);
    listen_at(&work, folder);
    (void)snprintf(place, sizeof(place), "///db?host=%s&user=u", folder);
    options.timeout_ms = 200;
    assert_ok(idem_postgres_open(place, &options, &work.store, &why));
    server = thread_start(hang_up, &work);
    thread = thread_start(operate, &work);
    while (!__atomic_load_n(&work.done, __ATOMIC_ACQUIRE)) {
        assert_ok(idem_postgres_inspect(work.store, &info, &why));
        assert_true(info.connections >= before);
        before = info.connections;
    }
    thread_join(thread);
    assert_ok(idem_postgres_inspect(work.store, &info, &why));
    assert_true(info.connections > 0);
    idem_close(work.store);
    (void)shutdown(work.listener, SHUT_RDWR);
    thread_join(server);
    assert_int_equal(close(work.listener), 0);
}
