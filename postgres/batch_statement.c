/* Sends one statement of a batch to the server, by its name or its text. */
#include "postgres/conn.h"

static struct idem__pg_step *add_step(struct idem__pg_batch *batch, int kind,
                                      enum idem__pg_sql sql)
{
    struct idem__pg_step *step = &batch->steps[batch->steps_len++];

    memset(step, 0, sizeof(*step));
    step->kind = kind;
    step->sql = sql;
    return step;
}

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

/* True for the statements that a connection of our own may run often. */
static bool is_named(enum idem__pg_sql sql)
{
    return sql != IDEM__PG_RAISE && sql != IDEM__PG_WAIT &&
           sql != IDEM__PG_MARK && sql != IDEM__PG_MARK_WAIT &&
           sql != IDEM__PG_MARK_READ && sql != IDEM__PG_SETTINGS &&
           sql != IDEM__PG_BARRIER && sql != IDEM__PG_BEGIN &&
           sql != IDEM__PG_SETUP_LOCAL && sql != IDEM__PG_COMMIT &&
           sql != IDEM__PG_ROLLBACK;
}

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

/* ---- Requests with a statement of their own: lists, purges, limits, bodies ---- */

bool idem__pg_is_single(const struct idem__pg_request *request)
{
    return request->ask != IDEM__PG_ASK_LOOK &&
           request->ask != IDEM__PG_ASK_CLAIM &&
           request->ask != IDEM__PG_ASK_UPDATE;
}

/* The statement of each, and its parameters in order; add_param() explains the letters. */
static const struct {
    enum idem__pg_sql sql;
    const char *params;
} singles[] = {
    [IDEM__PG_ASK_LOAD] = {IDEM__PG_LOAD, "i"},
    [IDEM__PG_ASK_LIST] = {IDEM__PG_LIST_ALL, "al"},
    [IDEM__PG_ASK_LIST_STATUS] = {IDEM__PG_LIST_STATUS, "al012"},
    [IDEM__PG_ASK_RAISE] = {IDEM__PG_RAISE, "0"},
    [IDEM__PG_ASK_WAIT] = {IDEM__PG_WAIT, ""},
    [IDEM__PG_ASK_PURGE] = {IDEM__PG_PURGE, "v0"},
    [IDEM__PG_ASK_PURGE_LIMITS] = {IDEM__PG_PURGE_LIMITS, "0l"},
    [IDEM__PG_ASK_LIMIT_LOOK] = {IDEM__PG_LIMIT_LOOK, "ir"},
    /* entry, used and refusals as found, expires, used, refusals; then at and max. */
    [IDEM__PG_ASK_LIMIT_COUNT] = {IDEM__PG_LIMIT_COUNT, "ir012345ns67"},
    [IDEM__PG_ASK_MARK] = {IDEM__PG_MARK, "ns01"},
    [IDEM__PG_ASK_MARK_WAIT] = {IDEM__PG_MARK_WAIT, ""},
    [IDEM__PG_ASK_MARK_READ] = {IDEM__PG_MARK_READ, ""},
};

static void add_victims(struct idem__pg_params *params,
                        const struct idem__pg_request *request)
{
    size_t ids = idem__pg_params_array(params, IDEM__PG_BYTEAS);
    size_t tags = idem__pg_params_array(params, IDEM__PG_BYTEAS);
    size_t i;

    for (i = 0; i < request->victims_len; i++) {
        idem__pg_params_add_bytes(params, ids,
                                  idem_bytes(request->victims[i].id,
                                             IDEM_ID_LEN));
        idem__pg_params_add_bytes(params, tags,
                                  idem_bytes(request->victims[i].tag,
                                             IDEM__PG_TAG_LEN));
    }
}

static void add_param(struct idem__pg_params *params,
                      const struct idem__pg_request *request, char what)
{
    struct idem_slice id = idem_bytes(request->id, IDEM_ID_LEN);

    switch (what) {
    case 'a': /* The id to go on after; the empty one comes before all ids. */
        id.len = request->from_start ? 0 : id.len;
        (void)idem__pg_params_bytes(params, id);
        break;
    case 'i':
        (void)idem__pg_params_bytes(params, id);
        break;
    case 'r':
        (void)idem__pg_params_bytes(params, request->request_id);
        break;
    case 'n':
        (void)idem__pg_params_bytes(params, request->name);
        break;
    case 's':
        (void)idem__pg_params_bytes(params, request->subject);
        break;
    case 'v':
        add_victims(params, request);
        break;
    case 'l':
        (void)idem__pg_params_number(params, request->limit);
        break;
    default:
        (void)idem__pg_params_number(params, request->numbers[what - '0']);
        break;
    }
}

static bool send_as(struct idem__pg_batch *batch,
                    struct idem__pg_request *request, enum idem__pg_ask ask)
{
    const char *what;

    for (what = singles[ask].params; *what != '\0'; what++) {
        add_param(&batch->conn->params, request, *what);
    }
    return idem__pg_run(batch, singles[ask].sql, request);
}

/* A count also reads its window, so that a refused one can decide anew at once. */
static bool send_single(struct idem__pg_batch *batch,
                        struct idem__pg_request *request)
{
    return send_as(batch, request, request->ask) &&
           (request->ask != IDEM__PG_ASK_LIMIT_COUNT ||
            send_as(batch, request, IDEM__PG_ASK_LIMIT_LOOK));
}

static bool is_of_limits(const struct idem__pg_request *request)
{
    return request->ask == IDEM__PG_ASK_LIMIT_LOOK ||
           request->ask == IDEM__PG_ASK_LIMIT_COUNT;
}

bool idem__pg_send_singles(struct idem__pg_batch *batch)
{
    struct idem__pg_request *request = batch->sent.first;

    for (; request != NULL; request = request->next) {
        if (idem__pg_is_single(request) && !is_of_limits(request) &&
            !send_single(batch, request)) {
            return false;
        }
    }
    return true;
}

/* Sends the limits in the order of the ids of their windows: see sql.h. */
bool idem__pg_send_limits(struct idem__pg_batch *batch)
{
    size_t i;

    for (i = 0; i < batch->by_id_len; i++) {
        if (is_of_limits(batch->by_id[i]) &&
            !send_single(batch, batch->by_id[i])) {
            return false;
        }
    }
    return true;
}
