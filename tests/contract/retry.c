/* Work that is to run again, because its owner or a person decided so. */
#include "contract.h"

#include <idem/operator.h>
#include <idem/queue.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

static int retry(struct idem_attempt *attempt)
{
    return idem_retry(attempt, idem_str("the bank was away"), &why);
}

static int reopen(struct fixture *f, uint64_t fence, const char *who)
{
    return idem_reopen(f->store, idem_str(""), idem_str("k"), fence,
                       idem_str(who), idem_str("the key file was missing"),
                       &why);
}

/* Leaves out the members that may differ on tables of other libraries. */
static const struct idem_record *shown_as(struct fixture *f,
                                          enum idem_status status)
{
    const struct idem_record *record = get(f->store, "k");

    assert_int_equal(idem_record_status(record), status);
    return record;
}

/* Under either policy the next caller starts at once, and learns that the work may have been
 * done; the attempt is over, and may only repeat its end. */
TEST(retry, isATakeoverAtOnce)
{
    int hold;

    for (hold = 0; hold < 2; hold++) {
        struct fixture f;
        struct idem_request request = hold ? claim("k") : rerun("k");
        struct idem_attempt *first;
        struct idem_attempt *second;
        const struct idem_record *record;
        int verb;

        open_virtual(&f);
        first = begin(f.store, &request, IDEM_STARTED);
        host_pass(&f.host, 1000);
        assert_ok(retry(first));
        assert_true(first->record->retry);
        assert_int_equal(idem_attempt_lease_left_ms(first), 0);
        assert_ok(retry(first));
        for (verb = 0; verb < VERBS; verb++) {
            assert_code(IDEM_ELOST, call_verb(verb, first));
        }
        assert_code(IDEM_ELOST, idem_expire(first, &why));
        assert_why("retry");

        second = begin(f.store, &request, IDEM_STARTED);
        record = second->record;
        assert_true(second->takeover);
        assert_true(second->fence > first->fence);
        assert_int_equal(second->attempts, 2);
        assert_int_equal(record->retried, 1);
        assert_false(record->retry);
        assert_int_equal(record->history[0].end, IDEM_PAST_RETRIED);
        assert_code(IDEM_ELOST, retry(first));
        expect(f.store, &request, IDEM_BUSY);
        assert_ok(complete(second, "done"));
        expect(f.store, &request, IDEM_REPLAY);
        finish(&f);
    }
}

/* The retry is on record with its reason, through idem_end() and through a token. */
TEST(retry, isOnRecord)
{
    int carried;

    for (carried = 0; carried < 2; carried++) {
        struct idem_outcome outcome = {
            .status = IDEM_STATUS_RETRY,
            .text = idem_str("the bank was away"),
            .result = {.bytes = idem_str("no route to host"),
                       .meta = idem_str("exit 7\n")},
        };
        struct idem_request request = claim("k");
        struct idem_attempt *attempt;
        const struct idem_record *record;
        struct fixture f;
        char token[IDEM_TOKEN_MAX];

        open_virtual(&f);
        attempt = begin(f.store, &request, IDEM_STARTED);
        assert_ok(idem_attempt_token(attempt, token));
        assert_ok(idem_end(carried ? by_token(f.store, token) : attempt,
                           &outcome, &why));
        record = shown_as(&f, IDEM_STATUS_RETRY);
        assert_int_equal(record->status, IDEM_STATUS_IN_PROGRESS);
        assert_text(record->note, "the bank was away");
        assert_text(record->result.bytes, "no route to host");
        assert_text(record->result.meta, "exit 7\n");
        finish(&f);
    }
}

/* People can read its result until the next attempt ends, whatever that one brings and
 * however large it is; neither the next owner nor another caller gets it. */
TEST(retry, leavesWhatItCameTo)
{
    static char output[100000];
    static const struct idem_slice inputs[] = {{NULL, 0}, {"another", 7}};

    memset(output, 'x', sizeof(output));
    EACH(row, inputs) {
        struct idem_outcome outcome = {
            .status = IDEM_STATUS_RETRY,
            .result = {.bytes = idem_bytes(output, sizeof(output))},
        };
        struct idem_request request = rerun("k");
        struct idem_attempt *attempt;
        struct fixture f;

        request.input = idem_str("the first");
        open_virtual(&f);
        assert_ok(
            idem_end(begin(f.store, &request, IDEM_STARTED), &outcome, &why));
        request.input = *row;
        attempt = begin(f.store, &request, IDEM_STARTED);
        assert_int_equal(attempt->record->result.bytes.len, 0);
        assert_text(attempt->record->input,
                    row->len > 0 ? "another" : "the first");
        expect(f.store, &request, IDEM_BUSY);
        assert_ok(idem_renew(attempt, 0, &why));
        assert_int_equal(
            shown_as(&f, IDEM_STATUS_IN_PROGRESS)->result.bytes.len,
            sizeof(output));
        assert_ok(complete(attempt, "done"));
        assert_text(begin(f.store, &request, IDEM_REPLAY)->record->result.bytes,
                    "done");
        finish(&f);
    }
}

/* ---- A budget of failures, and a pause ---- */

static int fail_once(struct idem_attempt *attempt, uint32_t failures_max,
                     int64_t retry_after_ms)
{
    struct idem_outcome outcome = {
        .status = IDEM_STATUS_RETRY,
        .text = idem_str("the bank was away"),
        .failures_max = failures_max,
        .retry_after_ms = retry_after_ms,
    };

    return idem_end(attempt, &outcome, &why);
}

/* The third of three failures needs a person, whatever came in between: a release, or an
 * attempt that died. A repeated end counts once. A person's decision begins a new count. The
 * counters have the last one as failed, as its record is. */
TEST(budget, isExact)
{
    struct idem_counters n = IDEM_COUNTERS_INIT;
    struct idem_request request = rerun("k");
    struct idem_attempt *attempt;
    struct fixture f;
    uint32_t i;

    open_virtual(&f);
    for (i = 1; i <= 3; i++) {
        assert_ok(idem_release(begin(f.store, &request, IDEM_STARTED),
                               idem_str(""), &why));
        expect(f.store, &request, IDEM_STARTED);
        host_pass(&f.host, 60000 + traits()->other_boot_ms);
        attempt = begin(f.store, &request, IDEM_STARTED);
        assert_int_equal(attempt->record->failures, i - 1);
        assert_ok(fail_once(attempt, 3, 0));
        assert_ok(fail_once(attempt, 3, 0));
        assert_int_equal(attempt->record->failures, i);
    }
    attempt = begin(f.store, &request, IDEM_FAILED);
    assert_text(attempt->record->error, "the bank was away");
    assert_ok(reopen(&f, attempt->fence, "ann"));
    assert_ok(fail_once(begin(f.store, &request, IDEM_STARTED), 3, 0));
    assert_int_equal(shown_as(&f, IDEM_STATUS_RETRY)->failures, 1);
    assert_ok(idem_count(f.store, &n, &why));
    assert_int_equal(n.retried, 3);
    assert_int_equal(n.failed, 1);
    finish(&f);
}

/* No attempt starts in a pause, and every caller learns how long it lasts; waiters wait. */
TEST(pause, keepsEverybodyAway)
{
    struct idem_request request = claim("k");
    struct idem_attempt *attempt;
    struct fixture f;

    open_virtual(&f);
    attempt = begin(f.store, &request, IDEM_STARTED);
    host_pass(&f.host, 1000);
    assert_ok(fail_once(attempt, 0, 600000));
    assert_int_equal(idem_attempt_lease_left_ms(attempt), 0);
    host_pass(&f.host, 300000);
    attempt = begin(f.store, &request, IDEM_BUSY);
    assert_in_range(attempt->lease_left_ms, 299000,
                    300000 + traits()->other_boot_ms);
    assert_true(attempt->record->retry);
    request.wait_ms = 10000;
    expect(f.store, &request, IDEM_BUSY);
    request.wait_ms = 3600000;
    request.flags = IDEM_WAIT_THEN_RUN;
    attempt = begin(f.store, &request, IDEM_STARTED);
    assert_true(attempt->takeover);
    assert_true(attempt->record->started_ms -
                    attempt->record->history[0].ended_ms >=
                600000);
    assert_ok(complete(attempt, "done"));
    finish(&f);
}

/* A person's decision ends the pause. */
TEST(pause, isEndedByAPerson)
{
    struct idem_request request = claim("k");
    struct idem_attempt *attempt;
    struct fixture f;

    open_virtual(&f);
    attempt = begin(f.store, &request, IDEM_STARTED);
    assert_ok(fail_once(attempt, 0, DAY_MS));
    assert_ok(reopen(&f, attempt->fence, "ann"));
    expect(f.store, &request, IDEM_STARTED);
    finish(&f);
}

/* Retries go on for ever: the cap counts only attempts that end without a report. */
TEST_VIRTUAL(retry, isNeverGivenUp)
{
    struct idem_request request = rerun("k");
    int i;

    request.attempts_max = 2;
    for (i = 1; i <= 12; i++) {
        struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);

        assert_int_equal(attempt->attempts, i);
        assert_int_equal(attempt->takeover, i > 1);
        assert_ok(retry(attempt));
    }
    for (i = 0; i < 2; i++) {
        expect(f->store, &request, IDEM_STARTED);
        host_pass(&f->host, 60000);
    }
    expect(f->store, &request, IDEM_FAILED);
}

/* A waiter is told to begin again, or runs the work itself if it asked for that. */
TEST(retry, isToldToWaiters)
{
    int then_run;

    for (then_run = 0; then_run < 2; then_run++) {
        struct fixture f;
        struct idem_request request = claim("k");
        struct idem_attempt *attempt;
        struct idem_op *op;
        struct idem_queue *queue;

        open_virtual(&f);
        attempt = begin(f.store, &request, IDEM_STARTED);
        assert_ok(retry(attempt));
        if (then_run) {
            request.flags = IDEM_WAIT_THEN_RUN;
        } else {
            request.join_fence = attempt->fence;
        }
        assert_ok(idem_op_begin(&request, &op, &why));
        assert_ok(idem_queue_create(f.store, &queue, &why));
        assert_ok(idem_queue_submit(queue, op, &why));
        assert_ptr_equal(idem_queue_reap(queue, -1), op);
        assert_code(IDEM_OK, idem_op_code(op));
        assert_int_equal(idem_op_verdict(op),
                         then_run ? IDEM_STARTED : IDEM_BUSY);
        idem_op_destroy(op);
        idem_queue_destroy(queue);
        finish(&f);
    }
}

/* A list shows it as retry and as in progress, and as overdue only after the time at which
 * it was expected. */
TEST_VIRTUAL(retry, isListed)
{
    struct idem_request request = rerun("k");
    struct idem_request other = rerun("other");
    struct idem_filter filter = IDEM_FILTER_INIT;

    request.expect_ms = 90000;
    expect(f->store, &other, IDEM_STARTED);
    assert_ok(retry(begin(f->store, &request, IDEM_STARTED)));
    filter.statuses = 1u << IDEM_STATUS_RETRY;
    assert_int_equal(count(f->store, &filter), 1);
    filter.statuses = 1u << IDEM_STATUS_IN_PROGRESS;
    assert_int_equal(count(f->store, &filter), 2);
    filter.statuses = 0;
    filter.overdue = true;
    host_pass(&f->host, 1000);
    assert_int_equal(count(f->store, &filter), 0);
    host_pass(&f->host, 90000 + traits()->other_boot_ms);
    assert_int_equal(count(f->store, &filter), 2);
}

/* Under rerun it expires a retention after its end, under hold never. */
TEST(retry, expiresUnderRerunAlone)
{
    int hold;

    for (hold = 0; hold < 2; hold++) {
        struct fixture f;
        struct idem_request request = hold ? claim("k") : rerun("k");
        struct idem_attempt *attempt;

        request.retention_ms = 3 * DAY_MS;
        open_virtual(&f);
        assert_ok(retry(begin(f.store, &request, IDEM_STARTED)));
        host_pass(&f.host, 3 * DAY_MS - 1000);
        (void)shown_as(&f, IDEM_STATUS_RETRY);
        host_pass(&f.host, 10000);
        attempt = begin(f.store, &request, IDEM_STARTED);
        assert_int_equal(attempt->takeover, hold);
        assert_int_equal(attempt->attempts, hold ? 2 : 1);
        finish(&f);
    }
}

/* ---- Reopened ---- */

/* Reopened work runs again, for another request too and however late, and its new result is
 * then replayed. */
TEST(reopen, letsItRunAgain)
{
    static const int verbs[] = {0, 1, 3}; /* Completed, failed, unknown. */

    EACH(verb, verbs) {
        static const uint8_t prints[2][IDEM_FINGERPRINT_LEN] = {{1, 'a'},
                                                                {1, 'b'}};
        struct fixture f;
        struct idem_request request = claim("k");
        struct idem_attempt *attempt;
        const struct idem_record *answer;
        uint64_t fence;

        open_virtual(&f);
        request.fingerprint = idem_bytes(prints[0], IDEM_FINGERPRINT_LEN);
        attempt = begin(f.store, &request, IDEM_STARTED);
        fence = attempt->fence;
        assert_ok(call_verb(*verb, attempt));
        assert_code(IDEM_ELOST, reopen(&f, fence + 1, "ann"));
        assert_ok(reopen(&f, fence, "ann"));
        assert_ok(reopen(&f, fence, "ann"));
        assert_code(IDEM_EINVALID, reopen(&f, fence, "bob"));
        assert_code(IDEM_ELOST, complete(attempt, "late"));
        answer = shown_as(&f, IDEM_STATUS_RETRY);
        assert_text(answer->note, "the key file was missing");
        assert_text(answer->history[0].owner, "ann");
        assert_int_equal(answer->history[0].end, IDEM_PAST_REOPENED);

        host_pass(&f.host, 3650 * DAY_MS);
        request.fingerprint = idem_bytes(prints[1], IDEM_FINGERPRINT_LEN);
        attempt = begin(f.store, &request, IDEM_STARTED);
        assert_true(attempt->takeover);
        assert_int_equal(attempt->fence, fence + 1);
        assert_ok(complete(attempt, "mended"));
        assert_text(begin(f.store, &request, IDEM_REPLAY)->record->result.bytes,
                    "mended");
        request.fingerprint = idem_bytes(prints[0], IDEM_FINGERPRINT_LEN);
        expect(f.store, &request, IDEM_MISMATCH);
        finish(&f);
    }
}

/* Only the same request may follow a retry, until a person reopens the record; then another
 * request learns that the work may have been done. */
TEST_VIRTUAL(reopen, letsAnotherRequestFollowARetry)
{
    static const uint8_t prints[2][IDEM_FINGERPRINT_LEN] = {{1, 'a'}, {1, 'b'}};
    struct idem_request request = claim("k");
    struct idem_attempt *attempt;
    uint64_t fence;

    request.fingerprint = idem_bytes(prints[0], IDEM_FINGERPRINT_LEN);
    attempt = begin(f->store, &request, IDEM_STARTED);
    fence = attempt->fence;
    assert_ok(retry(attempt));
    request.fingerprint = idem_bytes(prints[1], IDEM_FINGERPRINT_LEN);
    expect(f->store, &request, IDEM_MISMATCH);
    assert_ok(reopen(f, fence, "ann"));
    assert_ok(reopen(f, fence, "ann"));
    assert_code(IDEM_ELOST, retry(attempt));
    attempt = begin(f->store, &request, IDEM_STARTED);
    assert_true(attempt->takeover);
    assert_int_equal(attempt->fence, fence + 1);
    assert_ok(complete(attempt, "mended"));
    expect(f->store, &request, IDEM_REPLAY);
}

/* A person cannot reopen a record that may run anyway, one in progress, or one that does not
 * exist. */
TEST_VIRTUAL(reopen, isRefused)
{
    struct idem_request request = claim("k");
    uint64_t fence;

    assert_code(IDEM_ENOTFOUND, reopen(f, 1, "ann"));
    fence = begin(f->store, &request, IDEM_STARTED)->fence;
    assert_code(IDEM_EINVALID, reopen(f, fence, "ann"));
    assert_why("s more");
    host_pass(&f->host, 60000);
    assert_ok(reopen(f, fence, "ann"));
    assert_code(IDEM_EINVALID, reopen(f, fence, "bob"));
    assert_why("already");
}

/* The counters have both: the retries of owners as retried, those of persons as resolved. */
TEST_VIRTUAL(retry, isCounted)
{
    struct idem_counters n = IDEM_COUNTERS_INIT;
    struct idem_request request = claim("k");
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);

    assert_ok(retry(attempt));
    assert_ok(retry(attempt)); /* A copy. */
    attempt = begin(f->store, &request, IDEM_STARTED);
    assert_ok(complete(attempt, "x"));
    assert_ok(reopen(f, attempt->fence, "ann"));
    assert_ok(idem_count(f->store, &n, &why));
    assert_int_equal(n.retried, 1);
    assert_int_equal(n.takeovers, 1);
    assert_int_equal(n.resolved, 1);
}

/* ---- A lease that runs ---- */

/* Being late is no proof of being dead: only force ends the attempt of an owner
 * whose lease runs. */
TEST_VIRTUAL(resolve, takesForceWhileTheLeaseRuns)
{
    struct idem_outcome released = {.status = IDEM_STATUS_RELEASED};
    struct idem_request request = claim("k");
    struct idem_attempt *attempt;
    struct idem_slice none = idem_str("");

    request.expect_ms = 1;
    request.owner = idem_str("ann@host");
    attempt = begin(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 3000);
    assert_code(IDEM_EINVALID,
                idem_resolve(f->store, none, request.key, attempt->fence,
                             idem_str("bob"), &released, /* flags= */ 0, &why));
    assert_why("the lease of ann@host runs");
    assert_ok(idem_renew(attempt, 0, &why));
    assert_ok(idem_resolve(f->store, none, request.key, attempt->fence,
                           idem_str("bob"), &released, IDEM_RESOLVE_FORCE,
                           &why));
    assert_code(IDEM_ELOST, idem_renew(attempt, 0, &why));
}

/* ---- What may have happened ---- */

/* An attempt that died may have done the work. The record remembers that for the retention of
 * that attempt, although its successor did nothing and gave the key back. */
TEST_VIRTUAL(doubt, outlivesARelease)
{
    struct idem_request request = rerun("k");
    struct idem_attempt *attempt;

    request.retention_ms = 30 * DAY_MS;
    expect(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 60000 + traits()->other_boot_ms);
    request.retention_ms = DAY_MS;
    attempt = begin(f->store, &request, IDEM_STARTED);
    assert_true(attempt->takeover);
    assert_ok(idem_release(attempt, idem_str("no connection"), &why));

    host_pass(&f->host, 29 * DAY_MS);
    assert_ok(idem_purge(f->store, 0, NULL, &why));
    attempt = begin(f->store, &request, IDEM_STARTED);
    assert_true(attempt->takeover);
    assert_int_equal(attempt->attempts, 3);
    assert_true(attempt->record->retention_ms == 30 * DAY_MS);
}

/* ---- Clocks ---- */

/* A lease by a clock that was a year ahead keeps others away for its length and half an hour
 * at most; its owner goes on, and no attempt starts meanwhile. */
TEST_VIRTUAL(lease, ofAFastClockIsBounded)
{
    struct idem_request request = claim("k");
    const struct idem_record *record;
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);
    struct idem_record copy = *attempt->record;

    copy.fence++;
    copy.lease_end_ms += 365 * DAY_MS;
    memset(copy.boot_id, 'X', sizeof(copy.boot_id));
    assert_ok(idem_release(attempt, idem_str(""), &why));
    copy.scope = idem_str("");
    copy.key = idem_str("k");
    copy.owner = idem_str("ahead");
    assert_ok(idem_import(f->store, &copy, NULL, &why));

    expect(f->store, &request, IDEM_BUSY);
    record = get(f->store, "k");
    assert_true(record->lease_end_ms <= HOST_WALL_MS + 32 * 60000);
    assert_true(record->lease_end_ms >= HOST_WALL_MS + 60000);
    assert_memory_equal(record->nonce, copy.nonce, sizeof(copy.nonce));
    assert_int_equal(record->fence, copy.fence);
    assert_int_equal(record->attempts, 1);
    host_pass(&f->host, 33 * 60000);
    expect(f->store, &request, IDEM_UNKNOWN);
}
