/* What the verbs of an owner mean, in every status, for the owner and for
 * everybody else. */
#include "core/decide.h"
#include "sample.h"
#include "test.h"

enum who {
    OWNER,
    OTHER_NONCE, /* A copy of the token with another nonce. */
    OTHER_FENCE, /* The same nonce, another fence. */
    SUCCEEDED,   /* Neither: the record belongs to the next attempt. */
    NOBODY,      /* The record is gone. */
    WHO,
};

static void estrange(struct idem_op *op, enum who who)
{
    if (who == OTHER_NONCE || who == SUCCEEDED) {
        op->nonce[15] ^= 1;
    }
    if (who == OTHER_FENCE || who == SUCCEEDED) {
        op->fence--;
    }
}

/* Ends the sample attempt as @status, with the content of sample_ended(). */
static struct idem_op ending(enum idem_status status)
{
    struct idem_op op = sample_end();
    struct idem_record record = sample_ended(status, 3600000);

    op.u.end.status = status;
    op.u.end.result = record.result;
    op.u.end.text = status == IDEM_STATUS_FAILED ? record.error : record.note;
    return op;
}

/* ---- The table ---- */

/* What is on record, and how the verbs end it: a column for each of COMPLETED,
 * FAILED, UNKNOWN, RELEASED, RETRY. w: written. s: the same content was said before,
 * nothing is written. L: LOST. First the content on record, then another. */
static const struct {
    enum idem_status status;
    bool by_lease; /* Its lease ended, and the owner has not said a word. */
    const char *same;
    const char *other;
} table[] = {
    {IDEM_STATUS_IN_PROGRESS, false, "wwwww", "wwwww"},
    {IDEM_STATUS_COMPLETED, false, "sLLLL", "LLLLL"},
    {IDEM_STATUS_FAILED, false, "LsLLL", "LLLLL"},
    {IDEM_STATUS_UNKNOWN, false, "LLsLL", "LLsLL"},
    {IDEM_STATUS_RELEASED, false, "LLLsL", "LLLsL"},
    {IDEM_STATUS_RETRY, false, "LLLLs", "LLLLs"},
    {IDEM_STATUS_UNKNOWN, true, "wwwLw", "wwwLw"},
    {IDEM_STATUS_FAILED, true, "wwwLw", "wwwLw"},
};

static char word_for(const struct idem_decision *decision)
{
    if (decision->code == IDEM_ELOST) {
        return 'L';
    }
    if (decision->code != IDEM_OK) {
        return '?';
    }
    return decision->change == IDEM_CHANGE_REPLACE ? 'w' : 's';
}

static void check(size_t row, size_t column, bool other, enum who who)
{
    struct idem_record found = sample_ended(table[row].status, 3600000);
    enum idem_status to = sample_ends[column];
    struct idem_op op = ending(to);
    struct idem_decision decision;
    const char *wanted = other ? table[row].other : table[row].same;
    char want = who == OWNER ? wanted[column] : 'L';
    char got;

    found.by_lease = table[row].by_lease;
    if (other) {
        op.u.end.text = idem_str("another text");
    }
    estrange(&op, who);
    decision = sample_decide(who == NOBODY ? NULL : &found, &op, NULL);
    got = word_for(&decision);
    if (got != want) {
        fail_with("%s%s -> %s, %s content, who %d: '%c' and not '%c'",
                  idem_status_name(idem_record_status(&found)),
                  found.by_lease ? " by its lease" : "", idem_status_name(to),
                  other ? "other" : "same", (int)who, got, want);
    }
    if (got == 'L' && decision.change != IDEM_CHANGE_NONE) {
        fail_with("LOST, and a change all the same");
    }
    if (got == 'L' && decision.text[0] == '\0') {
        fail_with("LOST without a sentence");
    }
    if (got == 'w' &&
        (idem_record_status(&decision.next) != to || decision.next.by_lease)) {
        fail_with("written as %s%s",
                  idem_status_name(idem_record_status(&decision.next)),
                  decision.next.by_lease ? " by its lease" : "");
    }
}

/* Every row x verb x content x owner or stranger. */
TEST(end, followsTheTable)
{
    size_t row;
    size_t column;
    int other;
    int who;

    for (row = 0; row < COUNT(table); row++) {
        for (column = 0; column < SAMPLE_ENDS; column++) {
            for (other = 0; other < 2; other++) {
                for (who = 0; who < WHO; who++) {
                    check(row, column, other != 0, (enum who)who);
                }
            }
        }
    }
}

/* @said with @change, on record as @said: 's' if it is the same end, 'L' if another. */
#define assert_word(want, change)                                              \
    do {                                                                       \
        struct idem_op op = said;                                              \
        struct idem_decision decision;                                         \
                                                                               \
        change;                                                                \
        decision = sample_decide(&found, &op, NULL);                           \
        if (word_for(&decision) != (want)) {                                   \
            fail_with("%s: " #change, idem_status_name(*status));              \
        }                                                                      \
    } while (0)

/* A completion is the same only if every part of it is. */
TEST(end, comparesEveryPartOfAResult)
{
    static const enum idem_status statuses[] = {IDEM_STATUS_COMPLETED,
                                                IDEM_STATUS_FAILED};

    EACH(status, statuses) {
        struct idem_op said = ending(*status);
        struct idem_record open = sample_record();
        struct idem_record found;

        said.u.end.result = sample_result();
        found = sample_decide(&open, &said, NULL).next;
        assert_word('s', (void)op);
        assert_word('L', op.u.end.result.bytes = idem_str("dome"));
        assert_word('L', op.u.end.result.bytes = idem_str("done."));
        assert_word('L', op.u.end.result.content_type = idem_str("text/html"));
        assert_word('L', op.u.end.result.meta = idem_str(""));
        assert_word('L', op.u.end.result.bytes = idem_str("");
                    op.u.end.result.not_kept = true);
        assert_word('L', op.u.end.text = idem_str("another"));
    }
}

/* ---- Renewing ---- */

static struct idem_op renewing(int64_t lease_ms)
{
    struct idem_op op = sample_end();

    op.verb = IDEM_OP_RENEW;
    memset(&op.u, 0, sizeof(op.u));
    op.u.renew.lease_ms = lease_ms;
    return op;
}

/* Only the owner renews or gives its lease up, and only of what is in progress. */
TEST(renew, followsTheTable)
{
    static const enum idem_verb verbs[] = {IDEM_OP_RENEW, IDEM_OP_EXPIRE};
    size_t i;
    int who;

    EACH(verb, verbs) {
        for (i = 0; i <= SAMPLE_ENDS; i++) {
            for (who = 0; who < WHO; who++) {
                struct idem_record found =
                    i == SAMPLE_ENDS ? sample_record()
                                     : sample_ended(sample_ends[i], 3600000);
                struct idem_op op = renewing(60000);
                bool may = i == SAMPLE_ENDS && who == OWNER;
                struct idem_decision decision;

                op.verb = *verb;
                estrange(&op, (enum who)who);
                decision =
                    sample_decide(who == NOBODY ? NULL : &found, &op, NULL);
                assert_code(may ? IDEM_OK : IDEM_ELOST, decision.code);
                assert_int_equal(decision.change,
                                 may ? IDEM_CHANGE_REPLACE : IDEM_CHANGE_NONE);
                assert_true(may || decision.text[0] != '\0');
            }
        }
    }
}

/* The margin that a taker waits out is no part of a lease: however often it is
 * renewed for a time that it has anyhow, its end stays. */
TEST(renew, doesNotGrowByTheMargin)
{
    struct idem_now now = sample_now();
    struct idem_record record = sample_record();
    struct idem_op op = renewing(2000);
    struct idem_decision decision;
    int i;

    memset(now.boot_id, 0, sizeof(now.boot_id)); /* No boot knows another's. */
    now.store_err_ms = 100;
    sample_lease(&record, 2100);
    for (i = 0; i < 10; i++) {
        decision = sample_decide(&record, &op, &now);
        assert_ok(decision.code);
        record = decision.next;
        assert_int_equal(record.lease_end_ms, NOW_MS + 2100);
    }
    now.store_ms += 700;
    decision = sample_decide(&record, &op, &now);
    assert_int_equal(decision.next.lease_end_ms, NOW_MS + 2800);
}

/* A lease of another boot ends no earlier on this one's clock. */
TEST(renew, keepsALongerLeaseOfAnotherBoot)
{
    struct idem_record found = sample_record();
    struct idem_op op = renewing(2000);
    struct idem_decision decision;

    memset(found.boot_id, 'B', sizeof(found.boot_id));
    found.lease_end_boot_ms = 1;
    decision = sample_decide(&found, &op, NULL);
    assert_int_equal(decision.next.lease_end_ms, NOW_MS + 50000);
    assert_int_equal(decision.next.lease_end_boot_ms, NOW_BOOT_MS + 50000);
}

/* ---- Expiring ---- */

/* Its lease is over at once, by every clock: on this boot, on the next, where
 * store time is uncertain, and if it had no end. */
TEST(expire, endsTheLeaseEverywhere)
{
    static const int64_t lefts_ms[] = {1, 50000, IDEM_NEVER};
    int boot;
    int unsure;

    EACH(left, lefts_ms) {
        for (boot = 0; boot < 2; boot++) {
            for (unsure = 0; unsure < 2; unsure++) {
                struct idem_record found = sample_record();
                struct idem_op op = renewing(0);
                struct idem_now now = sample_now();
                struct idem_decision decision;

                if (*left == IDEM_NEVER) {
                    found.lease_end_ms = IDEM_NEVER;
                    found.lease_end_boot_ms = IDEM_NEVER;
                } else {
                    sample_lease(&found, *left);
                }
                now.store_err_ms = unsure * 3000;
                op.verb = IDEM_OP_EXPIRE;
                decision = sample_decide(&found, &op, &now);
                assert_int_equal(decision.change, IDEM_CHANGE_REPLACE);
                assert_int_equal(decision.next.status, IDEM_STATUS_IN_PROGRESS);
                assert_false(decision.set_result || decision.set_input);
                now.boot_id[0] = boot == 0 ? 'A' : 'B';
                assert_int_equal(idem__lease_left(&decision.next, &now), 0);
                assert_true(idem__decide_overdue(&decision.next, &now));
                assert_false(idem__decide_expired(&decision.next, &now));
            }
        }
    }
}
