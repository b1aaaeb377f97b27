/* A wall clock that is ahead at a boot, and the way back. */
#include "claims.h"
#include "host.h"
#include "temp.h"
#include "test.h"

#include <idem/operator.h>
#include <idem/sqlite.h>
#include <sqlite3.h>

#define HOUR_MS (INT64_C(3600) * 1000)
#define DAY_MS (24 * HOUR_MS)

struct shop {
    struct host host;
    const char *path;
    struct idem_store *store;
};

static void open_shop(struct shop *shop)
{
    struct idem_open_options options = host_options(&shop->host, false);

    assert_ok(idem_sqlite_open(shop->path, &options, &shop->store, &why));
}

static void close_shop(struct shop *shop)
{
    idem_close(shop->store);
    shop->store = NULL;
}

static void make_shop(struct shop *shop)
{
    memset(shop, 0, sizeof(*shop));
    shop->path = temp_path("clock.db");
    host_init(&shop->host);
    open_shop(shop);
}

#define TEST_SHOP(suite, condition)                                            \
    TEST_WITH(suite, condition, struct shop, shop, make_shop, close_shop)

/* Boots with a clock that is @off_ms off, and opens the store. */
static void boot(struct shop *shop, int64_t off_ms, bool unsynchronised)
{
    close_shop(shop);
    host_reboot(&shop->host, 60000);
    host_set_wall(&shop->host, shop->host.true_ms + off_ms);
    shop->host.unsynchronised = unsynchronised;
    open_shop(shop);
}

static struct idem_attempt *begin_in(struct shop *shop, const char *key,
                                     enum idem_verdict want)
{
    struct idem_request request = rerun(key);

    request.lease_ms = 60000;
    request.retention_ms = 2 * DAY_MS;
    return begin(shop->store, &request, want);
}

static void complete_in(struct shop *shop, const char *key)
{
    assert_ok(complete(begin_in(shop, key, IDEM_STARTED), ""));
}

static uint64_t purge(struct shop *shop)
{
    uint64_t purged = 0;

    assert_ok(idem_purge(shop->store, /* max= */ 1000, &purged, &why));
    return purged;
}

static int count_one(void *ctx, int code, const struct idem_record *record)
{
    (void)ctx;
    (void)code;
    (void)record;
    return 0;
}

static int64_t store_time(struct shop *shop)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_page page = IDEM_PAGE_INIT;

    assert_ok(
        idem_list_page(shop->store, &filter, count_one, NULL, &page, &why));
    return page.now_ms;
}

static void complete_for(struct shop *shop, const char *key,
                         int64_t retention_ms)
{
    struct idem_request request = rerun(key);

    request.lease_ms = 2000;
    request.retention_ms = retention_ms;
    assert_ok(complete(begin(shop->store, &request, IDEM_STARTED), ""));
}

/* The second purge comes so soon after the first, and takes so old a fence, that neither
 * makes it write the clock. */
TEST_SHOP(deleted, isNeverBeforeItsEnd)
{
    int64_t purged_ms;

    complete_for(shop, "first", 3300);
    host_pass(&shop->host, 10);
    complete_for(shop, "second", 2000);
    host_pass(&shop->host, 2500);
    assert_int_equal(purge(shop), 1);
    host_pass(&shop->host, 800);
    assert_int_equal(purge(shop), 1);
    purged_ms = store_time(shop);
    boot(shop, -HOUR_MS, false);
    assert_true(store_time(shop) >= purged_ms);
}

/* Three days ahead at a boot, and nothing says that it is right: two days of
 * retention are not over. Nor are they when it is right again. */
TEST_SHOP(ahead, expiresNothing)
{
    int64_t jump_ms = 0;
    int64_t doubt_ms = 0;

    complete_in(shop, "order");
    boot(shop, 3 * DAY_MS, true);
    (void)begin_in(shop, "order", IDEM_REPLAY);
    complete_in(shop, "of this boot");
    assert_int_equal(purge(shop), 0);
    assert_ok(idem_sqlite_clock(shop->store, &jump_ms, &doubt_ms, &why));
    assert_true(jump_ms > 3 * DAY_MS && doubt_ms == jump_ms);
    boot(shop, 0, false);
    (void)begin_in(shop, "order", IDEM_REPLAY);
    (void)begin_in(shop, "of this boot", IDEM_REPLAY);
    assert_ok(idem_sqlite_clock(shop->store, &jump_ms, &doubt_ms, &why));
    assert_true(jump_ms < HOUR_MS && doubt_ms == 0);
    host_pass(&shop->host, 2 * DAY_MS);
    (void)begin_in(shop, "order", IDEM_STARTED);
}

/* The control: the same of a clock that is said to be right. */
TEST_SHOP(ahead, isBelievedWhereItIsSynchronised)
{
    complete_in(shop, "order");
    boot(shop, 3 * DAY_MS, false);
    (void)begin_in(shop, "order", IDEM_STARTED);
}

/* In the same boot: once the clock is synchronised, and right. */
TEST(ahead, isPutRightWithinTheBoot)
{
    struct shop shop;

    make_shop(&shop);
    complete_in(&shop, "order");
    boot(&shop, 3 * DAY_MS, true);
    complete_in(&shop, "early");
    host_set_wall(&shop.host, shop.host.true_ms);
    shop.host.unsynchronised = false;
    complete_in(&shop, "late");
    close_shop(&shop);
    open_shop(&shop);
    (void)begin_in(&shop, "order", IDEM_REPLAY);
    host_pass(&shop.host, DAY_MS);
    (void)begin_in(&shop, "order", IDEM_REPLAY);
    (void)begin_in(&shop, "early", IDEM_REPLAY);
    host_pass(&shop.host, DAY_MS + 1000);
    (void)begin_in(&shop, "order", IDEM_STARTED);
    (void)begin_in(&shop, "late", IDEM_STARTED);
    (void)begin_in(&shop, "early", IDEM_REPLAY);
    close_shop(&shop);
}

/* Nothing ever keeps this clock right: after as much boot time as it went on, it is
 * believed. */
TEST_SHOP(ahead, isBelievedInTheEnd)
{
    complete_in(shop, "order");
    boot(shop, DAY_MS, true);
    host_pass(&shop->host, DAY_MS);
    (void)begin_in(shop, "order", IDEM_REPLAY);
    host_pass(&shop->host, 60000);
    (void)begin_in(shop, "order", IDEM_STARTED);
}

static int64_t far_ahead(struct shop *shop)
{
    boot(shop, 20 * 365 * DAY_MS, false);
    return shop->host.wall_ms;
}

static void set_clock(struct shop *shop, int64_t *ret_from, int64_t *ret_to)
{
    struct idem_open_options options = host_options(&shop->host, false);

    close_shop(shop);
    assert_ok(
        idem_sqlite_set_clock(shop->path, &options, ret_from, ret_to, &why));
    open_shop(shop);
}

/* Store time ran ahead for good; set back, it is right, fences go on, a lease is a
 * lease from now, and what is done stays done for its retention. */
TEST_SHOP(setClock, leadsBack)
{
    struct idem_sqlite_info info = IDEM_SQLITE_INFO_INIT;
    struct idem_attempt *other;
    uint64_t fence;
    int64_t from;
    int64_t to;
    int64_t ahead_ms = far_ahead(shop);

    complete_in(shop, "done");
    fence = begin_in(shop, "left", IDEM_STARTED)->fence;
    assert_true(fence >= (uint64_t)ahead_ms);
    boot(shop, 0, false); /* For good: it does not come back by itself. */
    assert_ok(idem_sqlite_inspect(shop->store, &info, &why));
    assert_true(info.known_ms >= ahead_ms);

    set_clock(shop, &from, &to);
    assert_true(from >= ahead_ms);
    assert_int_equal(to, shop->host.wall_ms);
    assert_ok(idem_sqlite_inspect(shop->store, &info, &why));
    assert_int_equal(info.known_ms, to);
    assert_false(info.is_copy);

    (void)begin_in(shop, "done", IDEM_REPLAY);
    (void)begin_in(shop, "left", IDEM_BUSY);
    host_pass(&shop->host, 66000);
    other = begin_in(shop, "left", IDEM_STARTED);
    assert_true(other->takeover && other->fence > fence);
    assert_true(begin_in(shop, "new", IDEM_STARTED)->fence > fence);
    host_pass(&shop->host, DAY_MS);
    (void)begin_in(shop, "done", IDEM_REPLAY);
    host_pass(&shop->host, DAY_MS);
    (void)begin_in(shop, "done", IDEM_STARTED);
}

/* It only sets back, and again changes nothing. */
TEST_SHOP(setClock, onlySetsBack)
{
    int64_t from;
    int64_t to;

    complete_in(shop, "order");
    host_pass(&shop->host, HOUR_MS);
    host_set_wall(&shop->host, shop->host.true_ms + 9 * DAY_MS);
    set_clock(shop, &from, &to);
    assert_int_equal(from, to);
    (void)begin_in(shop, "order", IDEM_REPLAY);
}
