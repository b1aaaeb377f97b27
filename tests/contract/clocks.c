/* Leases and retentions by virtual clocks: exact, and moved by no wall clock. */
#include "contract.h"

#include <idem/operator.h>

static const int64_t DAY_MS = 86400000;

/* Each pair of policies: a takeover needs rerun on both sides. */
TEST(lease, decidesByBothPolicies)
{
    static const struct {
        enum idem_on_expired_lease first;
        enum idem_on_expired_lease second;
        enum idem_verdict want;
    } rows[] = {
        {IDEM_RERUN, IDEM_RERUN, IDEM_STARTED},
        {IDEM_RERUN, IDEM_HOLD, IDEM_UNKNOWN},
        {IDEM_HOLD, IDEM_RERUN, IDEM_UNKNOWN},
        {IDEM_HOLD, IDEM_HOLD, IDEM_UNKNOWN},
    };

    EACH(row, rows) {
        struct fixture f;
        struct idem_request request = claim("k");

        open_virtual(&f);
        request.on_expired_lease = row->first;
        expect(f.store, &request, IDEM_STARTED);
        request.on_expired_lease = row->second;
        host_pass(&f.host, 59999);
        expect(f.store, &request, IDEM_BUSY);
        host_pass(&f.host, 1);
        expect(f.store, &request, row->want);

        /* What became unknown stays so, for everybody and for good. */
        if (row->want == IDEM_UNKNOWN) {
            request.on_expired_lease = IDEM_RERUN;
            expect(f.store, &request, IDEM_UNKNOWN);
            host_pass(&f.host, 1000 * DAY_MS);
            expect(f.store, &request, IDEM_UNKNOWN);
            assert_int_equal(status_of(f.store, "k"), IDEM_STATUS_UNKNOWN);
        }
        finish(&f);
    }
}

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"

/* A takeover says so, counts up, has a higher fence, and inherits the input. */
TEST_VIRTUAL(lease, isTakenOver)
{
    struct idem_request request = rerun("k");
    struct idem_attempt *first;
    struct idem_attempt *second;

    request.owner = idem_str("first");
    request.input = idem_str("what to do");
    first = begin(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 60000);
    request.owner = idem_str("second");
    request.traceparent = idem_str(TRACE "-02");
    request.input = idem_str("");
    second = begin(f->store, &request, IDEM_STARTED);
    assert_true(second->takeover);
    assert_text(second->record->traceparent, TRACE "-02");
    assert_true(second->fence > first->fence);
    assert_int_equal(second->attempts, 2);
    assert_text(second->record->input, "what to do");
    assert_int_equal(second->record->history_len, 1);
    assert_text(second->record->history[0].owner, "first");
    assert_int_equal(second->record->history[0].end, IDEM_PAST_TAKEN_OVER);
    assert_true(second->record->history[0].fence == first->fence);

    request.traceparent = idem_str("");
    request.input = idem_str("another way");
    host_pass(&f->host, 60000);
    first = begin(f->store, &request, IDEM_STARTED);
    assert_int_equal(first->attempts, 3);
    assert_text(first->record->input, "another way");
    assert_text(first->record->traceparent, "");
}

/* Work is started as often as the cap allows, and then given up; a person may look at the
 * attempts. */
TEST_VIRTUAL(lease, isTakenOverUpToACap)
{
    struct idem_request request = rerun("k");
    struct idem_attempt *attempt;
    uint32_t i;

    request.attempts_max = 3;
    for (i = 1; i <= 3; i++) {
        assert_int_equal(begin(f->store, &request, IDEM_STARTED)->attempts, i);
        host_pass(&f->host, 60000);
    }
    attempt = begin(f->store, &request, IDEM_FAILED);
    assert_text(attempt->record->error, "gave up after 3 attempts");
    assert_int_equal(attempt->record->history_len, 2);
    request.attempts_max = 0;
    expect(f->store, &request, IDEM_FAILED);
    assert_int_equal(status_of(f->store, "k"), IDEM_STATUS_FAILED);
}

/* An owner that gives its lease up is taken over at once, and its successor is
 * told so, however short the retention. */
TEST_VIRTUAL(lease, isTakenOverWhenItWasGivenUp)
{
    struct idem_request request = rerun("k");
    struct idem_attempt *first;
    struct idem_attempt *second;

    request.lease_ms = idem_store_lease_min_ms(f->store);
    request.retention_ms = request.lease_ms;
    first = begin(f->store, &request, IDEM_STARTED);
    assert_ok(idem_expire(first, &why));
    second = begin(f->store, &request, IDEM_STARTED);
    assert_true(second->takeover);
    assert_int_equal(second->attempts, 2);
    assert_true(second->fence == first->fence + 1);
}

/* Without a cap takeovers go on for ever. */
TEST_VIRTUAL(lease, isTakenOverForEverWithoutACap)
{
    struct idem_request request = rerun("k");
    int i;

    request.attempts_max = 0;
    for (i = 0; i < 20; i++) {
        expect(f->store, &request, IDEM_STARTED);
        host_pass(&f->host, 60000);
    }
}

/* Neither time nor a reboot ends a lease that has no end. */
TEST_VIRTUAL(lease, mayHaveNoEnd)
{
    struct idem_request request = rerun("k");

    request.lease_ms = IDEM_NEVER;
    expect(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 1000 * DAY_MS);
    assert_true(begin(f->store, &request, IDEM_BUSY)->lease_left_ms ==
                IDEM_NEVER);
    host_reboot(&f->host, 1000 * DAY_MS);
    expect(f->store, &request, IDEM_BUSY);
}

/* ---- Retention ---- */

/* A result is replayed one millisecond before its retention ends, and at the end
 * the key is new, under a higher fence. */
TEST(retention, isExact)
{
    static const int64_t lengths_ms[] = {60000, 86400000, 7 * 86400000};

    EACH(length, lengths_ms) {
        struct fixture f;
        struct idem_request request = claim("k");
        struct idem_attempt *attempt;
        struct idem_answer *answer = NULL;
        uint64_t fence;

        open_virtual(&f);
        request.retention_ms = *length;
        host_pass(&f.host, 12345);
        run(f.store, &request, "x");
        fence = fence_of(f.store, "k");
        host_pass(&f.host, *length - 1);
        expect(f.store, &request, IDEM_REPLAY);
        assert_int_equal(count(f.store, NULL), 1);
        host_pass(&f.host, 1);
        assert_code(IDEM_ENOTFOUND, idem_get(f.store, idem_str(""),
                                             idem_str("k"), &answer, &why));
        assert_int_equal(count(f.store, NULL), 0);
        attempt = begin(f.store, &request, IDEM_STARTED);
        assert_true(attempt->fence > fence);
        assert_int_equal(attempt->attempts, 1);
        assert_false(attempt->takeover);
        finish(&f);
    }
}

/* A retention without an end never ends. */
TEST_VIRTUAL(retention, mayHaveNoEnd)
{
    struct idem_request request = claim("k");
    uint64_t purged;

    request.retention_ms = IDEM_NEVER;
    run(f->store, &request, "x");
    host_pass(&f->host, 1000LL * 365 * DAY_MS);
    assert_ok(idem_purge(f->store, 0, &purged, &why));
    assert_int_equal(purged, 0);
    expect(f->store, &request, IDEM_REPLAY);
}

/* ---- Wall clocks ---- */

/* ROW(22) A wall clock that jumps by a day, forwards or back, while the host runs
 * moves no lease, no retention and no fence. */
TEST(wall, changesNothing)
{
    static const int64_t jumps_ms[] = {86400000, -86400000, 365LL * 86400000,
                                       -1700000000000};

    EACH(jumps_m, jumps_ms) {
        struct fixture f;
        struct idem_request open = rerun("open");
        struct idem_request done = claim("done");
        struct idem_request later = claim("later");
        struct idem_attempt *attempt;
        uint64_t purged;
        int64_t before_ms;

        open_virtual(&f);
        attempt = begin(f.store, &open, IDEM_STARTED);
        done.retention_ms = 60000;
        run(f.store, &done, "x");
        before_ms = store_ms(f.store);

        host_set_wall(&f.host, HOST_WALL_MS + *jumps_m);
        assert_int_equal(store_ms(f.store), before_ms);
        expect(f.store, &open, IDEM_BUSY);
        expect(f.store, &done, IDEM_REPLAY);
        assert_ok(idem_purge(f.store, 0, &purged, &why));
        assert_int_equal(purged, 0);
        assert_ok(idem_renew(attempt, 0, &why));
        run(f.store, &later, "y");
        assert_true(fence_of(f.store, "later") >= (uint64_t)before_ms);

        host_pass(&f.host, 59999);
        expect(f.store, &open, IDEM_BUSY);
        expect(f.store, &done, IDEM_REPLAY);
        host_pass(&f.host, 1);
        expect(f.store, &open, IDEM_STARTED);
        expect(f.store, &done, IDEM_STARTED);
        assert_int_equal(store_ms(f.store), before_ms + 60000);
        finish(&f);
    }
}

/* A store reads the wall clock once for each boot: a handle that is opened after a
 * jump uses the time of the store. */
TEST(wall, isReadOnceInABoot)
{
    struct fixture f;
    struct idem_request request = claim("k");

    if (!is_durable()) {
        test_skip("the store in memory goes with its handle");
    }
    open_virtual(&f);
    run(f.store, &request, "x");
    finish(&f);
    host_set_wall(&f.host, HOST_WALL_MS + 30 * DAY_MS);
    host_pass(&f.host, 5000);
    open_again(&f);
    assert_int_equal(store_ms(f.store), HOST_WALL_MS + 5000);
    expect(f.store, &request, IDEM_REPLAY);
    finish(&f);
}

/* So does a handle that was opened before the first write. */
TEST_VIRTUAL(wall, isReadByTheFirstToWrite)
{
    struct host other_host;
    struct idem_open_options options;
    struct idem_store *other;
    struct idem_request request = claim("k");
    struct idem_answer *answer;

    if (!is_durable()) {
        test_skip("the store in memory has one handle");
    }
    host_init(&other_host);
    other_host.kept_right = f->host.kept_right;
    options = host_options(&other_host, true);
    other = handle_open(f, &options);
    run(f->store, &request, "x");
    host_set_wall(&other_host, HOST_WALL_MS + 30 * DAY_MS);
    assert_int_equal(store_ms(other), HOST_WALL_MS);
    assert_ok(idem_get(other, idem_str(""), idem_str("k"), &answer, &why));
    idem_answer_destroy(answer);
    expect(other, &request, IDEM_REPLAY);
    handle_close(f, other);
}

/* ---- Suspended hosts ---- */

/* ROW(23) After hours of sleep the owner sees that its lease is over, before it
 * does anything else; the first caller after the sleep has the key. */
TEST(suspend, endsTheLease)
{
    bool followed;

    for (followed = false;; followed = true) {
        struct fixture f;
        struct idem_request request = rerun("k");
        struct idem_attempt *owner;

        open_virtual(&f);
        owner = begin(f.store, &request, IDEM_STARTED);
        assert_true(idem_attempt_lease_left_ms(owner) > 0);
        host_pass(&f.host, 3 * 3600 * 1000);
        assert_int_equal(idem_attempt_lease_left_ms(owner), 0);
        if (followed) {
            struct idem_attempt *next = begin(f.store, &request, IDEM_STARTED);

            assert_true(next->takeover);
            assert_code(IDEM_ELOST, idem_renew(owner, 0, &why));
            assert_code(IDEM_ELOST, complete(owner, "late"));
            assert_ok(complete(next, "in time"));
        } else {
            assert_ok(complete(owner, "late, and alone"));
        }
        finish(&f);
        if (followed) {
            break;
        }
    }
}

/* ---- Reboots ---- */

/* After a boot a lease of an earlier one is judged by store time, and counts for
 * some seconds more: the clocks of two boots need not agree. */
TEST_VIRTUAL(boot, leavesALeaseSomeSecondsMore)
{
    struct idem_request request = rerun("k");
    int64_t more_ms = traits()->other_boot_ms;

    expect(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 10000);
    host_reboot(&f->host, 20000);
    assert_int_equal(begin(f->store, &request, IDEM_BUSY)->lease_left_ms,
                     30000 + more_ms);
    host_pass(&f->host, 30000 + more_ms - 1);
    expect(f->store, &request, IDEM_BUSY);
    host_pass(&f->host, 1);
    assert_true(begin(f->store, &request, IDEM_STARTED)->takeover);
}

/* A lease that was long over when the host came up is over at once. */
TEST_VIRTUAL(boot, endsWhatWasOver)
{
    struct idem_request open = claim("open");
    struct idem_request done = claim("done");

    expect(f->store, &open, IDEM_STARTED);
    run(f->store, &done, "x");
    host_reboot(&f->host, 65000);
    expect(f->store, &open, IDEM_UNKNOWN);
    expect(f->store, &done, IDEM_REPLAY);
    host_reboot(&f->host, DAY_MS);
    expect(f->store, &done, IDEM_STARTED);
}

/* An owner that renews after a boot gets a lease on the new boot's clock. */
TEST_VIRTUAL(boot, isRenewedOver)
{
    struct idem_request request = rerun("k");
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);

    host_reboot(&f->host, 30000);
    assert_ok(idem_renew(attempt, 0, &why));
    host_pass(&f->host, 59999);
    expect(f->store, &request, IDEM_BUSY);
    host_pass(&f->host, 1);
    expect(f->store, &request, IDEM_STARTED);
}

/* A wall clock that is behind when the host comes up does not take store time
 * back: nothing is replayed, busy or fenced as if it were earlier. */
TEST_VIRTUAL(boot, doesNotGoBack)
{
    struct idem_request request = claim("k");
    struct idem_request next = claim("next");
    struct idem_attempt *attempt;
    uint64_t fence;
    int64_t before_ms;
    int boots;

    host_pass(&f->host, 3 * DAY_MS);
    run(f->store, &request, "x");
    host_pass(&f->host, 3 * DAY_MS);
    run(f->store, &next, "y");
    before_ms = store_ms(f->store);
    fence = fence_of(f->store, "next");
    for (boots = 0; boots < 3; boots++) {
        host_reboot(&f->host, -2 * DAY_MS);
        /* The time is saved each second. */
        assert_true(store_ms(f->store) >= before_ms - 1000);
        attempt = begin(f->store, &request, IDEM_STARTED);
        assert_true(attempt->fence > fence - 1000);
        assert_ok(idem_release(attempt, idem_str(""), &why));
    }
}

/* ---- Lateness ---- */

struct shown {
    const char *key;
    bool overdue;
    bool live;
};

static int see_one(void *ctx, int code, const struct idem_record *record)
{
    struct shown *shown = ctx;

    assert_ok(code);
    if (record->key.len == strlen(shown->key) &&
        memcmp(record->key.base, shown->key, record->key.len) == 0) {
        shown->overdue = record->overdue;
        shown->live = record->live;
    }
    return 0;
}

/* Checks what a list shows, and what idem_get() shows. */
static void assert_shown(struct idem_store *store, const char *key,
                         bool overdue, bool live)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct shown shown = {.key = key};
    struct idem_answer *answer;
    const struct idem_record *got;

    assert_ok(
        idem_list(store, &filter, see_one, &shown, /* ret_now= */ NULL, &why));
    assert_ok(idem_get(store, idem_str(""), idem_str(key), &answer, &why));
    got = idem_answer_record(answer);
    assert_int_equal(got->overdue, overdue);
    assert_int_equal(got->live, live);
    assert_int_equal(shown.overdue, overdue);
    assert_int_equal(shown.live, live);
    idem_answer_destroy(answer);
}

/* An attempt is overdue after the time at which it was expected, and also after the end of
 * its lease; neither hinders its owner. */
TEST_VIRTUAL(overdue, isWhatIsLate)
{
    struct idem_request request = claim("k");
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_attempt *attempt;

    filter.overdue = true;
    request.expect_ms = 5000;
    attempt = begin(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 5000);
    assert_int_equal(count(f->store, &filter), 0);
    assert_shown(f->store, "k", /* overdue= */ false, /* live= */ true);
    host_pass(&f->host, 1);
    assert_int_equal(count(f->store, &filter), 1);
    assert_shown(f->store, "k", /* overdue= */ true, /* live= */ true);
    expect(f->store, &request, IDEM_BUSY);
    assert_ok(complete(attempt, "late"));
    assert_int_equal(count(f->store, &filter), 0);
    assert_shown(f->store, "k", /* overdue= */ false, /* live= */ false);

    request = claim("other");
    attempt = begin(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 59999);
    assert_int_equal(count(f->store, &filter), 0);
    assert_shown(f->store, "other", /* overdue= */ false, /* live= */ true);
    host_pass(&f->host, 1);
    assert_int_equal(count(f->store, &filter), 1);
    assert_shown(f->store, "other", /* overdue= */ true, /* live= */ false);
}

/* ---- Away ---- */

/* Without a clock or random numbers nothing is started, and nothing is broken. */
TEST_VIRTUAL(host, mayBeAway)
{
    struct idem_request request = claim("k");
    struct idem_attempt *attempt = NULL;
    struct idem_answer *answer = NULL;

    f->host.clock_code = -1;
    assert_code(IDEM_EUNAVAILABLE,
                idem_begin(f->store, &request, &attempt, &why));
    assert_why("clock");
    assert_code(IDEM_EUNAVAILABLE,
                idem_get(f->store, idem_str(""), idem_str("k"), &answer, &why));
    f->host.clock_code = 0;
    f->host.random_code = -1;
    assert_code(IDEM_EUNAVAILABLE,
                idem_begin(f->store, &request, &attempt, &why));
    assert_why("random");
    assert_null(attempt);
    f->host.random_code = 0;
    assert_int_equal(count(f->store, NULL), 0);
    attempt = begin(f->store, &request, IDEM_STARTED);
    f->host.clock_code = -1;
    assert_code(IDEM_EUNAVAILABLE, idem_renew(attempt, 0, &why));
    assert_int_not_equal(complete(attempt, "x"), 0);
    f->host.clock_code = 0;
    assert_ok(complete(attempt, "x"));
}
