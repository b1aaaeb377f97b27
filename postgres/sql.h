/* The statements, and the tables that they use.
 *
 *     SETTINGS             once for a connection that is ours alone
 *     SETUP                the time, the fence floor, and whether we may go on
 *     BARRIER              writes something, so that the commit waits for replicas
 *     LIST..., LOAD        read many records, and the bodies of one
 *     RAISE, WAIT, PURGE   delete records, once every claim knows the raised fence floor
 *     MARK, ..._WAIT       mark the store as moved, and wait for the claims that may not
 *                          know of it
 *     UPDATE, END          overwrite records that are as they were found
 *     CLAIM, THERE         add records, and show the ones that were there already. After
 *                          many new claims in a row THERE is left out, and a refused claim
 *                          looks for its record
 *     LOOK                 reads records
 *     LIMIT...             count requests
 *
 * A transaction is everything up to a Sync, which commits it. Over a connection that a
 * pooler shares, BEGIN and SETUP_LOCAL come first, and COMMIT last.
 *
 * One statement serves many ops, with arrays as parameters; the ..._ONE serve one op,
 * without arrays. A batch of claims and updates, or of one look, needs no SETUP: its
 * statements tell the time themselves, and write nothing where SETUP would fail.
 *
 * Two transactions of ours never wait for each other. Each takes its locks on rows in the
 * order of this list, and in one statement in the order of the ids; updates and purges
 * skip a row that another holds; and WAIT and MARK_WAIT are each alone in their
 * transaction. */
#ifndef IDEM_POSTGRES_SQL_H
#define IDEM_POSTGRES_SQL_H

#include "postgres/place.h"

#include <libpq-fe.h>

enum idem__pg_sql {
    IDEM__PG_SETTINGS,
    IDEM__PG_SETUP,
    IDEM__PG_BEGIN,
    IDEM__PG_SETUP_LOCAL,
    IDEM__PG_BARRIER,
    IDEM__PG_LIST_ALL,
    IDEM__PG_LIST_STATUS,
    IDEM__PG_RAISE,
    IDEM__PG_WAIT,
    IDEM__PG_PURGE,
    IDEM__PG_PURGE_LIMITS,
    IDEM__PG_UPDATE,
    IDEM__PG_UPDATE_ONE,
    IDEM__PG_END_ONE,
    IDEM__PG_CLAIM,
    IDEM__PG_CLAIM_ONE,
    IDEM__PG_THERE,
    IDEM__PG_THERE_ONE,
    IDEM__PG_LOOK,
    IDEM__PG_LOOK_ONE,
    IDEM__PG_LOAD,
    IDEM__PG_LIMIT_COUNT,
    IDEM__PG_LIMIT_LOOK,
    IDEM__PG_MARK,
    IDEM__PG_MARK_WAIT,
    IDEM__PG_MARK_READ,
    IDEM__PG_COMMIT,
    IDEM__PG_ROLLBACK,
    IDEM__PG_SQLS
};

/* Columns of SETUP. */
enum {
    IDEM__PG_SETUP_TIME,
    IDEM__PG_SETUP_FLOOR,
    IDEM__PG_SETUP_MARK,
};

enum {
    IDEM__PG_VERSION = 1, /* Of the schema that this program makes. */

    /* A row comes with its bodies up to these sizes in bytes. */
    IDEM__PG_RESULT_INLINE = 256 * 1024,
    IDEM__PG_INPUT_INLINE = 8 * 1024,
};

/* Writes the text of @sql in @schema to @buf. */
enum {
    IDEM__PG_SQL_MAX = 4096
};
void idem__pg_sql_text(enum idem__pg_sql sql, const char *schema,
                       char buf[IDEM__PG_SQL_MAX]);

/* Derives the name under which @sql is prepared from its @text. A pooler may give a client
 * the session of another one, whose statements name another schema or come from another
 * version of idem: statements of the same name must be the same. 0 or IDEM_ENOMEM. */
enum {
    IDEM__PG_NAME_MAX = 48
};
int idem__pg_sql_name(enum idem__pg_sql sql, const char *text,
                      char buf[IDEM__PG_NAME_MAX]);

/* Sets *@ret_types to the types of its parameters, and returns how many there are. */
size_t idem__pg_sql_types(enum idem__pg_sql sql, const Oid **ret_types);

/* Writes the statement by which a caller ends its attempt to @buf. Its values: id, nonce,
 * fence, deadline, tag, head, result. */
enum {
    IDEM__PG_COMPLETION_MAX = 1024
};
void idem__pg_completion_text(const char *schema,
                              char buf[IDEM__PG_COMPLETION_MAX]);

/* Writes the statements that create the tables in @schema to @buf. */
enum {
    IDEM__PG_SCHEMA_TEXT_MAX = 8192
};
void idem__pg_schema_text(const char *schema,
                          char buf[IDEM__PG_SCHEMA_TEXT_MAX]);

#endif
