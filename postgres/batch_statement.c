/* One statement of a batch on its way to the server, by its name or its text. */
#include "postgres/batch.h"

static struct idem__pg_step *add_step(struct idem__pg_batch *batch, int kind,
                                      enum idem__pg_sql sql)
{
    struct idem__pg_step *step = &batch->steps[batch->steps_len++];

    memset(step, 0, sizeof(*step));
    step->kind = kind;
    step->sql = sql;
    return step;
}

/* Runs @sql with batch->conn->params. */
bool idem__pg_run(struct idem__pg_batch *batch, enum idem__pg_sql sql,
                  struct idem__pg_request *request)
{
    const char *values[IDEM__PG_PARAMS_MAX];
    int lengths[IDEM__PG_PARAMS_MAX];
    int formats[IDEM__PG_PARAMS_MAX];
    int n = (int)batch->conn->params.len;
    char text[IDEM__PG_SQL_MAX];
    int rc;

    if (!idem__pg_params_finish(&batch->conn->params, values, lengths,
                                formats)) {
        return false;
    }
    if (batch->conn->prepared && batch->conn->names[sql][0] != '\0') {
        rc = PQsendQueryPrepared(batch->conn->pg, batch->conn->names[sql], n,
                                 values, lengths, formats,
                                 /* resultFormat= */ 1);
    } else {
        idem__pg_sql_text(sql, batch->conn->place->schema, text);
        rc = PQsendQueryParams(batch->conn->pg, text, n,
                               batch->conn->params.types, values, lengths,
                               formats, /* resultFormat= */ 1);
    }
    add_step(batch, IDEM__PG_STEP_RUN, sql)->request = request;
    idem__pg_params_reset(&batch->conn->params);
    return rc == 1;
}

bool idem__pg_sync(struct idem__pg_batch *batch)
{
    (void)add_step(batch, IDEM__PG_STEP_SYNC, 0);
    return PQpipelineSync(batch->conn->pg) == 1;
}

/* Those that a connection runs often, if it is ours alone. */
static bool is_named(enum idem__pg_sql sql)
{
    return sql != IDEM__PG_RAISE && sql != IDEM__PG_WAIT &&
           sql != IDEM__PG_MARK && sql != IDEM__PG_MARK_WAIT &&
           sql != IDEM__PG_MARK_READ && sql != IDEM__PG_SETTINGS &&
           sql != IDEM__PG_BARRIER && sql != IDEM__PG_BEGIN &&
           sql != IDEM__PG_SETUP_LOCAL && sql != IDEM__PG_COMMIT &&
           sql != IDEM__PG_ROLLBACK;
}

/* Names the statements, in the same flight as the batch that uses them first. */
bool idem__pg_prepare(struct idem__pg_batch *batch)
{
    int sql;

    for (sql = 0; sql < IDEM__PG_SQLS; sql++) {
        char text[IDEM__PG_SQL_MAX];
        const Oid *types;
        size_t n = idem__pg_sql_types(sql, &types);

        batch->conn->names[sql][0] = '\0';
        if (!is_named(sql)) {
            continue;
        }
        idem__pg_sql_text(sql, batch->conn->place->schema, text);
        if (idem__pg_sql_name(sql, text, batch->conn->names[sql]) != 0) {
            batch->conn->params.failed = true;
            return false;
        }
        if (PQsendPrepare(batch->conn->pg, batch->conn->names[sql], text,
                          (int)n, types) != 1) {
            return false;
        }
        (void)add_step(batch, IDEM__PG_STEP_PREPARE, sql);
    }
    batch->conn->prepared = true;
    return idem__pg_sync(batch);
}
