/* Replays from memory by handles of a PostgreSQL store, on a real server: "cache=" in the
 * URL. */
#include "claims.h"
#include "test.h"

#include <idem/operator.h>
#include <idem/postgres.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    REPLAYS = 10
};

static void close_store(void *store)
{
    idem_close(store);
}

/* A new handle; @more: of the store's URL. */
static struct idem_store *open_handle(const char *more)
{
    const char *url = getenv("IDEM_TEST_POSTGRES");
    struct idem_store *store;
    char place[400];

    if (url == NULL) {
        fail_with("IDEM_TEST_POSTGRES names no server");
    }
    (void)snprintf(place, sizeof(place), "%s&schema=r%ld%s",
                   strchr(url, ':') + 1, (long)getpid(), more);
    assert_ok(idem_postgres_create(place, NULL, &why));
    assert_ok(idem_postgres_open(place, NULL, &store, &why));
    test_after(close_store, store);
    return store;
}

static uint64_t requests(struct idem_store *store)
{
    struct idem_postgres_info info = IDEM_POSTGRES_INFO_INIT;

    assert_ok(idem_postgres_inspect(store, &info, &why));
    return info.requests;
}

static void complete_key(struct idem_store *store, const char *key,
                         const char *text)
{
    struct idem_request request = claim(key);

    run(store, &request, text);
}

static const struct idem_record *replay(struct idem_store *store,
                                        const char *key)
{
    struct idem_request request = claim(key);

    return begin(store, &request, IDEM_REPLAY)->record;
}

static void reopen(struct idem_store *store, const char *key)
{
    uint64_t fence = replay(store, key)->fence;

    assert_ok(idem_reopen(store, idem_str(""), idem_str(key), fence,
                          idem_str("ann"), idem_str("again"), &why));
}

/* Requests for so many replays of a key that was replayed before. */
static uint64_t cost_of_replays(struct idem_store *store, const char *key)
{
    uint64_t before;
    int i;

    assert_text(replay(store, key)->result.bytes, "first");
    before = requests(store);
    for (i = 0; i < REPLAYS; i++) {
        assert_text(replay(store, key)->result.bytes, "first");
    }
    return requests(store) - before;
}

/* The second replay asks the server nothing; without the setting each does. */
TEST(replays, costNoRequest)
{
    complete_key(open_handle(""), "cost", "first");
    assert_true(cost_of_replays(open_handle(""), "cost") >= REPLAYS);
    assert_int_equal(cost_of_replays(open_handle("&cache=1h"), "cost"), 0);
}

/* A handle that reopens a record runs it again at once; another one replays it for a
 * while, and then sees what became of it. */
TEST(replays, endWhenARecordIsReopened)
{
    static const struct timespec moment = {0, 10000000};
    struct idem_store *store = open_handle("&cache=500ms");
    struct idem_store *other = open_handle("&cache=1h");

    complete_key(other, "again", "first");
    (void)replay(store, "again");
    reopen(other, "again");
    complete_key(other, "again", "second");
    assert_text(replay(other, "again")->result.bytes, "second");
    while (replay(store, "again")->result.bytes.len != strlen("second")) {
        (void)nanosleep(&moment, NULL);
    }
}
