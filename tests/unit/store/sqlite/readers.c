/* Readers come and die: none of them keeps a place that the others need. */
#include "temp.h"
#include "test.h"
#include "threads.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
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
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_store *store;
    char url[400];

    options.timeout_ms = PATIENCE_MS;
    (void)snprintf(path, sizeof(path), "%s", temp_path(name));
    (void)snprintf(url, sizeof(url), "sqlite:%s", path);
    assert_ok(idem_open(url, &options, &store, &why));
    return store;
}

/* One more change, so that each reader has another one before it. */
static void change(struct idem_store *store)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;
    static unsigned n;
    char key[16];

    (void)snprintf(key, sizeof(key), "k%u", n++);
    request.key = idem_str(key);
    request.on_expired_lease = IDEM_HOLD;
    assert_ok(idem_begin(store, &request, &attempt, &why));
    assert_int_equal(attempt->verdict, IDEM_STARTED);
    assert_ok(idem_complete(attempt, NULL, &why));
    idem_attempt_destroy(attempt);
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
    sqlite3 *db;
    int rc;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
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
    print_message("# %d readers were killed, %d at once\n", started, AT_ONCE);
    temp_remove();
}
