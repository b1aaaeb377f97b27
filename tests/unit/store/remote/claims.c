/* What is remembered of claims. */
#include "store/remote/claims.h"

#include "base/bytes.h"
#include "store/remote/breaker.h"
#include "store/remote/own.h"
#include "test.h"

enum {
    MOST = 4096,
    LARGEST = 1160,
};

static const uint8_t *id_of(unsigned n)
{
    static uint8_t id[IDEM_ID_LEN];

    idem__put_u32(id, n * 2654435761u); /* An id is a hash. */
    idem__put_u32(id + 4, n);
    return id;
}

static void put(struct idem__claims *claims, unsigned n, const char *text)
{
    struct idem_slice parts[] = {idem_str(text), idem_bytes(NULL, 0),
                                 idem_str("!")};

    idem__claims_put(claims, id_of(n), parts, COUNT(parts));
}

/* NULL: nothing is remembered. */
static const char *look(struct idem__claims *claims, unsigned n)
{
    static char text[64];
    struct idem__buffer memory = {.base = NULL};
    bool found = idem__claims_get(claims, id_of(n), &memory);

    if (found) {
        assert_true(memory.len < sizeof(text));
        memcpy(text, memory.base, memory.len);
        text[memory.len] = '\0';
    }
    idem__buffer_free(&memory);
    return found ? text : NULL;
}

/* The last that was put for an id is there, in one piece, until it is forgotten. */
TEST(claims, areRememberedUntilTheyAreForgotten)
{
    struct idem__claims *claims = idem__claims_create();

    assert_null(look(claims, 1));
    put(claims, 1, "one");
    put(claims, 2, "two");
    put(claims, 1, "once more");
    assert_string_equal(look(claims, 1), "once more!");
    assert_string_equal(look(claims, 2), "two!");
    idem__claims_forget(claims, id_of(1));
    idem__claims_forget(claims, id_of(1));
    assert_null(look(claims, 1));
    assert_string_equal(look(claims, 2), "two!");
    idem__claims_destroy(claims);
}

/* Where there are too many, the oldest goes; what is put anew is young again. */
TEST(claims, areBounded)
{
    struct idem__claims *claims = idem__claims_create();
    unsigned n;

    for (n = 0; n < MOST; n++) {
        put(claims, n, "x");
    }
    put(claims, 0, "young");
    put(claims, MOST, "new");
    assert_null(look(claims, 1));
    assert_string_equal(look(claims, 0), "young!");
    assert_string_equal(look(claims, 2), "x!");
    assert_string_equal(look(claims, MOST), "new!");
    idem__claims_destroy(claims);
}

/* One that is too large is not remembered, nor what was there before it. */
TEST(claims, areSmall)
{
    static const char bytes[LARGEST + 1];
    struct idem__claims *claims = idem__claims_create();
    struct idem__buffer memory = {.base = NULL};
    struct idem_slice part = idem_bytes(bytes, LARGEST);

    idem__claims_put(claims, id_of(1), &part, 1);
    assert_true(idem__claims_get(claims, id_of(1), &memory));
    assert_int_equal(memory.len, LARGEST);
    part.len++;
    idem__claims_put(claims, id_of(1), &part, 1);
    assert_false(idem__claims_get(claims, id_of(1), &memory));
    idem__buffer_free(&memory);
    idem__claims_destroy(claims);
}

/* ---- Own requests ---- */

/* Whatever stopped it: "nothing was done" is said only where that is known. What is
 * known of the record, which was read, stays as it is. */
TEST(own, saysUnknownOnceItMayHaveBeenApplied)
{
    static const int nothing_done[] = {IDEM_EUNAVAILABLE, IDEM_EFULL,
                                       IDEM_EDENIED, IDEM_ECONFIG, IDEM_ENOMEM};
    static const int of_the_record[] = {IDEM_ELOST, IDEM_ECORRUPT,
                                        IDEM_EINVALID, IDEM_ENOTFOUND};

    EACH(one, nothing_done) {
        assert_int_equal(idem__own_code(*one, false), *one);
        assert_int_equal(idem__own_code(*one, true), IDEM_EUNKNOWN);
    }
    EACH(one, of_the_record) {
        assert_int_equal(idem__own_code(*one, true), *one);
    }
    assert_int_equal(idem__own_code(IDEM_EUNKNOWN, false), IDEM_EUNAVAILABLE);
    assert_int_equal(idem__own_code(IDEM_EUNKNOWN, true), IDEM_EUNKNOWN);
}

/* A claim that was made has a fence, by which it is given back. One that was completed
 * with its caller's writes has none, for it never is in progress; nor has another's. */
TEST(own, notesAClaimThatCanBeGivenBack)
{
    static const enum idem_change changes[] = {IDEM_CHANGE_NONE,
                                               IDEM_CHANGE_INSERT};
    struct idem_record found = {.fence = 7};
    struct idem_commit commit = {.writes_len = 1};

    EACH(one, changes) {
        struct idem_decision decision = {.verdict = IDEM_STARTED,
                                         .change = *one,
                                         .next = {.fence = 8}};
        struct idem_op op = {.verb = IDEM_OP_BEGIN, .fence = 9};

        idem__own_claim_note(&op, &found, &decision);
        assert_int_equal(op.fence, *one == IDEM_CHANGE_NONE ? 7 : 8);
        op.commit = &commit;
        idem__own_claim_note(&op, &found, &decision);
        assert_int_equal(op.fence, 0);
        op.commit = NULL;
        decision.verdict = IDEM_BUSY;
        op.fence = 9;
        idem__own_claim_note(&op, &found, &decision);
        assert_int_equal(op.fence, 0);
    }
}

/* ---- The breaker ---- */

enum {
    START_MS = 1000000,
    STEP_MS = IDEM__BREAKER_AWAY_MS / (IDEM__BREAKER_REQUESTS - 1) + 1,
};

/* Requests that end without an answer, @step_ms apart; when the last one did. */
static int64_t lose(struct idem__breaker *breaker, int n, int64_t step_ms)
{
    int64_t now_ms = START_MS;
    int i;

    for (i = 0; i < n; i++) {
        now_ms = START_MS + i * step_ms;
        idem__breaker_unheard(breaker, now_ms, 0);
    }
    return now_ms;
}

/* ROW(24) Enough requests over enough time, and what is new is refused. */
TEST(breaker, opensAfterAWhile)
{
    struct idem__breaker breaker = {0};
    int64_t now_ms = lose(&breaker, IDEM__BREAKER_REQUESTS, STEP_MS);

    assert_true(breaker.open);
    assert_false(idem__breaker_admits(&breaker, now_ms, 0));
    assert_int_equal(breaker.first_ms, START_MS);
}

/* Many that are lost together may be one broken connection; a few over a long
 * time may be anything. */
TEST(breaker, isPatient)
{
    struct idem__breaker breaker = {0};

    (void)lose(&breaker, 1000, 0);
    assert_false(breaker.open);

    breaker = (struct idem__breaker){0};
    (void)lose(&breaker, IDEM__BREAKER_REQUESTS - 1, IDEM__BREAKER_AWAY_MS);
    assert_false(breaker.open);
    assert_true(idem__breaker_admits(&breaker, START_MS, 0));
}

/* An answer between them, even a refusal, starts the count anew. */
TEST(breaker, forgetsWithAnAnswer)
{
    struct idem__breaker breaker = {0};

    (void)lose(&breaker, IDEM__BREAKER_REQUESTS - 1, STEP_MS);
    idem__breaker_heard(&breaker);
    (void)lose(&breaker, IDEM__BREAKER_REQUESTS - 1, STEP_MS);
    assert_false(breaker.open);
}

/* Open, it lets one through each time that the pause is over, however many ask;
 * an answer closes it for all. */
TEST(breaker, triesNowAndThen)
{
    struct idem__breaker breaker = {0};
    int64_t now_ms = lose(&breaker, IDEM__BREAKER_REQUESTS, STEP_MS);
    int64_t end_ms = now_ms + 100 * (int64_t)IDEM__BREAKER_PAUSE_MS;
    unsigned tries = 0;

    for (; now_ms < end_ms; now_ms++) {
        if (idem__breaker_admits(&breaker, now_ms, 0)) {
            tries++;
            idem__breaker_unheard(&breaker, now_ms, 0);
        }
    }
    assert_int_equal(tries, 99);
    assert_true(breaker.open);
    assert_int_equal(breaker.first_ms, START_MS);

    idem__breaker_heard(&breaker);
    assert_false(breaker.open);
    assert_true(idem__breaker_admits(&breaker, now_ms, 0));
    assert_true(idem__breaker_admits(&breaker, now_ms, 0));
}

/* The tries of many processes are spread over the jitter. */
TEST(breaker, spreadsTries)
{
    uint64_t random;

    for (random = 0; random < 5000; random++) {
        struct idem__breaker breaker = {0};
        int64_t now_ms = lose(&breaker, IDEM__BREAKER_REQUESTS - 1, STEP_MS);
        int64_t pause_ms;

        now_ms += STEP_MS;
        idem__breaker_unheard(&breaker, now_ms, random);
        pause_ms = breaker.next_try_ms - now_ms;
        assert_between(pause_ms, IDEM__BREAKER_PAUSE_MS,
                       IDEM__BREAKER_PAUSE_MS + IDEM__BREAKER_JITTER_MS);
    }
}
