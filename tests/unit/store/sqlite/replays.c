/* Replays from memory: never one that others have seen replaced.
 *
 * A record whose head was overwritten in the file tells the two apart: read from the
 * file it is CORRUPT, and from memory it is replayed. */
#include "contract/move.h"
#include "store/sqlite/store.h"

#include "claims.h"
#include "db.h"
#include "host.h"
#include "temp.h"
#include "test.h"
#include "threads.h"

#include <idem/operator.h>
#include <idem/sqlite.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RETENTION_MS = 60000
};

/* Two handles of a store, as two processes have them: but for the lock's page they share
 * nothing. And a host whose clocks are ours. */
struct pair {
    struct host host;
    const char *path;
    struct idem_store *reader;
    struct idem_store *writer;
};

static struct idem_store *open_at(struct pair *pair, size_t cache_max)
{
    struct idem_open_options options = host_options(&pair->host, false);
    struct idem_store *store;

    options.cache_max = cache_max;
    assert_ok(idem_sqlite_open(pair->path, &options, &store, &why));
    return store;
}

/* Of one request, or of another one. */
static struct idem_slice print_of(const char *text)
{
    static uint8_t prints[2][IDEM_FINGERPRINT_LEN];
    uint8_t *print = prints[text[0] == 'a'];
    struct idem_slice part = idem_str(text);

    assert_ok(idem_fingerprint(&part, 1, idem_bytes(NULL, 0), print));
    return idem_bytes(print, IDEM_FINGERPRINT_LEN);
}

static struct idem_request request_of(const char *key)
{
    struct idem_request request = claim(key);

    request.retention_ms = RETENTION_MS;
    request.fingerprint = print_of("this");
    return request;
}

static void open_pair(struct pair *pair)
{
    struct idem_request request = request_of("k");

    memset(pair, 0, sizeof(*pair));
    host_init(&pair->host);
    pair->path = temp_path("idem.db");
    pair->writer = open_at(pair, 0);
    run(pair->writer, &request, "first");
    pair->reader = open_at(pair, (size_t)1 << 20);
}

static void close_pair(struct pair *pair)
{
    idem_close(pair->reader);
    idem_close(pair->writer);
}

#define TEST_PAIR(suite, condition)                                            \
    TEST_WITH(suite, condition, struct pair, pair, open_pair, close_pair)

static struct idem__sqlite_store *inside(struct idem_store *store)
{
    return (struct idem__sqlite_store *)store;
}

static uint64_t generation(const struct pair *pair)
{
    return idem__files_generation(inside(pair->reader));
}

/* The record is replayed with @text. */
static void expect_text(struct idem_store *store, const char *key,
                        const char *text)
{
    struct idem_request request = request_of(key);

    assert_text(begin(store, &request, IDEM_REPLAY)->record->result.bytes,
                text);
}

/* Has the record kept in memory: what is asked for once is not. */
static void keep(struct idem_store *store, const char *key)
{
    expect_text(store, key, "first");
    expect_text(store, key, "first");
}

/* From here on only memory has the records. */
static void damage(const struct pair *pair)
{
    db_run_at(pair->path, "UPDATE idem_record SET head = x'00'");
}

static void expect_from_file(struct idem_store *store, const char *key)
{
    struct idem_request request = request_of(key);
    struct idem_attempt *attempt;

    assert_code(IDEM_ECORRUPT, idem_begin(store, &request, &attempt, &why));
}

/* A person has decided @text, and may be corrected. */
static void decide(struct idem_store *store, const char *key, const char *text)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED,
                                   .text = idem_str("looked")};
    uint64_t fence = get(store, key)->fence;

    outcome.result.bytes = idem_str(text);
    assert_ok(idem_resolve(store, idem_str(""), idem_str(key), fence,
                           idem_str("ann"), &outcome, /* flags= */ 0, &why));
}

/* "d" is completed by a person with "first". */
static void make_decided(struct pair *pair)
{
    struct idem_request request = request_of("d");
    struct idem_attempt *attempt = begin(pair->writer, &request, IDEM_STARTED);

    assert_ok(idem_unknown(attempt, idem_str("lost"), &why));
    decide(pair->writer, "d", "first");
}

/* ---- What is replayed from memory ---------------------------------------- */

/* A record that was replayed twice is replayed from memory, as often as it is asked for;
 * one that was replayed once is read again, and without room for any each is. */
TEST_PAIR(memory, replays)
{
    struct idem_counters counters = IDEM_COUNTERS_INIT;
    struct idem_request once = request_of("once");

    run(pair->writer, &once, "first");
    keep(pair->reader, "k");
    expect_text(pair->reader, "once", "first");
    expect_text(pair->writer, "k", "first");
    damage(pair);
    expect_text(pair->reader, "k", "first");
    expect_text(pair->reader, "k", "first");
    expect_from_file(pair->reader, "once");
    expect_from_file(pair->writer, "k");
    assert_ok(idem_count(pair->reader, &counters, &why));
    assert_int_equal(counters.replayed, 5);
}

/* The fingerprint of each request is compared. */
TEST_PAIR(memory, comparesFingerprints)
{
    struct idem_request request = request_of("k");
    struct idem_attempt *attempt;

    keep(pair->reader, "k");
    damage(pair);
    request.fingerprint = print_of("another");
    attempt = begin(pair->reader, &request, IDEM_MISMATCH);
    assert_int_equal(attempt->record->result.bytes.len, 0);
}

/* It is over when its retention is, to the millisecond. */
TEST_PAIR(memory, keepsTheRetention)
{
    struct idem_request request = request_of("k");

    keep(pair->reader, "k");
    host_pass(&pair->host, RETENTION_MS - 1);
    expect_text(pair->reader, "k", "first");
    host_pass(&pair->host, 1);
    run(pair->reader, &request, "second");
    expect_text(pair->reader, "k", "second");
}

/* The record that was used longest ago makes room. */
TEST(memory, isBounded)
{
    struct pair pair;
    struct idem_request request;
    size_t i;

    open_pair(&pair);
    idem_close(pair.reader);
    pair.reader = open_at(&pair, 8192);
    keep(pair.reader, "k");
    for (i = 0; i < 20; i++) {
        request = request_of(numbered("n", i));
        run(pair.writer, &request, "first");
        keep(pair.reader, numbered("n", i));
        keep(pair.reader, "k");
    }
    damage(&pair);
    expect_text(pair.reader, "k", "first");
    expect_text(pair.reader, "n19", "first");
    expect_from_file(pair.reader, "n0");
    close_pair(&pair);
}

/* ---- What ends it ------------------------------------------------------------ */

/* A record that an old store has of "k", which is over by then. */
static void import(struct pair *pair)
{
    struct idem_record record = *get(pair->writer, "k");
    bool added;

    host_pass(&pair->host, RETENTION_MS);
    record.expires_ms += 2 * RETENTION_MS;
    record.fence++;
    assert_ok(idem_import(pair->writer, &record, &added, &why));
    assert_true(added);
}

static void reopen(struct pair *pair)
{
    assert_ok(idem_reopen(pair->writer, idem_str(""), idem_str("k"),
                          get(pair->writer, "k")->fence, idem_str("ann"),
                          idem_str("again"), &why));
}

static void correct(struct pair *pair)
{
    decide(pair->writer, "d", "second");
}

static void purge(struct pair *pair)
{
    uint64_t purged;

    host_pass(&pair->host, RETENTION_MS);
    assert_ok(idem_purge(pair->writer, 10, &purged, &why));
    assert_true(purged > 0);
}

static void start_anew(struct pair *pair)
{
    struct idem_request request = request_of("k");

    host_pass(&pair->host, RETENTION_MS);
    expect(pair->writer, &request, IDEM_STARTED);
}

static void restore(struct pair *pair)
{
    struct idem_sqlite_restored restored = IDEM_SQLITE_RESTORED_INIT;

    assert_ok(
        idem_sqlite_mark_restored(pair->path, NULL, NULL, &restored, &why));
}

static void set_clock(struct pair *pair)
{
    struct idem_open_options options = host_options(&pair->host, false);
    int64_t from_ms;
    int64_t to_ms;

    host_set_wall(&pair->host, pair->host.wall_ms - RETENTION_MS);
    assert_ok(
        idem_sqlite_set_clock(pair->path, &options, &from_ms, &to_ms, &why));
    assert_true(to_ms < from_ms);
}

static void move(struct pair *pair)
{
    struct idem_move was;
    struct idem_move left = {.state = IDEM_MOVE_LEFT, .id = {1}};

    assert_ok(idem__move_get(pair->writer, &was, &why));
    assert_ok(idem__move_set(pair->writer, &was, &left, &why));
}

/* Memory is what answers a key here, if anything does. */
static void expect_no_replay(struct idem_store *store, const char *key)
{
    struct idem_request request = request_of(key);
    struct idem_attempt *attempt;

    if (idem_begin(store, &request, &attempt, &why) == 0) {
        assert_int_not_equal(attempt->verdict, IDEM_REPLAY);
        idem_attempt_destroy(attempt);
    }
}

/* Each change of a completed record, by any process, ends the copies in memory. */
TEST(change, endsReplays)
{
    static const struct {
        const char *name;
        void (*change)(struct pair *pair);
    } rows[] = {
        {"import", import},       {"reopen", reopen},    {"correct", correct},
        {"purge", purge},         {"start", start_anew}, {"restore", restore},
        {"set clock", set_clock}, {"move", move},
    };

    EACH(row, rows) {
        struct pair pair;
        uint64_t before;

        open_pair(&pair);
        make_decided(&pair);
        keep(pair.reader, "k");
        keep(pair.reader, "d");
        before = generation(&pair);
        row->change(&pair);
        if (generation(&pair) <= before || generation(&pair) % 2 != 0) {
            fail_with("%s: generation %llu after %llu", row->name,
                      (unsigned long long)generation(&pair),
                      (unsigned long long)before);
        }
        damage(&pair);
        expect_no_replay(pair.reader, "k");
        expect_no_replay(pair.reader, "d");
        close_pair(&pair);
    }
}

/* New operations, ends and renewals leave it. */
TEST_PAIR(change, isNoNewOperation)
{
    struct idem_request request = request_of("new");
    uint64_t before = generation(pair);
    struct idem_attempt *attempt = begin(pair->writer, &request, IDEM_STARTED);

    assert_ok(idem_renew(attempt, 0, &why));
    assert_ok(complete(attempt, "first"));
    assert_true(before > 0);
    assert_true(generation(pair) == before);
}

/* After a record was reopened it is not replayed. */
TEST_PAIR(change, isSeenAfterItsAnswer)
{
    struct idem_request request = request_of("k");

    make_decided(pair);
    keep(pair->reader, "k");
    keep(pair->reader, "d");
    correct(pair);
    expect_text(pair->reader, "d", "second");
    reopen(pair);
    expect(pair->reader, &request, IDEM_STARTED);
}

/* A store that was left is left by memory too. */
TEST_PAIR(change, leavesTheStore)
{
    struct idem_request request = request_of("k");
    struct idem_attempt *attempt;

    keep(pair->reader, "k");
    move(pair);
    assert_code(IDEM_ECONFIG,
                idem_begin(pair->reader, &request, &attempt, &why));
}

/* ---- In the middle of a change ----------------------------------------------- */

static struct pair *hooked;
static unsigned calls;

/* Just before the change is committed: the old record is read once more. */
static int before_commit(void *ctx)
{
    (void)ctx;
    calls++;
    keep(hooked->reader, "d");
    return 0;
}

/* A record that was read while a change was in flight is not kept beyond it. */
TEST_PAIR(middle, isNotKept)
{
    sqlite3 *db = inside(pair->writer)->table.conn->db;

    make_decided(pair);
    hooked = pair;
    calls = 0;
    (void)sqlite3_commit_hook(db, before_commit, NULL);
    correct(pair);
    (void)sqlite3_commit_hook(db, NULL, NULL);
    assert_int_equal(calls, 1);
    expect_text(pair->reader, "d", "second");
}

/* Committed, and not answered yet: others see the new record already. */
static int after_commit(void *ctx, sqlite3 *db, const char *name, int pages)
{
    (void)ctx;
    (void)db;
    (void)name;
    (void)pages;
    calls++;
    expect_text(hooked->writer, "d", "second");
    expect_text(hooked->reader, "d", "second");
    return SQLITE_OK;
}

/* Once a change can be seen nobody is told what was before it. */
TEST_PAIR(middle, endsReplays)
{
    sqlite3 *db = inside(pair->writer)->table.conn->db;

    make_decided(pair);
    keep(pair->reader, "d");
    hooked = pair;
    calls = 0;
    (void)sqlite3_wal_hook(db, after_commit, NULL);
    correct(pair);
    (void)sqlite3_wal_hook(db, NULL, NULL);
    assert_int_equal(calls, 1);
}

/* A row was read, and not looked at yet: the whole change comes in between. */
static int after_row(unsigned event, void *ctx, void *stmt, void *more)
{
    const char *sql = sqlite3_sql(stmt); /* NULL: one of SQLite's own. */

    (void)event;
    (void)ctx;
    (void)more;
    if (sql != NULL && strstr(sql, "FROM idem_record") != NULL &&
        calls++ == 0) {
        correct(hooked);
    }
    return 0;
}

/* A reader that was overtaken by a change keeps nothing. */
TEST_PAIR(middle, overtakesAReader)
{
    struct idem__conn *conn;

    make_decided(pair);
    hooked = pair;
    calls = 0;
    expect_text(pair->reader, "d", "first");
    conn = inside(pair->reader)->readers.idle;
    assert_non_null(conn);
    assert_null(conn->next);
    (void)sqlite3_trace_v2(conn->db, SQLITE_TRACE_ROW, after_row, NULL);
    expect_text(pair->reader, "d", "first");
    assert_true(calls > 0);
    expect_text(pair->reader, "d", "second");
}

/* In the child: dies between the two raises. */
static int die_in_a_change(void *ctx)
{
    struct pair *pair = ctx;
    static const struct idem__share plain = {0600, (uid_t)-1, (gid_t)-1};
    struct idem__lock *lock;
    char name[600];

    (void)snprintf(name, sizeof(name), "%s-lock", pair->path);
    if (idem__lock_open(name, &plain, &lock, NULL) != 0 ||
        idem__lock_acquire(lock, now_ms() + 60000, NULL) != 0) {
        return 1;
    }
    idem__lock_change(lock, /* begins= */ true);
    _exit(0);
}

/* After a death in the middle nothing is replayed from memory until somebody opens the
 * store, or changes a record. */
TEST_PAIR(middle, isLeftByTheDead)
{
    keep(pair->reader, "k");
    assert_int_equal(child_run(die_in_a_change, pair), 0);
    assert_int_equal(generation(pair) % 2, 1);
    keep(pair->reader, "k"); /* Not in memory. */
    idem_close(open_at(pair, 0));
    assert_int_equal(generation(pair) % 2, 0);
    keep(pair->reader, "k");
    damage(pair);
    keep(pair->reader, "k");
}

/* ---- Files -------------------------------------------------------------------- */

/* A store that does not lie in its place any more is not replayed from memory. */
TEST_PAIR(file, isLookedFor)
{
    char away[600];

    (void)snprintf(away, sizeof(away), "%s-away", pair->path);
    keep(pair->reader, "k");
    damage(pair);
    keep(pair->reader, "k");
    assert_int_equal(rename(pair->path, away), 0);
    expect_from_file(pair->reader, "k");
    assert_int_equal(rename(away, pair->path), 0);
    keep(pair->reader, "k");
}

/* Beside a lock file that was renamed others count their changes in a new one. */
TEST_PAIR(file, ofTheLockIsFoundByItsName)
{
    char name[600];
    char away[600];

    (void)snprintf(name, sizeof(name), "%s-lock", pair->path);
    (void)snprintf(away, sizeof(away), "%s-away", pair->path);
    keep(pair->reader, "k");
    damage(pair);
    keep(pair->reader, "k");
    assert_int_equal(rename(name, away), 0);
    expect_from_file(pair->reader, "k");
    assert_int_equal(rename(away, name), 0);
    keep(pair->reader, "k");
}

/* Without its lock file, or the words in it, nobody can tell what was changed. A number
 * that was lost does not come again. */
TEST(file, ofTheLockIsLookedAt)
{
    static const bool deletes[] = {false, true};

    EACH(row, deletes) {
        struct pair pair;
        char name[600];

        open_pair(&pair);
        (void)snprintf(name, sizeof(name), "%s-lock", pair.path);
        keep(pair.reader, "k");
        damage(&pair);
        assert_int_equal(*row ? unlink(name) : truncate(name, 0), 0);
        sleep_ms(
            2); /* Until then the writer trusts its last look at the file. */
        expect_from_file(pair.reader, "k");
        assert_int_equal(generation(&pair), 0);
        if (!*row) {
            /* The next process to take the lock begins another count. */
            struct idem_request request = request_of("new");

            run(pair.writer, &request, "first");
            assert_true(generation(&pair) > 0);
            expect_from_file(pair.reader, "k");
        }
        close_pair(&pair);
    }
}

/* ---- Two processes --------------------------------------------------------------- */

enum {
    CORRECTIONS = 400
};

struct shared {
    unsigned answered; /* The number of the last decision that was answered. */
    int failed;
};

/* In the child: decides again and again, and notes each answer. */
static void correct_often(const char *path, struct shared *shared)
{
    struct idem_store *store;
    unsigned n;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (idem_sqlite_open(path, NULL, &store, NULL) != 0) {
        _exit(1);
    }
    for (n = 2; n <= CORRECTIONS; n++) {
        struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED,
                                       .text = idem_str("looked")};
        struct idem_answer *answer;

        outcome.result.bytes = idem_str(numbered("", n));
        if (idem_get(store, idem_str(""), idem_str("d"), &answer, NULL) != 0 ||
            idem_resolve(store, idem_str(""), idem_str("d"),
                         idem_answer_record(answer)->fence, idem_str("ann"),
                         &outcome, /* flags= */ 0, NULL) != 0) {
            _exit(1);
        }
        idem_answer_destroy(answer);
        __atomic_store_n(&shared->answered, n, __ATOMIC_SEQ_CST);
        if (n % 8 == 0) {
            sleep_ms(1); /* So that some are replayed from memory. */
        }
    }
    _exit(0);
}

static unsigned replayed(struct idem_store *store)
{
    struct idem_request request = request_of("d");
    struct idem_attempt *attempt;
    struct idem_slice text;
    char number[16] = "";

    assert_ok(idem_begin(store, &request, &attempt, &why));
    assert_int_equal(attempt->verdict, IDEM_REPLAY);
    text = attempt->record->result.bytes;
    assert_true(text.len < sizeof(number));
    memcpy(number, text.base, text.len);
    idem_attempt_destroy(attempt);
    return (unsigned)strtoul(number, NULL, 10);
}

/* One process changes a record, and another replays it all the time: what was answered
 * there before it asks is what it is told, or something newer. */
TEST(processes, seeEachOthersChanges)
{
    struct pair pair;
    struct shared *shared;
    struct idem_store *store;
    pid_t pid;
    int status;

    open_pair(&pair);
    make_decided(&pair);
    decide(pair.writer, "d", "1");
    close_pair(&pair);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    shared->answered = 1;
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        correct_often(pair.path, shared);
    }
    store = db_store(pair.path, 60000);
    while (__atomic_load_n(&shared->answered, __ATOMIC_SEQ_CST) < CORRECTIONS &&
           waitpid(pid, &status, WNOHANG) == 0) {
        unsigned least = __atomic_load_n(&shared->answered, __ATOMIC_SEQ_CST);
        unsigned got = replayed(store);

        if (got < least) {
            fail_with("%u is replayed after %u was answered", got, least);
        }
    }
    assert_int_equal(waitpid(pid, &status, 0) == pid ? status : 0, 0);
    assert_int_equal(replayed(store), CORRECTIONS);
    idem_close(store);
    (void)munmap(shared, sizeof(*shared));
}
