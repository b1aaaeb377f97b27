/* statement.h: a statement of SQL that the caller runs, on its own connection, with its
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

/* A statement and its parameters. It is bound and run, never pasted together: the
 * values hold bytes of other people. */
struct idem_statement {
    const char *text; /* With a NUL. The n-th of its parameters has the value
                         values[n - 1]. */
    int64_t
        rows; /* So many rows it must change. Any other number: roll back, and
                         begin anew. */
    size_t values_len;
    struct idem_value values[IDEM_STATEMENT_VALUES_MAX];
};

struct idem_attempt;

/* Tells @attempt that the statement which ends it was committed: it has the outcome as
 * its record, and no lease is left. Those of this process that wait for the outcome look
 * for it at once. To end the attempt again with the same content answers 0. The statement
 * is no longer valid.
 *
 * Without a statement, as for a token whose holder heard elsewhere that its end was
 * committed, only the lease is ended. Nothing is asked or written. */
void idem_attempt_recorded(struct idem_attempt *attempt);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
