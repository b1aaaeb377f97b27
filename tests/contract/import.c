/* Records from another store. */
#include "contract.h"

#include "contract/store.h"
#include "threads.h"

#include <idem/operator.h>

/* A record of each status is imported whole: request, outcome, history and fence; every
 * caller gets the same answer as before. */
TEST(import, bringsEveryStatusOver)
{
    static const enum idem_verdict then[] = {IDEM_REPLAY, IDEM_FAILED,
                                             IDEM_STARTED, IDEM_UNKNOWN,
                                             IDEM_BUSY};
    int verb;

    for (verb = 0; verb < VERBS; verb++) {
        struct fixture from;
        struct fixture to;
        struct idem_request request = rerun("k");
        const struct idem_record *record;
        bool added = false;

        open_virtual(&from);
        open_virtual(&to);
        request.owner = idem_str("first");
        request.input = idem_str("input");
        expect(from.store, &request, IDEM_STARTED);
        host_pass(&from.host, 60000);
        request.owner = idem_str("second");
        assert_ok(call_verb(verb, begin(from.store, &request, IDEM_STARTED)));

        record = get(from.store, "k");
        assert_ok(idem_import(to.store, record, &added, &why));
        assert_true(added);
        assert_ok(idem_import(to.store, record, &added, &why));
        assert_false(added);
        assert_ok(idem_import(to.store, record, NULL, &why));

        record = get(to.store, "k");
        assert_text(record->owner, "second");
        assert_text(record->input, "input");
        assert_int_equal(record->attempts, 2);
        assert_int_equal(record->history_len, 1);
        assert_text(record->history[0].owner, "first");
        assert_true(record->fence == fence_of(from.store, "k"));
        expect(to.store, &request, then[verb]);
        finish(&to);
        finish(&from);
    }
}

/* The owner of an attempt goes on in the store it was brought to. */
TEST(import, bringsTheOwnerOver)
{
    struct fixture from;
    struct fixture to;
    struct idem_request request = claim("k");
    struct idem_attempt *there;
    char token[IDEM_TOKEN_MAX];

    open_virtual(&from);
    open_virtual(&to);
    assert_ok(
        idem_attempt_token(begin(from.store, &request, IDEM_STARTED), token));
    assert_ok(idem_import(to.store, get(from.store, "k"), NULL, &why));
    there = by_token(to.store, token);
    assert_ok(complete(there, "done there"));
    expect(to.store, &request, IDEM_REPLAY);
    finish(&to);
    finish(&from);
}

/* A record that is there stays as it is, to the byte; one that is forgotten gives
 * way to a newer one. */
TEST(import, writesOverNothingThatCounts)
{
    struct fixture from;
    struct fixture to;
    struct idem_request request = claim("k");
    const struct idem_record *answer;
    struct idem_attempt *attempt;
    uint64_t fence;
    bool added = true;

    open_virtual(&from);
    open_virtual(&to);
    run(to.store, &request, "there before");
    host_pass(&to.host, 86399999);
    fence = fence_of(to.store, "k");
    host_pass(&from.host, 86400000);
    run(from.store, &request, "from elsewhere");
    answer = get(from.store, "k");
    assert_ok(idem_import(to.store, answer, &added, &why));
    assert_false(added);
    assert_text(begin(to.store, &request, IDEM_REPLAY)->record->result.bytes,
                "there before");

    host_pass(&to.host, 1);
    assert_ok(idem_import(to.store, answer, &added, &why));
    assert_true(added);
    attempt = begin(to.store, &request, IDEM_REPLAY);
    assert_text(attempt->record->result.bytes, "from elsewhere");
    assert_true(attempt->fence > fence);
    finish(&to);
    finish(&from);
}

static bool import_from(struct idem_store *from, struct idem_store *to)
{
    const struct idem_record *record = get(from, "k");
    bool added = false;

    assert_ok(idem_import(to, record, &added, &why));
    return added;
}

/* A copy that is older than what was forgotten in its place, or has the same fence, is under
 * a higher fence all the same; one that is past its own retention is not brought over. */
TEST(import, goesOnWithTheFence)
{
    int same;

    for (same = 0; same < 2; same++) {
        struct fixture from;
        struct fixture to;
        struct idem_request request = claim("k");
        struct idem_record old;
        uint64_t fence;
        bool added = true;

        open_virtual(&from);
        open_virtual(&to);
        host_pass(&to.host, 1000);
        run(to.store, &request, "there before");
        fence = fence_of(to.store, "k");
        run(from.store, &request, "from elsewhere");
        old = *get(from.store, "k");
        assert_true(old.fence < fence);
        old.fence = same ? fence : old.fence;
        host_pass(&to.host, request.retention_ms);
        assert_ok(idem_import(to.store, &old, &added, &why));
        assert_false(added);
        old.expires_ms = IDEM_NEVER;
        old.retention_ms = IDEM_NEVER;
        assert_ok(idem_import(to.store, &old, &added, &why));
        assert_true(added);
        assert_true(fence_of(to.store, "k") > fence);
        finish(&to);
        finish(&from);
    }
}

/* What was released when it was brought over does not hide what came of the next
 * attempt; nor is that undone. */
TEST(import, replacesWhatWasReleased)
{
    struct fixture from;
    struct fixture to;
    struct idem_request request = claim("k");
    struct idem_attempt *attempt;

    open_virtual(&from);
    open_virtual(&to);
    assert_ok(idem_release(begin(from.store, &request, IDEM_STARTED),
                           idem_str("not yet"), &why));
    assert_true(import_from(from.store, to.store));
    assert_false(import_from(from.store, to.store));

    run(from.store, &request, "the second time");
    assert_true(import_from(from.store, to.store));
    assert_false(import_from(from.store, to.store));
    attempt = begin(to.store, &request, IDEM_REPLAY);
    assert_text(attempt->record->result.bytes, "the second time");
    assert_true(attempt->fence == fence_of(from.store, "k"));
    finish(&to);
    finish(&from);
}

/* Fails if the record of "k" can be imported with @change. */
#define assert_not_taken(change)                                               \
    do {                                                                       \
        struct idem_record record = *get(f->store, "k");                       \
                                                                               \
        change;                                                                \
        if (idem_import(f->store, &record, NULL, &why) != IDEM_EINVALID) {     \
            fail_with("taken: " #change);                                      \
        }                                                                      \
    } while (0)

/* An import refuses records that no store could hold: with parts that do not belong
 * together, or with members out of range. */
TEST_VIRTUAL(import, checksTheRecord)
{
    struct idem_request request = claim("k");

    request.input = idem_str("input");
    run(f->store, &request, "result");
    assert_not_taken(record.id[0] ^= 1);
    assert_not_taken(record.key = idem_str("j"));
    assert_not_taken(record.key = idem_str(""));
    assert_not_taken(record.result.bytes = idem_str("resul?"));
    assert_not_taken(record.result.bytes = idem_str(""));
    assert_not_taken(record.input = idem_str("inpu?"));
    assert_not_taken(record.result_digest[0] ^= 1);
    assert_not_taken(record.status = (enum idem_status)9);
    assert_not_taken(record.on_expired_lease = IDEM_ON_EXPIRED_UNSET);
    assert_not_taken(record.fence = 0);
    assert_not_taken(record.expires_ms = -1);
    assert_not_taken(memset(record.nonce, 0, sizeof(record.nonce)));
}

/* A fence that leaves no room for greater ones would stop its key at the next
 * takeover, and every key of the store once it was purged. */
TEST_VIRTUAL(import, refusesAFenceWithoutRoomAbove)
{
    const uint64_t most = (uint64_t)1 << 61;
    struct idem_request request = rerun("k");
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);
    const struct idem_record *answer = get(f->store, "k");
    struct idem_record record = *answer;

    record.key = idem_str("other");
    assert_ok(idem_id(record.scope, record.key, record.id));
    record.fence = most;
    assert_code(IDEM_EINVALID, idem_import(f->store, &record, NULL, &why));
    assert_why("fence");
    record.fence = most - 1;
    assert_ok(idem_import(f->store, &record, NULL, &why));

    host_pass(&f->host, 60000);
    request.key = idem_str("other");
    attempt = begin(f->store, &request, IDEM_STARTED);
    assert_true(attempt->fence == most);
    assert_ok(complete(attempt, "done"));
    host_pass(&f->host, request.retention_ms);
    assert_ok(idem_purge(f->store, 0, NULL, &why));
    request.key = idem_str("third");
    attempt = begin(f->store, &request, IDEM_STARTED);
    assert_true(traits()->forgets_fences || attempt->fence == most + 1);
    expect(f->store, &request, IDEM_BUSY);
}

static int import_long_history(void *ctx)
{
    struct idem_record record = *(const struct idem_record *)ctx;
    struct idem_store *store;

    if (idem_open("memory:", NULL, &store, NULL) != 0) {
        return 1;
    }
    record.history_len = IDEM_HISTORY_MAX + 1;
    return idem_import(store, &record, NULL, NULL) == IDEM_EINVALID ? 0 : 2;
}

/* An import survives a history that has no end in the struct; in a process of its own. */
TEST_VIRTUAL(import, survivesAHistoryThatIsTooLong)
{
    struct idem_request request = claim("k");
    struct idem_record record;

    run(f->store, &request, "result");
    record = *get(f->store, "k");
    assert_int_equal(child_run(import_long_history, &record), 0);
}
