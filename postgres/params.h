/* The parameters of a statement, in PostgreSQL's binary form. No value ever becomes part
 * of the text of a statement. */
#ifndef IDEM_POSTGRES_PARAMS_H
#define IDEM_POSTGRES_PARAMS_H

#include "base/bytes.h"

#include <libpq-fe.h>

enum {
    IDEM__PG_PARAMS_MAX = 16,

    /* The OIDs of the types that we use, as in the catalog pg_type. */
    IDEM__PG_BYTEA = 17,
    IDEM__PG_INT8 = 20,
    IDEM__PG_TEXT = 25,
    IDEM__PG_BYTEAS = 1001,
    IDEM__PG_INT8S = 1016,
    IDEM__PG_TIMESTAMPTZ = 1184,
};

/* Zeroed: no memory yet. */
struct idem__pg_params {
    struct idem__buffer memory[IDEM__PG_PARAMS_MAX];
    Oid types[IDEM__PG_PARAMS_MAX];
    size_t counts[IDEM__PG_PARAMS_MAX]; /* Elements of an array. */
    bool nulls[IDEM__PG_PARAMS_MAX];
    size_t len;
    bool failed; /* Memory ran out since the user last cleared this. */
};

/* Empties it for another statement. */
void idem__pg_params_reset(struct idem__pg_params *params);
void idem__pg_params_free(struct idem__pg_params *params);

/* Adds one parameter, an array without elements. Returns its place. */
size_t idem__pg_params_bytes(struct idem__pg_params *params,
                             struct idem_slice bytes);
size_t idem__pg_params_null(struct idem__pg_params *params, Oid type);
size_t idem__pg_params_number(struct idem__pg_params *params, int64_t number);
size_t idem__pg_params_array(struct idem__pg_params *params, Oid type);

/* Adds an element to the array at @place. */
void idem__pg_params_add_bytes(struct idem__pg_params *params, size_t place,
                               struct idem_slice bytes);
void idem__pg_params_add_null(struct idem__pg_params *params, size_t place);
void idem__pg_params_add_number(struct idem__pg_params *params, size_t place,
                                int64_t number);

/* Completes the parameters for libpq. False: memory ran out. */
bool idem__pg_params_finish(struct idem__pg_params *params,
                            const char *ret_values[IDEM__PG_PARAMS_MAX],
                            int ret_lengths[IDEM__PG_PARAMS_MAX],
                            int ret_formats[IDEM__PG_PARAMS_MAX]);

#endif
