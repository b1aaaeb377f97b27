/* A record as a row of the table, which nobody is trusted with. */
#ifndef IDEM_POSTGRES_ROW_H
#define IDEM_POSTGRES_ROW_H

#include "base/bytes.h"
#include "contract/store.h"

#include <libpq-fe.h>

enum {
    IDEM__PG_TAG_LEN = 16,
};

/* Columns after those of a row: the time, and in LOOK_ONE what SETUP says. */
enum {
    IDEM__PG_ROW_TIME = 11,
    IDEM__PG_ROW_FLOOR,
    IDEM__PG_ROW_MARK,
};

struct idem__pg_row {
    struct idem_record record; /* Without bodies. */
    struct idem_slice head;
    uint8_t tag[IDEM__PG_TAG_LEN]; /* Its last bytes. */
    bool has_bodies;               /* They came with it: */
    struct idem_slice result;
    struct idem_slice input;
};

/* One field of @result as bytes, or as a number of eight; false: it is something else,
 * or NULL. */
bool idem__pg_bytes(const PGresult *result, int row, int column,
                    struct idem_slice *ret_bytes);
bool idem__pg_number(const PGresult *result, int row, int column,
                     int64_t *ret_number);

/* Likewise a time, in ms since 1970. */
bool idem__pg_time(const PGresult *result, int row, int column,
                   int64_t *ret_ms);

/* The id of row @row, in whose first column it is. False: it is none. */
bool idem__pg_row_id(const PGresult *result, int row,
                     uint8_t ret_id[IDEM_ID_LEN]);

/* Its deadline, as the column says. */
bool idem__pg_row_deadline(const PGresult *result, int row,
                           int64_t *ret_deadline_ms);

/* Reads row @row, which has the columns of LOOK or LIST. Slices point into @result.
 *
 * IDEM_ECORRUPT  It cannot be trusted; scope, key and id are set where they can be.
 * IDEM_ENOMEM
 */
int idem__pg_row_read(const PGresult *result, int row,
                      struct idem__pg_row *ret_row,
                      struct idem_error *ret_error);

/* Copies what @row points to into @memory, which is emptied first; @row points there
 * then. 0 or IDEM_ENOMEM. */
int idem__pg_row_keep(struct idem__pg_row *row, struct idem__buffer *memory);

#endif
