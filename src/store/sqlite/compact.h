/* Packs the table where purges have left its pages half empty. */
#ifndef IDEM_STORE_SQLITE_COMPACT_H
#define IDEM_STORE_SQLITE_COMPACT_H

#include "store/sqlite/conn.h"

enum {
    IDEM__REGION_ROWS = 128, /* Numbers of a region; a power of 2. */
    IDEM__LONG_ROW = 2000,   /* Bytes; so in IDEM__SQL_COMPACT_ROWS. */
    IDEM__ROW_PARTS = 5      /* scope, key, head, result, input */
};

/* Bytes that a purge deleted from a region. */
struct idem__sparse {
    int64_t seq; /* Where it begins. */
    int64_t bytes;
};

/* A row that is taken out. */
struct idem__region_row {
    int64_t seq;
    bool stays; /* It is left as it is: it is long, or not as we write them. */
    bool has[IDEM__ROW_PARTS];
    size_t at; /* In the bytes of the region. */
    size_t len[IDEM__ROW_PARTS];
};

/* Room to pack one region. */
struct idem__region {
    int64_t key; /* In idem_sparse: the seq where it begins. */
    int64_t seq;
    int64_t deleted;
    size_t len;
    struct idem__region_row rows[IDEM__REGION_ROWS];
    size_t bytes_len;
    uint8_t bytes[IDEM__REGION_ROWS * IDEM__LONG_ROW];
};

/* Adds a row that was deleted to @sparse, and saves that first if the row is of
 * another region. SQLITE_OK or a result code. */
int idem__compact_note(struct idem__conn *conn, struct idem__sparse *sparse,
                       int64_t seq, int64_t bytes);
int idem__compact_save(struct idem__conn *conn, struct idem__sparse *sparse);

/* Packs one region that has become sparse, inside a write transaction. *@ret_did:
 * there was one. SQLITE_OK or a result code. */
int idem__compact_region(struct idem__conn *conn, struct idem__region *region,
                         bool *ret_did);

#endif
