/* Outcomes that wait: put, told, refused, set aside. */
#include "heap.h"
#include "claims.h"
#include "lib.h"
#include "sample.h"
#include "script.h"
#include "temp.h"
#include "threads.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- What becomes of an outcome ---- */

/* What was put is told to its store, whole, whatever it was, and is gone then. */
TEST_PLACE(replay, recordsWhatWaits)
{
    size_t i;

    for (i = 0; i < SAMPLE_ENDS; i++) {
        char key[2] = {(char)('a' + i), '\0'};
        struct idem_attempt *attempt = started(p, key);
        struct idem_outcome outcome = {
            .status = sample_ends[i],
            .text = idem_str("as it was"),
        };
        const struct idem_record *record;

        if (outcome.status <= IDEM_STATUS_FAILED) {
            outcome.result.bytes = idem_str("receipt 7");
            outcome.result.content_type = idem_str("text/plain");
            outcome.result.meta = idem_str("HTTP 201");
        }
        (void)put(p, attempt, &outcome);
        idem_attempt_destroy(attempt);
        assert_files(p, ".idj", 1);
        assert_int_equal(record_of(p, key)->status, IDEM_STATUS_IN_PROGRESS);

        assert_string_equal(list(p, NULL).of[0].key, key);
        assert_replay(p, IDEM_JOURNAL_RECORDED, 1);
        assert_files(p, "", 0);
        record = record_of(p, key);
        assert_int_equal(idem_record_status(record), outcome.status);
        assert_text(outcome.status == IDEM_STATUS_FAILED ? record->error
                                                         : record->note,
                    "as it was");
        assert_slice(record->result.bytes, outcome.result.bytes);
        assert_slice(record->result.content_type, outcome.result.content_type);
        assert_slice(record->result.meta, outcome.result.meta);
        assert_int_equal(replay(p, NULL).len, 0);
    }
}

/* The content of an entry is taken up by another journal, under its name, as often as
 * it comes, and told from there; what was changed in it, anywhere, or cut, is not;
 * without memory nothing is. */
TEST_PLACE(adopt, takesWhatCanBeTrusted)
{
    struct place other = *p;
    char bytes[2048];
    char name[80];
    struct idem_slice entry;
    bool hit = true;
    size_t i;
    long n;

    (void)strcpy(name, put_key(p, "k"));
    entry = read_entry(p, name, bytes, sizeof(bytes));
    other.directory = temp_path("other");
    assert_ok(idem_journal_open(other.directory, /* create= */ true,
                                &other.journal, &why));
    for (i = 0; i < entry.len; i++) {
        bytes[i] ^= 1;
        assert_code(IDEM_ECORRUPT,
                    idem_journal_adopt(other.journal, entry, &why));
        bytes[i] ^= 1;
        assert_code(IDEM_ECORRUPT,
                    idem_journal_adopt(other.journal, idem_bytes(bytes, i),
                                       &why));
    }
    for (n = 0; hit; n++) {
        int rc;

        heap_fail(n, /* on= */ false);
        rc = idem_journal_adopt(other.journal, entry, &why);
        hit = heap_fail_never();
        assert_int_equal(rc, hit ? IDEM_ENOMEM : IDEM_OK);
        assert_files(&other, "", hit ? 0 : 1);
    }
    assert_true(n > 1);
    for (i = 0; i < 2; i++) {
        assert_ok(idem_journal_adopt(other.journal, entry, &why));
    }
    assert_string_equal(list(&other, NULL).of[0].name, name);
    assert_replay(&other, IDEM_JOURNAL_RECORDED, 1);
    assert_completed(p, "k", "receipt 7");
    idem_journal_close(other.journal);
    assert_replay(p, IDEM_JOURNAL_RECORDED, 1);
}

/* What is replayed ended when the work did, as its owner said, and else when it was
 * put; also if this host was booted since. */
TEST_PLACE(replay, knowsWhenTheWorkEnded)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct timespec boot;
    int i;

    for (i = 0; i < 2; i++) {
        struct idem_attempt *attempt = started(p, i == 0 ? "a" : "b");
        const struct idem_record *record;

        sleep_ms(60);
        if (i == 0) {
            (void)clock_gettime(CLOCK_BOOTTIME, &boot);
            outcome.ended_boot_ms =
                (int64_t)boot.tv_sec * 1000 + boot.tv_nsec / 1000000;
            sleep_ms(60);
        } else {
            outcome.ended_boot_ms = 0;
        }
        (void)put(p, attempt, &outcome);
        idem_attempt_destroy(attempt);
        sleep_ms(1500);
        assert_replay(p, IDEM_JOURNAL_RECORDED, 1);
        record = record_of(p, i == 0 ? "a" : "b");
        assert_between(record->ended_ms - record->started_ms, 55, 1400);
    }
}

/* What became of the attempt since is never written over: the outcome is set
 * aside, where a person finds it whole. */
TEST_PLACE(replay, setsAsideWhatIsLost)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct told told;
    struct idem_attempt *attempt = started(p, "k");

    (void)put(p, attempt, &outcome);
    assert_ok(idem_fail(attempt, idem_str("no"), NULL, &why));
    idem_attempt_destroy(attempt);

    told = replay(p, NULL);
    assert_int_equal(told.len, 1);
    assert_int_equal(told.of[0].state, IDEM_JOURNAL_LOST);
    assert_int_equal(told.of[0].code, IDEM_ELOST);
    assert_int_equal(record_of(p, "k")->status, IDEM_STATUS_FAILED);
    assert_files(p, ".lost", 1);
    assert_int_equal(replay(p, NULL).len, 0); /* Said once. */

    told = list(p, NULL);
    assert_int_equal(told.len, 1);
    assert_int_equal(told.of[0].state, IDEM_JOURNAL_LOST);
    assert_string_equal(told.of[0].result, "receipt 7");
    assert_ok(idem_journal_drop(p->journal, told.of[0].name, &why));
    assert_files(p, "", 0);
    assert_code(IDEM_ENOTFOUND,
                idem_journal_drop(p->journal, told.of[0].name, &why));
}

static int refusal;

static enum script_does refuse(struct script *script, struct idem_op *op)
{
    if (refusal == 0 || op->verb != IDEM_OP_END) {
        script_relay(script, op);
    } else {
        (void)idem__op_fail(op, refusal, "refused");
    }
    return SCRIPT_ANSWERS;
}

/* Whatever a store answers but LOST, the outcomes wait until they are recorded, and each is
 * reported once, in whatever order the directory has them. */
TEST_PLACE(replay, leavesWhatCannotBeTold)
{
    static const int codes[] = {
        IDEM_EUNAVAILABLE, IDEM_EUNKNOWN, IDEM_EFULL,  IDEM_ECORRUPT,
        IDEM_EDENIED,      IDEM_ECONFIG,  IDEM_ENOMEM, IDEM_EINVALID,
    };
    enum {
        RECORDS = 8
    };
    struct idem_outcome released = {.status = IDEM_STATUS_RELEASED};
    struct idem_outcome done = completed("receipt 7");
    struct script script;
    struct told told;
    size_t i;
    struct idem_store *real = p->store;

    p->store = script_open(&script, refuse, NULL);
    p->store->url = "far://away";
    p->store->remote = true;
    assert_true(idem_store_is_remote(p->store));
    refusal = 0;
    for (i = 0; i < RECORDS; i++) {
        struct idem_attempt *attempt = started(p, numbered("k", i));

        (void)put(p, attempt, &released);
        (void)put(p, attempt, &done);
        idem_attempt_destroy(attempt);
    }
    for (i = 0; i < COUNT(codes); i++) {
        refusal = codes[i];
        told = replay(p, NULL);
        assert_int_equal(told.len, 2 * RECORDS);
        assert_int_equal(told.by_state[IDEM_JOURNAL_WAITING], 2 * RECORDS);
        assert_code(codes[i], told.of[0].code);
        assert_files(p, ".idj", 2 * RECORDS);
    }
    refusal = 0;
    told = replay(p, NULL);
    assert_int_equal(told.len, 2 * RECORDS);
    assert_int_equal(told.by_state[IDEM_JOURNAL_RECORDED], RECORDS);
    assert_files(p, ".lost", RECORDS);
    idem_close(p->store);
    p->store = real;
}

/* The same outcome again is one entry. */
TEST_PLACE(put, keepsEachOutcomeOnce)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_attempt *attempt = started(p, "k");

    (void)put(p, attempt, &outcome);
    (void)put(p, attempt, &outcome);
    assert_files(p, ".idj", 1);
    assert_replay(p, IDEM_JOURNAL_RECORDED, 1);
    idem_attempt_destroy(attempt);
}

/* As many as come of one record are kept and told, also where a number
 * between them is free. */
TEST_PLACE(put, keepsManyOfOneRecord)
{
    enum {
        OUTCOMES = 20,
        DROPPED = 9
    };
    struct told told;
    char text[16];
    char name[80];
    int i;
    struct idem_attempt *attempt = started(p, "k");

    for (i = 0; i < OUTCOMES; i++) {
        struct idem_outcome outcome;
        const char *put_as;

        (void)snprintf(text, sizeof(text), "receipt %d", i);
        outcome = completed(text);
        put_as = put(p, attempt, &outcome);
        if (i == DROPPED) {
            (void)strcpy(name, put_as);
        }
    }
    assert_files(p, ".idj", OUTCOMES);
    assert_ok(idem_journal_drop(p->journal, name, &why));
    told = replay(p, NULL);
    assert_int_equal(told.len, OUTCOMES - 1);
    assert_int_equal(told.by_state[IDEM_JOURNAL_RECORDED], 1);
    assert_int_equal(told.by_state[IDEM_JOURNAL_LOST], OUTCOMES - 2);
    assert_files(p, ".lost", OUTCOMES - 2);
    idem_attempt_destroy(attempt);
}

/* Another outcome of the same attempt is another entry, and of several the one that
 * says most is told first, in whatever order the directory has them. */
TEST_PLACE(replay, tellsFirstWhatSaysMost)
{
    enum {
        RECORDS = 16
    };
    struct idem_outcome released = {.status = IDEM_STATUS_RELEASED};
    struct idem_outcome done = completed("receipt 8");
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    uint8_t id[IDEM_ID_LEN];
    struct told told;
    int i;

    for (i = 0; i < RECORDS; i++) {
        char key[2] = {(char)('a' + i), '\0'};
        struct idem_attempt *attempt = started(p, key);

        (void)put(p, attempt, &released);
        (void)put(p, attempt, &done);
        idem_attempt_destroy(attempt);
    }
    assert_ok(idem_id(idem_str(""), idem_str("a"), id));
    filter.id = id;
    told = replay(p, &filter);
    assert_int_equal(told.len, 2);
    assert_int_equal(told.of[0].state, IDEM_JOURNAL_RECORDED);
    assert_int_equal(told.of[1].state, IDEM_JOURNAL_LOST);
    told = replay(p, NULL);
    assert_int_equal(told.len, 2 * (RECORDS - 1));
    for (i = 0; i < (int)told.len; i++) {
        bool is_done = told.of[i].status == IDEM_STATUS_COMPLETED;

        assert_int_equal(told.of[i].state,
                         is_done ? IDEM_JOURNAL_RECORDED : IDEM_JOURNAL_LOST);
    }
    for (i = 0; i < RECORDS; i++) {
        char key[2] = {(char)('a' + i), '\0'};

        assert_completed(p, key, "receipt 8");
    }
}

/* What would not fit into the store does not stop an outcome from being kept. */
TEST_PLACE(put, cutsWhereAStoreCuts)
{
    enum {
        TOO_LONG = IDEM_RESULT_MAX + 1
    };
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
    char *bytes = calloc(1, TOO_LONG);
    struct idem_attempt *attempt = started(p, "k");

    assert_non_null(bytes);
    memset(bytes, 'x', IDEM_TEXT_MAX + 1);
    outcome.text = idem_bytes(bytes, IDEM_TEXT_MAX + 1);
    outcome.result.bytes = idem_bytes(bytes, TOO_LONG);
    (void)put(p, attempt, &outcome);
    outcome.result.bytes.len--;
    (void)put(p, attempt, &outcome); /* The largest fits. */
    assert_files(p, ".idj", 2);
    assert_list(p, IDEM_JOURNAL_WAITING, 2);
    /* The store keeps 16 MiB: of either only that it was done. */
    assert_ok(idem_end(attempt, &outcome, &why));
    assert_replay(p, IDEM_JOURNAL_RECORDED, 2);
    assert_true(record_of(p, "k")->result.not_kept);
    assert_int_equal(record_of(p, "k")->note.len, IDEM_TEXT_MAX);
    idem_attempt_destroy(attempt);
    free(bytes);
}

/* ---- What cannot be trusted ---- */

/* Damaged is listed, set aside by a replay, never told, and never deleted. */
static void assert_set_aside(struct place *p)
{
    struct told told;

    assert_list(p, IDEM_JOURNAL_DAMAGED, 1);
    told = replay(p, NULL);
    assert_int_equal(told.len, 1);
    assert_int_equal(told.of[0].state, IDEM_JOURNAL_DAMAGED);
    assert_int_equal(told.of[0].code, IDEM_ECORRUPT);
    assert_files(p, ".bad", 1);
    assert_int_equal(record_of(p, "k")->status, IDEM_STATUS_IN_PROGRESS);
    assert_int_equal(replay(p, NULL).len, 0);
    assert_list(p, IDEM_JOURNAL_DAMAGED, 1);
}

/* Torn or changed, an entry is set aside. */
TEST(damaged, isSetAside)
{
    struct place p;
    long at = 0;
    long len;

    do {
        char bytes[2048];
        const char *name;
        int cut;

        for (cut = at == 0 ? 0 : 1; cut >= 0; cut--) {
            place_open(&p);
            name = put_key(&p, "k");
            len = (long)read_entry(&p, name, bytes, sizeof(bytes)).len;
            damage(&p, name, cut ? at : -1, cut ? -1 : at);
            assert_set_aside(&p);
            place_close(&p);
        }
        at += 7;
    } while (at < len);
}

/* So is one under the name of another. */
TEST_PLACE(damaged, isWhatHasAnotherName)
{
    char from[700];
    char to[700];

    (void)snprintf(from, sizeof(from), "%s/%s", p->directory, put_key(p, "k"));
    (void)strcpy(to, from);
    to[strlen(to) - 9] = to[strlen(to) - 9] == 'a' ? 'b' : 'a'; /* Of ID. */
    assert_int_equal(rename(from, to), 0);
    assert_list(p, IDEM_JOURNAL_DAMAGED, 1);
    assert_set_aside(p);
}

/* A writer has put nothing yet where its file is empty: it may find it gone. */
TEST_PLACE(damaged, isNotWhatIsEmpty)
{
    damage(p, put_key(p, "k"), 0, -1);
    assert_int_equal(list(p, NULL).len, 0);
    assert_files(p, "", 1);
    assert_int_equal(replay(p, NULL).len, 0);
    assert_files(p, "", 0);
}

/* ---- The directory ---- */

static int open_journal(const char *directory, bool create)
{
    struct idem_journal *journal = NULL;
    int rc = idem_journal_open(directory, create, &journal, &why);

    idem_journal_close(journal);
    return rc;
}

/* A journal is the user's own directory, and nobody else's. */
TEST(open, wantsADirectoryOfItsOwn)
{
    const char *directory = temp_path("journal");
    const char *link = temp_path("link");
    char below[700];
    struct stat st;

    assert_code(IDEM_ENOTFOUND, open_journal(directory, false));
    (void)umask(0);
    assert_ok(open_journal(directory, true));
    (void)umask(022);
    assert_int_equal(stat(directory, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_ok(open_journal(directory, false));
    assert_ok(open_journal(directory, true));
    (void)snprintf(below, sizeof(below), "%s/not/there", directory);
    assert_code(IDEM_ENOTFOUND, open_journal(below, false));
    assert_code(IDEM_ECONFIG, open_journal(below, true));
    assert_int_equal(symlink(directory, link), 0);
    assert_code(IDEM_EDENIED, open_journal(link, false));
    assert_code(IDEM_EDENIED, open_journal(link, true));
    assert_code(IDEM_EDENIED, open_journal("/etc/passwd", false));
    assert_int_equal(chmod(directory, 0720), 0);
    assert_code(IDEM_EDENIED, open_journal(directory, false));
    assert_why("chmod 700");
    assert_int_equal(chmod(directory, 0702), 0);
    assert_code(IDEM_EDENIED, open_journal(directory, false));
    assert_int_equal(chmod(directory, 0755), 0);
    assert_ok(open_journal(directory, false));
}

/* ---- Several at once ---- */

static int is_in_use(void *ctx)
{
    return replay(ctx, NULL).by_state[IDEM_JOURNAL_IN_USE] == 1;
}

/* Whoever put an entry has it, until it is removed or left; a child that a fork gave
 * the journal has not. */
TEST_PLACE(held, isNobodyElses)
{
    struct idem_outcome outcome = completed("x");
    struct idem_attempt *attempt = started(p, "k");
    struct idem_journal_entry *entry = hold(p, attempt, &outcome);

    assert_replay(p, IDEM_JOURNAL_IN_USE, 1);
    assert_list(p, IDEM_JOURNAL_IN_USE, 1);
    assert_code(IDEM_EUNAVAILABLE,
                idem_journal_drop(p->journal, idem_journal_entry_name(entry),
                                  &why));
    assert_int_equal(record_of(p, "k")->status, IDEM_STATUS_IN_PROGRESS);
    assert_int_equal(child_run(is_in_use, p), 1);
    idem_journal_leave(entry);
    assert_replay(p, IDEM_JOURNAL_RECORDED, 1);
    idem_attempt_destroy(attempt);
}

enum {
    MANY = 40,
    REPLAYERS = 4,
    PATIENCE_MS = 60000
};

/* In a process of its own: how many were recorded; MANY + 1: it failed. */
static int replay_all(const struct place *place)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct place own = *place;
    struct told told;

    options.timeout_ms = PATIENCE_MS;
    if (idem_open(own.url, &options, &own.store, NULL) != 0 ||
        idem_journal_open(own.directory, /* create= */ false, &own.journal,
                          NULL) != 0) {
        return MANY + 1;
    }
    told = replay(&own, NULL);
    return told.by_state[IDEM_JOURNAL_LOST] == 0
               ? (int)told.by_state[IDEM_JOURNAL_RECORDED]
               : MANY + 1;
}

/* Of many who replay at once each entry is told by one of them. */
TEST_PLACE(held, isToldByOne)
{
    pid_t pids[REPLAYERS];
    int recorded = 0;
    int i;

    for (i = 0; i < MANY; i++) {
        (void)put_key(p, numbered("k", i));
    }
    for (i = 0; i < REPLAYERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            _exit(replay_all(p));
        }
    }
    for (i = 0; i < REPLAYERS; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status));
        recorded += WEXITSTATUS(status);
    }
    assert_int_equal(recorded, MANY);
    assert_files(p, "", 0);
}

/* ---- Memory ---- */

/* Without memory nothing is half done: it is kept or it is not. */
TEST_PLACE(nomem, leavesAllOrNothing)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_attempt *attempt = started(p, "k");
    bool hit = true;
    long n;
    int rc;

    for (n = 0; hit; n++) {
        struct idem_journal *journal = NULL;
        struct idem_journal_entry *entry = NULL;

        heap_fail(n, /* on= */ n % 2 == 0);
        rc = idem_journal_open(p->directory, /* create= */ false, &journal,
                               &why);
        if (rc == 0) {
            rc = idem_journal_put(journal, p->store, attempt, &outcome, &entry,
                                  &why);
        }
        hit = heap_fail_never();
        if (rc != 0) {
            assert_code(IDEM_ENOMEM, rc);
            assert_files(p, "", 0);
        }
        idem_journal_leave(entry);
        idem_journal_close(journal);
    }
    assert_true(n > 3);
    for (hit = true, n = 0; hit; n++) {
        heap_fail(n, /* on= */ false);
        rc = idem_journal_replay(p->journal, p->store, NULL, NULL, NULL, &why);
        hit = heap_fail_never();
        assert_true(rc == 0 || rc == IDEM_ENOMEM);
    }
    assert_true(n > 5);
    assert_files(p, "", 0);
    assert_completed(p, "k", "receipt 7");
    idem_attempt_destroy(attempt);
    temp_remove();
}
