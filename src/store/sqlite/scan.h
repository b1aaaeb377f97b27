/* Reading the records and their indexes to check them, in short transactions.
 *
 * Whether table and index hold the same is seen without a look-up for each row:
 * the table and then each index are read once, in their own order, and for each
 * entry a hash of it and of its row's number is added to, or taken from, the
 * sum of a bucket, which covers some neighbouring numbers:
 *
 *     table   ... (7, key a) (8, key b) ...     sum of bucket 0 += hash
 *     index   (key a, 7) (key b, 8) ...         sum of bucket 0 -= hash
 *
 * A sum that is not 0 then is either a fault or a change by others between the two.
 * Only the rows and entries of such buckets are looked up, each with its counterpart
 * in one transaction, which tells the two apart. */
#ifndef IDEM_STORE_SQLITE_SCAN_H
#define IDEM_STORE_SQLITE_SCAN_H

#include "core/finding.h"
#include "store/sqlite/store.h"

#include <idem/sqlite.h>

enum {
    IDEM__SCAN_INDEXES_MAX = 6,
    IDEM__SCAN_COLUMNS_MAX = 4, /* Of one index. */
    IDEM__SCAN_BUCKETS = 1 << 14,
    IDEM__SCAN_KEY_MAX = 2048,
    IDEM__SCAN_NAME_MAX = 64,
};

/* ---- scan_key.c ---- */

/* The columns of an entry and the number of its row, as bytes whose order is the
 * order of the index. */
struct idem__scan_key {
    size_t len;
    uint8_t bytes[IDEM__SCAN_KEY_MAX];
};

/* Takes the @n @columns of a row. False: they are too long. */
bool idem__scan_key_of(sqlite3_stmt *stmt, const int *columns, int n,
                       struct idem__scan_key *ret_key);
/* Binds the first @n that idem__scan_key_of() took to the parameters from 1 on. */
int idem__scan_key_bind(sqlite3_stmt *stmt, const struct idem__scan_key *key,
                        int n);
int idem__scan_key_compare(const struct idem__scan_key *a,
                           const struct idem__scan_key *b);
uint64_t idem__scan_key_hash(const struct idem__scan_key *key);

/* ---- scan_index.c ---- */

struct idem__scan_index {
    char name[IDEM__SCAN_NAME_MAX];
    int columns_len;                         /* With the number of the row. */
    int columns[IDEM__SCAN_COLUMNS_MAX + 1]; /* Where they are in all_sql. */
    int own[IDEM__SCAN_COLUMNS_MAX + 1];     /* Likewise in the others. */
    sqlite3_stmt *first;                     /* Its entries, in its order. */
    sqlite3_stmt *entry;                     /* Whether an entry is there. */
    sqlite3_stmt *row; /* The columns of the row with a number. */

    /* Those after a key (a, b, seq), in as many steps as it has parts: those with a
     * and b and a greater seq; with a and a greater b; with a greater a. Asked for
     * all at once, SQLite seeks by the first parts alone, and reads what is equal
     * in them from its beginning. */
    sqlite3_stmt *after[IDEM__SCAN_COLUMNS_MAX + 1];
};

struct idem__scan_indexes {
    int len;
    struct idem__scan_index at[IDEM__SCAN_INDEXES_MAX];
    char unknown
        [IDEM__SCAN_NAME_MAX]; /* One that cannot be compared; "": none. */
};

/* The indexes of the records. An SQLite result. */
int idem__scan_indexes_read(struct idem__conn *conn,
                            struct idem__scan_indexes *ret_indexes);
void idem__scan_indexes_finish(struct idem__scan_indexes *indexes);

/* ---- scan_row.c ---- */

/* Rows after number ?1, up to ?2, with bodies. */
extern const char idem__scan_rows_sql[];

enum {
    IDEM__SCAN_COLUMN_SEQ = 0,
};

/* The least number of a row and the greatest; 0 where there are none, or less. An
 * SQLite result. */
int idem__scan_range(struct idem__conn *conn, int64_t *ret_first,
                     int64_t *ret_last);

/* The number of the column @name in these; -1: it has none. */
int idem__scan_column(const char *name);
const char *idem__scan_column_name(int column);

/* The record of the row of @stmt, with its result and its input. */
int idem__scan_row(sqlite3_stmt *stmt, struct idem_error *ret_error);

/* Whether the row of @stmt (a row of idem__scan_rows_sql) has its entry in
 * @index. An SQLite result. */
int idem__scan_has_entry(struct idem__conn *conn, sqlite3_stmt *stmt,
                         const struct idem__scan_index *index, bool *ret_has);
/* Whether the entry @key of @index, for the row @seq, has it. Likewise. */
int idem__scan_has_row(struct idem__conn *conn,
                       const struct idem__scan_index *index, int64_t seq,
                       const struct idem__scan_key *key, bool *ret_has);

/* ---- scan_state.c ---- */

enum idem__scan_phase {
    IDEM__SCAN_ROWS = 1,
    IDEM__SCAN_ENTRIES,         /* Of the index state.index. */
    IDEM__SCAN_SUSPECT_ROWS,    /* In the buckets whose sums are not 0. */
    IDEM__SCAN_SUSPECT_ENTRIES, /* Likewise. */
    IDEM__SCAN_PAGES,
    IDEM__SCAN_DONE,
};

struct idem__scan_state {
    enum idem__scan_phase phase;
    int index;
    int indexes;
    uint32_t names[IDEM__SCAN_INDEXES_MAX]; /* Checksums of their names. */
    int64_t began_ms;                       /* Since 1970, by the host. */
    int64_t
        first_seq;    /* Rows with later numbers than last_seq are newer than */
    int64_t last_seq; /* the check, and left out. */
    int64_t at_seq;   /* Rows up to this were read in this phase. */
    uint64_t rows;
    uint64_t corrupt;
    uint64_t entries; /* Of this index, in this phase. */
    uint64_t
        wrong[IDEM__SCAN_INDEXES_MAX]; /* Entries that lack or have none. */
    int64_t wrong_seq[IDEM__SCAN_INDEXES_MAX];
    uint64_t disorder[IDEM__SCAN_INDEXES_MAX]; /* Entries in the wrong order. */
    struct idem__scan_key at;                  /* Entries up to this. */
    uint64_t *sums; /* IDEM__SCAN_BUCKETS for each index. */
};

/* Which file a state is of. */
struct idem__scan_file {
    uint8_t id[IDEM__STORE_ID_LEN];
    uint64_t device;
    uint64_t inode;
};

/* The length of the state, at most IDEM_CHECK_STATE_MAX, in a block that the caller
 * frees. NULL: out of memory. */
uint8_t *idem__scan_state_write(const struct idem__scan_state *state,
                                const struct idem__scan_file *file,
                                size_t *ret_len);
/* state->sums has room for IDEM__SCAN_INDEXES_MAX. */
int idem__scan_state_read(struct idem_slice bytes,
                          const struct idem__scan_file *file,
                          struct idem__scan_state *ret_state,
                          struct idem_error *error);

/* ---- The forms of a check ---- */

struct idem__scan {
    struct idem__findings to;
    const struct idem_check_options *options;
    struct idem__sqlite_store *store;
    struct idem__conn *conn;
    const struct idem_sqlite_info *info; /* Without its numbers of records. */
    const char *url; /* The part after "sqlite:" in the URL. */
    struct idem__scan_indexes indexes;
    struct idem__scan_file file;
};

#define IDEM__SCAN_PUT_BACK                                                    \
    "Stop all users and put back a copy; see idem-store(7), Back-up."

/* Tells that the file could not be read on. */
void idem__scan_failed(const struct idem__scan *scan, int sqlite_rc,
                       const char *doing);
/* Tells of @wrong entries of an index, of the row @seq among others. */
void idem__scan_tell_index(const struct idem__scan *scan, int index,
                           uint64_t wrong, int64_t seq, uint64_t disorder);

/* scan_whole.c: all of it; see <idem/check.h>. A code where it cannot begin. */
int idem__scan_whole(struct idem__scan *scan, struct idem_error *ret_error);

/* scan_sample.c: the quick form. */
void idem__scan_sample(struct idem__scan *scan);

/* scan_pages.c: how the pages hang together. False: it was stopped by progress. */
bool idem__scan_pages(const struct idem__scan *scan, uint64_t done,
                      uint64_t all);

#endif
