/* Checks the contents of the file: every record, every entry of an index, every page.
 *
 * Only a snapshot of the whole file shows whether they fit together. Reading all of it in
 * one transaction takes seconds, in which the log could not shrink beside writers. So one
 * transaction copies the pages, which takes only as long as reading them, and the check
 * reads the copy:
 *
 *     BEGIN, copy all pages, COMMIT      a third of the progress
 *     decode each record                 a third
 *     PRAGMA integrity_check             a third
 *
 * The copy is a temporary database of SQLite: only its owner may read it, and it has no
 * name from the moment it is created, so that nothing remains of it after a signal or a
 * crash. */
#include "store/sqlite/store.h"

#include "core/error.h"

#include <errno.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    STEP_PAGES = 1000, /* Between two calls of progress. */
    STEP_ROWS = 1000,
    STEP_OPS = 100000, /* Of SQLite's virtual machine. */
    OPS_OF_A_ROW = 28, /* Of integrity_check, about: only progress needs it. */
    DAMAGES_MAX = 10,  /* The most that integrity_check reports. */
    COLUMN_SEQ = 0,    /* The columns before the id are as in table.c. */
    COLUMN_ID = 8,
    MEND_MAX = 2 * IDEM__PATH_MAX + 64,
};

static const char rows_sql[] =
    "SELECT seq, status, deadline, scope, key, head, result, input, id "
    "FROM idem_record NOT INDEXED ORDER BY seq";

static const char copy_settings[] = "PRAGMA journal_mode = OFF;"
                                    "PRAGMA trusted_schema = OFF;"
                                    "PRAGMA cell_size_check = ON;";

struct check {
    const struct idem__findings *to;
    const struct idem_check_options *options;
    struct idem__sqlite_store *store;
    const struct idem_sqlite_info *info;
    struct idem__conn *source;
    struct idem__conn copy;             /* Its db alone is used. */
    char directory[IDEM__PATH_MAX + 1]; /* Of the copy. */
    uint64_t pages;
    uint64_t rows;
    uint64_t ops;
    bool stopped;
};

uint64_t idem__check_room(const char *directory)
{
    struct statvfs fs;

    return statvfs(directory, &fs) != 0
               ? UINT64_MAX
               : (uint64_t)(geteuid() == 0 ? fs.f_bfree : fs.f_bavail) *
                     fs.f_frsize;
}

/* Reports the progress: @part of @whole of the third with the number @third. False:
 * stop. */
static bool go_on(struct check *check, unsigned third, uint64_t part,
                  uint64_t whole)
{
    const struct idem_check_options *options = check->options;
    uint64_t done = third * check->pages;

    if (part > whole) {
        part = whole; /* An estimate. */
    }
    if (whole > 0) {
        done += (uint64_t)((double)part / (double)whole * (double)check->pages);
    }
    if (options->progress != NULL &&
        options->progress(options->ctx, done, 3 * check->pages) != 0) {
        check->stopped = true;
    }
    return !check->stopped;
}

static void failed(const struct check *check, const struct idem__conn *conn,
                   int sqlite_rc, const char *doing)
{
    struct idem_error error;

    (void)idem__conn_fail(conn, sqlite_rc, doing, &error);
    idem__found_error(check->to, "file",
                      error.code == IDEM_ECORRUPT ? IDEM__CHECK_PUT_BACK : NULL,
                      &error);
}

/* ---- The copy ---- */

/* Where SQLite makes temporary files. */
static void find_directory(struct check *check)
{
    char *name = NULL;
    char *slash;

    (void)sqlite3_file_control(check->source->db, "main",
                               SQLITE_FCNTL_TEMPFILENAME, &name);
    slash = name == NULL ? NULL : strrchr(name, '/');
    (void)snprintf(check->directory, sizeof(check->directory), "%.*s",
                   slash == NULL ? 1 : (int)(slash - name),
                   slash == NULL ? "." : name);
    sqlite3_free(name);
}

/* Reports that there is no copy; a quick check needs none. */
static void not_copied(const struct check *check, int code, const char *text)
{
    static const char mend[] =
        "Name a directory with more room: TMPDIR=DIRECTORY idem store check.";
    struct idem_error error;

    (void)idem__error(&error, code, "records and pages were not read: %s",
                      text);
    if (check->options->quick) {
        idem__found(check->to, IDEM_GRADE_SKIP, "copy", mend, "%s", error.text);
    } else {
        idem__found_error(check->to, "copy", mend, &error);
    }
}

static bool has_room(const struct check *check)
{
    uint64_t room = idem__check_room(check->directory);
    uint64_t bytes = check->pages * check->info->page_size;
    char text[IDEM__PATH_MAX + 160];

    if (room != UINT64_MAX && room < bytes + IDEM__CHECK_ROOM_LOW) {
        (void)snprintf(text, sizeof(text),
                       "a copy takes %llu MiB in %s, which has %llu MiB free, "
                       "of which a check leaves %llu",
                       (unsigned long long)(bytes >> 20) + 1, check->directory,
                       (unsigned long long)(room >> 20),
                       (unsigned long long)(IDEM__CHECK_ROOM_LOW >> 20));
        not_copied(check, IDEM_EFULL, text);
        return false;
    }
    idem__found(check->to, IDEM_GRADE_OK, "copy", /* mend= */ NULL,
                "reading a copy of %llu MiB in %s, deleted at the end",
                (unsigned long long)(bytes >> 20) + 1, check->directory);
    return true;
}

/* Begins the transaction: the number of pages is the first thing read in it. */
static int count_pages(struct check *check)
{
    int64_t pages = 0;
    int rc = idem__conn_run(check->source, IDEM__SQL_READ);

    if (rc == SQLITE_OK) {
        rc = idem__conn_number(check->source, "PRAGMA page_count", &pages);
    }
    check->pages = (uint64_t)pages;
    return rc;
}

/* Copies in one step for each call of progress, all in the open transaction. */
static int copy_pages(struct check *check)
{
    sqlite3_backup *backup =
        sqlite3_backup_init(check->copy.db, "main", check->source->db, "main");
    uint64_t done;
    int rc = SQLITE_OK;

    if (backup == NULL) {
        return sqlite3_extended_errcode(check->copy.db);
    }
    for (done = 0; rc == SQLITE_OK && go_on(check, 0, done, check->pages);
         done += STEP_PAGES) {
        rc = sqlite3_backup_step(backup, STEP_PAGES);
    }
    (void)sqlite3_backup_finish(backup);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* These results concern the copy: the source is only read. */
static bool is_of_copy(int sqlite_rc)
{
    return (sqlite_rc & 0xff) == SQLITE_FULL ||
           (sqlite_rc & 0xff) == SQLITE_CANTOPEN ||
           sqlite_rc == SQLITE_IOERR_WRITE ||
           sqlite_rc == SQLITE_IOERR_GETTEMPPATH;
}

static void copy_failed(const struct check *check, int sqlite_rc)
{
    char text[IDEM__PATH_MAX + 160];

    if (!is_of_copy(sqlite_rc)) {
        failed(check, check->source, sqlite_rc, "read the file");
        return;
    }
    (void)snprintf(text, sizeof(text), "cannot write a copy in %s: %s",
                   check->directory, sqlite3_errstr(sqlite_rc));
    not_copied(check, IDEM_EFULL, text);
}

/* False: the copy is not complete, which was reported unless progress stopped it. */
static bool make_copy(struct check *check)
{
    bool has = false;
    int rc = sqlite3_open_v2("", &check->copy.db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                 SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
                             NULL);

    if (rc == SQLITE_OK) {
        (void)sqlite3_extended_result_codes(check->copy.db, 1);
        rc = sqlite3_exec(check->copy.db, copy_settings, NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        idem__sqlite_before_read(check->store);
        rc = count_pages(check);
    }
    if (rc == SQLITE_OK) {
        find_directory(check);
        has = has_room(check);
    }
    if (has) {
        rc = copy_pages(check);
    }
    (void)idem__conn_run(check->source, IDEM__SQL_COMMIT);
    if (rc != SQLITE_OK) {
        copy_failed(check, rc);
    }
    return rc == SQLITE_OK && has && !check->stopped;
}

/* ---- The records ---- */

/* Verifies the record of a row, with its result and its input. 0, or a code. */
static int judge_row(sqlite3_stmt *stmt)
{
    const void *id = sqlite3_column_blob(stmt, COLUMN_ID);
    struct idem_record record;
    int rc = IDEM_ECORRUPT;

    if (sqlite3_column_bytes(stmt, COLUMN_ID) == IDEM_ID_LEN) {
        rc = idem__row_decode(stmt, id, &record, NULL);
    }
    return rc == 0 ? idem__row_bodies(stmt, &record, NULL) : rc;
}

/* SQLITE_DONE, also where it was stopped. */
static int read_rows(struct check *check, sqlite3_stmt *stmt, int64_t last,
                     uint64_t *corrupt)
{
    int64_t seq = 0;
    int rc = SQLITE_DONE;

    while ((check->rows % STEP_ROWS != 0 ||
            go_on(check, 1, seq > 0 ? (uint64_t)seq : 0,
                  last > 0 ? (uint64_t)last : 0)) &&
           (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        int code = judge_row(stmt);

        if (code == IDEM_ENOMEM) {
            return SQLITE_NOMEM;
        }
        *corrupt += code != 0;
        check->rows++;
        seq = sqlite3_column_int64(stmt, COLUMN_SEQ);
    }
    return check->stopped ? SQLITE_DONE : rc;
}

static void tell_records(const struct check *check, uint64_t corrupt)
{
    struct idem_error error;

    if (corrupt > 0) {
        (void)idem__error(&error, IDEM_ECORRUPT,
                          "%llu of %llu records cannot be trusted",
                          (unsigned long long)corrupt,
                          (unsigned long long)check->rows);
        idem__found_error(
            check->to, "records",
            "idem list shows them; idem does not run their work again by "
            "itself.",
            &error);
    } else if (!check->stopped) {
        idem__found(check->to, IDEM_GRADE_OK, "records", /* mend= */ NULL,
                    "%llu, and all of them can be trusted",
                    (unsigned long long)check->rows);
    }
}

static void read_records(struct check *check)
{
    sqlite3_stmt *stmt = NULL;
    uint64_t corrupt = 0;
    int64_t last = 0;
    int rc = idem__conn_number(&check->copy, "SELECT max(seq) FROM idem_record",
                               &last);

    if (rc == SQLITE_OK) {
        rc = sqlite3_prepare_v2(check->copy.db, rows_sql, -1, &stmt, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = read_rows(check, stmt, last, &corrupt);
    }
    if (rc != SQLITE_DONE) {
        failed(check, &check->copy, rc, "read the records");
    }
    if (rc == SQLITE_DONE || corrupt > 0) {
        tell_records(check, corrupt);
    }
    (void)sqlite3_finalize(stmt);
}

/* ---- The pages and the indexes ---- */

static int count_ops(void *ctx)
{
    struct check *check = ctx;

    check->ops += STEP_OPS;
    return !go_on(check, 2, check->ops, check->rows * OPS_OF_A_ROW);
}

/* An index that does not fit its table can be rebuilt from it; for other damage only a
 * backup helps. */
static void tell_damage(const struct check *check, const char *line, int len)
{
    bool of_index = memmem(line, (size_t)len, " index ", 7) != NULL;
    char mend[MEND_MAX];
    struct idem_error error;

    (void)snprintf(mend, sizeof(mend),
                   "Stop all users, then: sqlite3 '%s' REINDEX",
                   check->info->path);
    (void)idem__error(&error, IDEM_ECORRUPT, "the file is damaged: %.*s", len,
                      line);
    idem__found_error(check->to, of_index ? "index" : "file",
                      of_index ? mend : IDEM__CHECK_PUT_BACK, &error);
}

/* Reports the damages in a row of integrity_check, which has a line for each, after a
 * title. Returns how many there are. */
static int tell_damages(const struct check *check, const char *text)
{
    int damages = 0;

    while (text != NULL && *text != '\0') {
        int len = (int)strcspn(text, "\n");

        if (len > 0 && strncmp(text, "***", 3) != 0 &&
            (len != 2 || memcmp(text, "ok", 2) != 0)) {
            tell_damage(check, text, len);
            damages++;
        }
        text += len;
        text += *text == '\n';
    }
    return damages;
}

static void check_integrity(struct check *check)
{
    sqlite3_stmt *stmt = NULL;
    int damages = 0;
    char sql[64];
    int rc;

    (void)snprintf(sql, sizeof(sql), "PRAGMA integrity_check(%d)", DAMAGES_MAX);
    sqlite3_progress_handler(check->copy.db, STEP_OPS, count_ops, check);
    rc = sqlite3_prepare_v2(check->copy.db, sql, -1, &stmt, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW) {
            damages +=
                tell_damages(check, (const char *)sqlite3_column_text(stmt, 0));
        }
    }
    (void)sqlite3_finalize(stmt);
    if (check->stopped) {
        return;
    }
    if (rc != SQLITE_DONE) {
        failed(check, &check->copy, rc, "check the file");
    } else if (damages == 0) {
        idem__found(check->to, IDEM_GRADE_OK, "file", /* mend= */ NULL,
                    "it is whole: %llu pages, %llu bytes, and %llu in the log; "
                    "each record has its entries in the indexes",
                    (unsigned long long)check->info->pages,
                    (unsigned long long)check->info->file_len,
                    (unsigned long long)check->info->wal_len);
    }
}

/* ---- All of it ---- */

static void check_all(struct check *check)
{
    bool copied = make_copy(check);

    if (copied) {
        read_records(check);
    }
    if (copied && !check->stopped && go_on(check, 2, 0, 0)) {
        check_integrity(check);
    }
    if (check->stopped) {
        idem__found(check->to, IDEM_GRADE_SKIP, "file", /* mend= */ NULL,
                    "stopped: not all records and pages were read");
    }
    (void)sqlite3_close(check->copy.db);
}

void idem__check_contents(const struct idem__findings *to,
                          const struct idem_check_options *options,
                          struct idem__sqlite_store *store,
                          const struct idem_sqlite_info *info)
{
    struct check check = {.to = to,
                          .options = options,
                          .store = store,
                          .info = info};
    struct idem_error error;

    check.source = idem__readers_take(store, /* wait= */ true, &error);
    if (check.source == NULL) {
        idem__found_error(to, "file", /* mend= */ NULL, &error);
        return;
    }
    check_all(&check);
    idem__readers_give(store, check.source);
}
