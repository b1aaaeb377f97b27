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

/* What the store knows already is recognised, and nothing is changed. */
TEST_PLACE(replay, recognisesWhatIsRecorded)
{
    struct idem_outcome outcome = completed("receipt 7");
    int64_t ended_ms;
    struct idem_attempt *attempt = started(p, "k");

    (void)put(p, attempt, &outcome);
    assert_ok(idem_end(attempt, &outcome, &why));
    ended_ms = attempt->record->ended_ms;
    sleep_ms(2);
    assert_int_equal(replay(p, NULL).by_state[IDEM_JOURNAL_RECORDED], 1);
    assert_ok(idem_end(attempt, &outcome, &why));
    assert_true(attempt->record->ended_ms == ended_ms);
    assert_int_equal(files(p->directory, ""), 0);
    idem_attempt_destroy(attempt);
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

/* A lease that ended does not keep the truth from being told; but "nothing
 * happened" comes too late. */
TEST(replay, followsTheRulesOfTheLease)
{
    static const enum idem_journal_state wanted[] = {
        [IDEM_STATUS_COMPLETED] = IDEM_JOURNAL_RECORDED,
        [IDEM_STATUS_FAILED] = IDEM_JOURNAL_RECORDED,
        [IDEM_STATUS_UNKNOWN] = IDEM_JOURNAL_RECORDED,
        [IDEM_STATUS_RELEASED] = IDEM_JOURNAL_LOST,
        [IDEM_STATUS_RETRY] = IDEM_JOURNAL_RECORDED,
    };
    size_t i;

    for (i = 0; i < SAMPLE_ENDS; i++) {
        enum idem_status status = sample_ends[i];
        struct idem_outcome outcome = {.status = status};
        struct idem_request request = IDEM_REQUEST_INIT;
        struct idem_attempt *attempt;
        struct idem_attempt *other;
        struct place p;

        place_open(&p);
        attempt = started(&p, "k");
        (void)put(&p, attempt, &outcome);
        assert_ok(idem_expire(attempt, &why));
        idem_attempt_destroy(attempt);
        request.key = idem_str("k");
        request.on_expired_lease = IDEM_HOLD;
        assert_ok(idem_begin(p.store, &request, &other, &why));
        assert_int_equal(other->verdict, IDEM_UNKNOWN);
        idem_attempt_destroy(other);
        assert_int_equal(replay(&p, NULL).of[0].state, wanted[status]);
        place_close(&p);
    }
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

/* Only what was started has an outcome, and only some things are one. */
TEST_PLACE(put, wantsAnOutcome)
{
    struct idem_outcome outcome = completed("x");
    struct idem_journal_entry *entry = NULL;
    struct idem_attempt *busy;
    struct idem_store *memory;
    struct idem_request request = IDEM_REQUEST_INIT;
    char long_text[IDEM_META_MAX + 1] = "";
    struct idem_attempt *attempt = started(p, "k");

    request.key = idem_str("k");
    request.on_expired_lease = IDEM_HOLD;
    assert_ok(idem_begin(p->store, &request, &busy, &why));
    assert_code(IDEM_EINVALID, idem_journal_put(p->journal, p->store, busy,
                                                &outcome, &entry, &why));
    outcome.status = IDEM_STATUS_IN_PROGRESS;
    assert_code(IDEM_EINVALID, idem_journal_put(p->journal, p->store, attempt,
                                                &outcome, &entry, &why));
    outcome = completed("x");
    outcome.result.content_type = idem_bytes(long_text, 256);
    assert_code(IDEM_EINVALID, idem_journal_put(p->journal, p->store, attempt,
                                                &outcome, &entry, &why));
    outcome = completed("x");
    outcome.result.meta = idem_bytes(long_text, sizeof(long_text));
    assert_code(IDEM_EINVALID, idem_journal_put(p->journal, p->store, attempt,
                                                &outcome, &entry, &why));
    outcome = completed("x");
    assert_ok(idem_open("memory:", NULL, &memory, &why));
    assert_code(IDEM_EINVALID, idem_journal_put(p->journal, memory, attempt,
                                                &outcome, &entry, &why));
    assert_ok(idem_journal_replay(p->journal, memory, NULL, NULL, NULL, &why));
    idem_close(memory);
    assert_null(entry);
    assert_int_equal(files(p->directory, ""), 0);
    idem_attempt_destroy(busy);
    idem_attempt_destroy(attempt);
}

/* An entry outlives its journal. */
TEST_PLACE(put, isKeptUntilItIsRemoved)
{
    struct idem_outcome outcome = completed("x");
    struct idem_journal_entry *entry;
    struct idem_journal *journal;
    struct idem_attempt *attempt = started(p, "k");

    assert_ok(
        idem_journal_open(p->directory, /* create= */ false, &journal, &why));
    assert_ok(
        idem_journal_put(journal, p->store, attempt, &outcome, &entry, &why));
    idem_journal_close(journal);
    assert_int_equal(files(p->directory, ""), 1);
    idem_journal_remove(entry);
    assert_int_equal(files(p->directory, ""), 0);
    idem_journal_remove(NULL);
    idem_journal_leave(NULL);
    idem_journal_close(NULL);
    idem_attempt_destroy(attempt);
}

/* ---- Which entries ---- */

/* An outcome is told to the store that it was meant for, and to another only
 * where somebody says that it has moved. */
TEST_PLACE(replay, asksTheRightStore)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_store *first;
    char url[700];
    struct told told;
    struct idem_attempt *attempt = started(p, "k");

    (void)put(p, attempt, &outcome);
    idem_attempt_destroy(attempt);
    first = p->store;
    (void)snprintf(url, sizeof(url), "sqlite:%s", temp_path("other.db"));
    assert_ok(idem_open(url, NULL, &p->store, &why));
    assert_int_equal(replay(p, NULL).len, 0);
    assert_int_equal(files(p->directory, ".idj"), 1);
    assert_int_equal(list(p, NULL).len, 1);
    filter.store_url = idem_store_url(p->store);
    assert_int_equal(list(p, &filter).len, 0);
    filter.store_url = idem_store_url(first);
    assert_int_equal(list(p, &filter).len, 1);

    /* The wrong store refuses it; it is not gone for that. */
    told = replay(p, &filter);
    assert_int_equal(told.by_state[IDEM_JOURNAL_LOST], 1);
    assert_int_equal(files(p->directory, ".lost"), 1);
    idem_close(p->store);
    p->store = first;
}

static void move_store(const char *from, const char *to)
{
    static const char *const endings[] = {"", "-wal", "-lock"};
    size_t i;

    for (i = 0; i < COUNT(endings); i++) {
        char old[700];
        char new[700];

        (void)snprintf(old, sizeof(old), "%s%s", from, endings[i]);
        (void)snprintf(new, sizeof(new), "%s%s", to, endings[i]);
        assert_int_equal(rename(old, new), 0);
    }
}

/* Where a store has moved to, what waits for it follows. */
TEST_PLACE(replay, followsAStoreThatMoved)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    struct idem_outcome outcome = completed("receipt 7");
    char before[700];
    char result[64];
    const char *to = temp_path("moved.db");
    struct idem_attempt *attempt = started(p, "k");

    (void)put(p, attempt, &outcome);
    idem_attempt_destroy(attempt);
    (void)strcpy(before, idem_store_url(p->store));
    idem_close(p->store);
    move_store(p->url + strlen("sqlite:"), to);
    (void)snprintf(p->url, sizeof(p->url), "sqlite:%s", to);
    assert_ok(idem_open(p->url, NULL, &p->store, &why));
    assert_int_equal(replay(p, NULL).len, 0);
    filter.store_url = before;
    assert_int_equal(replay(p, &filter).by_state[IDEM_JOURNAL_RECORDED], 1);
    assert_int_equal(status_of(p, "k", result), IDEM_STATUS_COMPLETED);
    assert_string_equal(result, "receipt 7");
}

/* One record's outcomes, or one file, can be chosen. */
TEST_PLACE(replay, choosesOne)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    struct idem_outcome outcome = completed("x");
    const char *const keys[] = {"a", "b", "c"};
    uint8_t id[IDEM_ID_LEN];
    char name[80] = "";
    struct told told;
    size_t i;

    for (i = 0; i < COUNT(keys); i++) {
        struct idem_attempt *attempt = started(p, keys[i]);

        (void)strcpy(name, put(p, attempt, &outcome));
        idem_attempt_destroy(attempt);
    }
    assert_int_equal(list(p, NULL).len, 3);
    assert_ok(idem_id(idem_str(""), idem_str("b"), id));
    filter.id = id;
    assert_code(IDEM_EINVALID,
                idem_journal_list(p->journal, &filter, NULL, NULL, &why));
    filter.store_url = idem_store_url(p->store);
    assert_int_equal(list(p, &filter).len, 1);
    told = replay(p, &filter);
    assert_int_equal(told.len, 1);
    assert_string_equal(told.of[0].key, "b");
    filter.id = NULL;
    filter.name = name;
    told = replay(p, &filter);
    assert_int_equal(told.len, 1);
    assert_string_equal(told.of[0].key, "c");
    assert_int_equal(status_of(p, "a", NULL), IDEM_STATUS_IN_PROGRESS);
    filter.size = 0;
    assert_code(IDEM_EINVALID, idem_journal_replay(p->journal, p->store,
                                                   &filter, NULL, NULL, &why));
    assert_code(IDEM_EINVALID,
                idem_journal_list(p->journal, &filter, NULL, NULL, &why));
    assert_ok(
        idem_journal_replay(p->journal, p->store, NULL, NULL, NULL, &why));
    assert_int_equal(status_of(p, "a", NULL), IDEM_STATUS_COMPLETED);
}

static int stop_at_first(void *ctx, const struct idem_journal_info *info,
                         const struct idem_error *error)
{
    (void)info;
    (void)error;
    ++*(unsigned *)ctx;
    return 1;
}

/* Who is told may stop it. */
TEST_PLACE(replay, stopsWhenTold)
{
    struct idem_outcome outcome = completed("x");
    unsigned seen = 0;
    int i;

    for (i = 0; i < 3; i++) {
        char key[2] = {(char)('a' + i), '\0'};
        struct idem_attempt *attempt = started(p, key);

        (void)put(p, attempt, &outcome);
        idem_attempt_destroy(attempt);
    }
    assert_ok(idem_journal_list(p->journal, NULL, stop_at_first, &seen, &why));
    assert_int_equal(seen, 1);
    assert_ok(idem_journal_replay(p->journal, p->store, NULL, stop_at_first,
                                  &seen, &why));
    assert_int_equal(seen, 2);
    assert_int_equal(files(p->directory, ""), 2);
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
        for (len = 0; len < 150; len += 7) {
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

/* What a newer version wrote waits for that version. */
TEST_PLACE(damaged, isNotWhatIsNewer)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct told told;
    struct idem_attempt *attempt = started(p, "k");

    damage(p, put(p, attempt, &outcome), -1, 4);
    idem_attempt_destroy(attempt);
    told = replay(p, NULL);
    assert_int_equal(told.of[0].state, IDEM_JOURNAL_NEWER);
    assert_int_equal(files(p->directory, ".idj"), 1);
    assert_int_equal(list(p, NULL).of[0].state, IDEM_JOURNAL_NEWER);
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

/* What others leave in the directory is left alone, and shown. */
TEST_PLACE(foreign, isLeftAlone)
{
    static const char *const names[] = {
        "README",
        "01234567-0123456789abcdef-2-0",
        "01234567-0123456789abcdef-9-0.idj",
        "01234567-0123456789abcdef-2-1000.idj",
        "01234567-0123456789abcdef-2-.idj",
        "01234567-0123456789ABCDEF-2-0.idj",
        "01234567-0123456789abcdef-2-0.idj~",
        "0123456-0123456789abcdef-2-0.idj",
        "a-name-that-is-much-longer-than-any-name-of-an-entry-can-ever-be.idj",
        ".hidden",
    };
    static const char entry[] = "/01234567-0123456789abcdef-2-0.";
    char path[900];
    struct told told;
    size_t i;

    for (i = 0; i < COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", p->directory, names[i]);
        assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    }
    (void)snprintf(path, sizeof(path), "%s%sidj", p->directory, entry);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s%s1.lost", p->directory, entry);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    (void)snprintf(path, sizeof(path), "%s%s1.bad", p->directory, entry);
    assert_int_equal(mkfifo(path, 0600), 0);
    told = list(p, NULL);
    assert_int_equal(told.len, COUNT(names) + 3);
    assert_int_equal(told.by_state[IDEM_JOURNAL_DAMAGED], told.len);
    assert_int_equal(replay(p, NULL).len, 0);
    assert_int_equal(list(p, NULL).len, COUNT(names) + 3);
    assert_code(IDEM_ENOTFOUND, idem_journal_drop(p->journal, "README", &why));
    assert_code(IDEM_ENOTFOUND,
                idem_journal_drop(p->journal, "../idem.db", &why));
    assert_code(IDEM_ENOTFOUND, idem_journal_drop(p->journal, entry + 1, &why));
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

/* Files are for the user alone, whatever the umask. */
TEST_PLACE(put, makesPrivateFiles)
{
    struct idem_outcome outcome = completed("x");
    char path[700];
    struct stat st;
    struct idem_attempt *attempt = started(p, "k");

    (void)umask(0);
    (void)snprintf(path, sizeof(path), "%s/%s", p->directory,
                   put(p, attempt, &outcome));
    (void)umask(022);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    idem_attempt_destroy(attempt);
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
