/* A check of all rows and entries: it finds each kind of damage, lets others write,
 * and goes on from wherever it was stopped. */
#include "sample.h"
#include "temp.h"
#include "test.h"

#include <idem/check.h>

#include <sqlite3.h>
#include <stdlib.h>

enum {
    ROWS = 3000,
    MANY = 20000, /* For some slices. */
    GAP = 700,    /* No row has this number. */
    BIG = 20 << 20,
    SAID_MAX = 8192,
};

static char path[300];

/* ---- A store, filled ---- */

static sqlite3 *open_db(void)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 60000);
    return db;
}

static void sql(sqlite3 *db, const char *text)
{
    char *message = NULL;

    if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK) {
        fail_with("%s: %s", text, message);
    }
}

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

    sql(db, "BEGIN");
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
    sql(db, "COMMIT");
}

static sqlite3 *new_store(const char *name, int64_t rows)
{
    struct idem_store *store;
    char url[400];
    sqlite3 *db;

    (void)snprintf(path, sizeof(path), "%s", temp_path(name));
    (void)snprintf(url, sizeof(url), "sqlite:%s", path);
    assert_ok(idem_open(url, NULL, &store, &why));
    idem_close(store);
    db = open_db();
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
    assert_said(checked, "ok index: each record has its entry in 2 indexes");
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
    sql(db, text);
    (void)sqlite3_close(db);
    return open_db();
}

static void unalias(sqlite3 *db)
{
    sql(db, "PRAGMA writable_schema = ON;"
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
     "bad index: the index " BY_ID " does not fit the records in 1 entry, such "
     "as that of row 1500"},
    {BY_ID, ID_COLUMNS, "INSERT INTO alias VALUES (randomblob(32), 700)",
     "bad index: the index " BY_ID " does not fit the records in 1 entry, such "
     "as that of row 700"},
    {BY_ID, ID_COLUMNS, "INSERT INTO alias VALUES (randomblob(32), 99999999)",
     "such as that of row 99999999"},
    {BY_ID, ID_COLUMNS,
     "UPDATE alias SET seq = 3001 - seq WHERE seq IN (1500, 1501)",
     "does not fit the records in 4 entries"},
    {"idem_record_due", DUE_COLUMNS,
     "UPDATE alias SET deadline = deadline + 1 WHERE seq = 20",
     "bad index: the index idem_record_due does not fit the records in 2 "
     "entries, such as that of row 20"},
    {"idem_record_due", DUE_COLUMNS, "DELETE FROM alias WHERE seq > 2990",
     "idem_record_due does not fit the records in 10 entries"},
    {"idem_record", ROW_COLUMNS, "DELETE FROM alias WHERE seq = 2000",
     "bad index: the index " BY_ID " does not fit the records in 1 entry, such "
     "as that of row 2000"},
    {"idem_record", ROW_COLUMNS,
     "UPDATE alias SET result = x'646f6e45' WHERE seq = 3",
     "bad records: 1 of 2999 records cannot be trusted"},
    {"idem_record", ROW_COLUMNS,
     "UPDATE alias SET head = CAST(x'00' || substr(head, 2) AS BLOB) "
     "WHERE seq IN (4, 5)",
     "bad records: 2 of 2999 records cannot be trusted"},
};

/* Each entry that is missing, or too many, or of another row, and each row that is
 * gone or was changed, is found and nothing else is. */
TEST(scan, findsEachDamage)
{
    size_t i;

    for (i = 0; i < COUNT(damages); i++) {
        sqlite3 *db = new_store("damaged.db", ROWS);
        struct checked checked;

        db = alias(db, damages[i].tree, damages[i].columns);
        sql(db, damages[i].change);
        unalias(db);
        checked = check(NULL);
        assert_said(&checked, damages[i].found);
        assert_said(&checked, "ok file: it is whole");
    }
}

static int64_t number_of(sqlite3 *db, const char *text)
{
    sqlite3_stmt *stmt;
    int64_t number;

    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    number = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return number;
}

static void write_at(long at, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "r+b");

    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void read_at(long at, void *bytes, size_t len)
{
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fread(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* The place of the first leaf of the index by id, in the file. */
static long leaf_of_ids(sqlite3 *db)
{
    return 4096 * (long)(number_of(db, "SELECT pageno FROM dbstat WHERE name = "
                                       "'" BY_ID "' AND pagetype = 'leaf'") -
                         1);
}

/* Entries in the wrong order are all there, and are found by no look-up: that is
 * seen. */
TEST(scan, findsEntriesInTheWrongOrder)
{
    sqlite3 *db = new_store("disorder.db", ROWS);
    struct checked checked;
    uint8_t cells[4];
    uint8_t swapped[4];
    long leaf;

    sql(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    leaf = leaf_of_ids(db);
    (void)sqlite3_close(db);
    read_at(leaf + 8, cells, sizeof(cells)); /* Of the first two entries. */
    memcpy(swapped, cells + 2, 2);
    memcpy(swapped + 2, cells, 2);
    write_at(leaf + 8, swapped, sizeof(swapped));
    checked = check(NULL);
    assert_said(&checked, "bad index: the index " BY_ID " has 1 entry in the "
                          "wrong order");
}

/* A page that is in use and free as well is not seen in any slice, but at last. */
TEST(scan, findsAPageThatIsUsedTwice)
{
    sqlite3 *db = new_store("twice.db", ROWS);
    struct checked checked;
    uint8_t page[8] = {0};
    long leaf;

    sql(db, "CREATE TABLE gone (x); INSERT INTO gone VALUES (zeroblob(20000));"
            "DROP TABLE gone; PRAGMA wal_checkpoint(TRUNCATE)");
    leaf = leaf_of_ids(db) / 4096 + 1;
    page[2] = (uint8_t)(leaf >> 8);
    page[3] = (uint8_t)leaf;
    (void)sqlite3_close(db);
    {
        uint8_t trunk[4];
        long at;

        read_at(32, trunk, sizeof(trunk));
        at = 4096 * (((long)trunk[2] << 8 | trunk[3]) - 1);
        write_at(at + 8, page, 4); /* The first free page of the trunk. */
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
};

/* A row goes, another one comes, and the log is emptied: all readers are out. */
static int disturb(void *ctx, uint64_t done, uint64_t all)
{
    struct others *others = ctx;
    char text[100];
    int frames = -1;

    others->calls++;
    if (done < all - all / 10 && others->calls > 1) {
        (void)snprintf(text, sizeof(text),
                       "DELETE FROM idem_record WHERE seq = %lld",
                       (long long)others->next);
        sql(others->db, text);
        others->next += 250;
        assert_int_equal(sqlite3_wal_checkpoint_v2(others->db, NULL,
                                                   SQLITE_CHECKPOINT_TRUNCATE,
                                                   &frames, NULL),
                         SQLITE_OK);
        assert_int_equal(frames, 0);
    }
    return 0;
}

/* Between two slices no reader holds the log, and what others change meanwhile is no
 * damage. */
TEST(scan, letsOthersWrite)
{
    struct idem_check_options options = IDEM_CHECK_OPTIONS_INIT;
    struct others others = {.db = new_store("others.db", MANY), .next = 10};
    struct checked checked;

    options.progress = disturb;
    options.ctx = &others;
    checked = check(&options);
    assert_sound(&checked);
    assert_true(others.next > 2 * 250);
    print_message("# %d slices\n", others.calls);
    (void)sqlite3_close(others.db);
}

/* ---- Stopping ---- */

struct stopper {
    int stop_at; /* This call stops; 0: none. */
    int calls;
    uint8_t *state;
    size_t len;
    uint64_t done;
};

static int count_down(void *ctx, uint64_t done, uint64_t all)
{
    struct stopper *stopper = ctx;

    assert_true(done <= all);
    assert_true(done >= stopper->done);
    stopper->done = done;
    return ++stopper->calls == stopper->stop_at;
}

static void take_state(void *ctx, const void *state, size_t len)
{
    struct stopper *stopper = ctx;

    assert_true(len > 0 && len <= IDEM_CHECK_STATE_MAX);
    free(stopper->state);
    stopper->state = malloc(len);
    assert_non_null(stopper->state);
    memcpy(stopper->state, state, len);
    stopper->len = len;
}

static struct checked check_on(struct stopper *stopper)
{
    struct idem_check_options options = IDEM_CHECK_OPTIONS_INIT;
    struct idem_slice state = idem_bytes(stopper->state, stopper->len);

    options.state = state;
    options.progress = count_down;
    options.keep = take_state;
    options.ctx = stopper;
    stopper->calls = 0;
    return check(&options);
}

/* Stopped after each slice and gone on with, a check finds what it finds in one go,
 * and reads no row twice. */
TEST(scan, goesOnWhereItStopped)
{
    sqlite3 *db = new_store("stopped.db", MANY);
    struct stopper stopper = {.stop_at = 2};
    struct checked checked;
    int stops = 0;

    db = alias(db, BY_ID, ID_COLUMNS);
    sql(db, "DELETE FROM alias WHERE seq = 1500");
    unalias(db);
    for (;;) {
        checked = check_on(&stopper);
        if (stopper.calls < stopper.stop_at) {
            break;
        }
        assert_said(&checked, "skip ");
        assert_unsaid(&checked, "it is whole");
        stops++;
    }
    assert_said(&checked, "ok records: 19999, and all of them can be trusted; "
                          "since 20");
    assert_said(&checked, "bad index: the index " BY_ID " does not fit the "
                          "records in 1 entry, such as that of row 1500");
    assert_said(&checked, "ok file: it is whole");
    assert_true(stops >= 5); /* Rows, two indexes, suspects. */
    print_message("# %d stops\n", stops);
    free(stopper.state);
}

static void refuse(struct idem_slice state, const char *because)
{
    struct idem_check_options options = IDEM_CHECK_OPTIONS_INIT;
    struct checked checked = {.len = 0};

    options.state = state;
    assert_code(IDEM_EINVALID,
                idem_sqlite_check(path, &options, note, &checked, &why));
    assert_why(because);
}

/* A state that is damaged, too short, or of another store is refused; so is a quick
 * check with one. */
TEST(scan, takesNoStateOfOthers)
{
    struct idem_check_options options = IDEM_CHECK_OPTIONS_INIT;
    struct stopper stopper = {.stop_at = 1};
    struct idem_slice state;
    size_t i;

    (void)sqlite3_close(new_store("one.db", ROWS));
    (void)check_on(&stopper);
    state = idem_bytes(stopper.state, stopper.len);
    for (i = 0; i < state.len; i += i < 300 ? 1 : 4999) {
        stopper.state[i] ^= 4;
        refuse(state, "damaged");
        stopper.state[i] ^= 4;
    }
    for (i = 1; i < state.len; i += i < 300 ? 1 : 4999) {
        refuse(idem_bytes(state.base, i), "damaged");
    }
    options.quick = true;
    options.state = state;
    assert_code(IDEM_EINVALID,
                idem_sqlite_check(path, &options, note, NULL, &why));
    (void)sqlite3_close(new_store("two.db", ROWS));
    refuse(state, "another file");
    free(stopper.state);
}

/* ---- The quick form ---- */

/* Pages that nobody reads make it a large file. */
static sqlite3 *new_large_store(const char *name)
{
    sqlite3 *db = new_store(name, ROWS);
    char text[100];

    (void)snprintf(text, sizeof(text),
                   "CREATE TABLE large (x); INSERT INTO large VALUES "
                   "(zeroblob(%d))",
                   BIG);
    sql(db, text);
    return db;
}

/* A quick check of a large store says what it did not read, and never that all is
 * well; what is wrong with the newest records it finds. */
TEST(scan, looksQuicklyAndSaysSo)
{
    struct idem_check_options options = IDEM_CHECK_OPTIONS_INIT;
    sqlite3 *db = new_large_store("large.db");
    struct checked checked;

    options.quick = true;
    checked = check(&options);
    assert_said(&checked, "skip records: only ");
    assert_said(&checked, " of about 3000 were read, the newest and some at ");
    assert_said(&checked, "skip file: most of its ");
    assert_unsaid(&checked, "ok records");
    assert_unsaid(&checked, "ok index");
    assert_unsaid(&checked, "it is whole");
    assert_unsaid(&checked, "bad ");

    db = alias(db, BY_ID, ID_COLUMNS);
    sql(db, "DELETE FROM alias WHERE seq = 2995;"
            "INSERT INTO alias SELECT id || x'00', 700 FROM alias "
            "WHERE seq = 2993");
    unalias(db);
    db = alias(open_db(), "idem_record", ROW_COLUMNS);
    sql(db, "UPDATE alias SET result = x'00' WHERE seq = 2997");
    unalias(db);
    checked = check(&options);
    assert_said(&checked, "bad records: ");
    assert_said(&checked, "bad index: the index " BY_ID " does not fit ");
    assert_unsaid(&checked, "ok records");
}

/* A quick check of a small store reads all of it. */
TEST(scan, looksQuicklyAtAllOfASmallStore)
{
    struct idem_check_options options = IDEM_CHECK_OPTIONS_INIT;
    struct checked checked;

    (void)sqlite3_close(new_store("small.db", 20));
    options.quick = true;
    checked = check(&options);
    assert_sound(&checked);
    (void)sqlite3_close(new_store("empty.db", 0));
    checked = check(&options);
    assert_sound(&checked);
    temp_remove();
}
