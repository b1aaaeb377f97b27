/* The texts of the statements. "@" is the schema, whose name needs no quotes. */
#include "postgres/sql.h"

#include "base/hash.h"
#include "postgres/params.h"
#include "postgres/task_request.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A user that may create operators or functions in a schema of the search path could have
 * them called with our rights, if their operands match better than those of PostgreSQL's
 * own. So here, and in the other files, each operand has exactly a type for which
 * PostgreSQL has an operator. */

#define TEXT_OF(number) #number
#define NUMBER(number) TEXT_OF(number)
#define RESULT_INLINE 262144
#define INPUT_INLINE 8192

_Static_assert(RESULT_INLINE == IDEM__PG_RESULT_INLINE &&
                   INPUT_INLINE == IDEM__PG_INPUT_INLINE,
               "sql.h says the same");
_Static_assert(IDEM_SCOPE_MAX == 255 && IDEM_KEY_MAX == 255 &&
                   IDEM__PG_TAG_LEN == 16 && IDEM_HEAD_MAX == 65536 &&
                   IDEM_RESULT_MAX == 67108864 && IDEM_MARK_MAX == 240,
               "the statements say the same");

/* NULL if the column is larger than idem writes it: a client never receives a gigabyte. */
#define AT_MOST(bytes, column)                                                 \
    "CASE WHEN octet_length(" column ") <= " bytes " THEN " column " END"

/* One byte if the body is larger than idem writes it: NULL would mean that there is
 * none. */
#define BODY(column)                                                           \
    "CASE WHEN octet_length(" column ") > 67108864"                            \
    " THEN decode('00', 'hex') ELSE " column " END"

#define SCOPE AT_MOST("255", "r.scope")
#define KEY AT_MOST("255", "r.key")
#define TAG AT_MOST("16", "r.tag")
#define HEAD AT_MOST("65536", "r.head")
#define RESULT AT_MOST(NUMBER(RESULT_INLINE), "r.result")
#define INPUT AT_MOST(NUMBER(INPUT_INLINE), "r.input")

/* The columns that row.c reads. The time comes after the row: if the server's clock is set
 * back in between, a lease written since then does not seem to be over. */
#define HEAD_COLUMNS                                                           \
    "r.id, " SCOPE ", " KEY ", r.status, r.deadline, " TAG ", " HEAD ", "
#define ROW HEAD_COLUMNS "NULL::bytea, NULL::bytea, clock_timestamp()"
#define ROW_WITH_BODIES HEAD_COLUMNS RESULT ", " INPUT ", clock_timestamp()"
#define BODIES BODY("r.result") ", " BODY("r.input")

/* Rows come as arrays, one for each column in the order of the table; the first has the
 * ids. Taking elements by number costs less than unnest(), each of which fills a tuple
 * store. */
#define NEW_ROWS "generate_subscripts($1, 1) i"

/* The settings of each transaction, whatever defaults the server, the database or the role
 * has: an outcome that was answered is on disk, and no caller waits long for a lock.
 * @local is "true" for this transaction alone, "false" for the session.
 *
 * A connection plans a statement once, perhaps while the table is empty, and keeps the
 * plan until the table is analyzed. So it must be the plan for a full table: by index. */
#define SETTINGS(local)                                                        \
    "set_config('synchronous_commit',"                                         \
    " CASE current_setting('synchronous_commit') WHEN 'remote_apply'"          \
    " THEN 'remote_apply' ELSE 'on' END, " local "),"                          \
    " set_config('lock_timeout', '250', " local "),"                           \
    " set_config('idle_in_transaction_session_timeout', '10000', " local "),"  \
    " set_config('plan_cache_mode', 'force_generic_plan', " local "),"         \
    " set_config('enable_seqscan', 'off', " local "),"                         \
    " set_config('enable_hashjoin', 'off', " local "),"                        \
    " set_config('enable_mergejoin', 'off', " local "),"                       \
    " set_config('jit', 'off', " local ")"

#define SESSION_SETTINGS                                                       \
    ", set_config('default_transaction_isolation', 'read committed', false),"  \
    " set_config('idem.settings', '1', false)"

#define IS_DURABLE                                                             \
    "current_setting('synchronous_commit') IN ('on', 'remote_apply')"

/* The mark of a store that is moved. It is ASCII, so it is the same text in any encoding.
 * A mark that is too long is cut to 240 characters, which is still too long for a valid
 * one: a client never receives a gigabyte. */
#define MARK "left(s.mark, 240)"

/* The fence floor, the mark, and a sum that fails where we may not go on: with an invalid
 * number if idem_store has no row, a division by zero if the schema is of a newer version,
 * and an overflow if somebody has reset the settings of the session. The three are terms
 * of one sum because each column of an answer costs time at both ends. */
#define LOCAL_CHECKS                                                           \
    "s.fence_floor, " MARK ","                                                 \
    " (CASE WHEN s.one THEN '1' ELSE 'idem_store is empty' END)::int"          \
    " + s.least / (s.least <= 1)::int"
#define CHECKS                                                                 \
    LOCAL_CHECKS " + (CASE WHEN " IS_DURABLE                                   \
                 " AND current_setting('idem.settings', true) = '1'"           \
                 " THEN 0::int8 ELSE 9223372036854775807 END + 1::int8)"
#define STORE_FROM " FROM (SELECT 1) x LEFT JOIN @.idem_store s ON true"

/* The same checks for a write that comes without SETUP, which then finds nothing to write.
 * The look that follows has CHECKS, and reports why. IS_DURABLE becomes the number 1, the
 * version that we know, or 0, which is below every version. */
#define GUARD "s.one AND s.least <= (" IS_DURABLE ")::int"

/* A claim's fence must be above the fence floor. A claim may wait for the record of
 * another, which is committed and purged meanwhile. So a claim holds a lock on idem_store
 * (ROW SHARE, by FOR KEY SHARE of a row that never exists) from before it reads the floor
 * until it commits: PostgreSQL takes the locks of a statement on tables before its
 * snapshot. A purge raises the floor, waits until no claim holds the lock (WAIT), and then
 * deletes.
 *
 * The fence of an imported record is not compared: it comes as the greatest number, which
 * alone is accepted by a store that is closed to new attempts. The subquery names no row of
 * the statement, so that it runs once for all of them. */
#define IS_ABOVE_ALL                                                           \
    " > (SELECT CASE WHEN s.closed THEN 9223372036854775806"                   \
    " ELSE s.fence_floor END FROM @.idem_store s WHERE " GUARD ")"             \
    " OR EXISTS (SELECT FROM @.idem_store l WHERE l.ctid = '(0,0)'::tid"       \
    " FOR KEY SHARE)"

static const struct {
    const char *name;
    const char *text;
    size_t types;
    Oid type[13];
} statements[IDEM__PG_SQLS] = {
    /* For a connection that is ours alone, where a transaction is everything up to a Sync.
     * It must be READ COMMITTED: when two hosts claim one key, THERE has to see the winner
     * that CLAIM waited for, which was committed after our transaction began. */
    [IDEM__PG_SETTINGS] = {.name = "idem_settings",
                           .text =
                               "SELECT " SETTINGS("false") SESSION_SETTINGS},
    [IDEM__PG_SETUP] = {.name = "idem_setup",
                        .text = "SELECT clock_timestamp(), " CHECKS STORE_FROM},
    /* For a connection that a pooler gives to other clients between two transactions. */
    [IDEM__PG_BEGIN] = {.name = "idem_begin",
                        .text = "BEGIN ISOLATION LEVEL READ COMMITTED"},
    [IDEM__PG_SETUP_LOCAL] = {.name = "idem_setup_local",
                              .text = "SELECT clock_timestamp(), " LOCAL_CHECKS
                                      ", " SETTINGS("true") STORE_FROM},
    /* A transaction that writes nothing does not wait for replicas. This one writes to the
     * log, and so waits for all that it can see. It needs no right and takes no lock, and
     * only a reader that decodes the log sees it. A server without synchronous replicas
     * writes nothing. */
    [IDEM__PG_BARRIER] =
        {.name = "idem_barrier",
         .text =
             "SELECT pg_logical_emit_message(true, 'idem'::text, 'barrier'::text)"
             " WHERE current_setting('synchronous_standby_names') <> ''"
             " AND NOT pg_is_in_recovery()"},
    /* A walk goes on after the id of the last row, so a row without a valid id is left
     * out. */
    [IDEM__PG_LIST_ALL] = {"idem_list_all",
                           "SELECT " ROW " FROM @.idem_record r"
                           " WHERE r.id > $1 AND octet_length(r.id) = 32"
                           " ORDER BY r.id LIMIT $2",
                           2,
                           {IDEM__PG_BYTEA, IDEM__PG_INT8}},
    [IDEM__PG_LIST_STATUS] =
        {"idem_list_status",
         "SELECT " ROW " FROM @.idem_record r"
         " WHERE r.status = $3::int8 AND (r.deadline, r.id) > ($4, $1)"
         " AND r.deadline <= $5 AND octet_length(r.id) = 32"
         " ORDER BY r.deadline, r.id LIMIT $2",
         5,
         {IDEM__PG_BYTEA, IDEM__PG_INT8, IDEM__PG_INT8, IDEM__PG_INT8,
          IDEM__PG_INT8}},
    /* Returns the number of this transaction if it wrote anything. */
    [IDEM__PG_RAISE] = {"idem_raise",
                        "UPDATE @.idem_store SET fence_floor = $1"
                        " WHERE one AND fence_floor < $1"
                        " RETURNING pg_current_xact_id()::text::int8",
                        1,
                        {IDEM__PG_INT8}},
    /* LOCK is allowed only after BEGIN, or in a block. Readers such as pg_dump, and
     * writers of other tables, hold no lock that conflicts with this one. */
    [IDEM__PG_WAIT] = {.name = "idem_wait",
                       .text = "DO 'BEGIN LOCK TABLE @.idem_store"
                               " IN EXCLUSIVE MODE; END'"},
    /* Deletes records only if the fence floor covers their greatest fence, $3: after a
     * failover the raised floor may be lost. A record that has changed has another tag,
     * and stays. Returns how many it deleted, the number of this transaction if it wrote
     * anything, and the floor. */
    [IDEM__PG_PURGE] =
        {"idem_purge",
         "WITH held AS MATERIALIZED (SELECT r.id FROM @.idem_record r"
         " JOIN unnest($1::bytea[], $2::bytea[]) o(id, tag)"
         " ON r.id = o.id AND r.tag = o.tag"
         " WHERE $3 <= (SELECT s.fence_floor FROM @.idem_store s WHERE s.one)"
         " ORDER BY r.id FOR UPDATE OF r SKIP LOCKED),"
         " gone AS (DELETE FROM @.idem_record r USING held h WHERE r.id = h.id"
         " RETURNING 1)"
         " SELECT count(*), pg_current_xact_id_if_assigned()::text::int8,"
         " (SELECT s.fence_floor FROM @.idem_store s WHERE s.one) FROM gone",
         3,
         {IDEM__PG_BYTEAS, IDEM__PG_BYTEAS, IDEM__PG_INT8}},
    [IDEM__PG_PURGE_LIMITS] =
        {"idem_purge_limits",
         "WITH due AS MATERIALIZED (SELECT w.id FROM @.idem_limit_window w"
         " WHERE w.expires < $1 ORDER BY w.expires LIMIT $2"
         " FOR UPDATE SKIP LOCKED),"
         " requests AS (DELETE FROM @.idem_limit_request q USING due d"
         " WHERE q.window_id = d.id),"
         " gone AS (DELETE FROM @.idem_limit_window w USING due d"
         " WHERE w.id = d.id RETURNING 1)"
         " SELECT count(*) FROM gone",
         2,
         {IDEM__PG_INT8, IDEM__PG_INT8}},
    /* Skips a row that another transaction holds, so that the other ops need not wait; its
     * op looks again. $1 has the ids, $12 the heads found, $13 the bits of sets_of(). It
     * compares heads and not tags, because a damaged head may keep its tag, and a damaged
     * record must not be overwritten. */
    [IDEM__PG_UPDATE] =
        {"idem_update",
         "WITH held AS MATERIALIZED (SELECT r.ctid, i FROM " NEW_ROWS
         " JOIN @.idem_record r ON r.id = $1[i] AND r.head = $12[i]"
         " WHERE $13[i] & 4::int8 <= (SELECT CASE WHEN s.closed THEN 0::int8"
         " ELSE 4::int8 END FROM @.idem_store s WHERE " GUARD ")"
         " ORDER BY r.id FOR UPDATE OF r SKIP LOCKED)"
         " UPDATE @.idem_record r SET nonce = $4[h.i], fence = $5[h.i],"
         " status = $6[h.i], deadline = $7[h.i], tag = $8[h.i], head = $9[h.i],"
         " result = CASE WHEN $13[h.i] & 1::int8 <> 0 THEN $10[h.i]"
         " ELSE r.result END,"
         " input = CASE WHEN $13[h.i] & 2::int8 <> 0 THEN $11[h.i]"
         " ELSE r.input END"
         " FROM held h WHERE r.ctid = h.ctid"
         " RETURNING r.id, r.tag, clock_timestamp()",
         13,
         {IDEM__PG_BYTEAS, IDEM__PG_BYTEAS, IDEM__PG_BYTEAS, IDEM__PG_BYTEAS,
          IDEM__PG_INT8S, IDEM__PG_INT8S, IDEM__PG_INT8S, IDEM__PG_BYTEAS,
          IDEM__PG_BYTEAS, IDEM__PG_BYTEAS, IDEM__PG_BYTEAS, IDEM__PG_BYTEAS,
          IDEM__PG_INT8S}},
    /* The same for one row, which is all that most batches have. $11 is the head found,
     * $10 the bits. A locked row keeps its place (ctid). A row that another transaction
     * has rewritten since our snapshot is not seen at its new place, so nothing is
     * written, and the op looks again. */
    [IDEM__PG_UPDATE_ONE] =
        {"idem_update_one",
         "UPDATE @.idem_record r SET nonce = $2, fence = $3, status = $4,"
         " deadline = $5, tag = $6, head = $7,"
         " result = CASE WHEN $10 & 1::int8 <> 0 THEN $8 ELSE r.result END,"
         " input = CASE WHEN $10 & 2::int8 <> 0 THEN $9 ELSE r.input END"
         " WHERE r.ctid = (SELECT h.ctid FROM @.idem_store s, @.idem_record h"
         " WHERE h.id = $1 AND h.head = $11 AND " GUARD
         " AND (NOT s.closed OR $10 & 4::int8 = 0::int8)"
         " FOR UPDATE OF h SKIP LOCKED) RETURNING clock_timestamp()",
         11,
         {IDEM__PG_BYTEA, IDEM__PG_BYTEA, IDEM__PG_INT8, IDEM__PG_INT8,
          IDEM__PG_INT8, IDEM__PG_BYTEA, IDEM__PG_BYTEA, IDEM__PG_BYTEA,
          IDEM__PG_BYTEA, IDEM__PG_INT8, IDEM__PG_BYTEA}},
    /* The same for the most common update: it writes the result, and keeps the input. */
    [IDEM__PG_END_ONE] =
        {"idem_end_one",
         "UPDATE @.idem_record r SET nonce = $2, fence = $3, status = $4,"
         " deadline = $5, tag = $6, head = $7, result = $8"
         " WHERE r.ctid = (SELECT h.ctid FROM @.idem_store s, @.idem_record h"
         " WHERE h.id = $1 AND h.head = $9 AND " GUARD
         " FOR UPDATE OF h SKIP LOCKED) RETURNING clock_timestamp()",
         9,
         {IDEM__PG_BYTEA, IDEM__PG_BYTEA, IDEM__PG_INT8, IDEM__PG_INT8,
          IDEM__PG_INT8, IDEM__PG_BYTEA, IDEM__PG_BYTEA, IDEM__PG_BYTEA,
          IDEM__PG_BYTEA}},
    /* ON CONFLICT alone would wait for a transaction that holds the existing record, say
     * an application's. So a claim does not try a key whose record it can see. $12 is the
     * number to compare with the fence floor (above_of()), $13 the end of the lease.
     *
     * The first claim of a process goes by the clock of its host. A claim whose lease is
     * over by the server's clock, which counts, is not written: another caller would take
     * it over before its owner has lengthened it. The answer tells the time, and the next
     * claim is right. */
    [IDEM__PG_CLAIM] =
        {"idem_claim",
         "INSERT INTO @.idem_record AS r (id, scope, key, nonce, fence, status,"
         " deadline, tag, head, result, input)"
         " SELECT $1[i], $2[i], $3[i], $4[i], $5[i], $6[i], $7[i], $8[i], $9[i],"
         " $10[i], $11[i] FROM " NEW_ROWS
         " WHERE NOT EXISTS (SELECT FROM @.idem_record o WHERE o.id = $1[i])"
         " AND ($12[i]" IS_ABOVE_ALL ")"
         " AND clock_timestamp() < to_timestamp(($13[i] / 1000::int8)::float8)"
         " ORDER BY $1[i] ON CONFLICT (id) DO NOTHING"
         " RETURNING r.id, r.tag, clock_timestamp()",
         13,
         {IDEM__PG_BYTEAS, IDEM__PG_BYTEAS, IDEM__PG_BYTEAS, IDEM__PG_BYTEAS,
          IDEM__PG_INT8S, IDEM__PG_INT8S, IDEM__PG_INT8S, IDEM__PG_BYTEAS,
          IDEM__PG_BYTEAS, IDEM__PG_BYTEAS, IDEM__PG_BYTEAS, IDEM__PG_INT8S,
          IDEM__PG_INT8S}},
    /* The same for one row. */
    [IDEM__PG_CLAIM_ONE] =
        {"idem_claim_one",
         "INSERT INTO @.idem_record AS r (id, nonce, fence, status, deadline,"
         " tag, head, result, input, scope, key)"
         " SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 WHERE"
         " NOT EXISTS (SELECT FROM @.idem_record o WHERE o.id = $1)"
         " AND ($12" IS_ABOVE_ALL ")"
         " AND clock_timestamp() < to_timestamp(($13 / 1000::int8)::float8)"
         " ON CONFLICT (id) DO NOTHING RETURNING clock_timestamp()",
         13,
         {IDEM__PG_BYTEA, IDEM__PG_BYTEA, IDEM__PG_INT8, IDEM__PG_INT8,
          IDEM__PG_INT8, IDEM__PG_BYTEA, IDEM__PG_BYTEA, IDEM__PG_BYTEA,
          IDEM__PG_BYTEA, IDEM__PG_BYTEA, IDEM__PG_BYTEA, IDEM__PG_INT8,
          IDEM__PG_INT8}},
    /* A statement of its own, with a newer snapshot, so that it sees a winner for which
     * CLAIM waited. */
    [IDEM__PG_THERE] = {"idem_there",
                        "SELECT " ROW_WITH_BODIES " FROM " NEW_ROWS
                        " JOIN @.idem_record r ON r.id = $1[i]"
                        " WHERE r.tag <> $2[i]",
                        2,
                        {IDEM__PG_BYTEAS, IDEM__PG_BYTEAS}},
    [IDEM__PG_THERE_ONE] = {"idem_there_one",
                            "SELECT " ROW_WITH_BODIES " FROM @.idem_record r"
                            " WHERE r.id = $1 AND r.tag <> $2",
                            2,
                            {IDEM__PG_BYTEA, IDEM__PG_BYTEA}},
    [IDEM__PG_LOOK] = {"idem_look",
                       "SELECT " ROW_WITH_BODIES " FROM @.idem_record r"
                       " WHERE r.id = ANY($1::bytea[])",
                       1,
                       {IDEM__PG_BYTEAS}},
    /* Returns one row, of NULLs if there is no record, with the columns of SETUP. */
    [IDEM__PG_LOOK_ONE] = {"idem_look_one",
                           "SELECT " ROW_WITH_BODIES ", " CHECKS STORE_FROM
                           " LEFT JOIN @.idem_record r ON r.id = $1",
                           1,
                           {IDEM__PG_BYTEA}},
    [IDEM__PG_LOAD] = {"idem_load",
                       "SELECT r.tag, " BODIES
                       " FROM @.idem_record r WHERE r.id = $1",
                       1,
                       {IDEM__PG_BYTEA}},
    /* Counts a request if the window is as it was found: $4 used, $5 refusals; -1 if there
     * was none. */
    [IDEM__PG_LIMIT_COUNT] =
        {"idem_limit_count",
         "WITH counted AS (INSERT INTO @.idem_limit_window AS w"
         " (id, expires, used, refusals, name, subject, at, max)"
         " SELECT $1::bytea, $6::int8, $7::int8, $8::int8, $9::bytea,"
         " $10::bytea, $11::int8, $12::int8"
         " WHERE ($4::int8 < 0 OR EXISTS (SELECT FROM @.idem_limit_window o"
         " WHERE o.id = $1))"
         " AND EXISTS (SELECT FROM @.idem_store s WHERE s.one AND NOT s.closed)"
         " ON CONFLICT (id) DO UPDATE SET used = $7, refusals = $8,"
         " expires = greatest(w.expires, $6), max = $12"
         " WHERE w.used = $4 AND w.refusals = $5 RETURNING w.id)"
         " INSERT INTO @.idem_limit_request (window_id, request, entry)"
         " SELECT c.id, $2::bytea, $3::int8 FROM counted c"
         " ON CONFLICT (window_id, request) DO NOTHING RETURNING request",
         12,
         {IDEM__PG_BYTEA, IDEM__PG_BYTEA, IDEM__PG_INT8, IDEM__PG_INT8,
          IDEM__PG_INT8, IDEM__PG_INT8, IDEM__PG_INT8, IDEM__PG_INT8,
          IDEM__PG_BYTEA, IDEM__PG_BYTEA, IDEM__PG_INT8, IDEM__PG_INT8}},
    [IDEM__PG_LIMIT_LOOK] =
        {"idem_limit_look",
         "SELECT w.used, w.refusals, q.entry FROM @.idem_limit_window w"
         " LEFT JOIN @.idem_limit_request q"
         " ON q.window_id = w.id AND q.request = $2 WHERE w.id = $1",
         2,
         {IDEM__PG_BYTEA, IDEM__PG_BYTEA}},
    /* Replaces the mark $1 by $2. */
    [IDEM__PG_MARK] =
        {"idem_mark",
         "UPDATE @.idem_store SET mark = convert_from($2, 'UTF8'::name),"
         " closed = $3 <> 0::int8, fence_floor = greatest(fence_floor, $4)"
         " WHERE one AND mark = convert_from($1, 'UTF8'::name)",
         4,
         {IDEM__PG_BYTEA, IDEM__PG_BYTEA, IDEM__PG_INT8, IDEM__PG_INT8}},
    /* Each statement that writes a record or counts a request locks its table before it
     * takes its snapshot. So once this lock is held, each later one sees the mark. */
    [IDEM__PG_MARK_WAIT] = {.name = "idem_mark_wait",
                            .text = "DO 'BEGIN LOCK TABLE @.idem_record,"
                                    " @.idem_limit_window IN SHARE MODE; END'"},
    [IDEM__PG_MARK_READ] = {.name = "idem_mark_read",
                            .text = "SELECT " MARK
                                    " FROM @.idem_store s WHERE s.one"},
    [IDEM__PG_COMMIT] = {.name = "idem_commit", .text = "COMMIT"},
    [IDEM__PG_ROLLBACK] = {.name = "idem_rollback", .text = "ROLLBACK"},
};

/* Each operator is PostgreSQL's own for exactly these types, so that no other user's
 * operator is a better match. */
#define IS_EXPIRED                                                             \
    "$4::int8 <= (extract(epoch FROM clock_timestamp())::float8"               \
    " * 1000::float8)::int8"

/* Ends an attempt. It does not compare the head, so that renewals since the statement was
 * made do no harm: they change neither nonce nor fence, and nothing that the new head
 * needs. Bytes 73 to 80 of the head are the end of the work (AT_ENDED in core/record.c):
 * 0, unless the owner requested another run. COMPLETED is 2, IN_PROGRESS is 1.
 *
 * The retention counts from when the statement was made. If it ran after that, it would
 * leave a record that counts as absent, and the next caller would make the effect again.
 *
 * A driver may hide how many rows an UPDATE changed. So this is a query that returns one
 * row, and fails if it changed none. The count in the text to be cast keeps the planner
 * from evaluating the cast beforehand. */
static const char completion[] =
    "WITH ended AS (UPDATE @.idem_record AS r SET status = 2,"
    " deadline = $4::int8, tag = $5::bytea, head = $6::bytea,"
    " result = $7::bytea"
    " WHERE r.id = $1::bytea AND r.nonce = $2::bytea AND r.fence = $3::int8"
    " AND r.status = 1"
    " AND substr(r.head, 73, 8) = decode('0000000000000000', 'hex')"
    " AND NOT " IS_EXPIRED " RETURNING r.id)"
    " SELECT CASE WHEN count(*) = 1 THEN 1 ELSE (CASE WHEN " IS_EXPIRED
    " THEN 'idem: the retention was over before the statement ran: roll back,"
    " and ask for another'"
    " ELSE 'idem: the attempt is lost, or was ended before: roll back' END"
    " || '. Records ended: ' || count(*)::text)::int END"
    " FROM ended";

_Static_assert(sizeof(completion) <=
                   IDEM__PG_COMPLETION_MAX - IDEM__PG_SCHEMA_MAX,
               "it has the schema once");

static const char tables[] =
    "CREATE SCHEMA IF NOT EXISTS @;\n"
    "CREATE TABLE IF NOT EXISTS @.idem_record (\n"
    "  id bytea PRIMARY KEY,\n"
    "  scope bytea NOT NULL,\n"
    "  key bytea NOT NULL,\n"
    "  nonce bytea NOT NULL,\n"
    "  fence int8 NOT NULL,\n"
    "  status int8 NOT NULL,\n"
    "  deadline int8 NOT NULL,\n"
    "  tag bytea NOT NULL,\n"
    "  head bytea NOT NULL,\n"
    "  result bytea,\n"
    "  input bytea\n"
    ");\n"
    /* Assume that bodies do not compress: the attempt would only cost time. */
    "ALTER TABLE @.idem_record ALTER head SET STORAGE EXTERNAL,\n"
    "  ALTER result SET STORAGE EXTERNAL, ALTER input SET STORAGE EXTERNAL;\n"
    "CREATE INDEX IF NOT EXISTS idem_record_due ON @.idem_record\n"
    "  (status, deadline, id);\n"
    "CREATE TABLE IF NOT EXISTS @.idem_limit_window (\n"
    "  id bytea PRIMARY KEY,\n"
    "  expires int8 NOT NULL,\n"
    "  used int8 NOT NULL,\n"
    "  refusals int8 NOT NULL,\n"
    "  name bytea NOT NULL,\n"
    "  subject bytea NOT NULL,\n"
    "  at int8 NOT NULL,\n"
    "  max int8 NOT NULL\n"
    ");\n"
    "CREATE INDEX IF NOT EXISTS idem_limit_window_due\n"
    "  ON @.idem_limit_window (expires);\n"
    "CREATE TABLE IF NOT EXISTS @.idem_limit_request (\n"
    "  window_id bytea NOT NULL,\n"
    "  request bytea NOT NULL,\n"
    "  entry int8 NOT NULL,\n"
    "  PRIMARY KEY (window_id, request)\n"
    ");\n"
    /* least is the oldest version that a program must know to use the store. */
    "CREATE TABLE IF NOT EXISTS @.idem_store (\n"
    "  one bool PRIMARY KEY CHECK (one),\n"
    "  version int8 NOT NULL,\n"
    "  least int8 NOT NULL,\n"
    "  fence_floor int8 NOT NULL,\n"
    "  mark text NOT NULL DEFAULT '',\n"
    "  closed bool NOT NULL DEFAULT false\n"
    ");\n"
    "INSERT INTO @.idem_store VALUES (true, 1, 1, 0)\n"
    "  ON CONFLICT (one) DO NOTHING;\n";

_Static_assert(IDEM__PG_VERSION == 1,
               "CHECKS, GUARD and tables[] say the same");

static void expand(const char *text, const char *schema, char *buf, size_t cap)
{
    size_t len = 0;

    for (; *text != '\0'; text++) {
        const char *part = *text == '@' ? schema : text;
        size_t n = *text == '@' ? strlen(schema) : 1;

        assert(len + n < cap);
        memcpy(buf + len, part, n);
        len += n;
    }
    buf[len] = '\0';
}

void idem__pg_sql_text(enum idem__pg_sql sql, const char *schema,
                       char buf[IDEM__PG_SQL_MAX])
{
    expand(statements[sql].text, schema, buf, IDEM__PG_SQL_MAX);
}

int idem__pg_sql_name(enum idem__pg_sql sql, const char *text,
                      char buf[IDEM__PG_NAME_MAX])
{
    const struct idem_slice all = idem_str(text);
    uint8_t digest[IDEM__SHA256_LEN];
    int rc = idem__sha256(&all, 1, digest);
    int len;
    size_t i;

    if (rc != 0) {
        return rc;
    }
    len = snprintf(buf, IDEM__PG_NAME_MAX, "%s_", statements[sql].name);
    for (i = 0; i < 8; i++) {
        len += snprintf(buf + len, IDEM__PG_NAME_MAX - (size_t)len, "%02x",
                        digest[i]);
    }
    return 0;
}

size_t idem__pg_sql_types(enum idem__pg_sql sql, const Oid **ret_types)
{
    *ret_types = statements[sql].type;
    return statements[sql].types;
}

void idem__pg_completion_text(const char *schema,
                              char buf[IDEM__PG_COMPLETION_MAX])
{
    expand(completion, schema, buf, IDEM__PG_COMPLETION_MAX);
}

void idem__pg_schema_text(const char *schema,
                          char buf[IDEM__PG_SCHEMA_TEXT_MAX])
{
    expand(tables, schema, buf, IDEM__PG_SCHEMA_TEXT_MAX);
}
