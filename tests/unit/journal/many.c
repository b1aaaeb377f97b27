/* A journal that holds much: what a put, a lookup and a catch-up cost does not grow
 * with it, what it holds is known without counting, and nothing is passed over. */
#include "base/bytes.h"
#include "base/crc32.h"
#include "calls.h"
#include "lib.h"
#include "temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NEVER = 1000000,
    FEW = 10,
    MANY = 6000,
    PARTS = 256,
};

/* Files as entries for another store have them, but for their content. */
static void fill(const struct place *p, unsigned from, unsigned to)
{
    char path[1024];
    unsigned i;

    (void)snprintf(path, sizeof(path), "%s/by-record", p->directory);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    for (i = from; i < to; i++) {
        uint64_t id = (i + 1) * 0x9e3779b97f4a7c15U;

        (void)snprintf(path, sizeof(path), "%s/by-record/%02x", p->directory,
                       (unsigned)(id >> 56));
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        (void)snprintf(path, sizeof(path),
                       "%s/by-record/%02x/00000000-%016llx-2-%016llx.idj",
                       p->directory, (unsigned)(id >> 56),
                       (unsigned long long)id, (unsigned long long)id);
        assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    }
}

static void forget_usage(const struct place *p)
{
    char path[1024];

    (void)snprintf(path, sizeof(path), "%s/usage", p->directory);
    assert_true(unlink(path) == 0 || errno == ENOENT);
}

static uint64_t entries(struct place *p)
{
    struct idem_journal_usage usage = IDEM_JOURNAL_USAGE_INIT;

    assert_ok(idem_journal_read_usage(p->journal, &usage, &why));
    return usage.entries;
}

struct cost {
    long made;
    long names;
};

static void count_from_here(void)
{
    calls_fail(CALLS_FAIL, NEVER, /* on= */ false, EIO);
}

static struct cost cost_since(void)
{
    struct cost cost = {calls_made(), calls_names()};

    (void)calls_fail_never();
    return cost;
}

/* The calls of a put and of the removal, once the journal is counted. */
static struct cost cost_of_put(struct place *p, struct idem_attempt *attempt)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_journal_entry *entry;
    int i;

    for (i = 0; i < 2; i++) {
        count_from_here();
        assert_ok(idem_journal_put(p->journal, p->store, attempt, &outcome,
                                   &entry, &why));
        idem_journal_remove(entry);
    }
    return cost_since();
}

static struct cost cost_of_lookup(struct place *p)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    uint8_t id[IDEM_ID_LEN];

    assert_ok(idem_id(idem_str(""), idem_str("another"), id));
    filter.id = id;
    count_from_here();
    assert_int_equal(replay(p, &filter).len, 0);
    return cost_since();
}

static struct cost cost_of_usage(struct place *p)
{
    count_from_here();
    (void)entries(p);
    return cost_since();
}

TEST(cost, doesNotGrow)
{
    struct idem_attempt *attempt;
    struct cost put[2];
    struct cost lookup[2];
    struct cost usage[2];
    struct place p;
    int i;

    place_open(&p);
    attempt = started(&p, "k");
    for (i = 0; i < 2; i++) {
        fill(&p, i == 0 ? 0 : FEW, i == 0 ? FEW : MANY);
        forget_usage(&p);
        put[i] = cost_of_put(&p, attempt);
        lookup[i] = cost_of_lookup(&p);
        usage[i] = cost_of_usage(&p);
        assert_int_equal(entries(&p), i == 0 ? FEW : MANY);
    }
    assert_int_equal(put[1].made, put[0].made);
    assert_int_equal(put[1].names, 0);
    assert_int_equal(usage[1].made, usage[0].made);
    assert_int_equal(usage[1].names, 0);
    /* One part of 256, and the directory itself. */
    assert_true(lookup[1].names < 3 * MANY / PARTS);
    print_message("# calls of put and removal %ld and %ld, names in a lookup "
                  "%ld and %ld, at %d and %d entries\n",
                  put[0].made, put[1].made, lookup[0].names, lookup[1].names,
                  FEW, MANY);
    idem_attempt_destroy(attempt);
    place_close(&p);
}

/* ---- How much there is ---- */

static void write_usage(const struct place *p, off_t at, const char *text,
                        off_t len)
{
    char path[1024];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/usage", p->directory);
    fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    if (text != NULL) {
        assert_int_equal(pwrite(fd, text, strlen(text), at), strlen(text));
    }
    if (len >= 0) {
        assert_int_equal(ftruncate(fd, len), 0);
    }
    assert_int_equal(close(fd), 0);
}

/* As another boot left it, whole, with numbers that were right then. */
static void make_of_another_boot(const struct place *p)
{
    uint8_t bytes[1152];
    char path[1024];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/usage", p->directory);
    fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    memset(bytes + 16, 7, 16);
    memset(bytes + 120, 1, 4);
    idem__put_u32(bytes + 1148, idem__crc32(0, idem_bytes(bytes, 1148)));
    assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    assert_int_equal(close(fd), 0);
}

/* Whatever became of the record, what is there is known. */
TEST(usage, isFoundOutAgain)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_attempt *attempt;
    struct place p;
    char key[16];
    int i;

    place_open(&p);
    assert_int_equal(entries(&p), 0);
    for (i = 0; i < 6; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        attempt = started(&p, key);
        (void)put(&p, attempt, &outcome);
        idem_attempt_destroy(attempt);
        assert_int_equal(entries(&p), i + 1);
        switch (i) {
        case 0:
            forget_usage(&p);
            break;
        case 1:
            write_usage(&p, 0, NULL, 0);
            break;
        case 2:
            write_usage(&p, 0, NULL, 700);
            break;
        case 3:
            write_usage(&p, 120, "too many", -1); /* And a wrong sum. */
            break;
        case 4:
            make_of_another_boot(&p);
            break;
        default:
            write_usage(&p, 0, "IDJU\0\x02", -1);
            break;
        }
        assert_int_equal(entries(&p), i + 1);
    }
    assert_int_equal(replay(&p, NULL).by_state[IDEM_JOURNAL_RECORDED], 6);
    assert_int_equal(entries(&p), 0);
    place_close(&p);
}

/* What is in the place of the record does not keep an outcome out, nor is the bound
 * forgotten. */
TEST(usage, isNotNeeded)
{
    struct idem_journal_options options = IDEM_JOURNAL_OPTIONS_INIT;
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_journal_entry *entry;
    struct idem_attempt *attempt;
    struct idem_journal *small;
    char path[1024];
    struct place p;

    place_open(&p);
    (void)snprintf(path, sizeof(path), "%s/usage", p.directory);
    assert_int_equal(mkdir(path, 0700), 0);
    attempt = started(&p, "k");
    (void)put(&p, attempt, &outcome);
    assert_int_equal(entries(&p), 1);
    options.entries_max = 1;
    assert_ok(idem_journal_open(p.directory, &options, &small, &why));
    outcome = completed("receipt 8");
    assert_code(IDEM_EFULL, idem_journal_put(small, p.store, attempt, &outcome,
                                             &entry, &why));
    idem_journal_close(small);
    assert_int_equal(replay(&p, NULL).by_state[IDEM_JOURNAL_RECORDED], 1);
    idem_attempt_destroy(attempt);
    place_close(&p);
}

/* A journal that is nearly full says so while it still keeps outcomes. */
TEST(usage, isNearBeforeItIsFull)
{
    struct idem_journal_options options = IDEM_JOURNAL_OPTIONS_INIT;
    struct idem_journal_usage usage = IDEM_JOURNAL_USAGE_INIT;
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_journal_entry *entry;
    struct idem_attempt *attempt;
    struct idem_journal *whole;
    struct place p;
    char key[16];
    int rc = 0;
    int i;

    place_open(&p);
    whole = p.journal;
    options.entries_max = 10;
    assert_ok(idem_journal_open(p.directory, &options, &p.journal, &why));
    for (i = 0; rc == 0; i++) {
        assert_ok(idem_journal_read_usage(p.journal, &usage, &why));
        assert_int_equal(usage.entries, i);
        assert_int_equal(usage.entries_max, 10);
        assert_true(usage.near == (i >= 8));
        (void)snprintf(key, sizeof(key), "k%d", i);
        attempt = started(&p, key);
        rc = idem_journal_put(p.journal, p.store, attempt, &outcome, &entry,
                              &why);
        if (rc == 0) {
            idem_journal_leave(entry);
        }
        idem_attempt_destroy(attempt);
    }
    assert_code(IDEM_EFULL, rc);
    assert_int_equal(i, 11);
    assert_why("holds 10 of 10 outcomes");
    assert_why(p.directory);
    assert_why("idem reconcile");
    usage.size = 0;
    assert_code(IDEM_EINVALID,
                idem_journal_read_usage(p.journal, &usage, &why));
    /* What is recorded makes room. */
    assert_int_equal(replay(&p, NULL).by_state[IDEM_JOURNAL_RECORDED], 10);
    assert_int_equal(entries(&p), 0);
    idem_journal_close(p.journal);
    p.journal = whole;
    place_close(&p);
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

/* Where one stops the next goes on: what cannot be told now does not stand in the
 * way of the rest, and comes again. */
TEST(catchUp, goesOnWhereItStopped)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_journal_entry *entry;
    struct idem_attempt *attempt;
    unsigned recorded = 0;
    unsigned in_use = 0;
    struct place p;
    int i;

    place_open(&p);
    assert_int_equal(slice(&p, 1).recorded, 0);
    put_keys(&p, 0, 7);
    attempt = started(&p, "held");
    assert_ok(
        idem_journal_put(p.journal, p.store, attempt, &outcome, &entry, &why));
    for (i = 0; i < 8; i++) {
        struct seen seen = slice(&p, 1);

        assert_int_equal(seen.recorded + seen.in_use, 1);
        recorded += seen.recorded;
        in_use += seen.in_use;
    }
    assert_int_equal(recorded, 7);
    assert_int_equal(in_use, 1);
    assert_int_equal(slice(&p, 1).in_use, 1);
    idem_journal_leave(entry);
    assert_int_equal(slice(&p, 1).recorded, 1);
    assert_int_equal(slice(&p, 1).recorded, 0);
    assert_int_equal(files(p.directory, ""), 0);
    idem_attempt_destroy(attempt);
    place_close(&p);
}

/* Many who come at once do not all read what is there. */
TEST(catchUp, isDoneByOne)
{
    struct seen seen = {.max = 100};
    struct place p;

    place_open(&p);
    put_keys(&p, 0, 5);
    seen.within = &p;
    assert_ok(idem_journal_catch_up(p.journal, p.store, note_one, &seen, &why));
    assert_int_equal(seen.recorded, 5);
    assert_int_equal(seen.told_within, 0);
    place_close(&p);
}

/* Others' entries are passed over, some of them at a time. */
TEST(catchUp, passesOverOthers)
{
    unsigned recorded = 0;
    unsigned slices = 0;
    struct place p;
    long names = 0;

    place_open(&p);
    put_keys(&p, 0, 3);
    fill(&p, 0, MANY);
    forget_usage(&p);
    while (recorded < 3) {
        struct cost cost;

        count_from_here();
        recorded += slice(&p, 100).recorded;
        cost = cost_since();
        names = cost.names > names ? cost.names : names;
        assert_true(++slices < 6);
    }
    assert_true(names < 5000);
    assert_int_equal(files(p.directory, ""), MANY);
    print_message("# 3 among %d of another store: %u slices, %ld names at "
                  "most\n",
                  MANY, slices, names);
    place_close(&p);
}

/* ---- Of older versions ---- */

/* Moves the files of entries to where older versions put them. */
static void make_old(const struct place *p)
{
    char command[2100];

    (void)snprintf(command, sizeof(command), "mv %s/by-record/*/* %s/",
                   p->directory, p->directory);
    assert_int_equal(system(command), 0);
    forget_usage(p);
}

TEST(old, isReplayedToo)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    uint8_t id[IDEM_ID_LEN];
    struct place p;
    char name[120];

    place_open(&p);
    put_keys(&p, 0, 6);
    make_old(&p);
    put_keys(&p, 6, 8);
    assert_int_equal(entries(&p), 8);
    assert_int_equal(list(&p, NULL).by_state[IDEM_JOURNAL_WAITING], 8);

    assert_ok(idem_id(idem_str(""), idem_str("k0"), id));
    filter.id = id;
    assert_int_equal(list(&p, &filter).len, 1);
    assert_int_equal(replay(&p, &filter).by_state[IDEM_JOURNAL_RECORDED], 1);
    assert_int_equal(status_of(&p, "k0", NULL), IDEM_STATUS_COMPLETED);

    /* By its name, with the directories that it would have or without. */
    assert_ok(idem_id(idem_str(""), idem_str("k1"), id));
    (void)snprintf(name, sizeof(name), "by-record/%02x/%s", id[0],
                   list(&p, &filter).of[0].name);
    filter.name = name;
    filter.id = NULL;
    assert_int_equal(list(&p, &filter).len, 1);
    assert_ok(idem_journal_drop(p.journal, name, &why));
    assert_int_equal(entries(&p), 6);

    assert_int_equal(slice(&p, 2).recorded, 2);
    assert_int_equal(slice(&p, 100).recorded, 4);
    assert_int_equal(files(p.directory, ""), 0);
    assert_int_equal(entries(&p), 0);
    place_close(&p);
    temp_remove();
}
