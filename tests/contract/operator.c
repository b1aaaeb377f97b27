/* The operator's functions: lists, decisions, purges. */
#include "contract.h"

#include "contract/store.h"

#include <idem/operator.h>
#include <stdlib.h>

static const int64_t DAY_MS = 86400000;

/* ---- Lists ---- */

enum {
    SEEN_MAX = 2000
};

/* The records that a list showed. */
struct seen {
    size_t len;
    size_t stop_after; /* 0: goes on. */
    char keys[SEEN_MAX][16];
    enum idem_status statuses[SEEN_MAX];
    bool bodies; /* A record had bytes of a result or an input. */
    size_t result_len;
    size_t input_len;
};

static int note(void *ctx, int code, const struct idem_record *record)
{
    struct seen *seen = ctx;

    assert_ok(code);
    assert_true(seen->len < SEEN_MAX);
    assert_true(record->key.len < 16);
    memcpy(seen->keys[seen->len], record->key.base, record->key.len);
    seen->statuses[seen->len] = record->status;
    seen->bodies =
        seen->bodies || record->result.bytes.len > 0 || record->input.len > 0;
    seen->result_len += record->result_len;
    seen->input_len += record->input_len;
    seen->len++;
    return seen->len == seen->stop_after ? 7 : 0;
}

static void list(struct fixture *f, const struct idem_filter *filter,
                 size_t stop_after, struct seen *seen)
{
    memset(seen, 0, sizeof(*seen));
    seen->stop_after = stop_after;
    assert_ok(idem_list(f->store, filter, note, seen, NULL, &why));
}

/* One record in each status, in two scopes; all are past the time when they were expected,
 * and overdue are those two in progress. */
static void fill(struct fixture *f)
{
    static const char *const scopes[] = {"", "tenant"};
    int verb;

    EACH(one, scopes) {
        struct idem_request request;

        for (verb = 0; verb < VERBS; verb++) {
            request = claim(numbered("k", verb));
            request.scope = idem_str(*one);
            request.expect_ms = 1;
            assert_ok(call_verb(verb, begin(f->store, &request, IDEM_STARTED)));
        }
        request = claim("late");
        request.scope = idem_str(*one);
        request.expect_ms = 1;
        expect(f->store, &request, IDEM_STARTED);
    }
    host_pass(&f->host, 1000);
}

/* Each filter lets its own records through, alone and with others. */
TEST_VIRTUAL(list, filters)
{
    static const struct {
        unsigned statuses;
        bool overdue;
        const char *scope; /* NULL: any. */
        uint64_t max;
        size_t want;
    } rows[] = {
        {0, false, NULL, 0, 12},
        {1u << IDEM_STATUS_IN_PROGRESS, false, NULL, 0, 4},
        {1u << IDEM_STATUS_COMPLETED, false, NULL, 0, 2},
        {1u << IDEM_STATUS_FAILED, false, NULL, 0, 2},
        {1u << IDEM_STATUS_UNKNOWN, false, NULL, 0, 2},
        {1u << IDEM_STATUS_RELEASED, false, NULL, 0, 2},
        {1u << IDEM_STATUS_FAILED | 1u << IDEM_STATUS_UNKNOWN, false, NULL, 0,
         4},
        {0x3e, false, NULL, 0, 12},
        {1, false, NULL, 0, 0},
        {0, true, NULL, 0, 4},
        {1u << IDEM_STATUS_IN_PROGRESS, true, NULL, 0, 4},
        {1u << IDEM_STATUS_COMPLETED, true, NULL, 0, 0},
        {0, false, "", 0, 6},
        {0, false, "tenant", 0, 6},
        {0, false, "tenan", 0, 0},
        {0, true, "tenant", 0, 2},
        {1u << IDEM_STATUS_FAILED, false, "tenant", 0, 1},
        {0, false, NULL, 1, 1},
        {0, false, NULL, 11, 11},
        {0, false, NULL, 12, 12},
        {0, false, NULL, 1000, 12},
        {1u << IDEM_STATUS_IN_PROGRESS, false, NULL, 3, 3},
        {0, false, "tenant", 2, 2},
    };
    struct seen seen;
    size_t i;

    fill(f);
    for (i = 0; i < COUNT(rows); i++) {
        struct idem_filter filter = IDEM_FILTER_INIT;

        filter.statuses = rows[i].statuses;
        filter.overdue = rows[i].overdue;
        filter.any_scope = rows[i].scope == NULL;
        filter.scope = idem_str(rows[i].scope);
        filter.max = rows[i].max;
        list(f, &filter, 0, &seen);
        if (seen.len != rows[i].want) {
            fail_with("row %zu: %zu records, not %zu", i, seen.len,
                      rows[i].want);
        }
    }
}

static void end_with(struct fixture *f, const char *key, const char *meta)
{
    struct idem_request request = claim(key);
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);
    struct idem_result result = {.bytes = idem_str("said")};

    result.meta = idem_str(meta);
    assert_ok(idem_complete(attempt, &result, &why));
}

static size_t failed_outcomes(struct fixture *f, struct seen *seen)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    size_t i;

    filter.failed_outcomes = true;
    list(f, &filter, 0, seen);
    for (i = 0; i < seen->len; i++) {
        assert_memory_equal(seen->keys[i], "bad", 3);
        assert_int_equal(seen->statuses[i], IDEM_STATUS_COMPLETED);
    }
    return seen->len;
}

/* A list finds completed failures, however many records there are, failed, successful or
 * named complete, until these run again or are purged. */
TEST_VIRTUAL(list, findsOutcomesThatFailed)
{
    enum {
        GOOD = 30,
        BAD = 130
    };
    static const char *const metas[] = {"exit 3\n", "signal 9\n", "HTTP 502\n"};
    static const char *const good[] = {"exit 0\n", "exit 3 complete\n",
                                       "HTTP 502 complete\n"};
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct seen seen;
    size_t in_progress;
    uint64_t fence;
    size_t i;

    fill(f);
    assert_int_equal(failed_outcomes(f, &seen), 0);
    for (i = 0; i < GOOD + BAD; i++) {
        end_with(f, numbered(i < GOOD ? "good" : "bad", i),
                 i < GOOD ? good[i % COUNT(good)] : metas[i % COUNT(metas)]);
    }
    assert_int_equal(failed_outcomes(f, &seen), BAD);

    /* Together with a status; a record that has both comes once. */
    filter.failed_outcomes = true;
    filter.statuses = 1u << IDEM_STATUS_FAILED;
    list(f, &filter, 0, &seen);
    assert_int_equal(seen.len, BAD + 2);
    filter.statuses |= 1u << IDEM_STATUS_COMPLETED;
    list(f, &filter, 0, &seen);
    assert_int_equal(seen.len, GOOD + BAD + 2 + 2);

    fence = fence_of(f->store, "bad40");
    assert_ok(idem_reopen(f->store, idem_str(""), idem_str("bad40"), fence,
                          idem_str("ada"), idem_str("mended"), &why));
    assert_int_equal(failed_outcomes(f, &seen), BAD - 1);
    filter.statuses = 1u << IDEM_STATUS_IN_PROGRESS;
    list(f, &filter, 0, &seen);
    in_progress = seen.len;
    filter.failed_outcomes = false;
    list(f, &filter, 0, &seen);
    assert_int_equal(in_progress, BAD - 1 + seen.len);

    host_pass(&f->host, 2 * DAY_MS + traits()->purge_lag_ms);
    assert_ok(idem_purge(f->store, 0, NULL, &why));
    assert_int_equal(failed_outcomes(f, &seen), 0);
    end_with(f, "bad", "exit 1\n");
    assert_int_equal(failed_outcomes(f, &seen), 1);
}

/* A list has the lengths of results and inputs, but not their bytes. */
TEST_VIRTUAL(list, leavesBodiesOut)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_request request = claim("k");
    struct seen seen;

    request.input = idem_str("an input");
    run(f->store, &request, "a result");
    list(f, &filter, 0, &seen);
    assert_int_equal(seen.len, 1);
    assert_false(seen.bodies);
    assert_int_equal(seen.result_len, 8);
    assert_int_equal(seen.input_len, 8);
}

/* A thousand records come in pages, each of them once, for every filter that uses another
 * index; a list that is stopped anywhere stops there. */
TEST_VIRTUAL(list, pages)
{
    static const unsigned statuses[] = {0, 1u << IDEM_STATUS_IN_PROGRESS,
                                        1u << IDEM_STATUS_COMPLETED |
                                            1u << IDEM_STATUS_IN_PROGRESS};
    enum {
        RECORDS = 1000
    };
    struct idem_request request = claim("k");
    static struct seen seen;
    static bool there[RECORDS];
    size_t n;

    for (n = 0; n < RECORDS; n += 250) { /* Many are alike. */
        start_many(f->store, n, n + 250, request);
        request.lease_ms++;
    }

    EACH(status, statuses) {
        struct idem_filter filter = IDEM_FILTER_INIT;
        static const size_t stops[] = {0, 1, 255, 256, 257, 999, 1000};

        filter.statuses = *status;
        EACH(stop, stops) {
            list(f, &filter, *stop, &seen);
            assert_int_equal(seen.len, *stop == 0 ? RECORDS : *stop);
            memset(there, 0, sizeof(there));
            for (n = 0; n < seen.len; n++) {
                unsigned long k = strtoul(seen.keys[n] + 1, NULL, 10);

                assert_false(there[k]);
                there[k] = true;
            }
        }
        filter.max = 500;
        list(f, &filter, 0, &seen);
        assert_int_equal(seen.len, 500);
    }
}

/* Records, by the first bytes of their ids, in the order of the list. */
struct shown {
    size_t len;
    size_t looked;
    uint64_t ids[64];
};

static int note_id(void *ctx, int code, const struct idem_record *record)
{
    struct shown *shown = ctx;

    assert_ok(code);
    assert_true(shown->len < COUNT(shown->ids));
    memcpy(&shown->ids[shown->len++], record->id, sizeof(uint64_t));
    return 0;
}

/* The list, in pages of @max records; each goes on in a struct that knows nothing
 * but the place. */
static void in_pages(struct fixture *f, struct idem_filter filter, uint64_t max,
                     struct shown *shown)
{
    struct idem_page page = IDEM_PAGE_INIT;
    size_t pages = 0;

    memset(shown, 0, sizeof(*shown));
    filter.max = max;
    while (!page.done) {
        struct idem_page next = IDEM_PAGE_INIT;
        size_t before = shown->len;

        memcpy(next.place, page.place, sizeof(next.place));
        assert_ok(
            idem_list_page(f->store, &filter, note_id, shown, &next, &why));
        assert_true(shown->len - before <= max);
        assert_true(next.done || shown->len - before == max);
        assert_true(pages++ < COUNT(shown->ids));
        shown->looked += next.looked;
        page = next;
    }
}

/* Pages of any length show what the list shows, each record once and in the same
 * order; with newest_first backwards where the store has an order. */
TEST_VIRTUAL(list, goesOnAtItsPlace)
{
    static const struct {
        unsigned statuses;
        bool overdue;
        bool failed_outcomes;
        const char *scope; /* NULL: any. */
        size_t want;
        bool ordered; /* No index serves it. */
    } rows[] = {
        {0, false, false, NULL, 12, true},
        {0, false, false, "tenant", 6, true},
        {1u << IDEM_STATUS_IN_PROGRESS, false, false, NULL, 4, false},
        {1u << IDEM_STATUS_FAILED | 1u << IDEM_STATUS_UNKNOWN, false, false,
         NULL, 4, false},
        {1u << IDEM_STATUS_COMPLETED | 1u << IDEM_STATUS_RELEASED, false, false,
         "tenant", 2, false},
        {1u << IDEM_STATUS_FAILED, false, true, NULL, 2, false},
        {0, true, false, NULL, 4, false},
        {0, false, false, "none", 0, false},
    };

    fill(f);
    EACH(each, rows) {
        struct idem_filter filter = IDEM_FILTER_INIT;
        static struct shown up;
        static struct shown whole;
        static struct shown paged;
        size_t i;

        filter.statuses = each->statuses;
        filter.overdue = each->overdue;
        filter.failed_outcomes = each->failed_outcomes;
        filter.any_scope = each->scope == NULL;
        filter.scope = idem_str(each->scope);
        in_pages(f, filter, 100, &up);
        filter.newest_first = true;
        in_pages(f, filter, 100, &whole);
        assert_int_equal(whole.len, each->want);
        assert_true(whole.looked >= whole.len);
        for (i = 0; i < whole.len && each->ordered && !traits()->unordered;
             i++) {
            assert_int_equal(whole.ids[i], up.ids[up.len - 1 - i]);
        }
        for (i = 1; i < 6; i += 2) {
            in_pages(f, filter, i, &paged);
            assert_int_equal(paged.len, whole.len);
            assert_memory_equal(paged.ids, whole.ids, sizeof(whole.ids));
        }
    }
}

/* While records come, and the record at the place is purged, each record that stays is shown
 * once. */
TEST_VIRTUAL(list, keepsItsPlace)
{
    enum {
        RECORDS = 9
    };
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_page page = IDEM_PAGE_INIT;
    struct shown shown = {.len = 0};
    uint64_t kept[RECORDS];
    size_t kept_len = 0;
    size_t i;
    size_t n;

    for (i = 0; i < RECORDS; i++) {
        struct idem_request request = claim(numbered("k", i));
        uint8_t id[IDEM_ID_LEN];

        request.retention_ms = i % 3 == 0 ? DAY_MS : 90 * DAY_MS;
        run(f->store, &request, "done");
        if (i % 3 != 0) {
            assert_ok(idem_id(request.scope, request.key, id));
            memcpy(&kept[kept_len++], id, sizeof(uint64_t));
        }
    }
    filter.newest_first = true;
    filter.max = 3;
    for (n = 0; !page.done; n++) {
        struct idem_request request = claim(numbered("new", n));

        assert_true(n < 20);
        assert_ok(
            idem_list_page(f->store, &filter, note_id, &shown, &page, &why));
        expect(f->store, &request, IDEM_STARTED);
        if (n == 0) {
            host_pass(&f->host, 2 * DAY_MS + traits()->purge_lag_ms);
            assert_ok(idem_purge(f->store, 0, NULL, &why));
        }
    }
    for (i = 0; i < kept_len; i++) {
        size_t times = 0;

        for (n = 0; n < shown.len; n++) {
            times += shown.ids[n] == kept[i];
        }
        assert_int_equal(times, 1);
    }
}

/* A list shows the records that a purge would delete, in pages too, and no others. */
TEST_VIRTUAL(list, tellsWhatAPurgeWouldDelete)
{
    enum {
        RECORDS = 12
    };
    struct idem_filter filter = IDEM_FILTER_INIT;
    static struct shown shown;
    uint64_t purged = 0;
    size_t i;

    for (i = 0; i < RECORDS; i++) {
        struct idem_request request;
        struct idem_attempt *attempt;

        request = claim(numbered("k", i));
        request.on_expired_lease = IDEM_RERUN;
        request.retention_ms = i % 2 == 0 ? DAY_MS : 90 * DAY_MS;
        attempt = begin(f->store, &request, IDEM_STARTED);
        if (i % 3 == 0) {
            assert_ok(idem_complete(attempt, NULL, &why));
        } else if (i % 3 == 1) {
            assert_ok(idem_release(attempt, idem_str("no"), &why));
        }
    }
    filter.expired = true;
    in_pages(f, filter, 100, &shown);
    assert_int_equal(shown.len, 0);
    host_pass(&f->host, 3 * DAY_MS + traits()->purge_lag_ms);
    in_pages(f, filter, 100, &shown);
    i = shown.len;
    assert_true(i >= 2 && i < RECORDS);
    in_pages(f, filter, 1, &shown);
    assert_int_equal(shown.len, i);
    assert_ok(idem_purge(f->store, 0, &purged, &why));
    assert_int_equal(purged, i);
    in_pages(f, filter, 100, &shown);
    assert_int_equal(shown.len, 0);
}

/* A page ends after the number of records that it may look at, even if it has shown none. */
TEST_VIRTUAL(list, looksAtNoMoreThanItMay)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_page page = IDEM_PAGE_INIT;
    struct shown shown = {.len = 0};
    size_t pages = 0;

    start_many(f->store, 0, 600, claim("k"));
    filter.newest_first = true;
    filter.statuses = 1u << IDEM_STATUS_COMPLETED;
    page.look_max = 100;
    for (; !page.done; pages++) {
        assert_true(pages < 20);
        assert_ok(
            idem_list_page(f->store, &filter, note_id, &shown, &page, &why));
    }
    assert_int_equal(shown.len, 0);
    assert_true(pages >= 2);
    assert_true(page.looked >= 600);
}

/* A place is for a list of its own store and filter. */
TEST_VIRTUAL(list, refusesTheWrongPlace)
{
    static const char *const wrong[] = {"p",  "x",         "pAAAA",
                                        "p!", "pAAAAAAAB", "order-42"};
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_page page = IDEM_PAGE_INIT;
    struct shown shown = {.len = 0};
    size_t i;

    for (i = 0; i < 7; i++) {
        struct idem_request request;

        request = claim(numbered("k", i));
        expect(f->store, &request, IDEM_STARTED);
    }
    filter.max = 3;
    assert_ok(idem_list_page(f->store, &filter, note_id, &shown, &page, &why));
    assert_false(page.done);
    filter.newest_first = true;
    assert_code(IDEM_EINVALID, idem_list_page(f->store, &filter, note_id,
                                              &shown, &page, &why));
    filter.newest_first = false;
    filter.any_scope = false;
    assert_code(IDEM_EINVALID, idem_list_page(f->store, &filter, note_id,
                                              &shown, &page, &why));
    filter.any_scope = true;
    assert_ok(idem_list_page(f->store, &filter, note_id, &shown, &page, &why));
    for (i = 0; i < COUNT(wrong); i++) {
        (void)strcpy(page.place, wrong[i]);
        assert_code(IDEM_EINVALID, idem_list_page(f->store, &filter, note_id,
                                                  &shown, &page, &why));
    }
    memset(page.place, 'p', sizeof(page.place));
    assert_code(IDEM_EINVALID, idem_list_page(f->store, &filter, note_id,
                                              &shown, &page, &why));
    page = (struct idem_page){.size = 1};
    assert_code(IDEM_EINVALID, idem_list_page(f->store, &filter, note_id,
                                              &shown, &page, &why));
    assert_int_equal(shown.len, 6);
}

/* A list returns the store's time. */
TEST_VIRTUAL(list, tellsTheTime)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_request request = claim("k");
    struct seen seen = {.len = 0};
    int64_t ms = 0;

    expect(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 1234);
    assert_ok(idem_list(f->store, &filter, note, &seen, &ms, &why));
    assert_int_equal(ms, HOST_WALL_MS + 1234);
    assert_int_equal(seen.len, 1);
}

/* ---- Decisions ---- */

static int resolve(struct fixture *f, uint64_t fence, enum idem_status status)
{
    struct idem_outcome outcome = {
        .status = status,
        .text = idem_str("the bank says so"),
        .result = {.bytes = idem_str("by hand")},
    };

    return idem_resolve(f->store, idem_str(""), idem_str("k"), fence,
                        idem_str("ann"), &outcome, /* flags= */ 0, &why);
}

/* Which records may be resolved, to which status, and the verdict for the next caller. */
TEST(resolve, decides)
{
    static const enum idem_status into[] = {IDEM_STATUS_COMPLETED,
                                            IDEM_STATUS_FAILED,
                                            IDEM_STATUS_RELEASED};
    static const enum idem_verdict then[] = {IDEM_REPLAY, IDEM_FAILED,
                                             IDEM_STARTED};
    static const struct {
        int verb;        /* As in call_verb(); 4: nothing. */
        int64_t pass_ms; /* The time that passes then. */
        bool may;
    } rows[] = {
        {0, 0, false},
        {1, 0, true},
        {2, 0, false},
        {3, 0, true},
        {4, 0, false},
        {4, 59999, false},
        {4, 60000, true},
        {1, 1000LL * 86400000, true},
        {3, 1000LL * 86400000, true},
    };
    size_t j;

    EACH(row, rows) {
        for (j = 0; j < COUNT(into); j++) {
            struct fixture f;
            struct idem_request request = claim("k");
            struct idem_attempt *attempt;
            uint64_t fence;
            int verb;

            open_virtual(&f);
            attempt = begin(f.store, &request, IDEM_STARTED);
            fence = attempt->fence;
            assert_ok(call_verb(row->verb, attempt));
            host_pass(&f.host, row->pass_ms);
            assert_code(row->may ? IDEM_OK : IDEM_EINVALID,
                        resolve(&f, fence, into[j]));
            if (row->may) {
                for (verb = 0; verb < VERBS; verb++) {
                    assert_code(IDEM_ELOST, call_verb(verb, attempt));
                }
                attempt = begin(f.store, &request, then[j]);
            }
            finish(&f);
        }
    }
}

/* The record shows who decided and why; the key goes on under a higher fence. */
TEST_VIRTUAL(resolve, isOnRecord)
{
    struct idem_request request = claim("k");
    struct idem_attempt *attempt;
    const struct idem_record *record;
    uint64_t fence;

    request.owner = idem_str("host/1");
    request.input = idem_str("input");
    attempt = begin(f->store, &request, IDEM_STARTED);
    fence = attempt->fence;
    assert_ok(idem_unknown(attempt, idem_str("?"), &why));
    host_pass(&f->host, 5000);
    assert_ok(resolve(f, fence, IDEM_STATUS_COMPLETED));
    record = get(f->store, "k");
    assert_int_equal(record->status, IDEM_STATUS_COMPLETED);
    assert_text(record->result.bytes, "by hand");
    assert_text(record->note, "the bank says so");
    assert_text(record->owner, "host/1");
    assert_text(record->input, "input");
    assert_int_equal(record->ended_ms, HOST_WALL_MS + 5000);
    assert_int_equal(record->expires_ms, HOST_WALL_MS + 5000 + DAY_MS);
    assert_int_equal(record->history_len, 1);
    assert_text(record->history[0].owner, "ann");
    assert_int_equal(record->history[0].end, IDEM_PAST_RESOLVED);
}

/* A person may correct a person's decision until an attempt starts, and the record keeps
 * what each decision replaced. */
TEST_VIRTUAL(resolve, isCorrected)
{
    struct idem_request request = claim("k");
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);
    const struct idem_record *record;
    uint64_t fence = attempt->fence;

    assert_ok(idem_unknown(attempt, idem_str("no answer"), &why));
    assert_ok(resolve(f, fence, IDEM_STATUS_COMPLETED));
    assert_ok(resolve(f, fence, IDEM_STATUS_FAILED));
    assert_code(IDEM_ELOST, resolve(f, fence, IDEM_STATUS_COMPLETED));
    assert_code(IDEM_ELOST, resolve(f, fence, IDEM_STATUS_FAILED));
    assert_ok(resolve(f, fence + 1, IDEM_STATUS_FAILED)); /* Said again. */
    assert_ok(resolve(f, fence + 1, IDEM_STATUS_COMPLETED));
    expect(f->store, &request, IDEM_REPLAY);
    assert_ok(resolve(f, fence + 2, IDEM_STATUS_RELEASED));
    record = get(f->store, "k");
    assert_int_equal(record->history_len, 4);
    assert_int_equal(record->history[0].was, IDEM_STATUS_COMPLETED);
    assert_text(record->history[0].text, "the bank says so");
    assert_int_equal(record->history[3].was, IDEM_STATUS_UNKNOWN);
    assert_text(record->history[3].text, "no answer");
    assert_true(begin(f->store, &request, IDEM_STARTED)->fence > fence + 3);
    assert_code(IDEM_ELOST, resolve(f, fence + 3, IDEM_STATUS_COMPLETED));
}

/* A decision needs the fence that the person saw, and a record. */
TEST_VIRTUAL(resolve, isAboutWhatWasSeen)
{
    struct idem_request request = rerun("k");
    uint64_t fence;

    assert_code(IDEM_ENOTFOUND, resolve(f, 1, IDEM_STATUS_FAILED));
    fence = begin(f->store, &request, IDEM_STARTED)->fence;
    host_pass(&f->host, 60000);
    assert_code(IDEM_ELOST, resolve(f, fence + 1, IDEM_STATUS_FAILED));
    assert_code(IDEM_ELOST, resolve(f, fence - 1, IDEM_STATUS_FAILED));

    /* Somebody takes over while the person thinks. */
    expect(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 60000);
    assert_code(IDEM_ELOST, resolve(f, fence, IDEM_STATUS_RELEASED));
    assert_why("read the record again");
    assert_ok(resolve(f, fence + 1, IDEM_STATUS_RELEASED));
}

/* ---- Purges ---- */

/* A purge deletes only records past their retention: no live lease, no result within its
 * retention, and no failed or unknown record, however old. */
TEST_VIRTUAL(purge, takesOnlyWhatIsOver)
{
    struct idem_request request;
    uint64_t purged;

    fill(f);
    request = claim("short");
    request.lease_ms = idem_store_lease_min_ms(f->store);
    request.retention_ms = request.lease_ms;
    run(f->store, &request, "x");
    request = rerun("rerun");
    expect(f->store, &request, IDEM_STARTED);
    assert_int_equal(count(f->store, NULL), 14);

    assert_ok(idem_purge(f->store, 0, &purged, &why));
    assert_int_equal(purged, 0);
    host_pass(&f->host,
              idem_store_lease_min_ms(f->store) + traits()->purge_lag_ms);
    assert_ok(idem_purge(f->store, 0, &purged, &why));
    assert_int_equal(purged, 1);
    host_pass(&f->host, DAY_MS);
    assert_ok(idem_purge(f->store, 0, &purged, &why));
    assert_int_equal(purged, 4); /* Completed and released, in two scopes. */
    host_pass(&f->host, 3650 * DAY_MS);
    assert_ok(idem_purge(f->store, 0, &purged, &why));
    assert_int_equal(purged, 1); /* In progress under rerun. */
    assert_int_equal(count(f->store, NULL), 8);
    expect(f->store, &request, IDEM_STARTED);
}

/* A purge deletes at most as many records as requested. */
TEST_VIRTUAL(purge, isBounded)
{
    static const uint64_t steps[] = {1, 7, 100, 150, 0};
    enum {
        RECORDS = 420
    };
    struct idem_request request = rerun("k");
    size_t left = RECORDS;
    size_t i;

    request.lease_ms = idem_store_lease_min_ms(f->store);
    request.retention_ms = request.lease_ms;
    start_many(f->store, 0, RECORDS, request);
    host_pass(&f->host,
              2 * idem_store_lease_min_ms(f->store) + traits()->purge_lag_ms);
    for (i = 0; i < COUNT(steps); i++) {
        uint64_t want = steps[i] == 0 ? left : steps[i];
        uint64_t purged = 0;

        assert_ok(idem_purge(f->store, steps[i], &purged, &why));
        assert_int_equal(purged, want);
        left -= want;
    }
    assert_int_equal(left, 0);
    assert_ok(idem_purge(f->store, 0, NULL, &why));
}

/* Gives the stored record of @key a fence that is far ahead of its time. */
static uint64_t raise_fence(struct fixture *f, const char *key)
{
    uint8_t head[IDEM_HEAD_MAX];
    uint8_t id[IDEM_ID_LEN];
    size_t len = stored_read(f, key, HEAD, head, sizeof(head));
    uint8_t raised[IDEM_HEAD_MAX];
    struct idem_record record;
    uint64_t fence;

    assert_ok(idem_id(idem_str(""), idem_str(key), id));
    assert_ok(idem__record_decode(id, idem_bytes(head, len), &record, &why));
    record.fence += 1000LL * 365 * 86400000;
    fence = record.fence;
    assert_ok(idem__record_encode(&record, raised, sizeof(raised), &len));
    stored_write(f, key, HEAD, raised, len);
    return fence;
}

/* No new fence is below a purged one, whichever key had that, and however little time has
 * passed; the same holds after a reboot. */
TEST(purge, remembersFences)
{
    static const char *const keys[] = {"k", "another", "third"};
    struct fixture f;
    struct idem_request request = claim("k");
    uint64_t fence;
    uint64_t purged;

    if (traits()->forgets_fences) {
        test_skip("this store forgets the fence of what was purged");
    }
    open_virtual(&f);
    run(f.store, &request, "x");
    fence = raise_fence(&f, "k");
    assert_true(fence_of(f.store, "k") == fence);
    host_pass(&f.host, DAY_MS);
    assert_ok(idem_purge(f.store, 0, &purged, &why));
    assert_int_equal(purged, 1);
    EACH(key, keys) {
        request = claim(*key);
        assert_true(begin(f.store, &request, IDEM_STARTED)->fence > fence);
        if (is_durable()) {
            finish(&f);
            open_again(&f);
        }
        host_reboot(&f.host, -2 * DAY_MS);
    }
    finish(&f);
}

/* The same holds for a record past its retention that was not purged. */
TEST_VIRTUAL(fence, growsOverWhatIsForgotten)
{
    struct idem_request request = claim("k");
    uint64_t fence;

    run(f->store, &request, "x");
    fence = raise_fence(f, "k");
    host_pass(&f->host, DAY_MS);
    assert_true(begin(f->store, &request, IDEM_STARTED)->fence > fence);
}

/* A store reuses purged space, so that it does not grow. */
TEST_VIRTUAL(purge, makesRoom)
{
    char *blob = calloc(1, 100000);
    struct idem_result result = {.bytes = {blob, 100000}};
    int64_t pages = 0;
    unsigned n = 0;
    int round;
    int i;

    assert_non_null(blob);
    for (round = 0; round < 6; round++) {
        uint64_t purged;

        for (i = 0; i < 10; i++) {
            struct idem_request request = claim(numbered("k", n++));

            assert_ok(idem_complete(begin(f->store, &request, IDEM_STARTED),
                                    &result, &why));
        }
        host_pass(&f->host, DAY_MS + traits()->purge_lag_ms);
        assert_ok(idem_purge(f->store, 0, &purged, &why));
        assert_int_equal(purged, 10);
        if (traits()->file && round == 2) {
            pages = stored_number(f, "PRAGMA page_count");
        }
    }
    if (traits()->file) {
        assert_int_equal(stored_number(f, "PRAGMA page_count"), pages);
    }
    free(blob);
}

/* ---- Counters ---- */

static struct idem_counters counters_of(struct fixture *f)
{
    struct idem_counters counters = IDEM_COUNTERS_INIT;

    assert_ok(idem_count(f->store, &counters, &why));
    return counters;
}

/* Each answer counts once, and a repeated answer not at all. */
TEST_VIRTUAL(count, isOfAnswers)
{
    struct idem_request request = claim("a");
    struct idem_request other = claim("a");
    uint8_t one[IDEM_FINGERPRINT_LEN] = {1, 1};
    uint8_t two[IDEM_FINGERPRINT_LEN] = {1, 2};
    struct idem_attempt *attempt;
    struct idem_counters c;

    request.fingerprint = idem_bytes(one, sizeof(one));
    other.fingerprint = idem_bytes(two, sizeof(two));
    attempt = begin(f->store, &request, IDEM_STARTED);
    expect(f->store, &request, IDEM_BUSY);
    expect(f->store, &other, IDEM_MISMATCH);
    assert_ok(complete(attempt, "done"));
    assert_ok(complete(attempt, "done"));
    assert_int_equal(complete(attempt, "other"), IDEM_ELOST);
    expect(f->store, &request, IDEM_REPLAY);
    expect(f->store, &request, IDEM_REPLAY);

    c = counters_of(f);
    assert_int_equal(c.started, 1);
    assert_int_equal(c.busy, 1);
    assert_int_equal(c.mismatch, 1);
    assert_int_equal(c.completed, 1);
    assert_int_equal(c.lost, 1);
    assert_int_equal(c.replayed, 2);
    assert_int_equal(c.failed + c.unknown + c.released + c.takeovers +
                         c.resolved + c.purged,
                     0);
}

/* Counters distinguish what owners reported, leases ended, persons decided and purges
 * deleted. */
TEST_VIRTUAL(count, isOfWhatBecameOfThem)
{
    struct idem_request request;
    struct idem_counters c;
    uint64_t fence = 0;
    int verb;

    for (verb = 1; verb < 4; verb++) { /* Fail, release, unknown. */
        struct idem_attempt *attempt;

        request = claim(verb == 3 ? "k" : numbered("k", (size_t)verb));
        attempt = begin(f->store, &request, IDEM_STARTED);
        fence = attempt->fence;
        assert_ok(call_verb(verb, attempt));
    }
    assert_ok(resolve(f, fence, IDEM_STATUS_FAILED));
    request = claim("held");
    expect(f->store, &request, IDEM_STARTED);
    request = rerun("again");
    request.attempts_max = 2;
    expect(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 60000);
    expect(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 60000);
    expect(f->store, &request, IDEM_FAILED);
    expect(f->store, &request, IDEM_FAILED);
    request = claim("held");
    expect(f->store, &request, IDEM_UNKNOWN);
    expect(f->store, &request, IDEM_UNKNOWN);
    host_pass(&f->host, 2 * DAY_MS + traits()->purge_lag_ms);
    assert_ok(idem_purge(f->store, 0, NULL, &why));

    c = counters_of(f);
    assert_int_equal(c.started, 6);
    assert_int_equal(c.takeovers, 1);
    assert_int_equal(c.failed, 2);
    assert_int_equal(c.unknown, 2);
    assert_int_equal(c.released, 1);
    assert_int_equal(c.resolved, 1);
    assert_int_equal(c.purged, 1);
    assert_int_equal(c.completed + c.lost + c.busy + c.replayed + c.mismatch,
                     0);
}

/* Counts outlive the handle that made them. */
TEST_VIRTUAL(count, outlivesItsHandle)
{
    struct idem_request request = claim("a");
    struct idem_counters c;

    if (!traits()->keeps_counters) {
        test_skip("this store's counters go with its handle");
    }
    run(f->store, &request, "done");
    expect(f->store, &request, IDEM_REPLAY);
    idem_close(f->store);
    open_again(f);
    expect(f->store, &request, IDEM_REPLAY);

    c = counters_of(f);
    assert_int_equal(c.started, 1);
    assert_int_equal(c.completed, 1);
    assert_int_equal(c.replayed, 2);
}

/* The call needs the size of the struct. */
TEST_VIRTUAL(count, wantsItsSize)
{
    struct idem_counters counters = {0};

    assert_int_equal(idem_count(f->store, &counters, &why), IDEM_EINVALID);
}
