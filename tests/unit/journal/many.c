/* A journal that holds much: a lookup does not grow with it, what it holds is known,
 * and nothing is passed over. */
#include "calls.h"
#include "claims.h"
#include "journal/journal.h"
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
        (void)snprintf(path, sizeof(path), "%s/00000000-%016llx-0.idj",
                       p->directory,
                       (unsigned long long)((i + 1) * 0x9e3779b97f4a7c15U));
        assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    }
}

static struct idem_journal_usage usage(struct place *p)
{
    struct idem_journal_usage usage = IDEM_JOURNAL_USAGE_INIT;

    assert_ok(idem_journal_read_usage(p->journal, &usage, &why));
    return usage;
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

/* Neither a lookup nor a put looks at what is there, and a lookup tries a few names. */
TEST_PLACE(cost, doesNotGrow)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_attempt *attempt = started(p, "k");
    long lookup;
    long calls[2];
    int i;

    fill(p, 0, FEW);
    lookup = cost_of_lookup(p);
    assert_int_equal(lookup, IDEM__ENTRY_LIKELY);
    for (i = 0; i < 2; i++) {
        struct idem_journal_entry *entry;

        calls_fail(CALLS_FAIL, NEVER, /* on= */ false, EIO);
        entry = hold(p, attempt, &outcome);
        (void)calls_fail_never();
        assert_int_equal(calls_names(), 0);
        calls[i] = calls_made();
        idem_journal_remove(entry);
        fill(p, FEW, MANY);
    }
    assert_int_equal(calls[0], calls[1]);
    assert_int_equal(cost_of_lookup(p), lookup);
    assert_int_equal(usage(p).entries, MANY);
    idem_attempt_destroy(attempt);
}

/* ---- How much there is ---- */

/* What others put and removed is counted too. */
TEST_PLACE(usage, isCounted)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_journal_usage bad = {.size = 0};
    struct idem_attempt *attempt = started(p, "k");
    struct place other = *p;
    const char *name;

    assert_ok(idem_journal_open(p->directory, /* create= */ false,
                                &other.journal, &why));
    assert_int_equal(usage(p).entries, 0);
    (void)put(&other, attempt, &outcome);
    assert_int_equal(usage(p).entries, 1);
    name = put(p, attempt, &outcome); /* The same. */
    assert_int_equal(usage(p).entries, 1);
    assert_ok(idem_journal_drop(other.journal, name, &why));
    assert_int_equal(usage(p).entries, 0);
    assert_code(IDEM_EINVALID, idem_journal_read_usage(p->journal, &bad, &why));
    idem_journal_close(other.journal);
    idem_attempt_destroy(attempt);
}

/* A journal leaves some of its disk to others, and says so while it still keeps
 * outcomes; what was kept stays. */
TEST_PLACE(usage, isNearBeforeTheDiskIsFull)
{
    const uint64_t mib = 1 << 20;
    const struct {
        uint64_t all;
        uint64_t available;
        uint64_t room;
        bool near;
    } disks[] = {
        {UINT64_C(1) << 40, 1000 * mib, 984 * mib, false},
        {UINT64_C(1) << 40, 272 * mib, 256 * mib, false},
        {UINT64_C(1) << 40, 271 * mib, 255 * mib, true},
        {UINT64_C(1) << 40, 16 * mib, 0, true},
        {UINT64_C(1) << 40, 0, 0, true},
        {64 * mib, 17 * mib, 16 * mib, false},
        {64 * mib, 16 * mib, 15 * mib, true},
        {0, 0, UINT64_MAX, false}, /* It does not say. */
    };
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_attempt *attempt = started(p, "k");
    size_t i;

    for (i = 0; i < COUNT(disks); i++) {
        struct idem_journal_entry *entry = NULL;
        int rc;

        calls_disk(disks[i].all, disks[i].available);
        assert_int_equal(usage(p).room, disks[i].room);
        assert_int_equal(usage(p).near, disks[i].near);
        rc = idem_journal_put(p->journal, p->store, attempt, &outcome, &entry,
                              &why);
        assert_code(disks[i].room > 0 ? 0 : IDEM_EFULL, rc);
        if (rc != 0) {
            assert_why(p->directory);
            assert_why("make room");
        }
        idem_journal_leave(entry);
        assert_files(p, ".idj", 1);
    }
    calls_disk_is_real();
    idem_attempt_destroy(attempt);
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

        assert_ok(idem_journal_open(seen->within->directory,
                                    /* create= */ false, &journal, &why));
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

    assert_ok(
        idem_journal_open(p->directory, /* create= */ false, &journal, &why));
    assert_ok(idem_journal_catch_up(journal, p->store, note_one, &seen, &why));
    idem_journal_close(journal);
    return seen;
}

static void put_keys(struct place *p, int n)
{
    while (n-- > 0) {
        (void)put_key(p, numbered("k", n));
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
    size_t i;

    assert_int_equal(slice(p, 1).recorded, 0);
    put_keys(p, TOLD);
    for (i = 0; i < HELD; i++) {
        struct idem_attempt *attempt = started(p, numbered("held", i));

        held[i] = hold(p, attempt, &outcome);
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
    assert_files(p, "", 0);
}

/* Many who come at once do not all read what is there. */
TEST_PLACE(catchUp, isDoneByOne)
{
    struct seen seen = {.max = 100};

    put_keys(p, 5);
    seen.within = p;
    assert_ok(
        idem_journal_catch_up(p->journal, p->store, note_one, &seen, &why));
    assert_int_equal(seen.recorded, 5);
    assert_int_equal(seen.told_within, 0);
}

/* Others' entries are passed over. */
TEST_PLACE(catchUp, passesOverOthers)
{
    put_keys(p, 3);
    fill(p, 0, MANY);
    assert_int_equal(slice(p, 100).recorded, 3);
    assert_files(p, "", MANY);
    temp_remove();
}
