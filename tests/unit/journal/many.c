/* A journal that holds much: a lookup does not grow with it, what it holds is known,
 * and nothing is passed over. */
#include "calls.h"
#include "lib.h"
#include "temp.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
    NEVER = 1000000,
    FEW = 10,
    MANY = 6000,
};

/* Files as entries for another store have them, but for their content. */
static void fill(const struct place *p, unsigned from, unsigned to)
{
    char path[1024];
    unsigned i;

    for (i = from; i < to; i++) {
        (void)snprintf(path, sizeof(path), "%s/00000000-%016llx-2-0.idj",
                       p->directory,
                       (unsigned long long)((i + 1) * 0x9e3779b97f4a7c15U));
        assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    }
}

static uint64_t entries(struct place *p)
{
    struct idem_journal_usage usage = IDEM_JOURNAL_USAGE_INIT;

    assert_ok(idem_journal_read_usage(p->journal, &usage, &why));
    return usage.entries;
}

/* The calls of a lookup; names of the directory are not among them. */
static long cost_of_lookup(struct place *p)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    uint8_t id[IDEM_ID_LEN];

    assert_ok(idem_id(idem_str(""), idem_str("another"), id));
    filter.id = id;
    calls_fail(CALLS_FAIL, NEVER, /* on= */ false, EIO);
    assert_int_equal(replay(p, &filter).len, 0);
    (void)calls_fail_never();
    assert_int_equal(calls_names(), 0);
    return calls_made();
}

/* Neither a lookup nor, once the journal is counted, a put reads what is there. */
TEST_PLACE(cost, doesNotGrow)
{
    struct idem_outcome outcome = completed("receipt 7");
    long lookup;
    int i;
    struct idem_attempt *attempt = started(p, "k");

    fill(p, 0, FEW);
    lookup = cost_of_lookup(p);
    fill(p, FEW, MANY);
    assert_int_equal(cost_of_lookup(p), lookup);
    for (i = 0; i < 2; i++) {
        struct idem_journal_entry *entry;

        calls_fail(CALLS_FAIL, NEVER, /* on= */ false, EIO);
        assert_ok(idem_journal_put(p->journal, p->store, attempt, &outcome,
                                   &entry, &why));
        (void)calls_fail_never();
        assert_true(i == 0 || calls_names() == 0);
        idem_journal_remove(entry);
    }
    assert_true(entries(p) >= MANY && entries(p) <= MANY + 2);
    idem_attempt_destroy(attempt);
}

/* ---- How much there is ---- */

/* What others put and removed is counted too, at once where there is little, and before
 * a put is refused. */
TEST_PLACE(usage, isCounted)
{
    struct idem_journal_options options = IDEM_JOURNAL_OPTIONS_INIT;
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_attempt *attempt;
    char name[80];
    struct place other = *p;

    assert_ok(idem_journal_open(p->directory, NULL, &other.journal, &why));
    attempt = started(p, "k");
    assert_int_equal(entries(p), 0);
    (void)snprintf(name, sizeof(name), "%s", put(&other, attempt, &outcome));
    assert_int_equal(entries(p), 1);
    (void)put(p, attempt, &outcome); /* The same. */
    assert_int_equal(entries(p), 1);
    assert_ok(idem_journal_drop(other.journal, name, &why));
    assert_int_equal(entries(p), 0);
    idem_journal_close(other.journal);

    options.entries_max = 1;
    assert_ok(idem_journal_open(p->directory, &options, &other.journal, &why));
    (void)put(&other, attempt, &outcome);
    assert_int_equal(replay(p, NULL).by_state[IDEM_JOURNAL_RECORDED], 1);
    (void)put(&other, attempt, &outcome);
    idem_journal_close(other.journal);
    idem_attempt_destroy(attempt);
}

/* A journal that is nearly full says so while it still keeps outcomes. */
TEST_PLACE(usage, isNearBeforeItIsFull)
{
    struct idem_journal_options options = IDEM_JOURNAL_OPTIONS_INIT;
    struct idem_journal_usage usage = IDEM_JOURNAL_USAGE_INIT;
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_journal_entry *entry;
    struct idem_attempt *attempt;
    char key[16];
    int rc = 0;
    int i;
    struct idem_journal *whole = p->journal;

    options.entries_max = 10;
    assert_ok(idem_journal_open(p->directory, &options, &p->journal, &why));
    for (i = 0; rc == 0; i++) {
        assert_ok(idem_journal_read_usage(p->journal, &usage, &why));
        assert_int_equal(usage.entries, i);
        assert_int_equal(usage.entries_max, 10);
        assert_true(usage.near == (i >= 8));
        (void)snprintf(key, sizeof(key), "k%d", i);
        attempt = started(p, key);
        rc = idem_journal_put(p->journal, p->store, attempt, &outcome, &entry,
                              &why);
        if (rc == 0) {
            idem_journal_leave(entry);
        }
        idem_attempt_destroy(attempt);
    }
    assert_code(IDEM_EFULL, rc);
    assert_int_equal(i, 11);
    assert_why("holds 10 of 10 outcomes");
    assert_why(p->directory);
    assert_why("idem reconcile");
    usage.size = 0;
    assert_code(IDEM_EINVALID,
                idem_journal_read_usage(p->journal, &usage, &why));
    /* What is recorded makes room. */
    assert_int_equal(replay(p, NULL).by_state[IDEM_JOURNAL_RECORDED], 10);
    assert_int_equal(entries(p), 0);
    idem_journal_close(p->journal);
    p->journal = whole;
}

/* ---- Catching up ---- */

struct seen {
    unsigned recorded;
    unsigned in_use;
    unsigned max;         /* After so many it stops. */
    struct place *within; /* Another tries meanwhile. */
    unsigned told_within;
};

static int note_one(void *ctx, const struct idem_journal_info *info,
                    const struct idem_error *error)
{
    struct seen *seen = ctx;

    (void)error;
    seen->recorded += info->state == IDEM_JOURNAL_RECORDED;
    seen->in_use += info->state == IDEM_JOURNAL_IN_USE;
    if (seen->within != NULL) {
        struct seen other = {.max = 100};
        struct idem_journal *journal;

        assert_ok(
            idem_journal_open(seen->within->directory, NULL, &journal, &why));
        assert_ok(idem_journal_catch_up(journal, seen->within->store, note_one,
                                        &other, &why));
        idem_journal_close(journal);
        seen->told_within += other.recorded + other.in_use;
    }
    return seen->recorded + seen->in_use >= seen->max;
}

/* One slice, in a journal that is opened for it. */
static struct seen slice(struct place *p, unsigned max)
{
    struct seen seen = {.max = max};
    struct idem_journal *journal;

    assert_ok(idem_journal_open(p->directory, NULL, &journal, &why));
    assert_ok(idem_journal_catch_up(journal, p->store, note_one, &seen, &why));
    idem_journal_close(journal);
    return seen;
}

static void put_keys(struct place *p, int from, int to)
{
    struct idem_outcome outcome = completed("receipt 7");
    char key[16];
    int i;

    for (i = from; i < to; i++) {
        struct idem_attempt *attempt;

        (void)snprintf(key, sizeof(key), "k%d", i);
        attempt = started(p, key);
        (void)put(p, attempt, &outcome);
        idem_attempt_destroy(attempt);
    }
}

/* Entries that cannot be told now do not stand in the way of the rest, however short
 * the slices, and come again. */
TEST_PLACE(catchUp, isNotHeldUp)
{
    enum {
        HELD = 10,
        TOLD = 10,
        SLICES = 20000
    };
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_journal_entry *held[HELD];
    unsigned recorded = 0;
    unsigned slices = 0;
    char key[16];
    int i;

    assert_int_equal(slice(p, 1).recorded, 0);
    put_keys(p, 0, TOLD);
    for (i = 0; i < HELD; i++) {
        struct idem_attempt *attempt;

        (void)snprintf(key, sizeof(key), "held%d", i);
        attempt = started(p, key);
        assert_ok(idem_journal_put(p->journal, p->store, attempt, &outcome,
                                   &held[i], &why));
        idem_attempt_destroy(attempt);
    }
    while (recorded < TOLD) {
        struct seen seen = slice(p, 1);

        assert_int_equal(seen.recorded + seen.in_use, 1);
        recorded += seen.recorded;
        assert_true(++slices < SLICES);
    }
    assert_int_equal(slice(p, 1).in_use, 1);
    for (i = 0; i < HELD; i++) {
        idem_journal_leave(held[i]);
    }
    assert_int_equal(slice(p, HELD).recorded, HELD);
    assert_int_equal(files(p->directory, ""), 0);
    print_message("# %d told beside %d that are held, in %u slices of one\n",
                  TOLD, HELD, slices);
}

/* Many who come at once do not all read what is there. */
TEST_PLACE(catchUp, isDoneByOne)
{
    struct seen seen = {.max = 100};

    put_keys(p, 0, 5);
    seen.within = p;
    assert_ok(
        idem_journal_catch_up(p->journal, p->store, note_one, &seen, &why));
    assert_int_equal(seen.recorded, 5);
    assert_int_equal(seen.told_within, 0);
}

/* Others' entries are passed over. */
TEST(catchUp, passesOverOthers)
{
    struct place p;

    place_open(&p);
    put_keys(&p, 0, 3);
    fill(&p, 0, MANY);
    assert_int_equal(slice(&p, 100).recorded, 3);
    assert_int_equal(files(p.directory, ""), MANY);
    place_close(&p);
    temp_remove();
}
