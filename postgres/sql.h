/* The statements, and the tables that they are about.
 *
 *     SETTINGS             once for a connection that is ours alone
 *     SETUP                the time, the fences that are gone, what forbids to go on
 *     BARRIER              writes something, so that the commit waits for replicas
 *     LIST...              read many
 *     RAISE, WAIT, PURGE   deletes records, when all claims know of it
 *     UPDATE, END          write over records that are as they were found
 *     CLAIM, THERE         adds records; and shows those that were there already. After
 *                          many new ones in a row THERE is left out: a claim that is
 *                          refused is looked for then
 *     LOOK, LOAD           reads records
 *     LIMIT...             counts requests
 *     MARK, ..._WAIT       marks the store as moved, and waits for the claims that may
 *                          not know of it
 *
 * A transaction is what is sent up to a Sync, which commits it. Over a connection that a
 * pooler shares BEGIN and SETUP_LOCAL come first, and COMMIT last.
 *
 * Many ops are one statement: its parameters are arrays; those of one op are not
 * (..._ONE). A batch of claims and updates, or of one look, is without SETUP: it tells the
 * time itself, and writes nothing where SETUP would fail. Locks on rows are taken in the
 * order of the list, and in each statement in the order of the ids; updates and purges
 * never wait for one. WAIT is alone in its transaction. So no two transactions of ours wait
 * for each other. */
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

    /* Bodies of at most so many bytes come with the row. */
    IDEM__PG_RESULT_INLINE = 256 * 1024,
    IDEM__PG_INPUT_INLINE = 8 * 1024,
};

/* The text of @sql in @schema, in @buf. */
enum {
    IDEM__PG_SQL_MAX = 4096
};
void idem__pg_sql_text(enum idem__pg_sql sql, const char *schema,
                       char buf[IDEM__PG_SQL_MAX]);

/* The name that @sql is prepared under, of its @text: a pooler may give a client the
 * session of another, whose statements are about another schema, or are those of another
 * version. One of the same name has to be the same. 0 or IDEM_ENOMEM. */
enum {
    IDEM__PG_NAME_MAX = 48
};
int idem__pg_sql_name(enum idem__pg_sql sql, const char *text,
                      char buf[IDEM__PG_NAME_MAX]);

/* The types of its parameters; returns how many. */
size_t idem__pg_sql_types(enum idem__pg_sql sql, const Oid **ret_types);

/* The text of the statement by which a caller ends its attempt, in @buf. Its values: id,
 * nonce, fence, deadline, tag, head, result. */
enum {
    IDEM__PG_COMPLETION_MAX = 1024
};
void idem__pg_completion_text(const char *schema,
                              char buf[IDEM__PG_COMPLETION_MAX]);

/* The statements that make the tables in @schema, in @buf. */
enum {
    IDEM__PG_SCHEMA_TEXT_MAX = 8192
};
void idem__pg_schema_text(const char *schema,
                          char buf[IDEM__PG_SCHEMA_TEXT_MAX]);

#endif
