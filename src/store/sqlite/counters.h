/* Counters in the file, so that processes which live for a moment are counted.
 *
 * Answers are counted in memory, and go into the file with a write transaction
 * that happens anyway: with each of the first few of a process, then with one a
 * second, because a save is one more page in the commit. The rest, when the
 * store is closed, is written without a flush. So a power cut, or a process
 * that is killed, can take back the counts of the last moments, and nothing
 * else. */
#ifndef IDEM_STORE_SQLITE_COUNTERS_H
#define IDEM_STORE_SQLITE_COUNTERS_H

#include "store/shared/tally.h"
#include "store/sqlite/conn.h"

struct idem__counters {
    struct idem__tally pending; /* Answered, and not in the file; atomic. */
    struct idem__tally saved;   /* By the transaction that is open. */
    int64_t paid_ms; /* CLOCK_MONOTONIC: saves are paid for up to here. */
};

/* Counts @op, which was answered without a transaction; from any thread. */
void idem__counters_note(struct idem__counters *counters,
                         const struct idem_op *op);

/* Saves what is pending and what @batch comes to in the open transaction, if it
 * is time. An SQLite result. */
int idem__counters_save(struct idem__counters *counters,
                        struct idem__conn *conn, const struct idem_op *batch);

/* The transaction of @batch was begun, or was committed. */
void idem__counters_begun(struct idem__counters *counters);
void idem__counters_committed(struct idem__counters *counters,
                              const struct idem_op *batch);

/* Writes what is left, in a transaction without a flush. The lock is held. */
void idem__counters_flush(struct idem__counters *counters,
                          struct idem__conn *conn);
bool idem__counters_left(const struct idem__counters *counters);

/* Answers an IDEM_OP_COUNT from the file and what is pending. */
void idem__counters_answer(const struct idem__counters *counters,
                           struct idem__conn *conn, struct idem_op *op);

#endif
