/* The quick form: the newest records and some at random, with their entries. */
#include "store/sqlite/scan.h"

#include "base/host.h"
#include "base/random.h"
#include "core/error.h"

#include <idem/check.h>
#include <stdio.h>

enum {
    ROWS = 1000, /* Of each kind. */
    TIME_MS = 3000,
    AT_ONCE = 16, /* In one transaction. */
    MEND_MAX = 2 * IDEM__PATH_MAX + 64,
};

struct sample {
    const struct idem__scan *scan;
    sqlite3_stmt *rows;
    int64_t first_seq;
    int64_t last_seq;
    int64_t until_ms;
    uint64_t read;
    uint64_t corrupt;
    uint64_t wrong[IDEM__SCAN_INDEXES_MAX];
    int64_t wrong_seq[IDEM__SCAN_INDEXES_MAX];
};

static void note_wrong(struct sample *sample, int index, int64_t seq)
{
    sample->wrong[index]++;
    sample->wrong_seq[index] = seq;
}

/* The first entry of @index after @key, in *@ret_stmt, which the caller resets.
 * SQLITE_ROW, or SQLITE_DONE: there is none. */
static int next_entry(const struct sample *sample,
                      const struct idem__scan_index *index,
                      const struct idem__scan_key *key, sqlite3_stmt **ret_stmt)
{
    int rc = SQLITE_DONE;
    int step;

    for (step = 0; rc == SQLITE_DONE && step < index->columns_len; step++) {
        *ret_stmt = index->after[step];
        rc = idem__scan_key_bind(*ret_stmt, key, index->columns_len - step);
        if (rc == SQLITE_OK) {
            rc = idem__conn_step(sample->scan->conn, *ret_stmt);
        }
        if (rc != SQLITE_ROW) {
            (void)sqlite3_reset(*ret_stmt);
        }
    }
    return rc;
}

/* The entry of index @i that comes after that of the row: of any other record. */
static int judge_neighbour(struct sample *sample, int i)
{
    const struct idem__scan_index *index = &sample->scan->indexes.at[i];
    struct idem__scan_key key;
    sqlite3_stmt *stmt;
    bool has = true;
    int64_t seq;
    int rc;

    if (!idem__scan_key_of(sample->rows, index->columns, index->columns_len,
                           &key)) {
        return SQLITE_OK;
    }
    rc = next_entry(sample, index, &key, &stmt);
    if (rc != SQLITE_ROW) {
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    }
    seq = sqlite3_column_int64(stmt, index->columns_len - 1);
    rc = SQLITE_OK;
    if (idem__scan_key_of(stmt, index->own, index->columns_len, &key)) {
        rc = idem__scan_has_row(sample->scan->conn, index, seq, &key, &has);
    }
    if (rc == SQLITE_OK && !has) {
        note_wrong(sample, i, seq);
    }
    (void)sqlite3_reset(stmt);
    return rc;
}

static int judge_row(struct sample *sample)
{
    int64_t seq = sqlite3_column_int64(sample->rows, IDEM__SCAN_COLUMN_SEQ);
    int rc = SQLITE_OK;
    int i;

    sample->read++;
    sample->corrupt += idem__scan_row(sample->rows, NULL) != 0;
    for (i = 0; rc == SQLITE_OK && i < sample->scan->indexes.len; i++) {
        bool has;

        rc = idem__scan_has_entry(sample->scan->conn, sample->rows,
                                  &sample->scan->indexes.at[i], &has);
        if (rc == SQLITE_OK && !has) {
            note_wrong(sample, i, seq);
        }
        rc = rc == SQLITE_OK ? judge_neighbour(sample, i) : rc;
    }
    return rc;
}

/* Up to @n rows after @after, in one transaction. *@ret_seq: the last of them;
 * INT64_MAX: there are no more. */
static int judge_some(struct sample *sample, int64_t after, int n,
                      int64_t *ret_seq)
{
    struct idem__conn *conn = sample->scan->conn;
    int rc;
    int i;

    idem__sqlite_before_read(sample->scan->store);
    rc = idem__conn_run(conn, IDEM__SQL_READ);
    *ret_seq = INT64_MAX;
    (void)sqlite3_bind_int64(sample->rows, 1, after);
    (void)sqlite3_bind_int64(sample->rows, 2, sample->last_seq);
    for (i = 0; rc == SQLITE_OK && i < n; i++) {
        rc = idem__conn_step(conn, sample->rows);
        *ret_seq = INT64_MAX;
        if (rc == SQLITE_ROW) {
            *ret_seq =
                sqlite3_column_int64(sample->rows, IDEM__SCAN_COLUMN_SEQ);
            rc = judge_row(sample);
        }
    }
    (void)sqlite3_reset(sample->rows);
    (void)idem__conn_run(conn, IDEM__SQL_COMMIT);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static bool is_time(const struct sample *sample)
{
    const struct idem_check_options *options = sample->scan->options;

    return idem__mono_ms() < sample->until_ms &&
           (options->progress == NULL ||
            options->progress(options->ctx, sample->read, 2 * (uint64_t)ROWS) ==
                0);
}

static int judge_newest(struct sample *sample)
{
    int64_t seq = sample->last_seq - ROWS;
    int rc = SQLITE_OK;

    while (rc == SQLITE_OK && seq != INT64_MAX && is_time(sample)) {
        rc = judge_some(sample, seq, AT_ONCE, &seq);
    }
    return rc;
}

/* Of the numbers that records have, so that one after a gap is met more often. */
static int judge_any(struct sample *sample)
{
    uint64_t span = (uint64_t)(sample->last_seq - sample->first_seq) + 1;
    int rc = SQLITE_OK;
    int i;

    for (i = 0; rc == SQLITE_OK && i < ROWS && is_time(sample); i++) {
        uint64_t any;
        int64_t seq;

        if (idem__random(&any, sizeof(any)) != 0) {
            break;
        }
        rc = judge_some(sample, sample->first_seq - 1 + (int64_t)(any % span),
                        1, &seq);
    }
    return rc;
}

static void tell(const struct sample *sample)
{
    const struct idem__scan *scan = sample->scan;
    char mend[MEND_MAX];
    struct idem_error error;
    int i;

    (void)snprintf(mend, sizeof(mend), "idem store check --store 'sqlite:%s'",
                   scan->url);
    if (sample->corrupt > 0) {
        (void)idem__error(&error, IDEM_ECORRUPT,
                          "%llu of the %llu records that were read cannot be "
                          "trusted",
                          (unsigned long long)sample->corrupt,
                          (unsigned long long)sample->read);
        idem__found_error(&scan->to, "records", mend, &error);
    }
    for (i = 0; i < scan->indexes.len; i++) {
        if (sample->wrong[i] > 0) {
            idem__scan_tell_index(scan, i, sample->wrong[i],
                                  sample->wrong_seq[i], /* disorder= */ 0);
        }
    }
    idem__found(&scan->to, IDEM_GRADE_SKIP, "records", mend,
                "only %llu of about %llu were read, the newest and some at "
                "random, with their entries in the indexes",
                (unsigned long long)sample->read,
                (unsigned long long)(sample->last_seq - sample->first_seq + 1));
    idem__found(&scan->to, IDEM_GRADE_SKIP, "file", mend,
                "most of its %llu pages were not read, nor how they hang "
                "together",
                (unsigned long long)scan->info->pages);
}

void idem__scan_sample(struct idem__scan *scan)
{
    struct sample sample = {.scan = scan,
                            .until_ms = idem__mono_ms() + TIME_MS};
    int rc = sqlite3_prepare_v2(scan->conn->db, idem__scan_rows_sql, -1,
                                &sample.rows, NULL);

    if (rc == SQLITE_OK) {
        rc = idem__scan_range(scan->conn, &sample.first_seq, &sample.last_seq);
    }
    if (rc == SQLITE_OK) {
        rc = judge_newest(&sample);
    }
    if (rc == SQLITE_OK) {
        rc = judge_any(&sample);
    }
    (void)sqlite3_finalize(sample.rows);
    if (rc != SQLITE_OK) {
        idem__scan_failed(scan, rc, "read the records");
    }
    tell(&sample);
}
