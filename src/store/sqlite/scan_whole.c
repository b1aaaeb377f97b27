/* All rows and all entries of their indexes, in slices.
 *
 *     rows -> entries of index 0 -> suspects -> entries of index 1 -> ... -> pages
 *
 * Each slice is a read transaction of SLICE_MS, and keeps out while a checkpoint wants
 * to begin the log anew (checkpoint.c): so the log of others can shrink. The
 * invariants of the state between any two slices. */
#include "store/sqlite/scan.h"

#include "base/crc32.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"

#include <idem/check.h>
#include <stdio.h>
#include <time.h>

enum {
    SLICE_MS = 4,
    ROWS_BETWEEN_LOOKS = 16, /* At the clock. */
    KEEP_EVERY_MS = 5000,
    TIME_LEN = 32,
};

/* How a phase ended. */
enum end {
    ENDED,
    STOPPED,
    BROKEN, /* It cannot go on, which was told. */
};

struct run {
    struct idem__scan *scan;
    struct idem__scan_state state;
    sqlite3_stmt *rows;
    bool resumed;
    bool stopped;
    int64_t kept_ms;
    int64_t until_ms; /* Of the slice. */
    unsigned in_slice;
};

/* ---- Slices ---- */

static int begin_slice(struct run *run)
{
    idem__sqlite_before_read(run->scan->store);
    run->until_ms = idem__mono_ms() + SLICE_MS;
    run->in_slice = 0;
    return idem__conn_run(run->scan->conn, IDEM__SQL_READ);
}

static bool slice_is_over(struct run *run)
{
    return ++run->in_slice % ROWS_BETWEEN_LOOKS == 0 &&
           idem__mono_ms() >= run->until_ms;
}

static void end_slice(struct run *run)
{
    (void)idem__conn_run(run->scan->conn, IDEM__SQL_COMMIT);
}

static uint64_t span_of(const struct idem__scan_state *state)
{
    return (uint64_t)(state->last_seq - state->first_seq) + 1;
}

/* In rows, with an entry of an index counted as one, and a page as well. */
static uint64_t all_of(const struct run *run)
{
    return span_of(&run->state) * (uint64_t)(1 + run->state.indexes) +
           run->scan->info->pages;
}

static uint64_t done_of(const struct run *run)
{
    const struct idem__scan_state *state = &run->state;
    uint64_t span = span_of(state);
    uint64_t part = span;

    if (state->phase == IDEM__SCAN_ROWS) {
        return state->at_seq < state->first_seq
                   ? 0
                   : (uint64_t)(state->at_seq - state->first_seq) + 1;
    }
    if (state->phase == IDEM__SCAN_ENTRIES && state->entries < state->rows) {
        part = (uint64_t)((double)state->entries / (double)state->rows *
                          (double)span);
    }
    if (state->phase >= IDEM__SCAN_PAGES) {
        return span * (uint64_t)(1 + state->indexes);
    }
    return span * (uint64_t)(1 + state->index) + part;
}

static void keep(struct run *run)
{
    const struct idem_check_options *options = run->scan->options;
    uint8_t *bytes;
    size_t len;

    run->kept_ms = idem__mono_ms();
    if (options->keep == NULL) {
        return;
    }
    bytes = idem__scan_state_write(&run->state, &run->scan->file, &len);
    if (bytes != NULL) {
        options->keep(options->ctx, bytes, len);
        idem__free(bytes);
    }
}

/* Between two slices. False: stop. */
static bool go_on(struct run *run)
{
    const struct idem_check_options *options = run->scan->options;

    if (options->progress != NULL &&
        options->progress(options->ctx, done_of(run), all_of(run)) != 0) {
        run->stopped = true;
        return false;
    }
    if (idem__mono_ms() - run->kept_ms >= KEEP_EVERY_MS) {
        keep(run);
    }
    return true;
}

/* ---- Buckets ---- */

static uint64_t width_of(const struct idem__scan_state *state)
{
    return (span_of(state) - 1) / IDEM__SCAN_BUCKETS + 1;
}

static size_t bucket_of(const struct idem__scan_state *state, int64_t seq)
{
    return seq <= state->first_seq
               ? 0
               : (size_t)((uint64_t)(seq - state->first_seq) / width_of(state));
}

/* The number before the first of @bucket, and the last of it. */
static void range_of(const struct idem__scan_state *state, size_t bucket,
                     int64_t *ret_after, int64_t *ret_last)
{
    uint64_t width = width_of(state);
    int64_t first = state->first_seq + (int64_t)(bucket * width);

    *ret_after = bucket == 0 ? INT64_MIN : first - 1;
    *ret_last = (uint64_t)(state->last_seq - first) < width
                    ? state->last_seq
                    : first + (int64_t)width - 1;
}

static uint64_t *sums_of(const struct run *run, int index)
{
    return run->state.sums + (size_t)index * IDEM__SCAN_BUCKETS;
}

static bool is_suspect(const struct run *run, int64_t seq)
{
    return sums_of(run, run->state.index)[bucket_of(&run->state, seq)] != 0;
}

/* The first suspect bucket that does not end before @seq; -1: none. */
static int next_suspect(const struct run *run, int64_t seq)
{
    const uint64_t *sums = sums_of(run, run->state.index);
    size_t last = bucket_of(&run->state, run->state.last_seq);
    size_t i = seq == INT64_MIN ? 0 : bucket_of(&run->state, seq);

    for (; i <= last; i++) {
        if (sums[i] != 0) {
            return (int)i;
        }
    }
    return -1;
}

static void note_wrong(struct run *run, int64_t seq)
{
    run->state.wrong[run->state.index]++;
    run->state.wrong_seq[run->state.index] = seq;
}

/* ---- Rows ---- */

typedef int row_fn(struct run *run, sqlite3_stmt *stmt, int64_t seq);

static int judge_row(struct run *run, sqlite3_stmt *stmt, int64_t seq)
{
    const struct idem__scan_indexes *indexes = &run->scan->indexes;
    struct idem__scan_key key;
    int i;

    run->state.rows++;
    run->state.corrupt += idem__scan_row(stmt, NULL) != 0;
    for (i = 0; i < indexes->len; i++) {
        if (idem__scan_key_of(stmt, indexes->at[i].columns,
                              indexes->at[i].columns_len, &key)) {
            sums_of(run, i)[bucket_of(&run->state, seq)] +=
                idem__scan_key_hash(&key);
        }
    }
    return SQLITE_OK;
}

static int look_up_entry(struct run *run, sqlite3_stmt *stmt, int64_t seq)
{
    bool has;
    int rc =
        idem__scan_has_entry(run->scan->conn, stmt,
                             &run->scan->indexes.at[run->state.index], &has);

    if (rc == SQLITE_OK && !has) {
        note_wrong(run, seq);
    }
    return rc;
}

static enum end broken(struct run *run, int rc)
{
    idem__scan_failed(run->scan, rc, "read the records");
    return BROKEN;
}

/* One slice of the rows after state.at_seq, up to @last. SQLITE_ROW: there may be
 * more. */
static int rows_slice(struct run *run, int64_t last, row_fn *each)
{
    struct idem__scan_state *state = &run->state;
    int rc = begin_slice(run);

    if (rc != SQLITE_OK) {
        return rc;
    }
    (void)sqlite3_bind_int64(run->rows, 1, state->at_seq);
    (void)sqlite3_bind_int64(run->rows, 2, last);
    while ((rc = idem__conn_step(run->scan->conn, run->rows)) == SQLITE_ROW) {
        int64_t seq = sqlite3_column_int64(run->rows, IDEM__SCAN_COLUMN_SEQ);

        if (seq <= state->at_seq) { /* The order of the table is broken. */
            rc = SQLITE_CORRUPT;
            break;
        }
        rc = each(run, run->rows, seq);
        if (rc != SQLITE_OK) {
            break;
        }
        state->at_seq = seq;
        if (slice_is_over(run)) {
            rc = SQLITE_ROW;
            break;
        }
    }
    (void)sqlite3_reset(run->rows);
    end_slice(run);
    return rc;
}

static enum end read_rows(struct run *run, int64_t last, row_fn *each)
{
    int rc;

    do {
        if (!go_on(run)) {
            return STOPPED;
        }
        rc = rows_slice(run, last, each);
    } while (rc == SQLITE_ROW);
    return rc == SQLITE_DONE ? ENDED : broken(run, rc);
}

static enum end read_suspect_rows(struct run *run)
{
    struct idem__scan_state *state = &run->state;
    enum end end = ENDED;
    int bucket = next_suspect(run, state->at_seq);

    while (end == ENDED && bucket >= 0) {
        int64_t after;
        int64_t last;

        range_of(state, (size_t)bucket, &after, &last);
        state->at_seq = after > state->at_seq ? after : state->at_seq;
        end = read_rows(run, last, look_up_entry);
        if (last == state->last_seq) {
            break;
        }
        if (end == ENDED) {
            state->at_seq = last;
            bucket = next_suspect(run, last + 1);
        }
    }
    return end;
}

/* ---- Entries ---- */

typedef int entry_fn(struct run *run, const struct idem__scan_key *key,
                     int64_t seq);

static int look_up_row(struct run *run, const struct idem__scan_key *key,
                       int64_t seq)
{
    bool has;
    int rc = idem__scan_has_row(run->scan->conn,
                                &run->scan->indexes.at[run->state.index], seq,
                                key, &has);

    if (rc == SQLITE_OK && !has) {
        note_wrong(run, seq);
    }
    return rc;
}

/* The rows of newer entries were not read. */
static int take_entry(struct run *run, const struct idem__scan_key *key,
                      int64_t seq)
{
    if (seq > run->state.last_seq) {
        return look_up_row(run, key, seq);
    }
    sums_of(run, run->state.index)[bucket_of(&run->state, seq)] -=
        idem__scan_key_hash(key);
    return SQLITE_OK;
}

static int look_up_suspect(struct run *run, const struct idem__scan_key *key,
                           int64_t seq)
{
    return seq <= run->state.last_seq && is_suspect(run, seq)
               ? look_up_row(run, key, seq)
               : SQLITE_OK;
}

/* An entry of @stmt. Those in the wrong order are never found by a look-up. */
static int read_entry(struct run *run, sqlite3_stmt *stmt, entry_fn *each)
{
    struct idem__scan_state *state = &run->state;
    const struct idem__scan_index *index = &run->scan->indexes.at[state->index];
    int64_t seq = sqlite3_column_int64(stmt, index->columns_len - 1);
    struct idem__scan_key key;
    int rc;

    state->entries++;
    if (!idem__scan_key_of(stmt, index->own, index->columns_len, &key)) {
        return SQLITE_OK;
    }
    rc = each(run, &key, seq);
    if (state->at.len > 0 && idem__scan_key_compare(&key, &state->at) <= 0) {
        state->disorder[state->index] += state->phase == IDEM__SCAN_ENTRIES;
    } else {
        state->at.len = key.len;
        memcpy(state->at.bytes, key.bytes, key.len);
    }
    return rc;
}

/* Reads on in @stmt, until the slice is over. */
static int read_some(struct run *run, sqlite3_stmt *stmt, entry_fn *each)
{
    int rc;

    while ((rc = idem__conn_step(run->scan->conn, stmt)) == SQLITE_ROW) {
        rc = read_entry(run, stmt, each);
        if (rc != SQLITE_OK) {
            break;
        }
        if (slice_is_over(run)) {
            rc = SQLITE_ROW;
            break;
        }
    }
    (void)sqlite3_reset(stmt);
    return rc;
}

/* Likewise of the entries after state.at. */
static int entries_slice(struct run *run, entry_fn *each)
{
    struct idem__scan_state *state = &run->state;
    const struct idem__scan_index *index = &run->scan->indexes.at[state->index];
    struct idem__scan_key from = state->at;
    int rc = begin_slice(run);
    int step;

    if (rc == SQLITE_OK && from.len == 0) {
        rc = read_some(run, index->first, each);
    } else if (rc == SQLITE_OK) {
        rc = SQLITE_DONE;
        for (step = 0; rc == SQLITE_DONE && step < index->columns_len; step++) {
            rc = idem__scan_key_bind(index->after[step], &state->at,
                                     index->columns_len - step);
            if (rc == SQLITE_OK) {
                rc = read_some(run, index->after[step], each);
            }
        }
    }
    end_slice(run);
    if (rc == SQLITE_ROW && idem__scan_key_compare(&state->at, &from) <= 0) {
        rc = SQLITE_CORRUPT; /* So broken an order has no end. */
    }
    return rc;
}

static enum end read_entries(struct run *run, entry_fn *each)
{
    int rc;

    do {
        if (!go_on(run)) {
            return STOPPED;
        }
        rc = entries_slice(run, each);
    } while (rc == SQLITE_ROW);
    return rc == SQLITE_DONE ? ENDED : broken(run, rc);
}

/* ---- The phases ---- */

static void enter(struct run *run, enum idem__scan_phase phase)
{
    run->state.phase = phase;
    run->state.at.len = 0;
    run->state.at_seq = INT64_MIN;
    run->state.entries = 0;
}

static void next_index(struct run *run)
{
    run->state.index++;
    enter(run, run->state.index < run->state.indexes ? IDEM__SCAN_ENTRIES
                                                     : IDEM__SCAN_PAGES);
}

static enum end read_phase(struct run *run)
{
    struct idem__scan_state *state = &run->state;
    enum end end = ENDED;

    switch (state->phase) {
    case IDEM__SCAN_ROWS:
        end = read_rows(run, state->last_seq, judge_row);
        if (end == ENDED) {
            state->index = -1;
            next_index(run);
        }
        break;
    case IDEM__SCAN_ENTRIES:
        end = read_entries(run, take_entry);
        if (end == ENDED && next_suspect(run, INT64_MIN) >= 0) {
            enter(run, IDEM__SCAN_SUSPECT_ROWS);
        } else if (end == ENDED) {
            next_index(run);
        }
        break;
    case IDEM__SCAN_SUSPECT_ROWS:
        end = read_suspect_rows(run);
        if (end == ENDED) {
            enter(run, IDEM__SCAN_SUSPECT_ENTRIES);
        }
        break;
    case IDEM__SCAN_SUSPECT_ENTRIES:
        end = read_entries(run, look_up_suspect);
        if (end == ENDED) {
            next_index(run);
        }
        break;
    case IDEM__SCAN_PAGES:
    case IDEM__SCAN_DONE:
        break;
    }
    return end;
}

/* ---- The findings ---- */

static void tell_records(const struct run *run)
{
    const struct idem__scan_state *state = &run->state;
    const struct idem__findings *to = &run->scan->to;
    char since[TIME_LEN] = "";
    struct idem_error error;
    struct tm tm;
    time_t began = (time_t)(state->began_ms / 1000);

    if (run->resumed && gmtime_r(&began, &tm) != NULL) {
        (void)strftime(since, sizeof(since), "; since %Y-%m-%dT%H:%M:%SZ", &tm);
    }
    if (state->corrupt > 0) {
        (void)idem__error(&error, IDEM_ECORRUPT,
                          "%llu of %llu records cannot be trusted",
                          (unsigned long long)state->corrupt,
                          (unsigned long long)state->rows);
        idem__found_error(to, "records",
                          "idem list shows them; what they ask for does not "
                          "run again by itself.",
                          &error);
    }
    if (state->phase == IDEM__SCAN_ROWS) {
        idem__found(to, IDEM_GRADE_SKIP, "records", /* mend= */ NULL,
                    "%llu were read: the rest, and the indexes, were not "
                    "looked at",
                    (unsigned long long)state->rows);
    } else if (state->corrupt == 0) {
        idem__found(to, IDEM_GRADE_OK, "records", /* mend= */ NULL,
                    "%llu, and all of them can be trusted%s",
                    (unsigned long long)state->rows, since);
    }
}

static void tell_indexes(const struct run *run)
{
    const struct idem__scan_state *state = &run->state;
    const struct idem__scan *scan = run->scan;
    bool sound = true;
    int i;

    for (i = 0; i < state->indexes; i++) {
        if (state->wrong[i] + state->disorder[i] > 0) {
            idem__scan_tell_index(scan, i, state->wrong[i], state->wrong_seq[i],
                                  state->disorder[i]);
            sound = false;
        }
    }
    if (state->phase == IDEM__SCAN_ROWS) {
        return; /* That was told. */
    }
    if (state->phase < IDEM__SCAN_PAGES) {
        idem__found(&scan->to, IDEM_GRADE_SKIP, "index", /* mend= */ NULL,
                    "%d of %d were compared with the records to the end",
                    state->index, state->indexes);
    } else if (sound) {
        idem__found(&scan->to, IDEM_GRADE_OK, "index", /* mend= */ NULL,
                    "each record has its entry in %d index%s, and no entry is "
                    "without its record",
                    state->indexes, state->indexes == 1 ? "" : "es");
    }
    if (scan->indexes.unknown[0] != '\0') {
        idem__found(&scan->to, IDEM_GRADE_SKIP, "index", /* mend= */ NULL,
                    "%s has a form that this program does not know: it was "
                    "not compared with the records",
                    scan->indexes.unknown);
    }
}

/* ---- Beginning, and going on ---- */

static uint32_t sum_of_name(const char *name)
{
    return idem__crc32(0, idem_str(name));
}

static int begin_anew(struct run *run)
{
    const struct idem__scan_indexes *indexes = &run->scan->indexes;
    struct timespec now;
    int i;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    run->state.began_ms = (int64_t)now.tv_sec * 1000;
    run->state.indexes = indexes->len;
    for (i = 0; i < indexes->len; i++) {
        run->state.names[i] = sum_of_name(indexes->at[i].name);
    }
    enter(run, IDEM__SCAN_ROWS);
    return idem__scan_range(run->scan->conn, &run->state.first_seq,
                            &run->state.last_seq);
}

static int resume(struct run *run, struct idem_error *error)
{
    const struct idem__scan *scan = run->scan;
    int rc = idem__scan_state_read(scan->options->state, &scan->file,
                                   &run->state, error);
    bool same = run->state.indexes == scan->indexes.len;
    int i;

    for (i = 0; rc == 0 && same && i < scan->indexes.len; i++) {
        same = run->state.names[i] == sum_of_name(scan->indexes.at[i].name);
    }
    if (rc == 0 && !same) {
        rc = idem__error(error, IDEM_EINVALID,
                         "the store has other indexes since the check was "
                         "stopped: begin anew");
    }
    run->resumed = true;
    return rc;
}

/* All phases, from where the state is. */
static void read_all(struct run *run)
{
    enum end end = ENDED;

    run->kept_ms = idem__mono_ms();
    while (end == ENDED && run->state.phase < IDEM__SCAN_PAGES) {
        end = read_phase(run);
    }
    tell_records(run);
    tell_indexes(run);
    if (end == BROKEN || run->state.phase == IDEM__SCAN_PAGES) {
        run->stopped = !idem__scan_pages(run->scan, done_of(run), all_of(run));
    } else {
        idem__found(&run->scan->to, IDEM_GRADE_SKIP, "file", /* mend= */ NULL,
                    "how its pages hang together was not looked at");
    }
    if (run->stopped && end != BROKEN) {
        keep(run);
    }
}

int idem__scan_whole(struct idem__scan *scan, struct idem_error *ret_error)
{
    struct run *run = idem__zalloc(sizeof(*run));
    int rc = IDEM_ENOMEM;
    int sqlite_rc;

    if (run != NULL) {
        run->scan = scan;
        run->state.sums = idem__zalloc(
            sizeof(uint64_t) * IDEM__SCAN_INDEXES_MAX * IDEM__SCAN_BUCKETS);
    }
    if (run == NULL || run->state.sums == NULL) {
        idem__free(run);
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    sqlite_rc = sqlite3_prepare_v2(scan->conn->db, idem__scan_rows_sql, -1,
                                   &run->rows, NULL);
    if (scan->options->state.len > 0) {
        rc = resume(run, ret_error);
    } else {
        rc = 0;
        sqlite_rc = sqlite_rc == SQLITE_OK ? begin_anew(run) : sqlite_rc;
    }
    if (rc == 0 && sqlite_rc == SQLITE_OK) {
        read_all(run);
    } else if (rc == 0) {
        idem__scan_failed(scan, sqlite_rc, "read the records");
    }
    (void)sqlite3_finalize(run->rows);
    idem__free(run->state.sums);
    idem__free(run);
    return rc;
}
