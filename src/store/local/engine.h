/* One op over a table of records: what the memory and SQLite stores share. */
#ifndef IDEM_STORE_LOCAL_ENGINE_H
#define IDEM_STORE_LOCAL_ENGINE_H

#include <idem/store.h>

/* A table, as the engine sees it. The caller of the engine holds the lock that
 * makes load and save one step. */
struct idem__table {
    /* Finds the record of @id and verifies all of it but whether @id is that of
     * its scope and key: 1 found, 0 none, or a negative code with its sentence.
     * Result and input bytes are loaded and verified only @with_bodies. The
     * bytes that *@ret_record points to stay until the next call on the
     * table. */
    int (*load)(void *ctx, const uint8_t *id, bool with_bodies,
                struct idem_record *ret_record, struct idem_error *ret_error);
    /* Writes decision->next as decision->change says. 0 or a code. */
    int (*save)(void *ctx, const struct idem_decision *decision,
                struct idem_error *ret_error);
    void *ctx;
};

/* Runs a begin, end, renew, resolve or get: decides, writes and sets the answer,
 * but does not give it back. True if something was written. Where writing fails
 * op->error says why, and the caller must undo what it wrote. */
bool idem__engine_run(const struct idem__table *table, struct idem_op *op,
                      const struct idem_now *now);

/* Answers @op if reading alone can: a get, or a begin whose verdict changes
 * nothing. False: it has to be run, under the lock. Errors are answers too. */
bool idem__engine_peek(const struct idem__table *table, struct idem_op *op,
                       const struct idem_now *now);

#endif
