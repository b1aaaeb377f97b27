/* Tests of idem_postgres_inspect(): the facts of a store that is at work. */
#include "temp.h"
#include "test.h"
#include "threads.h"

#include <idem/operator.h>
#include <idem/postgres.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

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
