/* Readers come and die: none of them keeps a place that the others need. */
#include "claims.h"
#include "db.h"
#include "temp.h"
#include "test.h"
#include "threads.h"

#include <idem/check.h>

#include <signal.h>
#include <idem/sqlite.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    THREADS = 40, /* More than a handle has connections for. */
    DEATHS = 130, /* More than other stores have places for. */
    AT_ONCE = 10, /* More than a log has marks for readers. */
    EACH_READS = 20,
    PATIENCE_MS = 60000,
};

static char path[300];

static struct idem_store *open_new(const char *name)
{
    (void)snprintf(path, sizeof(path), "%s", temp_path(name));
    return db_store(path, PATIENCE_MS);
}

/* One more change, of @bytes, so that each reader has another one before it. */
static void change_by(struct idem_store *store, size_t bytes)
{
    static const char result[1 << 16];
    static size_t n;
    struct idem_request request = claim(numbered("k", n++));
    struct idem_result done = {.bytes = idem_bytes(result, bytes)};
    struct idem_attempt *attempt;

    assert_true(bytes <= sizeof(result));
    assert_ok(idem_begin(store, &request, &attempt, &why));
    assert_int_equal(attempt->verdict, IDEM_STARTED);
    assert_ok(idem_complete(attempt, &done, &why));
    idem_attempt_destroy(attempt);
}

static void change(struct idem_store *store)
{
    change_by(store, 0);
}

/* ---- In one process ---------------------------------------------------- */

struct crowd {
    struct idem_store *store;
    int codes[THREADS];
};

static void read_often(void *ctx, size_t i)
{
    struct crowd *crowd = ctx;
    struct idem_error error;
    int n;

    for (n = 0; n < EACH_READS && crowd->codes[i] == 0; n++) {
        struct idem_answer *answer = NULL;

        crowd->codes[i] = idem_get(crowd->store, idem_str(""), idem_str("k0"),
                                   &answer, &error);
        idem_answer_destroy(answer);
    }
}

/* ROW(36) Whoever finds all connections in use waits for one. */
TEST(readers, shareTheConnectionsOfAHandle)
{
    struct crowd crowd = {.store = open_new("crowd.db")};
    size_t i;

    change(crowd.store);
    threads_run(THREADS, read_often, &crowd);
    for (i = 0; i < THREADS; i++) {
        assert_code(IDEM_OK, crowd.codes[i]);
    }
    idem_close(crowd.store);
}

/* ---- In many ----------------------------------------------------------- */

/* In the child: reads, and stays in the middle of it. */
static void read_for_ever(int ready)
{
    sqlite3_stmt *stmt;
    sqlite3 *db;

    /* A test that fails ends without it. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "SELECT count(*) FROM idem_record", -1, &stmt,
                           NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW) {
        _exit(1);
    }
    (void)!write(ready, "r", 1);
    for (;;) {
        (void)pause();
    }
}

static pid_t start_reader(void)
{
    int ends[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        read_for_ever(ends[1]);
    }
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    (void)close(ends[0]);
    return pid;
}

static void kill_reader(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* All that is in the log can be brought over: no reader is in the way. */
static void assert_nobody_reads(void)
{
    sqlite3 *db = db_open(path);
    int rc;

    rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                   NULL);
    assert_int_equal(rc, SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ROW(36) Readers that are killed leave nothing behind, and while more of them
 * live than the log has marks for, everybody reads and writes on. */
TEST(readers, leaveNoPlaceTakenWhenTheyAreKilled)
{
    struct idem_store *store = open_new("killed.db");
    pid_t readers[AT_ONCE];
    int started = 0;
    int i;

    change(store);
    for (i = 0; i < AT_ONCE; i++, started++) {
        readers[i] = start_reader();
        change(store);
    }
    for (; started < DEATHS; started++) {
        i = started % AT_ONCE;
        kill_reader(readers[i]);
        readers[i] = start_reader();
        if (started % AT_ONCE == 0) {
            change(store);
        }
    }
    for (i = 0; i < AT_ONCE; i++) {
        kill_reader(readers[i]);
    }
    idem_close(store);
    assert_nobody_reads();
}
/* ---- A log that cannot shrink ------------------------------------------ */

enum {
    MUCH = 1 << 16,     /* Bytes: 16 pages of the log, and some more. */
    TO_FIRST_TRY = 200, /* Changes: over 2,000 pages. */
    MORE = 80,
    TO_A_LONG_LOG = 600, /* Over 32 MiB. */
    NOTE_AT = 256,       /* In the lock file. */
    SEQUENCE_AT = 12,    /* In the log: how often it began anew. */
};

static unsigned word_at(const char *suffix, long at)
{
    unsigned char bytes[4];

    file_read(path, suffix, at, bytes, sizeof(bytes));
    return (unsigned)bytes[0] << 24 | (unsigned)bytes[1] << 16 |
           (unsigned)bytes[2] << 8 | bytes[3];
}

static void change_often(struct idem_store *store, int times)
{
    for (; times > 0; times--) {
        change_by(store, MUCH);
    }
}

/* Each try costs as much as the log is long: beside a reader that stays it is not
 * made at each commit, whichever process commits. */
TEST(log, isSeldomTriedBesideAReader)
{
    struct idem_store *store = open_new("refused.db");
    unsigned last;
    unsigned now;
    int tries = 0;
    pid_t reader;
    int i;

    change(store);
    reader = start_reader();
    change_often(store, TO_FIRST_TRY);
    last = word_at("-lock", NOTE_AT);
    assert_true(last >= 2000);
    for (i = 0; i < MORE; i++) {
        if (i >= MORE / 2) {
            idem_close(store);
            store = open_new("refused.db");
        }
        change_often(store, 1);
        now = word_at("-lock", NOTE_AT);
        tries += now != last;
        last = now;
    }
    kill_reader(reader);
    assert_between(tries, 0, MORE / 4);
    idem_close(store);
}

/* It begins anew once the reader has gone. */
TEST(log, beginsAnewAfterItsReader)
{
    struct idem_store *store = open_new("gone.db");
    unsigned sequence;
    pid_t reader;

    change(store);
    reader = start_reader();
    change_often(store, TO_FIRST_TRY);
    sequence = word_at("-wal", SEQUENCE_AT);
    kill_reader(reader);
    change_often(store, 2 * TO_FIRST_TRY);
    assert_int_equal(word_at("-lock", NOTE_AT), 0);
    assert_true(word_at("-wal", SEQUENCE_AT) > sequence);
    idem_close(store);
}

/* ---- Readers that keep out --------------------------------------------- */

enum {
    KEEP_OUT_AT = 260, /* In the lock file. */
    KEEP_OUT_MS = 40,
    TIMES = 20,
    MANY_CHANGES = 4000,
    MANY_LOOKS = 100,
};

static void note_keep_out(uint32_t until)
{
    unsigned char bytes[4] = {(unsigned char)(until >> 24),
                              (unsigned char)(until >> 16),
                              (unsigned char)(until >> 8),
                              (unsigned char)until};

    file_write(path, "-lock", KEEP_OUT_AT, bytes, sizeof(bytes));
}

static int64_t mono_ms(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void read_once(struct idem_store *store)
{
    struct idem_answer *answer = NULL;

    assert_ok(idem_get(store, idem_str(""), idem_str("k"), &answer, &why));
    idem_answer_destroy(answer);
}

/* Closing any descriptor of the lock file drops its locks: nothing is written
 * meanwhile. A reader begins no earlier than it is asked to; what no checkpoint can
 * have asked does not keep it. */
TEST(readers, keepOutForAMoment)
{
    struct idem_store *store = open_new("out.db");
    struct idem_request request = claim("k");
    int i;

    run(store, &request, "");
    read_once(store);
    for (i = 0; i < TIMES; i++) {
        int64_t until = mono_ms() + KEEP_OUT_MS / 2;

        note_keep_out((uint32_t)until);
        read_once(store);
        assert_true(mono_ms() >= until);
    }
    note_keep_out((uint32_t)(mono_ms() + 3600000)); /* Of another boot. */
    read_once(store);
    note_keep_out((uint32_t)(mono_ms() - 3600000));
    read_once(store);
    idem_close(store);
}

/* In the child: until readers are asked to keep out. */
static void wait_for_note(void)
{
    const struct timespec pause = {.tv_nsec = 200000};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (word_at("-lock", KEEP_OUT_AT) == 0) {
        (void)nanosleep(&pause, NULL);
    }
    _exit(0);
}

/* A long log that a reader keeps makes a checkpoint ask all readers to keep out, and
 * take that back when it is over. */
TEST(log, asksReadersToKeepOut)
{
    struct idem_store *store = open_new("ask.db");
    int changes = 0;
    pid_t watcher;
    pid_t reader;
    int status;

    change(store);
    reader = start_reader();
    (void)fflush(NULL);
    watcher = fork();
    if (watcher == 0) {
        wait_for_note();
    }
    while (waitpid(watcher, &status, WNOHANG) == 0 &&
           changes++ < MANY_CHANGES) {
        change_often(store, 1);
    }
    kill_reader(reader);
    assert_true(changes < MANY_CHANGES);
    assert_int_equal(status, 0);
    assert_int_equal(word_at("-lock", KEEP_OUT_AT), 0);
    idem_close(store);
}

struct told {
    char text[512];
    char mend[512];
};

static void take_finding(void *ctx, const struct idem_finding *finding)
{
    struct told *told = ctx;

    if (strcmp(finding->about, "log") == 0) {
        assert_int_equal(finding->grade, IDEM_GRADE_WARN);
        (void)snprintf(told->text, sizeof(told->text), "%s", finding->text);
        (void)snprintf(told->mend, sizeof(told->mend), "%s", finding->mend);
    }
}

/* A check names the process that keeps the log; and no other. */
TEST(log, isToldWithItsReader)
{
    struct idem_store *store = open_new("told.db");
    struct told told = {"", ""};
    unsigned looks = 0;
    char wanted[64];
    pid_t reader;

    change(store);
    reader = start_reader();
    change_often(store, TO_A_LONG_LOG);
    (void)snprintf(wanted, sizeof(wanted), "process %ld (", (long)reader);
    /* The kernel lists its locks by the page: a look may miss one while others come
     * and go. */
    do {
        assert_ok(idem_sqlite_check(path, NULL, take_finding, &told, &why));
    } while (strstr(told.text, wanted) == NULL && looks++ < MANY_LOOKS);
    assert_non_null(strstr(told.text, wanted));
    (void)snprintf(wanted, sizeof(wanted), "ps -fp %ld", (long)reader);
    assert_non_null(strstr(told.mend, wanted));
    kill_reader(reader);
    told.text[0] = '\0';
    assert_ok(idem_sqlite_check(path, NULL, take_finding, &told, &why));
    assert_string_equal(told.text, "");
    idem_close(store);
    temp_remove();
}
