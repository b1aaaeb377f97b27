/* What a claim means for the record that is there: all combinations, against a second
 * telling of the table of verdicts. */
#include "core/decide.h"
#include "core/identity.h"
#include "sample.h"
#include "test.h"

static const char fingerprint_a[] = "\1aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char fingerprint_b[] = "\1bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

static struct idem_slice fingerprint(char which)
{
    switch (which) {
    case 'a':
        return idem_bytes(fingerprint_a, IDEM_FINGERPRINT_LEN);
    case 'b':
        return idem_bytes(fingerprint_b, IDEM_FINGERPRINT_LEN);
    default:
        return idem_bytes(NULL, 0);
    }
}

/* A note that a decision makes lies in the decision itself. */
static struct idem_decision decide(const struct idem_record *found,
                                   const struct idem_op *op,
                                   const struct idem_now *now)
{
    static struct idem_decision decision;

    memset(&decision, 0x5a, sizeof(decision));
    idem__decide_begin(found, op, now, &decision);
    assert_code(IDEM_OK, decision.code);
    return decision;
}

static struct idem_decision decide_now(const struct idem_record *found,
                                       const struct idem_op *op)
{
    struct idem_now now = sample_now();

    return decide(found, op, &now);
}

/* ---- Started ---- */

/* Nothing there: the record of a first attempt is inserted, with all that the
 * request says and times from the store. */
TEST(begin, startsWhereThereIsNothing)
{
    struct idem_op op = sample_begin();
    struct idem_now now = sample_now();
    struct idem_decision decision;
    struct idem_record want = {
        .scope = idem_str("shop"),
        .key = idem_str("order-42"),
        .status = IDEM_STATUS_IN_PROGRESS,
        .on_expired_lease = IDEM_RERUN,
        .owner = idem_str("host/2"),
        .fence = NOW_MS,
        .attempts = 1,
        .created_ms = NOW_MS,
        .started_ms = NOW_MS,
        .lease_ms = 30000,
        .lease_end_ms = NOW_MS + 30000,
        .lease_end_boot_ms = NOW_BOOT_MS + 30000,
        .expected_ms = NOW_MS + 7000,
        .expires_ms = NOW_MS + 30000 + 600000,
        .retention_ms = 600000,
        .fingerprint = fingerprint('a'),
        .input_len = 4,
    };

    op.u.begin.on_expired_lease = IDEM_RERUN;
    op.u.begin.lease_ms = 30000;
    op.u.begin.retention_ms = 600000;
    op.u.begin.expect_ms = 7000;
    op.u.begin.fingerprint = fingerprint('a');
    op.u.begin.input = idem_str("work");
    memcpy(want.id, op.id, sizeof(want.id));
    memcpy(want.nonce, op.nonce, sizeof(want.nonce));
    memcpy(want.boot_id, now.boot_id, sizeof(want.boot_id));
    assert_ok(idem__body_digest(op.u.begin.input, want.input_digest));

    decision = decide(NULL, &op, &now);
    assert_int_equal(decision.verdict, IDEM_STARTED);
    assert_int_equal(decision.change, IDEM_CHANGE_INSERT);
    assert_false(decision.takeover);
    assert_true(decision.set_result && decision.set_input);
    assert_text(decision.next.input, "work");
    assert_same_record(&decision.next, &want);
}

/* However often others gave the key back since: while no person has looked, an
 * attempt that stopped without a word is not forgotten. */
TEST(begin, remembersThatItMayHaveHappened)
{
    struct idem_record record = sample_record();
    struct idem_op op = sample_begin();
    int i;

    op.u.begin.attempts_max = 0;
    op.u.begin.on_expired_lease = IDEM_RERUN;
    record.on_expired_lease = IDEM_RERUN;
    sample_lease(&record, 0);
    for (i = 0; i < 3 * IDEM_HISTORY_MAX; i++) {
        uint64_t before = record.fence;
        struct idem_decision decision;

        memset(op.nonce, i + 1, sizeof(op.nonce));
        decision = decide_now(&record, &op);
        assert_int_equal(decision.verdict, IDEM_STARTED);
        assert_true(decision.takeover);
        record = decision.next;
        assert_int_equal(record.history[record.history_len - 1].fence, 41);
        assert_int_equal(record.history[0].fence, before);
        record.status = IDEM_STATUS_RELEASED;
        record.expires_ms = NOW_MS + 1;
    }

    /* An older one makes room once there is a newer one. */
    record.status = IDEM_STATUS_IN_PROGRESS;
    sample_lease(&record, 0);
    memset(op.nonce, 'z', sizeof(op.nonce));
    record = decide_now(&record, &op).next;
    assert_int_equal(record.history_len, IDEM_HISTORY_MAX);
    assert_int_equal(record.history[0].end, IDEM_PAST_TAKEN_OVER);
    assert_int_equal(record.history[IDEM_HISTORY_MAX - 1].end,
                     IDEM_PAST_RELEASED);
}

/* With a doubt that is told twice, the oldest entry makes room as ever. */
TEST(begin, forgetsADoubtThatAnotherTells)
{
    struct idem_record found = sample_ended(IDEM_STATUS_RELEASED, 3600000);
    struct idem_op op = sample_begin();
    struct idem_decision decision;
    size_t i;

    found.history_len = IDEM_HISTORY_MAX;
    for (i = 0; i < IDEM_HISTORY_MAX; i++) {
        found.history[i].fence = 40 - i;
        found.history[i].end = i == 3 || i == IDEM_HISTORY_MAX - 1
                                   ? IDEM_PAST_TAKEN_OVER
                                   : IDEM_PAST_RELEASED;
    }
    decision = decide_now(&found, &op);
    assert_true(decision.takeover);
    assert_int_equal(decision.next.history[IDEM_HISTORY_MAX - 1].fence,
                     40 - (IDEM_HISTORY_MAX - 2));
}

/* So many attempts that they cannot be counted are not few. */
TEST(begin, doesNotCountRound)
{
    struct idem_record found = sample_record();
    struct idem_op op = sample_begin();

    op.u.begin.attempts_max = 0;
    found.on_expired_lease = op.u.begin.on_expired_lease = IDEM_RERUN;
    found.attempts = UINT32_MAX;
    sample_lease(&found, 0);
    assert_true(decide_now(&found, &op).next.attempts == UINT32_MAX);
    found.status = IDEM_STATUS_RELEASED;
    found.expires_ms = NOW_MS + 1;
    assert_true(decide_now(&found, &op).next.attempts == UINT32_MAX);
}

/* ---- Fences ---- */

/* A new life's fence is the store's time, or one more than any that the key may
 * have had; a takeover's is one more than the record's. */
TEST(fence, onlyGrows)
{
    static const struct {
        const char *what;
        int64_t store_ms;
        uint64_t found;
        uint64_t floor;
        uint64_t want;
    } rows[] = {
        {"time alone", NOW_MS, 0, 0, NOW_MS},
        {"time above both", NOW_MS, NOW_MS - 1, NOW_MS - 1, NOW_MS},
        {"as high as the record's", NOW_MS, NOW_MS, 0, NOW_MS + 1},
        {"the record's is higher", NOW_MS, NOW_MS + 9, 0, NOW_MS + 10},
        {"as high as the floor", NOW_MS, 0, NOW_MS, NOW_MS + 1},
        {"the floor is higher", NOW_MS, 5, NOW_MS + 9, NOW_MS + 10},
        {"record above floor", NOW_MS, NOW_MS + 20, NOW_MS + 9, NOW_MS + 21},
        {"no time at all", 0, 0, 0, 1},
    };

    EACH(row, rows) {
        struct idem_record found = sample_ended(IDEM_STATUS_COMPLETED, 0);
        struct idem_op op = sample_begin();
        struct idem_now now = sample_now();
        struct idem_decision decision;

        found.expires_ms = 0;
        found.fence = row->found;
        now.store_ms = row->store_ms;
        now.fence_floor = row->floor;
        decision = decide(row->found == 0 ? NULL : &found, &op, &now);
        assert_int_equal(decision.verdict, IDEM_STARTED);
        if (decision.next.fence != row->want) {
            fail_with("%s: fence %llu", row->what,
                      (unsigned long long)decision.next.fence);
        }
    }
}

/* A takeover's fence is one more than the record's, unless that would undercut
 * one that was purged. */
TEST(fence, growsWithATakeover)
{
    static const struct {
        uint64_t floor;
        uint64_t want;
    } rows[] = {{0, 42}, {40, 42}, {41, 42}, {42, 43}, {NOW_MS, NOW_MS + 1}};

    EACH(row, rows) {
        struct idem_record found = sample_record();
        struct idem_op op = sample_begin();
        struct idem_now now = sample_now();

        found.on_expired_lease = op.u.begin.on_expired_lease = IDEM_RERUN;
        sample_lease(&found, 0);
        now.fence_floor = row->floor;
        assert_true(decide(&found, &op, &now).next.fence == row->want);
    }
}

/* Above the highest that a record can have there is none: a claim, a takeover and a new
 * life are refused, and nothing is written that could not be read. */
TEST(fence, isRefusedWhereNoneIsLeft)
{
    struct idem_record found = sample_record();
    struct idem_op op = sample_begin();
    struct idem_now now = sample_now();
    struct idem_decision decision;

    now.fence_floor = INT64_MAX - 1;
    assert_true(decide(NULL, &op, &now).next.fence == INT64_MAX);
    now.fence_floor = INT64_MAX;
    idem__decide_begin(NULL, &op, &now, &decision);
    assert_code(IDEM_ECORRUPT, decision.code);
    assert_int_equal(decision.change, IDEM_CHANGE_NONE);
    assert_non_null(strstr(decision.text, "9223372036854775807, above"));

    now.fence_floor = 0;
    found.on_expired_lease = op.u.begin.on_expired_lease = IDEM_RERUN;
    sample_lease(&found, 0);
    found.fence = INT64_MAX - 1;
    assert_true(decide(&found, &op, &now).next.fence == INT64_MAX);
    found.fence = INT64_MAX;
    idem__decide_begin(&found, &op, &now, &decision);
    assert_code(IDEM_ECORRUPT, decision.code);
    assert_int_equal(decision.change, IDEM_CHANGE_NONE);

    found = sample_ended(IDEM_STATUS_RELEASED, 0);
    found.fence = INT64_MAX;
    idem__decide_begin(&found, &op, &now, &decision);
    assert_code(IDEM_ECORRUPT, decision.code);
    assert_int_equal(decision.change, IDEM_CHANGE_NONE);
}

/* ---- The table of verdicts ---- */

enum clock {
    SAME_BOOT,
    OTHER_BOOT, /* Well past the margin where the lease is over. */
    IN_MARGIN,  /* Another boot; over, but by less than the margin. */
    IN_ERROR,   /* Another boot; over, but not for certain. */
    CLOCKS,
};

struct row {
    enum idem_status status; /* 0: nothing there. */
    bool past;               /* Its lease or retention is over. */
    enum idem_on_expired_lease found;
    enum idem_on_expired_lease asked;
    char found_print; /* ' ' for none. */
    char asked_print;
    enum clock clock;
    bool capped;
    bool joins;
    enum idem_verdict want;
    enum idem_status next; /* 0: nothing is written. */
    bool takeover;
};

#define NOTHING ((enum idem_status)0)
#define IN_PROGRESS IDEM_STATUS_IN_PROGRESS
#define COMPLETED IDEM_STATUS_COMPLETED
#define FAILED IDEM_STATUS_FAILED
#define UNKNOWN IDEM_STATUS_UNKNOWN
#define RELEASED IDEM_STATUS_RELEASED
#define RERUN IDEM_RERUN
#define HOLD IDEM_HOLD

/* The record of @row, found by a clock that makes its lease live or over. */
static struct idem_record record_of(const struct row *row)
{
    struct idem_record record =
        sample_ended(row->status, row->past ? 0 : 60000);

    record.on_expired_lease = row->found;
    record.fingerprint = fingerprint(row->found_print);
    record.attempts = row->capped ? 5 : 4;
    sample_lease(&record, row->past ? 0 : 30000);
    if (row->clock != SAME_BOOT) {
        record.boot_id[0] = 'B';
        record.lease_end_boot_ms = 1; /* Must not be looked at. */
    }
    return record;
}

static struct idem_now now_of(const struct row *row)
{
    struct idem_now now = sample_now();

    if (!row->past || row->status != IDEM_STATUS_IN_PROGRESS) {
        return now;
    }
    switch (row->clock) {
    case OTHER_BOOT:
        now.store_ms += now.margin_ms;
        break;
    case IN_MARGIN:
        now.store_ms += now.margin_ms - 1;
        break;
    case IN_ERROR:
        now.store_ms += now.margin_ms + 999;
        now.store_err_ms = 1000;
        break;
    case SAME_BOOT:
    case CLOCKS:
        break;
    }
    return now;
}

static struct idem_op op_of(const struct row *row)
{
    struct idem_op op = sample_begin();

    op.u.begin.on_expired_lease = row->asked;
    op.u.begin.fingerprint = fingerprint(row->asked_print);
    op.u.begin.join_fence = row->joins ? 41 : 0;
    return op;
}

static const char *words_of(const struct row *row)
{
    static char words[160];
    static const char *const policies[] = {"-", "rerun", "hold"};
    static const char *const clocks[] = {"same boot", "other boot", "in margin",
                                         "in error"};
    const char *status = idem_status_name(row->status);

    (void)snprintf(words, sizeof(words),
                   "%s%s, %s and %s, prints '%c' and '%c', %s%s%s",
                   status == NULL ? "nothing" : status,
                   row->past ? " and past" : "", policies[row->found],
                   policies[row->asked], row->found_print, row->asked_print,
                   clocks[row->clock], row->capped ? ", capped" : "",
                   row->joins ? ", joins" : "");
    return words;
}

/* What holds of every decision, whatever it is. */
static const char *fault_of(const struct row *row,
                            const struct idem_record *found,
                            const struct idem_decision *decision)
{
    bool started = decision->verdict == IDEM_STARTED;
    const struct idem_record *next = &decision->next;

    if (decision->change == IDEM_CHANGE_NONE) {
        return started ? "started without a write" : NULL;
    }
    if (decision->change !=
        (found == NULL ? IDEM_CHANGE_INSERT : IDEM_CHANGE_REPLACE)) {
        return "the wrong kind of write";
    }
    if (started && row->joins) {
        return "a waiter started";
    }
    if (started && memcmp(next->nonce, "mmmmmmmmmmmmmmmm", 16) != 0) {
        return "started under a foreign nonce";
    }
    if (started && found != NULL && next->fence <= found->fence) {
        return "the fence did not grow";
    }
    if (!started && (next->fence != found->fence ||
                     memcmp(next->nonce, found->nonce, 16) != 0)) {
        return "closed under another fence or nonce";
    }
    if (!started && next->expires_ms != IDEM_NEVER) {
        return "what a person must see expires";
    }
    if (started == next->by_lease) {
        return "it is not told that the lease closed it, or told wrongly";
    }
    if (!started && next->ended_ms == 0) {
        return "closed without an end";
    }
    return NULL;
}

static void check(const struct row *row)
{
    struct idem_record record = record_of(row);
    const struct idem_record *found = row->status == NOTHING ? NULL : &record;
    struct idem_op op = op_of(row);
    struct idem_now now = now_of(row);
    struct idem_decision decision = decide(found, &op, &now);
    const char *fault = fault_of(row, found, &decision);
    enum idem_status next =
        decision.change == IDEM_CHANGE_NONE ? NOTHING : decision.next.status;

    if (decision.verdict != row->want) {
        fail_with("%s: %s, not %s", words_of(row),
                  idem_verdict_name(decision.verdict),
                  idem_verdict_name(row->want));
    }
    if (next != row->next || decision.takeover != row->takeover) {
        fail_with("%s: writes %s%s", words_of(row),
                  next == NOTHING ? "nothing" : idem_status_name(next),
                  decision.takeover ? ", a takeover" : "");
    }
    if (fault != NULL) {
        fail_with("%s: %s", words_of(row), fault);
    }
}

/* The design's table of verdicts, as a person would read it from top to bottom. */
static void expect(struct row *row)
{
    bool differ = row->found_print != ' ' && row->asked_print != ' ' &&
                  row->found_print != row->asked_print;
    bool gone = row->status == NOTHING || row->status == RELEASED ||
                (row->status == COMPLETED && row->past);
    bool live = !row->past || row->clock == IN_MARGIN || row->clock == IN_ERROR;
    bool both_rerun = row->found == RERUN && row->asked == RERUN;

    row->takeover = false;
    row->next = NOTHING;
    if (gone) {
        row->want = row->joins ? IDEM_RELEASED : IDEM_STARTED;
        row->next = row->joins ? NOTHING : IN_PROGRESS;
    } else if (differ) {
        row->want = IDEM_MISMATCH;
    } else if (row->status == COMPLETED) {
        row->want = IDEM_REPLAY;
    } else if (row->status == FAILED) {
        row->want = IDEM_FAILED;
    } else if (row->status == UNKNOWN) {
        row->want = IDEM_UNKNOWN;
    } else if (live) {
        row->want = IDEM_BUSY;
    } else if (!both_rerun) {
        row->want = IDEM_UNKNOWN;
        row->next = UNKNOWN;
    } else if (row->capped) {
        row->want = IDEM_FAILED;
        row->next = FAILED;
    } else if (row->joins) {
        row->want = IDEM_BUSY;
    } else {
        row->want = IDEM_STARTED;
        row->next = IN_PROGRESS;
        row->takeover = true;
    }
}

/* Statuses x past x both policies x both fingerprints x clocks x cap x waiting:
 * 10,368 combinations. */
TEST(begin, followsItInEveryCombination)
{
    static const char prints[] = {' ', 'a', 'b'};
    unsigned n;

    for (n = 0; n < 6 * 2 * 2 * 2 * 3 * 3 * CLOCKS * 2 * 2; n++) {
        unsigned v = n;
        struct row row = {.status = (enum idem_status)(v % 6)};

        v /= 6;
        row.past = v % 2;
        row.found = v / 2 % 2 ? RERUN : HOLD;
        row.asked = v / 4 % 2 ? RERUN : HOLD;
        v /= 8;
        row.found_print = prints[v % 3];
        row.asked_print = prints[v / 3 % 3];
        v /= 9;
        row.clock = (enum clock)(v % CLOCKS);
        v /= CLOCKS;
        row.capped = v % 2;
        row.joins = v / 2;
        expect(&row);
        check(&row);
    }
}

/* An attempt that is newer than all the history tells, and older than the one at
 * work, was of another life, or came from elsewhere. */
TEST(begin, tellsAWaiterOfAnAttemptThatNeverWas)
{
    struct idem_record found = sample_record();
    struct idem_op op = sample_begin();

    found.fence = 50;
    found.history_len = 1;
    found.history[0].fence = 40;
    found.history[0].end = IDEM_PAST_TAKEN_OVER;
    op.u.begin.join_fence = 45;
    assert_int_equal(decide_now(&found, &op).verdict, IDEM_RELEASED);
}

/* A waiter is tied to the attempt that it saw. After a takeover it waits on; of
 * what was released, or belongs to another life, it is told so. */
TEST(begin, tiesAWaiterToItsAttempt)
{
    static const struct {
        const char *what;
        uint64_t joined;
        size_t history_len;
        enum idem_past_end end; /* Of the attempt with fence 40. */
        enum idem_verdict want;
    } rows[] = {
        {"its own attempt", 41, 1, IDEM_PAST_RELEASED, IDEM_BUSY},
        {"taken over", 40, 1, IDEM_PAST_TAKEN_OVER, IDEM_BUSY},
        {"released, and begun by another", 40, 1, IDEM_PAST_RELEASED,
         IDEM_RELEASED},
        {"of an earlier life", 39, 0, IDEM_PAST_RELEASED, IDEM_RELEASED},
        {"of an earlier life than the history", 39, 1, IDEM_PAST_TAKEN_OVER,
         IDEM_RELEASED},
        {"older than the history can tell", 12, 8, IDEM_PAST_TAKEN_OVER,
         IDEM_BUSY},
    };
    size_t n;

    EACH(row, rows) {
        struct idem_record found = sample_record();
        struct idem_op op = sample_begin();
        enum idem_verdict got;

        found.history_len = row->history_len;
        for (n = 0; n < found.history_len; n++) {
            found.history[n].fence = 40 - n;
            found.history[n].end = row->end;
        }
        op.u.begin.join_fence = row->joined;
        got = decide_now(&found, &op).verdict;
        if (got != row->want) {
            fail_with("%s: %s", row->what, idem_verdict_name(got));
        }
    }
}

/* ---- Texts, caps and leases that the table has no room for ---- */

/* A lease of this boot is judged by the boot clock alone, to the millisecond. */
TEST(lease, endsByTheBootClockOnItsBoot)
{
    static const struct {
        int64_t left_ms;
        enum idem_verdict want;
    } rows[] = {{1, IDEM_BUSY}, {0, IDEM_UNKNOWN}, {-1, IDEM_UNKNOWN}};

    EACH(row, rows) {
        struct idem_record found = sample_record();
        struct idem_op op = sample_begin();
        struct idem_now now = sample_now();

        sample_lease(&found, row->left_ms);
        now.store_ms += 86400000;
        assert_int_equal(decide(&found, &op, &now).verdict, row->want);
        now.store_ms -= 2 * 86400000LL;
        now.store_err_ms = 3600000;
        assert_int_equal(decide(&found, &op, &now).verdict, row->want);
    }
}

/* ---- One's own earlier claim ---- */

/* A claim that was delivered twice finds what its first copy did, writes
 * nothing, and is told whether that was a takeover. */
TEST(begin, recognisesItself)
{
    static const struct {
        enum idem_status status;
        enum idem_verdict want;
    } rows[] = {
        {IDEM_STATUS_IN_PROGRESS, IDEM_STARTED},
        {IDEM_STATUS_COMPLETED, IDEM_REPLAY},
        {IDEM_STATUS_FAILED, IDEM_FAILED},
        {IDEM_STATUS_UNKNOWN, IDEM_UNKNOWN},
        {IDEM_STATUS_RELEASED, IDEM_RELEASED},
    };
    static const enum idem_past_end ends[] = {IDEM_PAST_TAKEN_OVER,
                                              IDEM_PAST_RELEASED,
                                              IDEM_PAST_RESOLVED};
    size_t i;
    size_t j;

    for (i = 0; i < COUNT(rows); i++) {
        for (j = 0; j <= COUNT(ends); j++) {
            struct idem_record found = sample_ended(rows[i].status, 60000);
            struct idem_op op = sample_begin();
            struct idem_decision decision;

            memcpy(op.nonce, found.nonce, 16);
            op.u.begin.fingerprint = fingerprint('a');
            if (j < COUNT(ends)) {
                found.history_len = 1;
                found.history[0].end = ends[j];
                found.history[0].fence = 40;
            }
            sample_lease(&found, i % 2 ? 1000 : 0);
            decision = decide_now(&found, &op);
            assert_int_equal(decision.verdict, rows[i].want);
            assert_int_equal(decision.change, IDEM_CHANGE_NONE);
            assert_int_equal(decision.takeover, j == 0);
        }
    }
}

/* A claim that another ended by its lease before its op was answered is taken back: the same
 * attempt, at work under a new lease. One of an op that has made no claim is not, for its
 * owner may have been told. */
TEST(begin, takesBackAClaimThatNobodyWasToldOf)
{
    static const enum idem_status ended[] = {IDEM_STATUS_UNKNOWN,
                                             IDEM_STATUS_FAILED};
    size_t i;

    for (i = 0; i < 8; i++) {
        struct idem_record found = sample_ended(ended[i % 2], 60000);
        bool takeover = (i & 2) != 0;
        bool claimed = (i & 4) != 0;
        struct idem_now now = sample_now();
        struct idem_op op = sample_begin();
        struct idem_decision decision;

        found.by_lease = true;
        found.in_doubt = takeover ? found.fence - 1 : 0;
        found.ended_ms = now.store_ms + 300; /* By another's estimate. */
        memcpy(op.nonce, found.nonce, 16);
        op.fence = claimed ? found.fence : 0;
        op.u.begin.on_expired_lease = found.on_expired_lease;
        decision = decide(&found, &op, &now);
        assert_int_equal(decision.takeover, takeover);
        if (!claimed) {
            assert_int_equal(decision.change, IDEM_CHANGE_NONE);
            assert_int_equal(decision.verdict,
                             i % 2 ? IDEM_FAILED : IDEM_UNKNOWN);
            continue;
        }
        assert_int_equal(decision.verdict, IDEM_STARTED);
        assert_int_equal(decision.change, IDEM_CHANGE_REPLACE);
        assert_int_equal(decision.next.status, IDEM_STATUS_IN_PROGRESS);
        assert_false(decision.next.by_lease);
        assert_false(decision.next.retry);
        assert_int_equal(decision.next.fence, found.fence);
        assert_memory_equal(decision.next.nonce, found.nonce, 16);
        assert_int_equal(decision.next.attempts, found.attempts);
        assert_int_equal(decision.next.history_len, found.history_len);
        assert_int_equal(decision.next.started_ms, found.ended_ms);
        assert_int_equal(decision.next.ended_ms, 0);
        assert_int_equal(decision.next.error.len + decision.next.note.len, 0);
        assert_int_equal(decision.next.lease_end_ms,
                         now.store_ms + now.store_err_ms + op.u.begin.lease_ms);
        assert_true(decision.set_result);
        assert_false(decision.set_input);
    }
}
