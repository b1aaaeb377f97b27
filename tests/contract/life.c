/* The life of a record: claimed, ended, replayed, released, failed, unknown. */
#include "contract.h"

#include <idem/operator.h>

static struct idem_slice print_of(char c)
{
    static uint8_t prints[2][IDEM_FINGERPRINT_LEN];
    uint8_t *print = prints[c == 'a'];

    print[0] = 1;
    memset(print + 1, c, IDEM_FINGERPRINT_LEN - 1);
    return idem_bytes(print, IDEM_FINGERPRINT_LEN);
}

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"

/* A claimed key is busy, and its record shows who works on what. */
TEST_VIRTUAL(begin, claimsAKey)
{
    struct idem_request request = claim("k");
    struct idem_attempt *attempt;
    struct idem_attempt *busy;
    const struct idem_record *record;

    request.owner = idem_str("host/1");
    request.traceparent = idem_str(TRACE "-01");
    request.input = idem_str("input");
    request.fingerprint = print_of('a');
    request.lease_ms = 30000;
    request.retention_ms = 600000;
    request.expect_ms = 5000;
    attempt = begin(f->store, &request, IDEM_STARTED);
    assert_false(attempt->takeover);
    assert_int_equal(attempt->attempts, 1);
    assert_true(attempt->fence > 0);

    record = get(f->store, "k");
    assert_int_equal(record->status, IDEM_STATUS_IN_PROGRESS);
    assert_int_equal(record->on_expired_lease, IDEM_HOLD);
    assert_text(record->key, "k");
    assert_text(record->scope, "");
    assert_text(record->owner, "host/1");
    assert_text(record->traceparent, TRACE "-01");
    assert_text(record->input, "input");
    assert_int_equal(record->input_len, 5);
    assert_slice(record->fingerprint, print_of('a'));
    assert_true(record->fence == attempt->fence);
    assert_int_equal(record->attempts, 1);
    assert_int_equal(record->created_ms, HOST_WALL_MS);
    assert_int_equal(record->started_ms, HOST_WALL_MS);
    assert_int_equal(record->lease_ms, 30000);
    assert_int_equal(record->lease_end_ms, HOST_WALL_MS + 30000);
    assert_int_equal(record->expected_ms, HOST_WALL_MS + 5000);
    assert_int_equal(record->retention_ms, 600000);
    assert_true(record->expires_ms == IDEM_NEVER);
    assert_int_equal(record->ended_ms, 0);
    assert_int_equal(record->history_len, 0);

    host_pass(&f->host, 10000);
    busy = begin(f->store, &request, IDEM_BUSY);
    assert_int_equal(busy->lease_left_ms, 20000);
    assert_true(busy->fence == attempt->fence);
    assert_text(busy->record->owner, "host/1");
}

/* A completed result is replayed, whole, to every caller; a get shows the same. */
TEST_VIRTUAL(complete, isReplayed)
{
    struct idem_request request = claim("k");
    struct idem_result result = {
        .bytes = idem_str("receipt 7"),
        .content_type = idem_str("text/plain"),
        .meta = idem_str("HTTP 201"),
    };
    int i;
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);
    uint64_t fence = attempt->fence;

    host_pass(&f->host, 1500);
    assert_ok(idem_complete(attempt, &result, &why));
    assert_int_equal(attempt->record->status, IDEM_STATUS_COMPLETED);
    assert_text(attempt->record->result.bytes, "receipt 7");

    for (i = 0; i < 3; i++) {
        attempt = begin(f->store, &request, IDEM_REPLAY);
        assert_true(attempt->fence == fence);
        assert_text(attempt->record->result.bytes, "receipt 7");
        assert_text(attempt->record->result.content_type, "text/plain");
        assert_text(attempt->record->result.meta, "HTTP 201");
        assert_false(attempt->record->result.not_kept);
        assert_int_equal(attempt->record->ended_ms, HOST_WALL_MS + 1500);
        assert_int_equal(attempt->record->expires_ms,
                         HOST_WALL_MS + 1500 + 86400000);
        assert_int_equal(idem_attempt_lease_left_ms(attempt), 0);
        host_pass(&f->host, 1000);
    }
    assert_text(get(f->store, "k")->result.bytes, "receipt 7");
}

/* An end records when the work ended, however late the store gets it. */
TEST_VIRTUAL(end, isWhenTheWorkEnded)
{
    struct idem_request request = claim("k");
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
    struct idem_attempt *attempt;

    host_pass(&f->host, 5000);
    attempt = begin(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 1500);
    outcome.ended_boot_ms = f->host.boot_ms;
    host_pass(&f->host, 9000);
    assert_ok(idem_end(attempt, &outcome, &why));
    assert_int_equal(attempt->record->ended_ms, HOST_WALL_MS + 6500);
    assert_int_equal(attempt->record->expires_ms,
                     HOST_WALL_MS + 15500 + 86400000);

    request = claim("before its beginning");
    attempt = begin(f->store, &request, IDEM_STARTED);
    outcome.ended_boot_ms = f->host.boot_ms - 1000;
    host_pass(&f->host, 500);
    assert_ok(idem_end(attempt, &outcome, &why));
    assert_int_equal(attempt->record->ended_ms, attempt->record->started_ms);
}

/* An empty result is a result. */
TEST_VIRTUAL(complete, mayHaveNoResult)
{
    struct idem_request request = claim("k");
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);

    assert_ok(idem_complete(attempt, NULL, &why));
    attempt = begin(f->store, &request, IDEM_REPLAY);
    assert_int_equal(attempt->record->result.bytes.len, 0);
    assert_int_equal(attempt->record->result_len, 0);
    assert_false(attempt->record->result.not_kept);
}

/* A failure stays on record for good, with its result. */
TEST_VIRTUAL(fail, isOnRecord)
{
    struct idem_request request = rerun("k");
    struct idem_result result = {.bytes = idem_str("402")};
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);

    assert_ok(idem_fail(attempt, idem_str("card refused"), &result, &why));
    assert_text(attempt->record->error, "card refused");
    host_pass(&f->host, 10LL * 365 * 86400000);
    attempt = begin(f->store, &request, IDEM_FAILED);
    assert_text(attempt->record->error, "card refused");
    assert_text(attempt->record->result.bytes, "402");
    assert_true(attempt->record->expires_ms == IDEM_NEVER);
}

/* So does an unknown outcome, whatever the policy. */
TEST_VIRTUAL(unknown, isOnRecord)
{
    struct idem_request request = rerun("k");
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);

    assert_ok(idem_unknown(attempt, idem_str("no answer"), &why));
    host_pass(&f->host, 10LL * 365 * 86400000);
    attempt = begin(f->store, &request, IDEM_UNKNOWN);
    assert_text(attempt->record->note, "no answer");
    assert_int_equal(attempt->record->error.len, 0);
}

/* A released key may be tried again at once, any number of times; each attempt counts and
 * has a higher fence, and the record remembers the last ones. */
TEST_VIRTUAL(release, mayBeTriedAgain)
{
    struct idem_request request = claim("k");
    struct idem_attempt *attempt;
    const struct idem_record *record;
    uint64_t fence = 0;
    char owner[16];
    unsigned i;

    for (i = 1; i <= 12; i++) {
        (void)snprintf(owner, sizeof(owner), "owner %u", i);
        request.owner = idem_str(owner);
        attempt = begin(f->store, &request, IDEM_STARTED);
        assert_true(attempt->fence > fence);
        assert_int_equal(attempt->attempts, i);
        assert_false(attempt->takeover);
        fence = attempt->fence;
        host_pass(&f->host, 7);
        assert_ok(idem_release(attempt, idem_str("not yet"), &why));
        assert_text(attempt->record->note, "not yet");
        assert_int_equal(status_of(f->store, "k"), IDEM_STATUS_RELEASED);
        assert_code(IDEM_EINVALID,
                    idem_reopen(f->store, idem_str(""), idem_str("k"), fence,
                                idem_str("ann"), idem_str("looked"), &why));
    }
    attempt = begin(f->store, &request, IDEM_STARTED);
    record = attempt->record;
    assert_int_equal(record->created_ms, HOST_WALL_MS);
    assert_int_equal(record->history_len, 8);
    assert_text(record->history[0].owner, "owner 12");
    assert_text(record->history[7].owner, "owner 5");
    for (i = 0; i < 8; i++) {
        assert_int_equal(record->history[i].end, IDEM_PAST_RELEASED);
        assert_int_equal(record->history[i].ended_ms -
                             record->history[i].started_ms,
                         7);
    }
    assert_ok(complete(attempt, "at last"));
    expect(f->store, &request, IDEM_REPLAY);
}

/* A cap counts attempts that ended without a report. A released attempt did nothing, so one
 * lost attempt after many releases is taken over. Lost attempts count, whatever was released
 * in between, until a person decides that they did nothing either. */
TEST_VIRTUAL(release, isNotCapped)
{
    struct idem_outcome released = {.status = IDEM_STATUS_RELEASED};
    struct idem_request request = rerun("k");
    struct idem_attempt *attempt;
    unsigned i;

    request.attempts_max = 2;
    for (i = 0; i < 8; i++) {
        attempt = begin(f->store, &request, IDEM_STARTED);
        if (i != 3 && i != 6) { /* Those are lost. */
            assert_ok(idem_release(attempt, idem_str("not yet"), &why));
        } else {
            host_pass(&f->host, request.lease_ms + 60000);
        }
        if (i == 6) {
            attempt = begin(f->store, &request, IDEM_FAILED);
            assert_text(attempt->record->error, "gave up after 2 attempts");
            assert_ok(idem_resolve(f->store, idem_str(""), idem_str("k"),
                                   attempt->fence, idem_str("ann"), &released,
                                   /* flags= */ 0, &why));
        }
    }
    attempt = begin(f->store, &request, IDEM_STARTED);
    assert_int_equal(attempt->attempts, 9);
    assert_int_equal(attempt->record->retried, 8);
    assert_false(attempt->takeover);
}

/* The fence of a key grows through its whole life: failure aside, which a person
 * must resolve, it is released, taken over, completed, forgotten and purged. */
TEST_VIRTUAL(fence, growsForLife)
{
    struct idem_request request = rerun("k");
    struct idem_attempt *attempt;
    uint64_t fence = 0;
    uint64_t purged;
    int round;
    int step;

    for (round = 0; round < 3; round++) {
        for (step = 0; step < 4; step++) {
            attempt = begin(f->store, &request, IDEM_STARTED);
            assert_true(attempt->fence > fence);
            fence = attempt->fence;
            switch (step) {
            case 0:
                assert_ok(idem_release(attempt, idem_str(""), &why));
                break;
            case 1:
                host_pass(&f->host, 60000);
                break;
            case 2:
                assert_ok(complete(attempt, "x"));
                host_pass(&f->host, 86400000);
                break;
            default:
                assert_ok(complete(attempt, "x"));
                host_pass(&f->host, 86400000 + traits()->purge_lag_ms);
                assert_ok(idem_purge(f->store, 0, &purged, &why));
                assert_int_equal(purged, 1);
                break;
            }
        }
    }
}

/* ---- Other requests ---- */

/* Brings the record of "k", claimed for request 'a', into @status. */
static void bring_to(struct fixture *f, enum idem_status status)
{
    struct idem_outcome outcome = {.status = status, .text = idem_str("a's")};
    struct idem_request request = rerun("k");
    struct idem_attempt *attempt;

    request.fingerprint = print_of('a');
    attempt = begin(f->store, &request, IDEM_STARTED);
    if (status != IDEM_STATUS_IN_PROGRESS) {
        assert_ok(idem_end(attempt, &outcome, &why));
    }
}

/* Another request under the same key is a mismatch in every status but released,
 * in flight and when the lease is over too; a request without a fingerprint is
 * none. The record stays as it is. */
TEST(mismatch, isFoundInEveryStatus)
{
    static const enum idem_verdict same[] = {
        [IDEM_STATUS_IN_PROGRESS] = IDEM_BUSY,
        [IDEM_STATUS_COMPLETED] = IDEM_REPLAY,
        [IDEM_STATUS_FAILED] = IDEM_FAILED,
        [IDEM_STATUS_UNKNOWN] = IDEM_UNKNOWN,
    };
    int status;

    for (status = IDEM_STATUS_IN_PROGRESS; status <= IDEM_STATUS_UNKNOWN;
         status++) {
        struct fixture f;
        struct idem_request request = rerun("k");

        open_virtual(&f);
        bring_to(&f, (enum idem_status)status);
        request.fingerprint = print_of('b');
        expect(f.store, &request, IDEM_MISMATCH);
        assert_int_equal(status_of(f.store, "k"), status);
        request.fingerprint = idem_bytes(NULL, 0);
        expect(f.store, &request, same[status]);
        request.fingerprint = print_of('a');
        expect(f.store, &request, same[status]);

        host_pass(&f.host, 60000);
        request.fingerprint = print_of('b');
        expect(f.store, &request, IDEM_MISMATCH);
        assert_int_equal(status_of(f.store, "k"), status);
        finish(&f);
    }
}

/* A key that was released, or is past its retention, may be claimed for another request. */
TEST_VIRTUAL(mismatch, isNoneWhereNothingCounts)
{
    struct idem_request request = rerun("k");

    bring_to(f, IDEM_STATUS_RELEASED);
    request.fingerprint = print_of('b');
    run(f->store, &request, "b's");
    request.fingerprint = print_of('a');
    expect(f->store, &request, IDEM_MISMATCH);
    host_pass(&f->host, 86400000);
    run(f->store, &request, "a's");
    request.fingerprint = print_of('b');
    expect(f->store, &request, IDEM_MISMATCH);
}

/* ---- Said twice ---- */

/* The same end again succeeds; one with other content is LOST, and changes no answer. */
TEST(end, mayBeSaidTwice)
{
    int verb;
    int other;

    for (verb = 0; verb < VERBS - 1; verb++) {
        struct fixture f;
        struct idem_request request = claim("k");
        struct idem_attempt *attempt;
        enum idem_status status;

        open_virtual(&f);
        attempt = begin(f.store, &request, IDEM_STARTED);
        assert_ok(call_verb(verb, attempt));
        status = attempt->record->status;
        assert_ok(call_verb(verb, attempt));
        assert_ok(call_verb(verb, attempt));
        assert_int_equal(attempt->record->status, status);
        for (other = 0; other < VERBS; other++) {
            if (other != verb) {
                assert_code(IDEM_ELOST, call_verb(other, attempt));
                assert_int_equal(status_of(f.store, "k"), status);
            }
        }
        finish(&f);
    }
}

/* idem_end() is the verb of the status that it is given. */
TEST(end, isTheVerbOfItsStatus)
{
    int status;

    for (status = IDEM_STATUS_COMPLETED; status <= IDEM_STATUS_RELEASED;
         status++) {
        struct idem_outcome outcome = {
            .status = (enum idem_status)status,
            .text = idem_str("text"),
        };
        struct fixture f;
        struct idem_request request = claim("k");
        struct idem_attempt *attempt;
        const struct idem_record *record;

        open_virtual(&f);
        attempt = begin(f.store, &request, IDEM_STARTED);
        assert_ok(idem_end(attempt, &outcome, &why));
        record = attempt->record;
        assert_int_equal(record->status, status);
        assert_text(status == IDEM_STATUS_FAILED ? record->error : record->note,
                    "text");
        outcome.status = IDEM_STATUS_IN_PROGRESS;
        assert_code(IDEM_EINVALID, idem_end(attempt, &outcome, &why));
        finish(&f);
    }
}

/* A completed record never changes until its retention ends. */
TEST_VIRTUAL(end, changesNoCompletedRecord)
{
    struct idem_request request = claim("k");
    uint8_t before[4096];
    uint8_t after[4096];
    size_t len;
    int verb;
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);

    assert_ok(complete(attempt, "first"));
    len = stored_read(f, "k", HEAD, before, sizeof(before));
    host_pass(&f->host, 1000);
    for (verb = 0; verb < VERBS; verb++) {
        assert_code(IDEM_ELOST, call_verb(verb, attempt));
    }
    assert_ok(complete(attempt, "first"));
    expect(f->store, &request, IDEM_REPLAY);
    assert_int_equal(stored_read(f, "k", HEAD, after, sizeof(after)), len);
    assert_memory_equal(after, before, len);
    assert_int_equal(stored_read(f, "k", RESULT, after, sizeof(after)), 5);
    assert_memory_equal(after, "first", 5);
}

/* An owner may still correct an outcome that its lease decided, but it can no longer report
 * that nothing happened. */
TEST_VIRTUAL(end, setsRightWhatTheLeaseSaid)
{
    struct idem_request request = claim("k");
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);

    host_pass(&f->host, 60000);
    expect(f->store, &request, IDEM_UNKNOWN);
    assert_code(IDEM_ELOST, idem_release(attempt, idem_str(""), &why));
    assert_ok(complete(attempt, "it was paid"));
    assert_text(begin(f->store, &request, IDEM_REPLAY)->record->result.bytes,
                "it was paid");
}

/* ---- Gone ---- */

/* A key without a record cannot be read, ended or renewed. */
TEST_VIRTUAL(get, findsNothingWhereThereIsNothing)
{
    struct idem_answer *answer = NULL;

    assert_code(IDEM_ENOTFOUND,
                idem_get(f->store, idem_str(""), idem_str("k"), &answer, &why));
    assert_null(answer);
    idem_answer_destroy(NULL);
    assert_int_equal(count(f->store, NULL), 0);
}

/* The URL of a store that others can open opens this store. */
TEST(url, opensTheSameStore)
{
    struct fixture f;
    struct idem_request request = claim("k");
    struct idem_store *other;

    open_virtual(&f);
    if (!is_durable()) {
        assert_null(idem_store_url(f.store));
        assert_false(idem_store_is_remote(f.store));
        finish(&f);
        return;
    }
    run(f.store, &request, "kept");
    assert_true(strlen(idem_store_url(f.store)) <= IDEM_STORE_URL_MAX);
    assert_ok(idem_open(idem_store_url(f.store), &f.options, &other, &why));
    assert_string_equal(idem_store_url(other), idem_store_url(f.store));
    expect(other, &request, IDEM_REPLAY);
    idem_close(other);
    finish(&f);
}

/* The next handle finds everything that was answered. */
TEST(close, losesNothing)
{
    struct fixture f;
    struct idem_request request = claim("k");
    struct idem_request open = claim("open");
    char token[IDEM_TOKEN_MAX];

    if (!is_durable()) {
        test_skip("the store in memory goes with its handle");
    }
    open_virtual(&f);
    run(f.store, &request, "kept");
    assert_ok(idem_attempt_token(begin(f.store, &open, IDEM_STARTED), token));
    finish(&f);

    open_again(&f);
    assert_text(begin(f.store, &request, IDEM_REPLAY)->record->result.bytes,
                "kept");
    expect(f.store, &open, IDEM_BUSY);
    assert_ok(complete(by_token(f.store, token), "by token"));
    expect(f.store, &open, IDEM_REPLAY);
    finish(&f);
}
