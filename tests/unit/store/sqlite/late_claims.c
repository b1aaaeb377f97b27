/* Claims enter the index on status and deadline late, and are found before and after. */
#include "claims.h"
#include "db.h"
#include "temp.h"
#include "test.h"

#include <idem/operator.h>
#include <idem/sqlite.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MANY = 500,
    MORE = 300,
};

#define ENTRIES                                                                \
    "SELECT count(*) FROM idem_record INDEXED BY idem_record_due "             \
    "WHERE status <> 0"
#define TOO_LATE                                                               \
    "SELECT count(*) FROM idem_record WHERE status = 0 "                       \
    "AND seq <= (SELECT max(seq) FROM idem_record) - 128"

static struct idem_store *open_new(const char **ret_path)
{
    *ret_path = temp_path("late.db");
    return db_store(*ret_path, 60000);
}

/* How often each of "k0" ... was shown. */
struct shown {
    int times[MANY + MORE];
    int all;
};

static int note(void *ctx, int code, const struct idem_record *record)
{
    struct shown *shown = ctx;
    char key[16] = "";

    assert_ok(code);
    assert_true(record->key.len < sizeof(key));
    memcpy(key, record->key.base, record->key.len);
    shown->times[atoi(key + 1)]++;
    shown->all++;
    return 0;
}

static struct idem_filter in_progress(void)
{
    struct idem_filter filter = IDEM_FILTER_INIT;

    filter.statuses = 1u << IDEM_STATUS_IN_PROGRESS;
    filter.any_scope = true;
    return filter;
}

static void assert_listed(struct idem_store *store, int from, int to)
{
    struct idem_filter filter = in_progress();
    struct shown shown = {.all = 0};
    int i;

    assert_ok(idem_list(store, &filter, note, &shown, NULL, &why));
    assert_int_equal(shown.all, to - from);
    for (i = from; i < to; i++) {
        assert_int_equal(shown.times[i], 1);
    }
}

static uint64_t counted(struct idem_store *store)
{
    struct idem_sqlite_info info = IDEM_SQLITE_INFO_INIT;

    assert_ok(idem_sqlite_inspect(store, &info, &why));
    return info.records[IDEM_STATUS_IN_PROGRESS];
}

/* Most are completed before they would enter. */
TEST(claims, thatAreCompletedEnterOnce)
{
    const char *path;
    struct idem_store *store = open_new(&path);
    struct idem_request request = claim("k");
    int i;

    for (i = 0; i < 10; i++) {
        request.key = idem_str(numbered("k", (size_t)i));
        expect(store, &request, IDEM_STARTED);
    }
    assert_int_equal(db_number_at(path, ENTRIES), 0);
    assert_int_equal(counted(store), 10);
    assert_listed(store, 0, 10);
    request.key = idem_str("done");
    run(store, &request, "done");
    assert_int_equal(db_number_at(path, ENTRIES), 1);
    idem_close(store);
}

/* Those that stay open enter in the order of their arrival. */
TEST(claims, thatStayOpenEnter)
{
    const char *path;
    struct idem_store *store = open_new(&path);
    int64_t entries;

    start_many(store, 0, MANY, claim("k"));
    entries = db_number_at(path, ENTRIES);
    assert_in_range(entries, MANY - 127, MANY - 64);
    assert_int_equal(db_number_at(path, TOO_LATE), 0);
    assert_int_equal(counted(store), MANY);
    assert_listed(store, 0, MANY);
    idem_close(store);
}

/* A list that began before many entered shows each once. */
TEST(claims, thatEnterBetweenTwoPagesAreShownOnce)
{
    const char *path;
    struct idem_store *store = open_new(&path);
    struct idem_filter filter = in_progress();
    struct idem_page page = IDEM_PAGE_INIT;
    struct shown shown = {.all = 0};
    int i;

    start_many(store, 0, MANY, claim("k"));
    filter.max = 150;
    assert_ok(idem_list_page(store, &filter, note, &shown, &page, &why));
    assert_int_equal(shown.all, 150);
    start_many(store, MANY, MANY + MORE, claim("k"));
    while (!page.done) {
        assert_ok(idem_list_page(store, &filter, note, &shown, &page, &why));
    }
    for (i = 0; i < MANY; i++) {
        assert_int_equal(shown.times[i], 1);
    }
    idem_close(store);
}

/* The last rows go, and later ones get their numbers. */
TEST(claims, withNumbersThatAreGivenAgainEnter)
{
    const char *path;
    struct idem_store *store = open_new(&path);
    int gone;

    for (gone = 1; gone < 260; gone += 37) {
        char sql[100];

        start_many(store, 0, MANY, claim("k"));
        (void)snprintf(sql, sizeof(sql),
                       "DELETE FROM idem_record WHERE seq > %d", MANY - gone);
        db_run_at(path, sql);
        assert_int_equal(db_number_at(path, TOO_LATE), 0);
        assert_listed(store, 0, MANY - gone);
        start_many(store, (size_t)(MANY - gone), MANY + MORE, claim("k"));
        assert_int_equal(db_number_at(path, TOO_LATE), 0);
        assert_listed(store, 0, MANY + MORE);
        db_run_at(path, "DELETE FROM idem_record");
    }
    idem_close(store);
}
