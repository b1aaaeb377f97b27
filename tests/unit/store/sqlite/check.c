/* A check of records, indexes and pages: it finds each kind of damage, lets others
 * write and their log shrink, and leaves nothing of its copy. */
#include "db.h"
#include "sample.h"
#include "temp.h"
#include "test.h"

#include <idem/check.h>

#include <signal.h>
#include <idem/sqlite.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    ROWS = 3000,
    MANY = 20000, /* For a copy in some steps. */
    GAP = 700,    /* No row has this number. */
    BIG = 20 << 20,
    SAID_MAX = 8192,
};

static char path[300];
static const char *copies; /* TMPDIR. */

/* ---- A store, filled ---- */

static void insert(sqlite3_stmt *stmt, int64_t seq)
{
    struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 3600000);
    uint8_t head[IDEM_HEAD_MAX];
    char key[32];
    size_t len;

    (void)snprintf(key, sizeof(key), "key %lld", (long long)seq);
    record.key = idem_str(key);
    record.expires_ms += seq / 10;
    assert_ok(idem_id(record.scope, record.key, record.id));
    assert_ok(idem__record_encode(&record, head, sizeof(head), &len));
    (void)sqlite3_bind_int64(stmt, 1, seq);
    (void)sqlite3_bind_blob(stmt, 2, record.id, IDEM_ID_LEN, SQLITE_STATIC);
    (void)sqlite3_bind_int(stmt, 3, (int)record.status);
    (void)sqlite3_bind_int64(stmt, 4, record.expires_ms);
    (void)sqlite3_bind_blob(stmt, 5, record.scope.base, (int)record.scope.len,
                            SQLITE_STATIC);
    (void)sqlite3_bind_blob(stmt, 6, key, (int)record.key.len, SQLITE_STATIC);
    (void)sqlite3_bind_blob(stmt, 7, head, (int)len, SQLITE_STATIC);
    (void)sqlite3_bind_blob(stmt, 8, record.result.bytes.base,
                            (int)record.result.bytes.len, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    (void)sqlite3_reset(stmt);
}

static void fill(sqlite3 *db, int64_t rows)
{
    sqlite3_stmt *stmt;
    int64_t seq;

    db_run(db, "BEGIN");
    assert_int_equal(sqlite3_prepare_v2(
                         db,
                         "INSERT INTO idem_record (seq, id, status, deadline, "
                         "scope, key, head, result) "
                         "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                         -1, &stmt, NULL),
                     SQLITE_OK);
    for (seq = 1; seq <= rows; seq++) {
        if (seq != GAP) {
            insert(stmt, seq);
        }
    }
    (void)sqlite3_finalize(stmt);
    db_run(db, "COMMIT");
}

static sqlite3 *new_store(const char *name, int64_t rows)
{
    struct idem_store *store;
    sqlite3 *db;

    if (copies == NULL) { /* SQLite looks there once. */
        copies = temp_path("copies");
        assert_int_equal(mkdir(copies, 0700), 0);
        assert_int_equal(setenv("TMPDIR", copies, 1), 0);
    }
    (void)snprintf(path, sizeof(path), "%s", temp_path(name));
    assert_ok(idem_sqlite_open(path, NULL, &store, &why));
    idem_close(store);
    db = db_open(path);
    fill(db, rows);
    return db;
}

/* ---- A check ---- */

struct checked {
    char said[SAID_MAX]; /* A line for each finding. */
    size_t len;
};

static void note(void *ctx, const struct idem_finding *finding)
{
    static const char *const grades[] = {"", "ok", "warn", "bad", "skip"};
    struct checked *checked = ctx;

    checked->len +=
        (size_t)snprintf(checked->said + checked->len, SAID_MAX - checked->len,
                         "%s %s: %s\n", grades[finding->grade], finding->about,
                         finding->text);
    assert_true(checked->len < SAID_MAX);
}

static struct checked check(const struct idem_check_options *options)
{
    struct checked checked = {.len = 0};

    assert_ok(idem_sqlite_check(path, options, note, &checked, &why));
    return checked;
}

static void assert_said(const struct checked *checked, const char *text)
{
    if (strstr(checked->said, text) == NULL) {
        fail_with("\"%s\" is not in:\n%s", text, checked->said);
    }
}

static void assert_unsaid(const struct checked *checked, const char *text)
{
    if (strstr(checked->said, text) != NULL) {
        fail_with("\"%s\" is in:\n%s", text, checked->said);
    }
}

static void assert_sound(const struct checked *checked)
{
    assert_said(checked, "ok records: ");
    assert_said(checked, "ok file: it is whole");
    assert_unsaid(checked, "bad ");
    assert_unsaid(checked, "skip ");
}

/* ---- Damage ---- */

/* A tree as a table of its own: what is written there reaches no other tree. */
static sqlite3 *alias(sqlite3 *db, const char *tree, const char *columns)
{
    char text[600];

    (void)snprintf(text, sizeof(text),
                   "PRAGMA writable_schema = ON;"
                   "INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, "
                   "sql) SELECT 'table', 'alias', 'alias', rootpage, 'CREATE "
                   "TABLE alias %s' FROM sqlite_schema WHERE name = '%s'",
                   columns, tree);
    db_run(db, text);
    (void)sqlite3_close(db);
    return db_open(path);
}

static void unalias(sqlite3 *db)
{
    db_run(db, "PRAGMA writable_schema = ON;"
               "DELETE FROM sqlite_schema WHERE name = 'alias'");
    (void)sqlite3_close(db);
}

#define BY_ID "sqlite_autoindex_idem_record_1"
#define ID_COLUMNS "(id, seq, PRIMARY KEY (id, seq)) WITHOUT ROWID"
#define DUE_COLUMNS                                                            \
    "(status, deadline, seq, PRIMARY KEY (status, deadline, seq)) WITHOUT ROWID"
#define ROW_COLUMNS                                                            \
    "(seq INTEGER PRIMARY KEY, id, status, deadline, scope, key, head, "       \
    "result, input)"

static const struct {
    const char *tree;
    const char *columns;
    const char *change;
    const char *found;
} damages[] = {
    {BY_ID, ID_COLUMNS, "DELETE FROM alias WHERE seq = 1500",
     " missing from index " BY_ID},
    {BY_ID, ID_COLUMNS, "INSERT INTO alias VALUES (randomblob(32), 700)",
     "wrong # of entries in index " BY_ID},
    {BY_ID, ID_COLUMNS, "INSERT INTO alias VALUES (randomblob(32), 99999999)",
     "wrong # of entries in index " BY_ID},
    {BY_ID, ID_COLUMNS,
     "UPDATE alias SET seq = 3001 - seq WHERE seq IN (1500, 1501)",
     " missing from index " BY_ID},
    {"idem_record_due", DUE_COLUMNS,
     "UPDATE alias SET deadline = deadline + 1 WHERE seq = 20",
     " missing from index idem_record_due"},
    {"idem_record_due", DUE_COLUMNS, "DELETE FROM alias WHERE seq > 2990",
     " missing from index idem_record_due"},
    {"idem_record", ROW_COLUMNS, "DELETE FROM alias WHERE seq = 2000",
     "wrong # of entries in index " BY_ID},
    {"idem_record", ROW_COLUMNS,
     "UPDATE alias SET result = x'646f6e45' WHERE seq = 3",
     "bad records: 1 of 2999 records cannot be trusted"},
    {"idem_record", ROW_COLUMNS,
     "UPDATE alias SET head = CAST(x'00' || substr(head, 2) AS BLOB) "
     "WHERE seq IN (4, 5)",
     "bad records: 2 of 2999 records cannot be trusted"},
};

enum {
    INDEX_DAMAGES = 7 /* The others are of records. */
};

/* Each entry that is missing, or too many, or of another row, and each row that is
 * gone or was changed, is found and nothing else is. */
TEST(check, findsEachDamage)
{
    size_t i;

    for (i = 0; i < COUNT(damages); i++) {
        sqlite3 *db = new_store("damaged.db", ROWS);
        struct checked checked;

        db = alias(db, damages[i].tree, damages[i].columns);
        db_run(db, damages[i].change);
        unalias(db);
        checked = check(NULL);
        assert_said(&checked, damages[i].found);
        assert_said(&checked, i < INDEX_DAMAGES ? "bad index: the file is "
                                                  "damaged: "
                                                : "ok file: it is whole");
        assert_unsaid(&checked, i < INDEX_DAMAGES ? "bad records" : "bad file");
        assert_unsaid(&checked,
                      i < INDEX_DAMAGES ? "it is whole" : "bad index");
    }
}

/* The place of the first leaf of the index by id, in the file. */
static long leaf_of_ids(sqlite3 *db)
{
    return 4096 * (long)(db_number(db, "SELECT pageno FROM dbstat WHERE name = "
                                       "'" BY_ID "' AND pagetype = 'leaf'") -
                         1);
}

/* Entries in the wrong order are all there, and are found by no look-up: that is
 * found. */
TEST(check, findsEntriesInTheWrongOrder)
{
    sqlite3 *db = new_store("disorder.db", ROWS);
    struct checked checked;
    uint8_t cells[4];
    uint8_t swapped[4];
    long leaf;

    db_run(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    leaf = leaf_of_ids(db);
    (void)sqlite3_close(db);
    file_read(path, "", leaf + 8, cells,
              sizeof(cells)); /* Of the first two entries. */
    memcpy(swapped, cells + 2, 2);
    memcpy(swapped + 2, cells, 2);
    file_write(path, "", leaf + 8, swapped, sizeof(swapped));
    checked = check(NULL);
    assert_said(&checked, " missing from index " BY_ID);
}

/* A page that is in use and free as well is found. */
TEST(check, findsAPageThatIsUsedTwice)
{
    sqlite3 *db = new_store("twice.db", ROWS);
    struct checked checked;
    uint8_t page[8] = {0};
    long leaf;

    db_run(db,
           "CREATE TABLE gone (x); INSERT INTO gone VALUES (zeroblob(20000));"
           "DROP TABLE gone; PRAGMA wal_checkpoint(TRUNCATE)");
    leaf = leaf_of_ids(db) / 4096 + 1;
    page[2] = (uint8_t)(leaf >> 8);
    page[3] = (uint8_t)leaf;
    (void)sqlite3_close(db);
    {
        uint8_t trunk[4];
        long at;

        file_read(path, "", 32, trunk, sizeof(trunk));
        at = 4096 * (((long)trunk[2] << 8 | trunk[3]) - 1);
        file_write(path, "", at + 8, page,
                   4); /* The first free page of the trunk. */
    }
    checked = check(NULL);
    assert_said(&checked, "ok records: ");
    assert_said(&checked, "bad file: the file is damaged: ");
    assert_unsaid(&checked, "it is whole");
}

/* ---- Others ---- */

struct others {
    sqlite3 *db;
    int calls;
    int64_t next;
    uint64_t done;
    bool copied;
};

/* A row goes in each step of the copy. Once all is copied, the log is emptied: no
 * reader is in it. */
static int disturb(void *ctx, uint64_t done, uint64_t all)
{
    struct others *others = ctx;
    char text[100];
    int frames = -1;

    assert_true(done >= others->done && done <= all);
    others->done = done;
    others->calls++;
    others->copied = others->copied || done > all / 3;
    if (!others->copied) {
        (void)snprintf(text, sizeof(text),
                       "DELETE FROM idem_record WHERE seq = %lld",
                       (long long)others->next);
        db_run(others->db, text);
        others->next += 250;
        return 0;
    }
    assert_int_equal(sqlite3_wal_checkpoint_v2(others->db, NULL,
                                               SQLITE_CHECKPOINT_TRUNCATE,
                                               &frames, NULL),
                     SQLITE_OK);
    assert_int_equal(frames, 0);
    return 0;
}

/* The copy is of one moment, whatever others change while it is made, and no reader
 * holds the log after that. */
TEST(check, letsOthersWrite)
{
    struct idem_check_options options = IDEM_CHECK_OPTIONS_INIT;
    struct others others = {.db = new_store("others.db", MANY), .next = 10};
    struct checked checked;

    options.progress = disturb;
    options.ctx = &others;
    checked = check(&options);
    assert_sound(&checked);
    assert_said(&checked, "ok records: 19999, ");
    assert_true(others.next > 10 && others.copied);
    (void)sqlite3_close(others.db);
}

/* ---- Stopping ---- */

struct stopper {
    int stop_at; /* This call stops; 0: none. */
    int calls;
};

static int count_down(void *ctx, uint64_t done, uint64_t all)
{
    struct stopper *stopper = ctx;

    assert_true(done <= all);
    return ++stopper->calls == stopper->stop_at;
}

/* Wherever a check is stopped, it says so, and never that the file is whole. */
TEST(check, saysWhereItStopped)
{
    struct idem_check_options options = IDEM_CHECK_OPTIONS_INIT;
    struct stopper stopper = {.stop_at = 0};
    struct checked checked;
    int last;

    (void)sqlite3_close(new_store("stopped.db", MANY));
    options.progress = count_down;
    options.ctx = &stopper;
    checked = check(&options);
    assert_sound(&checked);
    last = stopper.calls;
    assert_true(last > 10);
    for (stopper.stop_at = 1; stopper.stop_at <= last; stopper.stop_at++) {
        stopper.calls = 0;
        checked = check(&options);
        assert_int_equal(stopper.calls, stopper.stop_at);
        assert_said(&checked, "skip file: stopped");
        assert_unsaid(&checked, "it is whole");
        assert_unsaid(&checked, "bad ");
    }
}

/* ---- The copy ---- */

static unsigned long free_mib; /* On every disk; 0: as it is. */

/* In place of the C library's. */
int statvfs(const char *restrict name, struct statvfs *restrict fs)
{
    (void)name;
    memset(fs, 0, sizeof(*fs));
    fs->f_frsize = fs->f_bsize = 4096;
    fs->f_bfree = fs->f_bavail = (fsblkcnt_t)(free_mib > 0 ? free_mib : 10000)
                                 << 8;
    fs->f_blocks = (fsblkcnt_t)1 << 30;
    return 0;
}

static const struct idem_check_options quick = {sizeof(
                                                    struct idem_check_options),
                                                true, NULL, NULL};

/* Where the copy would leave less than 64 MiB, none is made, and that is said. */
TEST(check, leavesRoomOnTheDisk)
{
    struct checked checked;

    (void)sqlite3_close(new_store("room.db", MANY));
    free_mib = 65;
    checked = check(NULL);
    assert_said(&checked, "bad copy: records and pages were not read: a copy "
                          "takes ");
    assert_said(&checked, ", which has 65 MiB free");
    assert_unsaid(&checked, "ok records");
    assert_unsaid(&checked, "ok copy");
    checked = check(&quick);
    assert_said(&checked, "skip copy: records and pages were not read: ");
    assert_unsaid(&checked, "bad ");
    free_mib = 200;
    checked = check(NULL);
    assert_sound(&checked);
    free_mib = 0;
}

/* ---- The quick form ---- */

/* Pages that no record has make it a large file. */
static sqlite3 *new_large_store(const char *name)
{
    sqlite3 *db = new_store(name, ROWS);
    char text[100];

    (void)snprintf(text, sizeof(text),
                   "CREATE TABLE large (x); INSERT INTO large VALUES "
                   "(zeroblob(%d))",
                   BIG);
    db_run(db, text);
    return db;
}

/* A quick check of a large store says what it did not read, and never that all is
 * well. */
TEST(check, looksQuicklyAndSaysSo)
{
    struct checked checked;

    (void)sqlite3_close(new_large_store("large.db"));
    checked = check(&quick);
    assert_said(&checked, "skip records: the records and the ");
    assert_unsaid(&checked, "ok records");
    assert_unsaid(&checked, "it is whole");
    assert_unsaid(&checked, "bad ");
}
