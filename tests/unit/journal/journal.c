/* Outcomes that wait: put, told, refused, set aside. */
#include "heap.h"
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
TEST(replay, recordsWhatWaits)
{
    size_t i;

    for (i = 0; i < SAMPLE_ENDS; i++) {
        enum idem_status status = sample_ends[i];
        struct idem_outcome outcome = {
            .status = status,
            .text = idem_str("as it was"),
        };
        const struct idem_record *record;
        struct idem_answer *answer;
        struct place p;
        struct idem_attempt *attempt;
        struct told told;

        place_open(&p);
        if (status <= IDEM_STATUS_FAILED) {
            outcome.result.bytes = idem_str("receipt 7");
            outcome.result.content_type = idem_str("text/plain");
            outcome.result.meta = idem_str("HTTP 201");
        }
        attempt = started(&p, "k");
        (void)put(&p, attempt, &outcome);
        idem_attempt_destroy(attempt);
        assert_int_equal(files(p.directory, ".idj"), 1);
        assert_int_equal(status_of(&p, "k", NULL), IDEM_STATUS_IN_PROGRESS);

        told = replay(&p, NULL);
        assert_int_equal(told.len, 1);
        assert_int_equal(told.of[0].state, IDEM_JOURNAL_RECORDED);
        assert_string_equal(told.of[0].key, "k");
        assert_int_equal(files(p.directory, ""), 0);
        assert_ok(
            idem_get(p.store, idem_str(""), idem_str("k"), &answer, &why));
        record = idem_answer_record(answer);
        assert_int_equal(idem_record_status(record), status);
        assert_text(status == IDEM_STATUS_FAILED ? record->error : record->note,
                    "as it was");
        assert_slice(record->result.bytes, outcome.result.bytes);
        assert_slice(record->result.content_type, outcome.result.content_type);
        assert_slice(record->result.meta, outcome.result.meta);
        idem_answer_destroy(answer);
        assert_int_equal(replay(&p, NULL).len, 0);
        place_close(&p);
    }
}

/* The file @name of the journal @directory, in @buf. */
static size_t read_file(const char *directory, const char *name, char *buf,
                        size_t size)
{
    char path[1024];
    size_t len;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    f = fopen(path, "r");
    assert_non_null(f);
    len = fread(buf, 1, size, f);
    (void)fclose(f);
    return len;
}

/* The content of an entry is taken up by another journal, as often as it comes,
 * and told from there; what was changed in it, anywhere, or cut, is not. */
TEST_PLACE(adopt, takesWhatCanBeTrusted)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_journal *other;
    char bytes[2048];
    char name[80];
    size_t len;
    size_t i;
    struct idem_attempt *attempt = started(p, "k");

    (void)snprintf(name, sizeof(name), "%s", put(p, attempt, &outcome));
    idem_attempt_destroy(attempt);
    len = read_file(p->directory, name, bytes, sizeof(bytes));
    assert_ok(idem_journal_open(temp_path("other"), /* create= */ true, &other,
                                &why));
    for (i = 0; i < len; i++) {
        bytes[i] ^= 1;
        assert_code(IDEM_ECORRUPT,
                    idem_journal_adopt(other, idem_bytes(bytes, len), &why));
        bytes[i] ^= 1;
        assert_code(IDEM_ECORRUPT,
                    idem_journal_adopt(other, idem_bytes(bytes, i), &why));
    }
    for (i = 0; i < 3; i++) {
        assert_ok(idem_journal_adopt(other, idem_bytes(bytes, len), &why));
    }
    assert_ok(idem_journal_replay(other, p->store, NULL, NULL, NULL, &why));
    assert_int_equal(status_of(p, "k", name), IDEM_STATUS_COMPLETED);
    assert_string_equal(name, "receipt 7");
    idem_journal_close(other);
    assert_int_equal(replay(p, NULL).len, 1);
}

/* What is replayed ended when the work did, as its owner said, and else when it was
 * put; also if this host was booted since. */
TEST(replay, knowsWhenTheWorkEnded)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_attempt *attempt;
    struct idem_answer *answer;
    struct timespec boot;
    struct place p;
    int64_t began_ms;
    int64_t after_ms;
    int i;

    for (i = 0; i < 2; i++) {
        place_open(&p);
        attempt = started(&p, "k");
        began_ms = attempt->record->started_ms;
        sleep_ms(60);
        if (i == 0) {
            (void)clock_gettime(CLOCK_BOOTTIME, &boot);
            outcome.ended_boot_ms =
                (int64_t)boot.tv_sec * 1000 + boot.tv_nsec / 1000000;
            sleep_ms(60);
        } else {
            outcome.ended_boot_ms = 0;
        }
        (void)put(&p, attempt, &outcome);
        sleep_ms(1500);
        assert_int_equal(replay(&p, NULL).by_state[IDEM_JOURNAL_RECORDED], 1);
        assert_ok(
            idem_get(p.store, idem_str(""), idem_str("k"), &answer, &why));
        after_ms = idem_answer_record(answer)->ended_ms - began_ms;
        if (after_ms < 55 || after_ms > 1400) {
            fail_with("it ended %lld ms after it began", (long long)after_ms);
        }
        idem_answer_destroy(answer);
        idem_attempt_destroy(attempt);
        place_close(&p);
    }
}

/* What became of the attempt since is never written over: the outcome is set
 * aside, where a person finds it whole. */
TEST_PLACE(replay, setsAsideWhatIsLost)
{
    struct idem_outcome outcome = completed("receipt 7");
    char result[64];
    struct told told;
    struct idem_attempt *attempt = started(p, "k");

    (void)put(p, attempt, &outcome);
    assert_ok(idem_fail(attempt, idem_str("no"), NULL, &why));
    idem_attempt_destroy(attempt);

    told = replay(p, NULL);
    assert_int_equal(told.len, 1);
    assert_int_equal(told.of[0].state, IDEM_JOURNAL_LOST);
    assert_int_equal(told.of[0].code, IDEM_ELOST);
    assert_int_equal(status_of(p, "k", result), IDEM_STATUS_FAILED);
    assert_int_equal(files(p->directory, ".lost"), 1);
    assert_int_equal(files(p->directory, ""), 1);
    assert_int_equal(replay(p, NULL).len, 0); /* Said once. */

    told = list(p, NULL);
    assert_int_equal(told.len, 1);
    assert_int_equal(told.of[0].state, IDEM_JOURNAL_LOST);
    assert_string_equal(told.of[0].result, "receipt 7");
    assert_ok(idem_journal_drop(p->journal, told.of[0].name, &why));
    assert_int_equal(files(p->directory, ""), 0);
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

/* Whatever a store answers but LOST, the outcome waits until it is recorded. */
TEST_PLACE(replay, leavesWhatCannotBeTold)
{
    static const int codes[] = {
        IDEM_EUNAVAILABLE, IDEM_EUNKNOWN, IDEM_EFULL,  IDEM_ECORRUPT,
        IDEM_EDENIED,      IDEM_ECONFIG,  IDEM_ENOMEM, IDEM_EINVALID,
    };
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_attempt *attempt;
    struct script script;
    struct told told;
    size_t i;
    struct idem_store *real = p->store;

    p->store = script_open(&script, refuse, NULL);
    p->store->url = "far://away";
    p->store->remote = true;
    assert_true(idem_store_is_remote(p->store));
    refusal = 0;
    attempt = started(p, "k");
    (void)put(p, attempt, &outcome);
    idem_attempt_destroy(attempt);
    for (i = 0; i < COUNT(codes); i++) {
        refusal = codes[i];
        told = replay(p, NULL);
        assert_int_equal(told.len, 1);
        assert_int_equal(told.of[0].state, IDEM_JOURNAL_WAITING);
        assert_code(codes[i], told.of[0].code);
        assert_int_equal(files(p->directory, ".idj"), 1);
        assert_int_equal(files(p->directory, ""), 1);
    }
    refusal = 0;
    assert_int_equal(replay(p, NULL).by_state[IDEM_JOURNAL_RECORDED], 1);
    assert_int_equal(files(p->directory, ""), 0);
    idem_close(p->store);
    p->store = real;
}

/* The same outcome again is one entry; another one of the same attempt is
 * another, and of several the one that says most is told first. */
TEST_PLACE(put, keepsEachOutcomeOnce)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_outcome other = completed("receipt 8");
    char result[64];
    struct told told;
    struct idem_attempt *attempt = started(p, "k");

    (void)put(p, attempt, &outcome);
    (void)put(p, attempt, &outcome);
    assert_int_equal(files(p->directory, ""), 1);
    assert_int_equal(replay(p, NULL).len, 1);
    idem_attempt_destroy(attempt);

    attempt = started(p, "l");
    outcome.status = IDEM_STATUS_RELEASED;
    outcome.result = (struct idem_result){.not_kept = false};
    (void)put(p, attempt, &outcome);
    (void)put(p, attempt, &other);
    idem_attempt_destroy(attempt);
    assert_int_equal(files(p->directory, ""), 2);
    told = replay(p, NULL);
    assert_int_equal(told.len, 2);
    assert_int_equal(told.of[0].status, IDEM_STATUS_COMPLETED);
    assert_int_equal(told.of[0].state, IDEM_JOURNAL_RECORDED);
    assert_int_equal(told.of[1].state, IDEM_JOURNAL_LOST);
    assert_int_equal(status_of(p, "l", result), IDEM_STATUS_COMPLETED);
    assert_string_equal(result, "receipt 8");
}

/* As many as come of one record and status are kept and told, also where a number
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

        (void)snprintf(text, sizeof(text), "receipt %d", i);
        outcome = completed(text);
        if (i == DROPPED) {
            (void)strcpy(name, put(p, attempt, &outcome));
        } else {
            (void)put(p, attempt, &outcome);
        }
    }
    assert_int_equal(files(p->directory, ".idj"), OUTCOMES);
    assert_ok(idem_journal_drop(p->journal, name, &why));
    told = replay(p, NULL);
    assert_int_equal(told.len, OUTCOMES - 1);
    assert_int_equal(told.by_state[IDEM_JOURNAL_RECORDED], 1);
    assert_int_equal(told.by_state[IDEM_JOURNAL_LOST], OUTCOMES - 2);
    assert_int_equal(files(p->directory, ".idj"), 0);
    idem_attempt_destroy(attempt);
}

/* Of several outcomes of a record the one that says most is told first, in whatever
 * order the directory has them. */
TEST_PLACE(replay, tellsFirstWhatSaysMost)
{
    enum {
        RECORDS = 16
    };
    struct idem_outcome released = {.status = IDEM_STATUS_RELEASED};
    struct idem_outcome done = completed("receipt 7");
    struct told told;
    int i;

    for (i = 0; i < RECORDS; i++) {
        char key[2] = {(char)('a' + i), '\0'};
        struct idem_attempt *attempt = started(p, key);

        (void)put(p, attempt, &released);
        (void)put(p, attempt, &done);
        idem_attempt_destroy(attempt);
    }
    told = replay(p, NULL);
    assert_int_equal(told.len, 2 * RECORDS);
    for (i = 0; i < RECORDS; i++) {
        char key[2] = {(char)('a' + i), '\0'};

        assert_int_equal(status_of(p, key, NULL), IDEM_STATUS_COMPLETED);
    }
}

/* An entry that was kept elsewhere is the one that was put, and is told likewise; a
 * damaged one is not taken; without memory nothing is. */
TEST_PLACE(add, takesWhatWasPutElsewhere)
{
    struct idem_outcome outcome = completed("receipt 7");
    uint8_t bytes[1024];
    char path[800];
    char name[80];
    ssize_t len;
    bool hit = true;
    long n;
    int fd;
    struct idem_attempt *attempt = started(p, "k");

    (void)snprintf(name, sizeof(name), "%s", put(p, attempt, &outcome));
    idem_attempt_destroy(attempt);
    (void)snprintf(path, sizeof(path), "%s/%s", p->directory, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    len = read(fd, bytes, sizeof(bytes));
    assert_true(len > 0 && close(fd) == 0);
    assert_ok(idem_journal_drop(p->journal, name, &why));

    bytes[len / 2] ^= 1;
    assert_code(IDEM_ECORRUPT,
                idem_journal_adopt(p->journal, idem_bytes(bytes, (size_t)len),
                                   &why));
    bytes[len / 2] ^= 1;
    assert_int_equal(files(p->directory, ""), 0);
    for (n = 0; hit; n++) {
        int rc;

        heap_fail(n, /* on= */ false);
        rc = idem_journal_adopt(p->journal, idem_bytes(bytes, (size_t)len),
                                &why);
        hit = heap_fail_never();
        assert_int_equal(rc, hit ? IDEM_ENOMEM : IDEM_OK);
        assert_int_equal(files(p->directory, ""), hit ? 0 : 1);
    }
    assert_true(n > 1);
    assert_string_equal(list(p, NULL).of[0].name, name);
    assert_int_equal(replay(p, NULL).of[0].state, IDEM_JOURNAL_RECORDED);
    assert_int_equal(status_of(p, "k", name), IDEM_STATUS_COMPLETED);
    assert_string_equal(name, "receipt 7");
}

/* What would not fit into the store does not stop an outcome from being kept. */
TEST(put, cutsWhereAStoreCuts)
{
    enum {
        TOO_LONG = IDEM_RESULT_MAX + 1
    };
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
    const struct idem_record *record;
    char *bytes = calloc(1, TOO_LONG);
    struct idem_attempt *attempt;
    struct idem_answer *answer;
    struct place p;

    assert_non_null(bytes);
    memset(bytes, 'x', IDEM_TEXT_MAX + 1);
    place_open(&p);
    attempt = started(&p, "k");
    outcome.text = idem_bytes(bytes, IDEM_TEXT_MAX + 1);
    outcome.result.bytes = idem_bytes(bytes, TOO_LONG);
    (void)put(&p, attempt, &outcome);
    outcome.result.bytes.len--;
    (void)put(&p, attempt, &outcome); /* The largest fits. */
    assert_int_equal(files(p.directory, ""), 2);
    assert_int_equal(list(&p, NULL).by_state[IDEM_JOURNAL_WAITING], 2);
    /* The store keeps 16 MiB: of either only that it was done. */
    assert_ok(idem_end(attempt, &outcome, &why));
    assert_int_equal(replay(&p, NULL).by_state[IDEM_JOURNAL_RECORDED], 2);
    assert_ok(idem_get(p.store, idem_str(""), idem_str("k"), &answer, &why));
    record = idem_answer_record(answer);
    assert_true(record->result.not_kept);
    assert_int_equal(record->note.len, IDEM_TEXT_MAX);
    idem_answer_destroy(answer);
    idem_attempt_destroy(attempt);
    place_close(&p);
    free(bytes);
}

/* ---- What cannot be trusted ---- */

/* Torn or changed, an entry is never told, and never deleted. */
TEST(damaged, isSetAside)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_attempt *attempt;
    const char *name;
    struct told told;
    struct place p;
    long len;
    long i;

    for (i = 0; i < 2; i++) {
        for (len = i == 0 ? 1 : 0; len < 150; len += 7) {
            place_open(&p);
            attempt = started(&p, "k");
            name = put(&p, attempt, &outcome);
            damage(&p, name, i == 0 ? len : -1, i == 0 ? -1 : len);
            if (i == 1 && len == 0) {
                damage(&p, name, -1, 5);
            }
            told = list(&p, NULL);
            assert_int_equal(told.len, 1);
            assert_int_equal(told.of[0].state, IDEM_JOURNAL_DAMAGED);
            told = replay(&p, NULL);
            assert_int_equal(told.len, 1);
            assert_int_equal(told.of[0].state, IDEM_JOURNAL_DAMAGED);
            assert_int_equal(told.of[0].code, IDEM_ECORRUPT);
            assert_int_equal(files(p.directory, ".bad"), 1);
            assert_int_equal(files(p.directory, ""), 1);
            assert_int_equal(status_of(&p, "k", NULL), IDEM_STATUS_IN_PROGRESS);
            assert_int_equal(replay(&p, NULL).len, 0);
            assert_int_equal(list(&p, NULL).by_state[IDEM_JOURNAL_DAMAGED], 1);
            idem_attempt_destroy(attempt);
            place_close(&p);
        }
    }
}

/* A writer has put nothing yet where its file is empty: it may find it gone. */
TEST_PLACE(damaged, isNotWhatIsEmpty)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_attempt *attempt = started(p, "k");

    damage(p, put(p, attempt, &outcome), 0, -1);
    idem_attempt_destroy(attempt);
    assert_int_equal(list(p, NULL).len, 0);
    assert_int_equal(files(p->directory, ""), 1);
    assert_int_equal(replay(p, NULL).len, 0);
    assert_int_equal(files(p->directory, ""), 0);
}

/* An entry under the name of another is not believed. */
TEST_PLACE(damaged, isWhatHasAnotherName)
{
    struct idem_outcome outcome = completed("receipt 7");
    char from[700];
    char to[700];
    struct idem_attempt *attempt = started(p, "k");

    (void)snprintf(from, sizeof(from), "%s/%s", p->directory,
                   put(p, attempt, &outcome));
    (void)strcpy(to, from);
    to[strlen(to) - 9] = to[strlen(to) - 9] == 'a' ? 'b' : 'a'; /* Of ID. */
    assert_int_equal(rename(from, to), 0);
    assert_int_equal(replay(p, NULL).of[0].state, IDEM_JOURNAL_DAMAGED);
    assert_int_equal(files(p->directory, ".bad"), 1);
    assert_int_equal(status_of(p, "k", NULL), IDEM_STATUS_IN_PROGRESS);
    idem_attempt_destroy(attempt);
}

/* ---- The directory ---- */

static int open_journal(const char *directory, bool create)
{
    struct idem_journal *journal;
    int rc = idem_journal_open(directory, create, &journal, &why);

    if (rc == 0) {
        idem_journal_close(journal);
    }
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
    struct idem_journal_entry *entry;
    struct told told;
    struct idem_attempt *attempt = started(p, "k");

    assert_ok(idem_journal_put(p->journal, p->store, attempt, &outcome, &entry,
                               &why));
    told = replay(p, NULL);
    assert_int_equal(told.len, 1);
    assert_int_equal(told.of[0].state, IDEM_JOURNAL_IN_USE);
    assert_int_equal(list(p, NULL).of[0].state, IDEM_JOURNAL_IN_USE);
    assert_code(IDEM_EUNAVAILABLE,
                idem_journal_drop(p->journal, idem_journal_entry_name(entry),
                                  &why));
    assert_int_equal(status_of(p, "k", NULL), IDEM_STATUS_IN_PROGRESS);
    assert_int_equal(child_run(is_in_use, p), 1);
    idem_journal_leave(entry);
    assert_int_equal(replay(p, NULL).by_state[IDEM_JOURNAL_RECORDED], 1);
    idem_attempt_destroy(attempt);
}

enum {
    MANY = 40,
    REPLAYERS = 4,
    PATIENCE_MS = 60000
};

static int replay_all(void *ctx, const struct idem_journal_info *info,
                      const struct idem_error *error)
{
    unsigned *by_state = ctx;

    (void)error;
    by_state[info->state]++;
    return 0;
}

/* Of many who replay at once each entry is told by one of them. */
TEST_PLACE(held, isToldByOne)
{
    struct idem_outcome outcome = completed("x");
    unsigned recorded = 0;
    pid_t pids[REPLAYERS];
    int results[2];
    unsigned n;
    int i;

    for (i = 0; i < MANY; i++) {
        struct idem_attempt *attempt;
        char key[8];

        (void)snprintf(key, sizeof(key), "k%d", i);
        attempt = started(p, key);
        (void)put(p, attempt, &outcome);
        idem_attempt_destroy(attempt);
    }
    assert_int_equal(pipe(results), 0);
    for (i = 0; i < REPLAYERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
            unsigned by_state[IDEM_JOURNAL_NEWER + 1] = {0};
            struct idem_journal *journal;
            struct idem_store *store;

            options.timeout_ms = PATIENCE_MS;
            if (idem_open(p->url, &options, &store, NULL) != 0 ||
                idem_journal_open(p->directory, /* create= */ false, &journal,
                                  NULL) != 0 ||
                idem_journal_replay(journal, store, NULL, replay_all, by_state,
                                    NULL) != 0) {
                _exit(1);
            }
            n = by_state[IDEM_JOURNAL_RECORDED];
            _exit(by_state[IDEM_JOURNAL_LOST] == 0 &&
                          write(results[1], &n, sizeof(n)) == sizeof(n)
                      ? 0
                      : 1);
        }
    }
    for (i = 0; i < REPLAYERS; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
        assert_int_equal(read(results[0], &n, sizeof(n)), sizeof(n));
        recorded += n;
    }
    assert_int_equal(recorded, MANY);
    assert_int_equal(files(p->directory, ""), 0);
    (void)close(results[0]);
    (void)close(results[1]);
}

/* ---- Memory ---- */

/* Without memory nothing is half done: it is kept or it is not. */
TEST(nomem, leavesAllOrNothing)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_journal_entry *entry;
    struct idem_attempt *attempt;
    bool hit = true;
    struct place p;
    long n;
    int rc;

    place_open(&p);
    attempt = started(&p, "k");
    for (n = 0; hit; n++) {
        struct idem_journal *journal = NULL;

        heap_fail(n, /* on= */ n % 2 == 0);
        rc =
            idem_journal_open(p.directory, /* create= */ false, &journal, &why);
        if (rc == 0) {
            rc = idem_journal_put(journal, p.store, attempt, &outcome, &entry,
                                  &why);
        }
        hit = heap_fail_never();
        if (rc == 0) {
            idem_journal_leave(entry);
        } else {
            assert_code(IDEM_ENOMEM, rc);
            assert_int_equal(files(p.directory, ""), 0);
        }
        idem_journal_close(journal);
    }
    assert_true(n > 3);
    for (hit = true, n = 0; hit; n++) {
        heap_fail(n, /* on= */ false);
        rc = idem_journal_replay(p.journal, p.store, NULL, NULL, NULL, &why);
        hit = heap_fail_never();
        assert_true(rc == 0 || rc == IDEM_ENOMEM);
    }
    assert_true(n > 5);
    assert_int_equal(files(p.directory, ""), 0);
    assert_int_equal(status_of(&p, "k", NULL), IDEM_STATUS_COMPLETED);
    idem_attempt_destroy(attempt);
    place_close(&p);
    temp_remove();
}
