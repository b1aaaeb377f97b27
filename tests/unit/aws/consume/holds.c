/* Tests of the messages that a consumer holds. */
#include "aws/consume/holds.h"

#include "test.h"

#define V 30000 /* The visibility of the tests. */

static struct idem__holds holds;

static struct idem__hold *add(const char *id, const char *group, int64_t now_ms)
{
    struct idem__sqs_message message = {.receives = 1};
    bool again;

    message.id = idem_str(id);
    message.receipt = idem_str("r1");
    message.body = idem_str(id);
    message.group = idem_str(group);
    holds.visibility_ms = V;
    assert_ok(idem__holds_add(&holds, &message, now_ms + V, &again));
    return again ? NULL : holds.last;
}

static void clear(void)
{
    while (holds.first != NULL) {
        idem__holds_remove(&holds, holds.first);
    }
    assert_int_equal(0, holds.len);
}

static void assert_next(const char *id, int64_t now_ms)
{
    struct idem__hold *hold = idem__holds_next(&holds, now_ms);

    if (id == NULL) {
        assert_null(hold);
        return;
    }
    assert_non_null(hold);
    assert_text(hold->message.id, id);
}

static size_t changes(int64_t now_ms, struct idem__hold **picked,
                      int64_t *seconds)
{
    return idem__holds_to_change(&holds, now_ms, picked, seconds);
}

/* They are given in the order in which they came, each once. */
TEST(next, givesEachOnceInOrder)
{
    (void)add("a", "", 0);
    (void)add("b", "", 0);
    assert_next("a", 1);
    assert_next("b", 1);
    assert_next(NULL, 1);
    assert_int_equal(2, idem__holds_count(&holds, IDEM__HOLD_GIVEN));
    clear();
}

/* Once its visibility ended others may have a message: it is not begun, neither
 * when it waited nor when it was kept. */
TEST(next, givesNothingThatOthersMayHave)
{
    struct idem__hold *hold = add("a", "", 0);

    assert_next(NULL, V);
    assert_next("a", V - 1);
    idem__hold_keep(hold, V - 1, 101, 0);
    assert_next(NULL, V + 100);
    hold->visible_ms = V + 101;
    assert_next("a", V + 100);
    clear();
}

/* What is received again is the same message with a newer receipt. */
TEST(add, takesTheNewerReceipt)
{
    struct idem__hold *hold = add("a", "", 0);
    struct idem__sqs_message message = {.receives = 2, .sent_ms = 7};
    bool again;

    assert_next("a", 1);
    message.id = idem_str("a");
    message.receipt = idem_str("r2");
    assert_ok(idem__holds_add(&holds, &message, 2 * V, &again));
    assert_true(again);
    assert_int_equal(1, holds.len);
    assert_string_equal("r2", hold->receipt);
    assert_int_equal(1, hold->serial);
    assert_int_equal(2, hold->message.receives);
    assert_int_equal(7, hold->message.sent_ms);
    assert_int_equal(2 * V, hold->visible_ms);
    assert_next(NULL, 1); /* It is being worked on. */
    clear();
}

/* At half of its time what is held, waiting or given, is hidden for longer; what
 * others can have is not. */
TEST(change, extendsAtHalfTime)
{
    struct idem__hold *picked[IDEM__SQS_BATCH];
    int64_t seconds[IDEM__SQS_BATCH];

    (void)add("a", "", 0);
    (void)add("b", "", 0);
    assert_next("a", 1);
    assert_int_equal(V / 2, idem__holds_due_ms(&holds, 1));
    assert_int_equal(0, changes(V / 2 - 1, picked, seconds));
    assert_int_equal(2, changes(V / 2, picked, seconds));
    assert_int_equal(V / 1000, seconds[0]);
    picked[0]->retry_ms = V / 2 + 500; /* It was not done. */
    assert_int_equal(1, changes(V / 2, picked, seconds));
    holds.first->lost = true;
    assert_int_equal(1, changes(V, picked, seconds));
    assert_text(picked[0]->message.id, "b");
    clear();
}

/* A message that is kept is hidden until after its turn, and given then. */
TEST(keep, hidesUntilAfterItsTurn)
{
    struct idem__hold *hold = add("a", "", 0);
    struct idem__hold *picked[IDEM__SQS_BATCH];
    int64_t seconds[IDEM__SQS_BATCH];

    assert_next("a", 1);
    idem__hold_keep(hold, 1000, 60000, 500);
    assert_int_equal(1, changes(1000, picked, seconds));
    assert_int_equal(63, seconds[0]); /* 62.5 s, in whole seconds. */
    hold->visible_ms = 1000 + 63000;
    assert_int_equal(0, changes(1000, picked, seconds));
    assert_int_equal(61500, idem__holds_due_ms(&holds, 1000));
    assert_next(NULL, 61499);
    assert_next("a", 61500);
    assert_int_equal(2, hold->message.given);
    clear();
}

/* One whose turn has come and that nobody takes yet stays hidden, and wakes nobody
 * up before that is to be seen to. */
TEST(keep, staysHiddenWhileNobodyTakesIt)
{
    struct idem__hold *hold = add("a", "", 0);
    struct idem__hold *picked[IDEM__SQS_BATCH];
    int64_t seconds[IDEM__SQS_BATCH];

    assert_next("a", 1);
    idem__hold_keep(hold, 0, 5000, 0);
    hold->visible_ms = 7000;
    assert_int_equal(5000, idem__holds_due_ms(&holds, 0));
    assert_int_equal(0, changes(4999, picked, seconds));
    assert_int_equal(1, changes(5000, picked, seconds));
    hold->visible_ms = 5000 + V;
    assert_int_equal(V + 3000, idem__holds_due_ms(&holds, 5000));
    clear();
}

/* A deletion waits a moment for others, unless there are ten, or all is to end. */
TEST(delete, isGathered)
{
    struct idem__hold *picked[IDEM__SQS_BATCH];
    char id[8];
    int i;

    for (i = 0; i < 11; i++) {
        (void)snprintf(id, sizeof(id), "%d", i);
        (void)add(id, "", 0);
        idem__hold_delete(idem__holds_next(&holds, 1), 1000);
        if (i == 0) {
            assert_int_equal(0, idem__holds_to_delete(&holds, 1000, false,
                                                      picked));
            assert_int_equal(1,
                             idem__holds_to_delete(&holds, 1000, true, picked));
            assert_int_equal(1, idem__holds_to_delete(&holds, 1100, false,
                                                      picked));
            assert_int_equal(1100, idem__holds_due_ms(&holds, 1000));
        }
    }
    assert_int_equal(10, idem__holds_to_delete(&holds, 1000, false, picked));
    for (i = 0; i < 10; i++) {
        picked[i]->in_call = true;
    }
    assert_int_equal(0, idem__holds_to_delete(&holds, 1000, false, picked));
    assert_int_equal(1, idem__holds_to_delete(&holds, 1000, true, picked));
    clear();
}

/* Of a group one is given at a time, and the next only when the one before is
 * deleted; other groups go on. */
TEST(group, keepsItsOrder)
{
    struct idem__hold *a0 = add("a0", "a", 0);
    struct idem__hold *b0;

    (void)add("a1", "a", 0);
    b0 = add("b0", "b", 0);
    (void)add("b1", "b", 0);
    assert_next("a0", 1);
    assert_next("b0", 1);
    assert_next(NULL, 1);
    idem__hold_keep(a0, 1, 5000, 0);
    assert_next(NULL, 1);
    idem__hold_delete(b0, 1);
    assert_next("b1", 1);
    assert_next(NULL, 1);
    assert_next("a0", 5001);
    idem__hold_delete(a0, 5001);
    assert_next("a1", 5001);
    clear();
}

/* One that is left takes along those behind it, and nobody else. */
TEST(group, isGivenBackBehindAFailure)
{
    struct idem__hold *picked[IDEM__SQS_BATCH];
    int64_t seconds[IDEM__SQS_BATCH];
    struct idem__hold *a0 = add("a0", "a", 0);
    struct idem__hold *a1 = add("a1", "a", 0);
    struct idem__hold *b0 = add("b0", "b", 0);
    struct idem__hold *c = add("c", "", 0);

    assert_next("a0", 1);
    assert_int_equal(1, idem__holds_leave(&holds, a0, 1, 4000));
    assert_int_equal(IDEM__HOLD_SHOWING, a1->state);
    assert_int_equal(IDEM__HOLD_WAITING, b0->state);
    assert_int_equal(IDEM__HOLD_WAITING, c->state);
    assert_int_equal(2, changes(1, picked, seconds));
    assert_int_equal(4, seconds[0]);
    assert_int_equal(0, seconds[1]);
    assert_next("b0", 1);
    assert_next("c", 1);
    assert_int_equal(0, idem__holds_leave(&holds, c, 1, -1));
    assert_int_equal(3, holds.len); /* Nothing is asked about it. */
    clear();
}

/* What came back to the queue is dropped, unless somebody works on it. */
TEST(sweep, dropsWhatOthersMayHave)
{
    struct idem__hold *a = add("a", "", 0);

    (void)add("b", "", 0);
    assert_next("a", 1);
    assert_int_equal(0, idem__holds_sweep(&holds, V - 1));
    assert_int_equal(2, idem__holds_sweep(&holds, V));
    assert_int_equal(1, holds.len);
    assert_true(a->lost);
    assert_int_equal(0, idem__holds_sweep(&holds, V)); /* Counted once. */
    assert_next(NULL, V);
    idem__hold_delete(a, V);
    assert_int_equal(0, idem__holds_sweep(&holds, V));
    assert_int_equal(1, holds.len); /* To delete it is tried all the same. */
    clear();
}

/* At the stop all that nobody has begun is given back, what is kept after its
 * time. */
TEST(giveBack, leavesWhatIsBegun)
{
    struct idem__hold *picked[IDEM__SQS_BATCH];
    int64_t seconds[IDEM__SQS_BATCH];
    struct idem__hold *kept = add("kept", "", 0);

    (void)add("given", "", 0);
    (void)add("waiting", "", 0);
    assert_next("kept", 1);
    assert_next("given", 1);
    idem__hold_keep(kept, 0, 20000, 0);
    assert_int_equal(2, idem__holds_give_back(&holds, 1000));
    assert_int_equal(2, changes(1000, picked, seconds));
    assert_int_equal(19, seconds[0]);
    assert_int_equal(0, seconds[1]);
    assert_int_equal(1, idem__holds_count(&holds, IDEM__HOLD_GIVEN));
    clear();
}
