/* A system that fails, and processes that are killed: an outcome that was put is
 * recorded, once, whatever happens between; and nothing else is. */
#include "calls.h"
#include "lib.h"
#include "temp.h"
#include "threads.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CALLS_MAX = 400
};

static const struct idem_outcome *receipt(void)
{
    static struct idem_outcome outcome;

    outcome = completed("receipt 7");
    return &outcome;
}

static int put_once(struct place *p, const struct idem_attempt *attempt)
{
    struct idem_journal_entry *entry = NULL;
    int rc = idem_journal_put(p->journal, p->store, attempt, receipt(), &entry,
                              &why);

    idem_journal_leave(entry);
    return rc;
}

static int replay_once(struct place *p, const struct idem_attempt *attempt)
{
    (void)attempt;
    return idem_journal_replay(p->journal, p->store, NULL, NULL, NULL, &why);
}

/* The record of "k" is completed, and nothing is left to do. */
static void assert_recorded(struct place *p)
{
    assert_completed(p, "k", "receipt 7");
    assert_files(p, "", 0);
}

/* In a new place each, whichever call of @act fails with @reason (with @on, and every
 * one after it): an outcome that was put, before or by @act, is not called damaged and is
 * recorded; of another, which failed with @want, nothing is there. */
static void fail_each(int (*act)(struct place *p,
                                 const struct idem_attempt *attempt),
                      bool put_before, int reason, bool on, int want)
{
    bool hit = true;
    long n;

    for (n = 0; hit; n++) {
        struct idem_attempt *attempt;
        struct place p;
        int rc;

        place_open(&p);
        attempt = started(&p, "k");
        if (put_before) {
            assert_ok(put_once(&p, attempt));
        }
        calls_fail(CALLS_FAIL, n, on, reason);
        rc = act(&p, attempt);
        hit = calls_fail_never();
        idem_attempt_destroy(attempt);
        if (put_before || rc == 0) {
            struct told told = replay(&p, NULL);

            assert_int_equal(told.len, told.by_state[IDEM_JOURNAL_RECORDED]);
            assert_recorded(&p);
        } else {
            assert_code(want, rc);
            assert_true(why.text[0] != '\0');
            assert_files(&p, "", 0);
        }
        place_close(&p);
        assert_true(n < CALLS_MAX);
    }
    assert_true(n > 5);
}

/* A disk that is full, or fails, keeps nothing, and says so: ROW(33). */
TEST(put, keepsAllOrNothing)
{
    fail_each(put_once, false, ENOSPC, /* on= */ false, IDEM_EFULL);
    fail_each(put_once, false, ENOSPC, /* on= */ true, IDEM_EFULL);
    fail_each(put_once, false, EIO, /* on= */ false, IDEM_EUNAVAILABLE);
    fail_each(put_once, false, EMFILE, /* on= */ true, IDEM_EUNAVAILABLE);
}

/* What was there before is not lost to a second put that fails. */
TEST(put, doesNotRiskWhatIsThere)
{
    fail_each(put_once, true, EIO, /* on= */ true, 0);
}

/* What cannot be read now is not called damaged: it is told later. */
TEST(replay, onlyPutsOffWhatFails)
{
    static const int reasons[] = {EIO, ENOSPC, EMFILE};
    size_t i;

    for (i = 0; i < COUNT(reasons); i++) {
        fail_each(replay_once, true, reasons[i], /* on= */ false, 0);
        fail_each(replay_once, true, reasons[i], /* on= */ true, 0);
    }
}

/* A file that cannot be set aside is no secret: the next replay meets it again. */
TEST(damaged, isToldToStayWhereItIs)
{
    bool hit = true;
    bool stayed = false;
    long n;

    for (n = 0; hit; n++) {
        struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
        struct place p;
        struct told told;

        place_open(&p);
        filter.name = put_key(&p, "k");
        damage(&p, filter.name, -1, 60);
        calls_fail(CALLS_FAIL, n, /* on= */ false, EROFS);
        told = replay(&p, &filter);
        hit = calls_fail_never();
        if (told.by_state[IDEM_JOURNAL_DAMAGED] == 1) {
            bool is_there = files(&p, ".idj") == 1;

            assert_int_equal(is_there, told.of[0].code != IDEM_ECORRUPT);
            stayed = stayed || is_there;
        }
        place_close(&p);
    }
    assert_true(stayed);
}

/* The entry and its name are on the disk, and also one that was there, whose writer
 * may have died before its flush. */
TEST_PLACE(put, flushesEntryAndName)
{
    int i;
    struct idem_attempt *attempt = started(p, "k");

    for (i = 0; i < 2; i++) {
        calls_fail(CALLS_FAIL, 100000, /* on= */ false, EIO);
        assert_ok(put_once(p, attempt));
        assert_int_equal(calls_flushes(), 2);
        (void)calls_fail_never();
    }
    assert_files(p, "", 1);
    idem_attempt_destroy(attempt);
}

/* A write that takes less than it was given goes on where it stopped. */
TEST_PLACE(put, writesAllOfIt)
{
    struct idem_attempt *attempt = started(p, "k");

    calls_fail(CALLS_SHORT, 0, /* on= */ true, 0);
    assert_ok(put_once(p, attempt));
    assert_true(calls_fail_never());
    assert_replay(p, IDEM_JOURNAL_RECORDED, 1);
    assert_recorded(p);
    idem_attempt_destroy(attempt);
}

static int open_or_create(const char *directory)
{
    struct idem_journal *journal = NULL;
    int rc = idem_journal_open(directory, /* create= */ true, &journal, &why);

    idem_journal_close(journal);
    return rc;
}

/* Where the directory is missing and cannot be created, the error has the reason; where
 * it exists it is opened, although some file systems then refuse to create it for
 * another reason than EEXIST. */
TEST(open, saysWhyItCannotCreate)
{
    static const struct {
        int reason;
        int code;
    } rows[] = {
        {EACCES, IDEM_EDENIED},      {EPERM, IDEM_EDENIED},
        {EROFS, IDEM_EDENIED},       {ENOSPC, IDEM_EFULL},
        {EMLINK, IDEM_EUNAVAILABLE},
    };
    const char *directory = temp_path("journal");
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        calls_fail(CALLS_FAIL, 0, /* on= */ false, rows[i].reason);
        assert_code(rows[i].code, open_or_create(directory));
        assert_true(calls_fail_never());
        assert_why("cannot create");
        assert_why(strerror(rows[i].reason));
    }
    assert_ok(open_or_create(directory));
    for (i = 0; i < COUNT(rows); i++) {
        calls_fail(CALLS_FAIL, 0, /* on= */ false, rows[i].reason);
        assert_ok(open_or_create(directory));
        assert_true(calls_fail_never());
    }
}

/* ---- Killed ---- */

struct life {
    const struct place *place;
    char token[IDEM_TOKEN_MAX];
    int said; /* A pipe: 'P' once it was put, 'E' once the store knew. */
    enum calls_do what;
    long n;
    bool replays; /* Else it puts, tells the store and removes. */
};

static int end_by_token(const struct life *life, struct idem_store *store,
                        struct idem_journal *journal)
{
    struct idem_journal_entry *entry;
    struct idem_attempt *attempt;

    if (idem_attempt_from_token(store, life->token, &attempt, NULL) != 0 ||
        idem_journal_put(journal, store, attempt, receipt(), &entry, NULL) !=
            0 ||
        write(life->said, "P", 1) != 1 ||
        idem_end(attempt, receipt(), NULL) != 0 ||
        write(life->said, "E", 1) != 1) {
        return 1;
    }
    idem_journal_remove(entry);
    idem_attempt_destroy(attempt);
    return 0;
}

/* In a process of its own: a life that ends after some calls. 0: it did not. */
static int live(void *ctx)
{
    const struct life *life = ctx;
    struct idem_journal *journal;
    struct idem_store *store;
    int rc;

    if (idem_open(life->place->url, NULL, &store, NULL) != 0 ||
        idem_journal_open(life->place->directory, /* create= */ false, &journal,
                          NULL) != 0) {
        return 1;
    }
    calls_fail(life->what, life->n, /* on= */ false, 0);
    rc = life->replays
             ? idem_journal_replay(journal, store, NULL, NULL, NULL, NULL)
             : end_by_token(life, store, journal);
    (void)calls_fail_never();
    return rc == 0 ? 0 : 1;
}

static bool has_said(int from, char what)
{
    char said;

    while (read(from, &said, 1) == 1) {
        if (said == what) {
            return true;
        }
    }
    return false;
}

/* A first process is killed at call @n, and one that replays at call @m. */
static void kill_both(enum calls_do what, long n, long m, bool *ret_killed,
                      bool *ret_killed_too, unsigned *done)
{
    struct life life = {.what = what, .n = n};
    struct idem_attempt *attempt;
    struct told told;
    struct place p;
    int said[2];
    bool is_put;
    int rc;

    place_open(&p);
    life.place = &p;
    attempt = started(&p, "k");
    assert_ok(idem_attempt_token(attempt, life.token));
    idem_attempt_destroy(attempt);
    assert_int_equal(pipe(said), 0);
    life.said = said[1];
    rc = child_run(live, &life);
    assert_true(rc == 0 || rc == -1);
    *ret_killed = rc == -1;
    (void)close(said[1]);
    is_put = has_said(said[0], 'P');
    (void)close(said[0]);

    life.replays = true;
    life.n = m;
    rc = child_run(live, &life);
    assert_true(rc == 0 || rc == -1);
    *ret_killed_too = rc == -1;

    told = replay(&p, NULL);
    assert_int_equal(told.by_state[IDEM_JOURNAL_LOST], 0);
    if (is_put) {
        assert_int_equal(told.len, told.by_state[IDEM_JOURNAL_RECORDED]);
        assert_recorded(&p);
        done[0]++;
    } else if (record_of(&p, "k")->status == IDEM_STATUS_COMPLETED) {
        assert_recorded(&p);
        done[1]++;
    } else {
        /* It was killed before: what it had written is torn, and is there. */
        assert_int_equal(files(&p, ".idj"), 0);
        done[2]++;
    }
    place_close(&p);
}

/* Nothing that was put is lost, and nothing is recorded twice or half, whoever
 * is killed when: the one who puts and tells, and the one who replays. ROW(14)
 */
TEST(kill, losesNothing)
{
    static const enum calls_do when[] = {CALLS_KILL_BEFORE, CALLS_KILL_AFTER};
    unsigned done[3] = {0};
    bool killed;
    bool too;
    size_t i;
    long n;
    long m;
    long step = getenv("IDEM_TEST_LONG") != NULL ? 1 : 13;

    for (i = 0; i < COUNT(when); i++) {
        killed = true;
        for (n = 0; killed; n++) {
            too = true;
            for (m = n % step; too; m += step) {
                kill_both(when[i], n, m, &killed, &too, done);
                assert_true(m < CALLS_MAX);
            }
            assert_true(n < CALLS_MAX);
        }
    }
    assert_true(done[0] > 5 && done[1] > 5 && done[2] > 20);
    temp_remove();
}
