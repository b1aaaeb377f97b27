/* Stories of owners and their successors, in a store and in a transaction. */
#include "story.h"

#include <idem/sqlite.h>
#include <sqlite3.h>
#include <stdlib.h>

/* ---- Renewal, takeover, replay ----------------------------------------- */

static void live_renew(const char *path, struct told *told)
{
    struct idem_store *store = story_open(path);
    struct idem_attempt *attempt = story_begun(store, "k");

    told->fence = attempt->fence;
    told->lease_end_ms = attempt->record->lease_end_ms;
    story_arm();
    told->end = STORY_ASKED;
    told->end = idem_renew(attempt, 600000, &story_why);
    story_disarm();
    told->after = idem_renew(attempt, 1200000, &story_why);
    idem_attempt_destroy(attempt);
    idem_close(store);
}

/* A lease only ever grows, and one that was promised is there. */
static const char *judge_renew(struct idem_store *store,
                               const struct told *told)
{
    struct idem_answer *answer;
    int64_t grown_ms;

    if (idem_get(store, idem_str(""), idem_str("k"), &answer, &story_why) !=
        0) {
        return "an acknowledged claim is not there";
    }
    grown_ms = idem_answer_record(answer)->lease_end_ms - told->lease_end_ms;
    idem_answer_destroy(answer);
    if (grown_ms < 0 || (told->end == 0 && grown_ms < 500000) ||
        (told->after == 0 && grown_ms < 1000000)) {
        return "a lease is shorter than it was said to be";
    }
    return story_judge(store);
}

static void prepare_late(const char *path)
{
    story_prepare_k(path, IDEM_STATUS_IN_PROGRESS);
}

static void live_replay(const char *path, struct told *told)
{
    struct idem_store *store = story_open(path);
    struct idem_request request = story_request("done");
    struct idem_attempt *attempt = NULL;

    story_arm();
    told->begin = STORY_ASKED;
    told->begin = idem_begin(store, &request, &attempt, &story_why);
    if (told->begin == 0) {
        const struct idem_slice bytes = attempt->record->result.bytes;

        told->wrong = attempt->verdict != IDEM_REPLAY ||
                      bytes.len != strlen(STORY_RESULT) ||
                      memcmp(bytes.base, STORY_RESULT, bytes.len) != 0;
    }
    idem_attempt_destroy(attempt);
    story_close(store, told);
}

/* ---- In the caller's own transaction ------------------------------------ */

static void prepare_own(const char *path)
{
    sqlite3 *db;

    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, "CREATE TABLE effect (n)", NULL, NULL, NULL) !=
            SQLITE_OK) {
        abort();
    }
    (void)sqlite3_close(db);
}

static bool is_replayed(sqlite3 *db)
{
    struct idem_request request = story_request("k");
    struct idem_attempt *attempt;
    bool is_replay;

    if (idem_sqlite_begin_in(db, &request, &attempt, &story_why) != 0) {
        return false;
    }
    is_replay = attempt->verdict == IDEM_REPLAY;
    idem_attempt_destroy(attempt);
    return is_replay;
}

/* An effect and its record, or neither. */
static int do_both(sqlite3 *db, struct told *told)
{
    struct idem_request request = story_request("k");
    struct idem_result result = {.bytes = idem_str(STORY_RESULT)};
    struct idem_attempt *attempt;
    int rc;

    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        return -1;
    }
    told->begin = STORY_ASKED;
    told->begin = idem_sqlite_begin_in(db, &request, &attempt, &story_why);
    if (told->begin != 0) {
        return -1;
    }
    rc = sqlite3_exec(db, "INSERT INTO effect VALUES (1)", NULL, NULL, NULL);
    told->end = STORY_ASKED;
    told->end = rc == SQLITE_OK
                    ? idem_sqlite_renew_in(db, attempt, 90000, &story_why)
                    : -1;
    if (told->end == 0) {
        told->end = idem_sqlite_complete_in(db, attempt, &result, &story_why);
    }
    idem_attempt_destroy(attempt);
    if (told->end != 0 || !is_replayed(db)) {
        return -1;
    }
    told->open = STORY_ASKED;
    return sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
}

static void live_in(const char *path, struct told *told)
{
    sqlite3 *db = NULL;

    story_arm();
    if (sqlite3_open(path, &db) == SQLITE_OK) {
        int rc = do_both(db, told);

        if (rc != SQLITE_OK) {
            (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        }
        told->open =
            told->open == STORY_ASKED && rc == SQLITE_OK ? 0 : STORY_NOT_ASKED;
    }
    (void)sqlite3_close(db);
    story_disarm();
}

static int number_of(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int n = -1;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW) {
        n = sqlite3_column_int(stmt, 0);
    }
    (void)sqlite3_finalize(stmt);
    return n;
}

static const char *judge_in(const char *path, const struct told *told)
{
    sqlite3 *db;
    int effects;
    int records;

    if (sqlite3_open(path, &db) != SQLITE_OK) {
        abort();
    }
    effects = number_of(db, "SELECT count(*) FROM effect");
    records =
        number_of(db, "SELECT count(*) FROM idem_record WHERE status = 2");
    records = records < 0 ? 0 : records; /* There are no tables yet. */
    (void)sqlite3_close(db);
    if (effects != records) {
        return "effect and record are not one";
    }
    return told->open == 0 && effects != 1 ? "a commit is not there" : NULL;
}

const struct story stories_owners[] = {
    {"renew", story_prepare, live_renew, .judge = judge_renew},
    {"take over", prepare_late, .ends = IDEM_STATUS_COMPLETED,
     .before = IDEM_STATUS_IN_PROGRESS},
    {"replay", story_prepare, live_replay, .judge = story_judge_shown},
    {"in a transaction", prepare_own, live_in, .judge_file = judge_in},
    {.name = NULL},
};
