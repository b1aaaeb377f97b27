/* One bit of the file flips: what is replayed is what was recorded, or nothing
 * is. */
#include "temp.h"
#include "test.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESULT "the receipt of order 42"
#define INPUT "charge 42 euros"

enum file {
    DB,
    LOG,
    FILES,
};

static const char *const endings[] = {[DB] = "", [LOG] = "-wal"};

static char path[300];

/* The files as they were written. */
static struct {
    uint8_t *bytes;
    size_t len;
} image[FILES];

/* ---- The store --------------------------------------------------------- */

static int open_at(struct idem_store **ret_store)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    char url[400];

    options.timeout_ms = 50;
    (void)snprintf(url, sizeof(url), "sqlite:%s", path);
    return idem_open(url, &options, ret_store, &why);
}

static struct idem_request request_for(const char *key)
{
    struct idem_request request = IDEM_REQUEST_INIT;

    request.key = idem_str(key);
    request.on_expired_lease = IDEM_HOLD;
    request.input = idem_str(INPUT);
    request.lease_ms = request.retention_ms = 86400000;
    return request;
}

/* Two records, so that one can be taken for the other: one that is completed, and
 * one that is not. */
static void make(void)
{
    struct idem_request held = request_for("held");
    struct idem_request done = request_for("order-42");
    struct idem_result result = {.bytes = idem_str(RESULT)};
    struct idem_attempt *attempt;
    struct idem_store *store;

    (void)snprintf(path, sizeof(path), "%s", temp_path("flips.db"));
    assert_ok(open_at(&store));
    assert_ok(idem_begin(store, &held, &attempt, &why));
    idem_attempt_destroy(attempt);
    assert_ok(idem_begin(store, &done, &attempt, &why));
    assert_ok(idem_complete(attempt, &result, &why));
    idem_attempt_destroy(attempt);
    idem_close(store);
}

/* Brings all that is in the log into the database. */
static void carry_over(void)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL,
                                  NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void name_of(char buf[320], const char *ending)
{
    (void)snprintf(buf, 320, "%s%s", path, ending);
}

static void read_images(void)
{
    char name[320];
    struct stat st;
    size_t i;

    for (i = 0; i < FILES; i++) {
        int fd;

        name_of(name, endings[i]);
        fd = open(name, O_RDONLY | O_CLOEXEC);
        free(image[i].bytes);
        image[i].len = 0;
        image[i].bytes = NULL;
        if (fd >= 0) {
            assert_int_equal(fstat(fd, &st), 0);
            image[i].len = (size_t)st.st_size;
            image[i].bytes = malloc(image[i].len + 1);
            assert_int_equal(read(fd, image[i].bytes, image[i].len),
                             image[i].len);
            (void)close(fd);
        }
    }
}

/* The files as they were; what lies beside them is made anew. */
static void write_images(void)
{
    char name[320];
    size_t i;

    name_of(name, "-shm");
    (void)unlink(name);
    for (i = 0; i < FILES; i++) {
        int fd;

        name_of(name, endings[i]);
        (void)unlink(name);
        if (image[i].len > 0) {
            fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
            assert_int_equal(write(fd, image[i].bytes, image[i].len),
                             image[i].len);
            (void)close(fd);
        }
    }
}

/* ---- What a flip does -------------------------------------------------- */

enum outcome {
    UNTOUCHED, /* All is as it was. */
    REFUSED,   /* An error. */
    OLDER,     /* What came last is gone: the claim is there, not its end. */
    FORGOTTEN, /* The record is not found: it would be done again. */
    WRONG,     /* A verdict or a result that was never recorded. */
    OUTCOMES,
};

static enum outcome ask_done(struct idem_store *store)
{
    struct idem_request request = request_for("order-42");
    struct idem_attempt *attempt;
    enum outcome outcome = WRONG;

    if (idem_begin(store, &request, &attempt, &why) != 0) {
        return REFUSED;
    }
    if (attempt->verdict == IDEM_STARTED) {
        outcome = FORGOTTEN;
    } else if (attempt->verdict == IDEM_BUSY) {
        outcome = OLDER;
    } else if (attempt->verdict == IDEM_REPLAY) {
        const struct idem_slice bytes = attempt->record->result.bytes;

        if (bytes.len == strlen(RESULT) &&
            memcmp(bytes.base, RESULT, bytes.len) == 0) {
            outcome = UNTOUCHED;
        }
    }
    idem_attempt_destroy(attempt);
    return outcome;
}

static enum outcome ask_held(struct idem_store *store)
{
    struct idem_request request = request_for("held");
    struct idem_attempt *attempt;
    enum outcome outcome = WRONG;

    if (idem_begin(store, &request, &attempt, &why) != 0) {
        return REFUSED;
    }
    if (attempt->verdict == IDEM_STARTED) {
        outcome = FORGOTTEN;
    } else if (attempt->verdict == IDEM_BUSY) {
        outcome = UNTOUCHED;
    }
    idem_attempt_destroy(attempt);
    return outcome;
}

static enum outcome worse(enum outcome a, enum outcome b)
{
    return a > b ? a : b;
}

static enum outcome ask(void)
{
    enum outcome outcome;
    struct idem_store *store;

    if (open_at(&store) != 0) {
        return REFUSED;
    }
    outcome = worse(ask_held(store), ask_done(store));
    idem_close(store);
    return outcome;
}

static enum outcome flip(enum file file, size_t at, unsigned bit)
{
    image[file].bytes[at] ^= (uint8_t)(1u << bit);
    write_images();
    image[file].bytes[at] ^= (uint8_t)(1u << bit);
    return ask();
}

/* ---- Where ------------------------------------------------------------- */

static size_t find(const char *text)
{
    const uint8_t *found =
        memmem(image[DB].bytes, image[DB].len, text, strlen(text));

    assert_non_null(found);
    return (size_t)(found - image[DB].bytes);
}

static bool is_long(void)
{
    return getenv("IDEM_TEST_LONG") != NULL;
}

static void say(const char *where, const unsigned long *counts)
{
    unsigned long all = 0;
    int i;

    for (i = 0; i < OUTCOMES; i++) {
        all += counts[i];
    }
    print_message("# %s: %lu flips, %lu refused, %lu without consequence, %lu "
                  "older, %lu forgotten, %lu wrong\n",
                  where, all, counts[REFUSED], counts[UNTOUCHED], counts[OLDER],
                  counts[FORGOTTEN], counts[WRONG]);
}

/* ROW(73) Every byte of a record, its scope, key, head, result and input: it is
 * refused, and nothing is started. */
TEST(flips, areFoundInEveryByteOfARecord)
{
    unsigned long counts[OUTCOMES] = {0};
    size_t first;
    size_t at;
    size_t end;

    make();
    carry_over();
    read_images();
    /* In the row the key stands before the head, and the input is last. */
    first = find("order-42IDR1");
    end = find(RESULT INPUT) + strlen(RESULT INPUT);
    assert_true(end > first && end - first < 1000);
    for (at = first; at < end; at++) {
        unsigned bit;

        for (bit = 0; bit < 8; bit += is_long() ? 1 : 8) {
            enum outcome outcome = flip(DB, at, is_long() ? bit : at % 8);

            counts[outcome]++;
            if (outcome != REFUSED) {
                fail_with("byte %zu of the record: outcome %d", at - first,
                          outcome);
            }
        }
    }
    say("a record", counts);
    assert_true(counts[REFUSED] >= 200);
}

static void flip_all(enum file file, size_t step, unsigned long *counts)
{
    size_t at;

    read_images();
    assert_true(image[file].len > 4096);
    for (at = 0; at < image[file].len; at += step) {
        enum outcome outcome = flip(file, at, (unsigned)(at % 8));

        counts[outcome]++;
        if (outcome == WRONG) {
            fail_with("byte %zu: a verdict that was never due", at);
        }
    }
}

/* ROW(73) A bit anywhere in the file: never a wrong replay. SQLite's pages have no
 * checksums: a bit of the index can hide a record. */
TEST(flips, neverMakeAWrongReplay)
{
    unsigned long counts[OUTCOMES] = {0};

    make();
    carry_over();
    flip_all(DB, is_long() ? 1 : 29, counts);
    say("the file", counts);
    assert_int_equal(counts[OLDER], 0);
    assert_true(counts[REFUSED] > 0 && counts[UNTOUCHED] > 0);
}

/* ROW(73) A bit in the log: likewise. A frame that does not match its checksum, and
 * all behind it, SQLite takes for what a power cut left. */
TEST(flips, ofTheLogNeverMakeAWrongReplay)
{
    unsigned long counts[OUTCOMES] = {0};

    make();
    flip_all(LOG, is_long() ? 7 : 211, counts);
    say("the log", counts);
    assert_true(counts[FORGOTTEN] + counts[OLDER] > 0);
    temp_remove();
    free(image[DB].bytes);
    free(image[LOG].bytes);
}
