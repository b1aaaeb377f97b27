/* When a service that does not answer is asked, and when not. */
#include "store/remote/breaker.h"

#include "test.h"

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
