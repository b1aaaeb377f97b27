/* Retention and leases, to the millisecond. */
#include "core/decide.h"
#include "sample.h"
#include "test.h"

/* A record is there one millisecond before its retention ends, and not at it. */
TEST(expired, isExact)
{
    static const struct {
        int64_t past_ms;
        int64_t error_ms;
        bool want;
    } rows[] = {
        {-1, 0, false}, {0, 0, true},       {1, 0, true},
        {0, 1, false},  {999, 1000, false}, {1000, 1000, true},
    };

    EACH(row, rows) {
        struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 0);
        struct idem_now now = sample_now();

        record.expires_ms = NOW_MS - row->past_ms;
        now.store_err_ms = row->error_ms;
        assert_int_equal(idem__decide_expired(&record, &now), row->want);
    }
}

/* What never expires does not do so at the end of time either. */
TEST(expired, isNeverWithoutAnEnd)
{
    struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 0);
    struct idem_now now = sample_now();

    record.expires_ms = IDEM_NEVER;
    now.store_ms = IDEM_NEVER;
    assert_false(idem__decide_expired(&record, &now));
    record.expires_ms = IDEM_NEVER - 1;
    assert_true(idem__decide_expired(&record, &now));
}

/* Which end of an attempt gives which end of retention. */
TEST(expiry, followsTheStatus)
{
    static const struct {
        enum idem_status status;
        int64_t retention_ms;
        int64_t want_ms;
    } rows[] = {
        {IDEM_STATUS_COMPLETED, 1, NOW_MS + 7 + 1},
        {IDEM_STATUS_COMPLETED, 600000, NOW_MS + 7 + 600000},
        {IDEM_STATUS_COMPLETED, IDEM_NEVER, IDEM_NEVER},
        {IDEM_STATUS_COMPLETED, IDEM_NEVER - 1, IDEM_NEVER},
        {IDEM_STATUS_RELEASED, 1, NOW_MS + 7 + 86400000},
        {IDEM_STATUS_RELEASED, IDEM_NEVER, NOW_MS + 7 + 86400000},
        {IDEM_STATUS_FAILED, 1, IDEM_NEVER},
        {IDEM_STATUS_UNKNOWN, 1, IDEM_NEVER},
    };

    EACH(row, rows) {
        struct idem_record record = sample_record();
        struct idem_outcome outcome = {.status = row->status};
        struct idem_now now = sample_now();

        record.retention_ms = row->retention_ms;
        now.store_err_ms = 7;
        assert_ok(idem__outcome_set(&record, &outcome, &now));
        assert_true(record.expires_ms == row->want_ms);
        assert_int_equal(record.ended_ms, NOW_MS);
    }
}

/* An open record under rerun is forgotten a retention after its lease; one that
 * is held never. */
TEST(expiry, ofOpenRecordsFollowsThePolicy)
{
    struct idem_record record = sample_record();
    struct idem_now now = sample_now();

    record.on_expired_lease = IDEM_RERUN;
    record.retention_ms = 100;
    idem__lease_set(&record, 5000, &now);
    assert_true(record.expires_ms == NOW_MS + 5100);
    record.on_expired_lease = IDEM_HOLD;
    idem__lease_set(&record, 5000, &now);
    assert_true(record.expires_ms == IDEM_NEVER);
}

/* ---- Leases ---- */

/* Under uncertain store time a lease ends no earlier than its owner counts. */
TEST(lease, isSetByTheUpperBound)
{
    struct idem_record record = sample_record();
    struct idem_now now = sample_now();

    now.store_err_ms = 300;
    now.boot_id[0] = 'C';
    idem__lease_set(&record, 5000, &now);
    assert_int_equal(record.lease_ms, 5000);
    assert_true(record.lease_end_ms == NOW_MS + 5300);
    assert_true(record.lease_end_boot_ms == NOW_BOOT_MS + 5000);
    assert_memory_equal(record.boot_id, now.boot_id, 16);
}

/* An extension never brings the end nearer, by no clock. */
TEST(lease, isOnlyEverExtended)
{
    static const struct {
        int64_t left_ms;
        int64_t lease_ms;
        int64_t want_ms;     /* Left afterwards. */
        int64_t lease_is_ms; /* An end that stays keeps its length: 60000. */
    } rows[] = {
        {50000, 60000, 60000, 60000},
        {50000, 2000, 50000, 60000},
        {0, 2000, 2000, 2000},
        {-100000, 2000, 2000, 2000},
        {50000, IDEM_NEVER, IDEM_NEVER, IDEM_NEVER},
        {2000, 2000, 2000, 2000},
    };
    int boots;

    for (boots = 1; boots <= 2; boots++) {
        EACH(row, rows) {
            struct idem_record record = sample_record();
            struct idem_now now = sample_now();
            int64_t end_ms;

            sample_lease(&record, row->left_ms);
            now.margin_ms = 0;
            now.boot_id[0] = boots == 1 ? 'A' : 'B';
            end_ms = record.lease_end_ms;
            idem__lease_extend(&record, row->lease_ms, &now);
            assert_true(idem__lease_left(&record, &now) == row->want_ms);
            assert_true(record.lease_end_ms >= end_ms);
            assert_true(record.lease_ms == row->lease_is_ms);
            assert_memory_equal(record.boot_id, now.boot_id, 16);
        }
    }
}

/* Store time that was less certain when the lease was set put its end later; a
 * renewal does not bring it nearer by being certain. */
TEST(lease, isNotShortenedByCertainty)
{
    struct idem_record record = sample_record();
    struct idem_now now = sample_now();
    int64_t end_ms;

    record.on_expired_lease = IDEM_RERUN;
    now.store_err_ms = 3000;
    idem__lease_set(&record, 5000, &now);
    end_ms = record.lease_end_ms;
    now.store_err_ms = 0;
    idem__lease_extend(&record, 5000, &now);
    assert_true(record.lease_end_ms == end_ms);
    assert_true(record.expires_ms == end_ms + record.retention_ms);
}

/* A lease without an end stays one, whatever it is renewed by. */
TEST(lease, staysWithoutAnEnd)
{
    struct idem_record record = sample_record();
    struct idem_now now = sample_now();

    record.lease_ms = record.lease_end_ms = IDEM_NEVER;
    record.lease_end_boot_ms = IDEM_NEVER;
    idem__lease_extend(&record, 2000, &now);
    assert_true(record.lease_end_ms == IDEM_NEVER);
    assert_true(idem__lease_left(&record, &now) == IDEM_NEVER);
}
