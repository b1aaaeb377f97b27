/* The files of a batch (conn.h): batch.c chooses its requests and sends it, what goes
 * together as rows is in batch_rows.c, what is a statement of its own in batch_singles.c,
 * one statement on its way in batch_statement.c, and what its results mean in
 * batch_results.c. */
#ifndef IDEM_POSTGRES_BATCH_H
#define IDEM_POSTGRES_BATCH_H

#include "postgres/conn.h"

/* ---- Requests ---- */

/* True for one that is a statement of its own. */
bool idem__pg_is_single(const struct idem__pg_request *request);

/* True for a batch of one claim, update or look over a connection of our own. */
bool idem__pg_speaks_for_itself(const struct idem__pg_batch *batch);

/* True for a batch whose refused claims are shown the record that is there. */
bool idem__pg_shows(const struct idem__pg_batch *batch);

/* False for a batch that is only to be looked at. */
bool idem__pg_is_about_attempts(const struct idem__pg_batch *batch);

/* The last bytes of its head. */
const uint8_t *idem__pg_tag_of(const struct idem__pg_write *write);

/* ---- Sending: false if the connection failed, or with params.failed for memory ---- */

/* Runs @sql with the params of the connection, which are empty then. @request: whose it is, or NULL. */
bool idem__pg_run(struct idem__pg_batch *batch, enum idem__pg_sql sql,
                  struct idem__pg_request *request);
bool idem__pg_sync(struct idem__pg_batch *batch);

/* Names the statements, in the same flight as the batch that uses them first. */
bool idem__pg_prepare(struct idem__pg_batch *batch);

/* Those of the batch; limits in the order of their windows: see sql.h. */
bool idem__pg_send_rows(struct idem__pg_batch *batch);
bool idem__pg_send_singles(struct idem__pg_batch *batch);
bool idem__pg_send_limits(struct idem__pg_batch *batch);

#endif
