/* statement.h: an SQL statement that the caller runs, on its own connection, with its
 * own driver and in its own transaction. */
#ifndef IDEM_STATEMENT_H
#define IDEM_STATEMENT_H

#include <idem/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

enum idem_value_type {
    IDEM_VALUE_NULL = 0,
    IDEM_VALUE_INTEGER = 1, /* 64 bits, signed. */
    IDEM_VALUE_TEXT = 2,    /* UTF-8. */
    IDEM_VALUE_BYTES = 3,   /* BLOB, bytea. */
};

/* A parameter of a statement. */
struct idem_value {
    int type;                /* enum idem_value_type. */
    int64_t integer;         /* INTEGER. */
    struct idem_slice bytes; /* TEXT and BYTES. */
};

#define IDEM_STATEMENT_VALUES_MAX 12

/* A statement and its parameters. Bind the values, and never insert them into the text:
 * they hold bytes that other people chose. */
struct idem_statement {
    const char *text; /* NUL-terminated. The value of its n-th parameter is
                         values[n - 1]. */
    int64_t rows;     /* How many rows it must return or change. On any other
                         number, roll back. */
    size_t values_len;
    struct idem_value values[IDEM_STATEMENT_VALUES_MAX];
};

struct idem_attempt;

/* Call this after the commit of the statement that ends @attempt. It sets the record of
 * the attempt to the outcome, ends the lease, and wakes the callers in this process
 * that wait for the outcome. Ending the attempt again with the same content then
 * returns 0. After this call the statement is not valid. For an attempt without a
 * statement, such as one made from a token whose end was committed elsewhere, it only
 * ends the lease. It contacts and changes no store. */
void idem_attempt_recorded(struct idem_attempt *attempt);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
