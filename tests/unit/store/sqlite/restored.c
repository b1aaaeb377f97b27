/* A file that was put back from a copy: noticed, marked, and safe from then on.
 * ROW(32) */
#include "claims.h"
#include "db.h"
#include "host.h"
#include "temp.h"
#include "test.h"

#include <idem/operator.h>
#include <idem/sqlite.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

/* A store on a host whose clocks are ours, so that days can go by. */
struct shop {
    struct host host;
    const char *path;
    const char *copy;
    struct idem_store *store;
};

static void close_shop(struct shop *shop)
{
    idem_close(shop->store);
    shop->store = NULL;
}

static void open_shop(struct shop *shop)
{
    struct idem_open_options options = host_options(&shop->host, false);

    close_shop(shop);
    assert_ok(idem_sqlite_open(shop->path, &options, &shop->store, &why));
}

static void make_shop(struct shop *shop)
{
    memset(shop, 0, sizeof(*shop));
    shop->path = temp_path("idem.db");
    shop->copy = temp_path("copy.db");
    host_init(&shop->host);
    open_shop(shop);
}

#define TEST_SHOP(suite, condition)                                            \
    TEST_WITH(suite, condition, struct shop, shop, make_shop, close_shop)

static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 20];
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    size_t len;

    assert_non_null(in);
    assert_non_null(out);
    len = fread(bytes, 1, sizeof(bytes), in);
    assert_true(len > 0 && len < sizeof(bytes));
    assert_int_equal(fwrite(bytes, 1, len, out), len);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

/* As an operator would, while the store is in use. */
static void back_up(const struct shop *shop)
{
    sqlite3 *from;
    sqlite3 *to;
    sqlite3_backup *backup;

    assert_int_equal(sqlite3_open_v2(shop->path, &from, SQLITE_OPEN_READONLY,
                                     NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_open(shop->copy, &to), SQLITE_OK);
    backup = sqlite3_backup_init(to, "main", from, "main");
    assert_non_null(backup);
    assert_int_equal(sqlite3_backup_step(backup, -1), SQLITE_DONE);
    assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
    (void)sqlite3_close(to);
    (void)sqlite3_close(from);
}

static void remove_beside(const char *path, const char *suffix)
{
    char name[600];

    (void)snprintf(name, sizeof(name), "%s%s", path, suffix);
    (void)unlink(name);
}

/* Takes the time of the newest commit out of the lock file. */
static void forget_how_new(const char *path)
{
    static const char zeros[32];

    file_write(path, "-lock", 64, zeros, sizeof(zeros));
}

/* Closes the store, and puts the copy into its place. */
static void put_back(struct shop *shop)
{
    close_shop(shop);
    remove_beside(shop->path, "-wal");
    remove_beside(shop->path, "-shm");
    copy_file(shop->copy, shop->path);
}

static struct idem_sqlite_restored mark(const struct shop *shop)
{
    struct idem_sqlite_restored restored = IDEM_SQLITE_RESTORED_INIT;

    assert_ok(
        idem_sqlite_mark_restored(shop->path, NULL, NULL, &restored, &why));
    return restored;
}

static struct idem_attempt *begin_as(struct idem_store *store, const char *key,
                                     enum idem_on_expired_lease policy)
{
    struct idem_request request = claim(key);
    struct idem_attempt *attempt;

    request.on_expired_lease = policy;
    request.lease_ms = 3600000;
    request.retention_ms = IDEM_NEVER; /* Marking has the clock of today. */
    request.attempts_max = 0;
    assert_ok(idem_begin(store, &request, &attempt, &why));
    return freed_later(attempt);
}

/* The fence of a claim that must be STARTED; nobody ends it. */
static uint64_t begin_fence(struct idem_store *store, const char *key)
{
    struct idem_attempt *attempt = begin_as(store, key, IDEM_RERUN);
    uint64_t fence = attempt->fence;

    assert_int_equal(attempt->verdict, IDEM_STARTED);
    return fence;
}

static void expect_status(struct idem_store *store, const char *key,
                          enum idem_status status, const char *note)
{
    const struct idem_record *record = get(store, key);

    if (record->status != status) {
        fail_with("%s is %s", key, idem_status_name(record->status));
    }
    if (note != NULL) {
        char text[300];

        (void)snprintf(text, sizeof(text), "%.*s", (int)record->note.len,
                       (const char *)record->note.base);
        assert_non_null(strstr(text, note));
    }
}

/* A person says that nothing happened. */
static void release(struct idem_store *store, const char *key)
{
    struct idem_outcome outcome = {
        .status = IDEM_STATUS_RELEASED,
        .text = idem_str("looked"),
    };

    assert_ok(idem_resolve(store, idem_str(""), idem_str(key),
                           get(store, key)->fence, idem_str("ann"), &outcome,
                           /* flags= */ 0, &why));
}

/* One record of every status. */
static void fill(struct idem_store *store)
{
    (void)begin_as(store, "hold", IDEM_HOLD);
    (void)begin_as(store, "rerun", IDEM_RERUN);
    assert_ok(
        idem_complete(begin_as(store, "completed", IDEM_HOLD), NULL, &why));
    assert_ok(idem_fail(begin_as(store, "failed", IDEM_HOLD), idem_str("no"),
                        NULL, &why));
    assert_ok(idem_unknown(begin_as(store, "unknown", IDEM_HOLD),
                           idem_str("who knows"), &why));
    assert_ok(idem_release(begin_as(store, "released", IDEM_HOLD),
                           idem_str("not today"), &why));
    assert_ok(idem_retry(begin_as(store, "retry", IDEM_HOLD),
                         idem_str("the bank was away"), &why));
}

/* What was in progress in the copy, or was to be run again, is unknown for good and says
 * why; the rest is as it was, what came after the copy is gone, and to mark once more
 * changes nothing. */
TEST_SHOP(mark, callsOpenAttemptsUnknown)
{
    struct idem_sqlite_restored restored;
    const struct idem_record *record;
    struct idem_answer *answer;

    fill(shop->store);
    back_up(shop);
    host_pass(&shop->host, 5000);
    (void)begin_fence(shop->store, "later");
    put_back(shop);
    restored = mark(shop);
    assert_int_equal(restored.unknown, 3);
    assert_int_equal(restored.cut_off, 0);
    assert_int_equal(restored.corrupt, 0);
    assert_int_equal(restored.times, 1);
    assert_int_equal(restored.known_ms, HOST_WALL_MS);

    open_shop(shop);
    expect_status(shop->store, "hold", IDEM_STATUS_UNKNOWN,
                  "restored from a copy");
    expect_status(shop->store, "rerun", IDEM_STATUS_UNKNOWN,
                  "2023-11-14T22:13:20Z");
    expect_status(shop->store, "completed", IDEM_STATUS_COMPLETED, NULL);
    expect_status(shop->store, "failed", IDEM_STATUS_FAILED, NULL);
    expect_status(shop->store, "unknown", IDEM_STATUS_UNKNOWN, "who knows");
    expect_status(shop->store, "released", IDEM_STATUS_RELEASED, "not today");
    expect_status(shop->store, "retry", IDEM_STATUS_UNKNOWN, NULL);
    record = get(shop->store, "retry");
    assert_false(record->retry);
    assert_true(record->expires_ms == IDEM_NEVER);
    assert_int_equal(record->attempts, 1);
    assert_code(IDEM_ENOTFOUND, idem_get(shop->store, idem_str(""),
                                         idem_str("later"), &answer, &why));
    close_shop(shop);
    restored = mark(shop);
    assert_int_equal(restored.unknown + restored.cut_off, 0);
}

#define TWENTY_YEARS_MS (INT64_C(20) * 365 * 86400 * 1000)

/* The fences that three keys were given after the copy was made, while the clock
 * of the host was wrong by years: one that was taken over, one that was new, one
 * that was released and begun. */
static void use_fences(struct shop *shop, uint64_t ret_fences[3])
{
    struct idem_attempt *attempt;
    int i;

    close_shop(shop);
    host_reboot(&shop->host, TWENTY_YEARS_MS);
    open_shop(shop);
    for (i = 0; i < 5; i++) {
        host_pass(&shop->host, 3600001);
        ret_fences[0] = begin_fence(shop->store, "taken");
    }
    ret_fences[1] = begin_fence(shop->store, "new");
    for (i = 0; i < 50; i++) {
        attempt = begin_as(shop->store, "released", IDEM_RERUN);
        ret_fences[2] = attempt->fence;
        assert_ok(idem_release(attempt, idem_str("not today"), &why));
    }
}

static void prepare_fences(struct shop *shop)
{
    (void)begin_fence(shop->store, "taken");
    assert_ok(idem_release(begin_as(shop->store, "released", IDEM_RERUN),
                           idem_str("not today"), &why));
    back_up(shop);
}

/* No fence that was given out in what was lost is given out again. */
TEST_SHOP(mark, raisesTheFencesAboveWhatWasLost)
{
    static const char *const keys[] = {"taken", "new", "released"};
    struct idem_sqlite_restored restored;
    uint64_t lost[3];
    size_t i;

    prepare_fences(shop);
    use_fences(shop, lost);
    put_back(shop);
    restored = mark(shop);
    open_shop(shop);
    release(shop->store, "taken");
    for (i = 0; i < COUNT(keys); i++) {
        uint64_t fence = begin_fence(shop->store, keys[i]);

        assert_true(restored.fence > lost[i]);
        assert_true(fence > restored.fence);
        assert_true(fence < (uint64_t)1 << 53); /* JSON's numbers hold it. */
    }
}

/* The control: the same without the mark, where nothing could notice it. */
TEST_SHOP(mark, isWhatRaisesThem)
{
    uint64_t lost[3];
    uint64_t first;

    prepare_fences(shop);
    use_fences(shop, lost);
    put_back(shop);
    forget_how_new(shop->path);
    open_shop(shop);
    first = begin_fence(shop->store, "taken");
    assert_true(first <= lost[0]);
}

/* So are fences of which only the floor is left, because their records were
 * purged. */
TEST_SHOP(mark, goesBeyondPurgedFences)
{
    static const uint64_t high = (uint64_t)1 << 60;
    struct idem_sqlite_restored restored;
    struct idem_record record;
    uint64_t purged = 0;

    fill(shop->store);
    record = *get(shop->store, "completed");
    record.key = idem_str("imported");
    assert_ok(idem_id(record.scope, record.key, record.id));
    record.fence = high;
    record.retention_ms = 1000;
    record.expires_ms = record.ended_ms + 1000;
    assert_ok(idem_import(shop->store, &record, NULL, &why));
    host_pass(&shop->host, 5000);
    assert_ok(idem_purge(shop->store, 1000, &purged, &why));
    assert_int_equal(purged, 1);
    back_up(shop);
    put_back(shop);
    restored = mark(shop);
    assert_true(restored.fence > high + 1000);
}

/* Ends @attempt by every verb: none may pass. */
static void assert_lost(struct idem_attempt *attempt)
{
    assert_code(IDEM_ELOST, idem_renew(attempt, 0, &why));
    assert_code(IDEM_ELOST, idem_complete(attempt, NULL, &why));
    assert_code(IDEM_ELOST, idem_fail(attempt, idem_str("no"), NULL, &why));
    assert_code(IDEM_ELOST, idem_release(attempt, idem_str("no"), &why));
    assert_code(IDEM_ELOST, idem_unknown(attempt, idem_str("no"), &why));
    assert_code(IDEM_ELOST, idem_expire(attempt, &why));
}

static void token_of(struct shop *shop, const char *key,
                     char token[IDEM_TOKEN_MAX])
{
    struct idem_attempt *attempt = begin_as(shop->store, key, IDEM_HOLD);

    assert_ok(idem_attempt_token(attempt, token));
}

/* Owners of before are LOST: those whom the copy knows, those whom it does not,
 * and those whose lease it saw end. */
TEST_SHOP(mark, cutsOffTheOldOwners)
{
    static const char *const keys[] = {"known", "overdue", "later"};
    char tokens[COUNT(keys)][IDEM_TOKEN_MAX];
    struct idem_sqlite_restored restored;
    size_t i;

    token_of(shop, "overdue", tokens[1]);
    host_pass(&shop->host, 3600001);
    assert_int_equal(begin_as(shop->store, "overdue", IDEM_HOLD)->verdict,
                     IDEM_UNKNOWN);
    token_of(shop, "known", tokens[0]);
    back_up(shop);
    host_pass(&shop->host, 1500);
    token_of(shop, "later", tokens[2]);
    put_back(shop);
    restored = mark(shop);
    assert_int_equal(restored.unknown, 1);
    assert_int_equal(restored.cut_off, 1);

    open_shop(shop);
    for (i = 0; i < COUNT(keys); i++) {
        assert_lost(by_token(shop->store, tokens[i]));
        if (i == 0) {
            assert_why("the store was put back from a copy: unknown");
        }
    }
}

/* The control: without the mark an owner ends what others may have ended. */
TEST_SHOP(mark, isWhatCutsThemOff)
{
    char token[IDEM_TOKEN_MAX];

    token_of(shop, "known", token);
    back_up(shop);
    put_back(shop);
    open_shop(shop);
    assert_ok(idem_complete(by_token(shop->store, token), NULL, &why));
}

static void note_progress(void *ctx, uint64_t records)
{
    uint64_t *seen = ctx;

    assert_true(records > *seen);
    *seen = records;
}

/* Many records are marked in pieces; the log is carried over at the end. */
TEST_SHOP(mark, goesThroughManyRecords)
{
    enum {
        MANY = 2600
    };
    struct idem_sqlite_restored restored = IDEM_SQLITE_RESTORED_INIT;
    struct idem_sqlite_info info = IDEM_SQLITE_INFO_INIT;
    uint64_t seen = 0;

    start_many(shop->store, 0, MANY, claim("k"));
    close_shop(shop);
    assert_ok(idem_sqlite_mark_restored(shop->path, note_progress, &seen,
                                        &restored, &why));
    assert_int_equal(restored.unknown, MANY);
    assert_int_equal(seen, MANY);
    open_shop(shop);
    assert_ok(idem_sqlite_inspect(shop->store, &info, &why));
    assert_int_equal(info.records[IDEM_STATUS_UNKNOWN], MANY);
    assert_int_equal(info.records[IDEM_STATUS_IN_PROGRESS], 0);
    assert_int_equal(info.restores, 1);
    assert_int_equal(info.restored_ms, restored.marked_ms);
}

/* ---- What is noticed ---- */

/* A store that is older than what was in its place refuses, until it is marked;
 * it can be looked at. */
TEST_SHOP(open, refusesAnOlderCopy)
{
    struct idem_sqlite_info info = IDEM_SQLITE_INFO_INIT;
    struct idem_open_options options = host_options(&shop->host, false);

    fill(shop->store);
    back_up(shop);
    host_pass(&shop->host, 1000);
    (void)begin_fence(shop->store, "later");
    assert_ok(idem_sqlite_inspect(shop->store, &info, &why));
    assert_false(info.is_copy);
    put_back(shop);
    assert_code(IDEM_ECONFIG,
                idem_sqlite_open(shop->path, &options, &shop->store, &why));
    assert_why("mark-restored");
    options.flags = IDEM_OPEN_READONLY;
    assert_ok(idem_sqlite_open(shop->path, &options, &shop->store, &why));
    expect_status(shop->store, "completed", IDEM_STATUS_COMPLETED, NULL);
    assert_ok(idem_sqlite_inspect(shop->store, &info, &why));
    assert_true(info.is_copy);
    assert_int_equal(info.restores, 0);
    close_shop(shop);
    (void)mark(shop);
    open_shop(shop);
    open_shop(shop);
}

/* Neither time that is set, nor a reboot, nor a new store in the old place, nor a
 * lock file that says nothing, is taken for a copy. */
TEST_SHOP(open, refusesNothingElse)
{
    fill(shop->store);
    host_pass(&shop->host, 86400000);
    (void)begin_fence(shop->store, "later");
    close_shop(shop);
    host_set_wall(&shop->host, HOST_WALL_MS - 86400000);
    open_shop(shop);
    close_shop(shop);
    host_reboot(&shop->host, 1000);
    host_set_wall(&shop->host, HOST_WALL_MS - 86400000);
    open_shop(shop);
    (void)begin_fence(shop->store, "after the boot");
    close_shop(shop);

    file_write(shop->path, "-lock", 73, "\x7f", 1);
    open_shop(shop);
}

/* A handle whose file was replaced no longer writes: nobody would read it. */
TEST_SHOP(open, isNotGoodForAnotherFile)
{
    struct idem_sqlite_restored restored = IDEM_SQLITE_RESTORED_INIT;
    struct idem_request request = claim("more");
    struct idem_attempt *attempt;
    struct idem_attempt *other;

    fill(shop->store);
    back_up(shop);
    attempt = begin_as(shop->store, "new", IDEM_HOLD);
    assert_int_equal(rename(shop->copy, shop->path), 0);
    assert_int_equal(chmod(shop->path, 0600), 0);
    assert_code(IDEM_ECONFIG, idem_complete(attempt, NULL, &why));
    assert_why("another file");
    assert_code(IDEM_ECONFIG, idem_begin(shop->store, &request, &other, &why));
    close_shop(shop);
    remove_beside(shop->path, "-wal");
    remove_beside(shop->path, "-shm");
    assert_ok(
        idem_sqlite_mark_restored(shop->path, NULL, NULL, &restored, &why));
    open_shop(shop);
    assert_int_equal(begin_fence(shop->store, "more") > restored.fence, 1);
}
