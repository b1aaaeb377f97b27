/* Requests that are a statement of their own: lists, purges, limits, bodies. */
#include "postgres/batch.h"

bool idem__pg_is_single(const struct idem__pg_request *request)
{
    return request->ask != IDEM__PG_ASK_LOOK &&
           request->ask != IDEM__PG_ASK_CLAIM &&
           request->ask != IDEM__PG_ASK_UPDATE;
}

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
    (void)idem__pg_params_number(params, request->numbers[0]);
}

/* entry, used and refusals as found, expires, used, refusals; then at and max. */
static void add_count(struct idem__pg_params *params,
                      const struct idem__pg_request *request)
{
    size_t i;

    (void)idem__pg_params_bytes(params, request->request_id);
    for (i = 0; i < 6; i++) {
        (void)idem__pg_params_number(params, request->numbers[i]);
    }
    (void)idem__pg_params_bytes(params, request->name);
    (void)idem__pg_params_bytes(params, request->subject);
    (void)idem__pg_params_number(params, request->numbers[6]);
    (void)idem__pg_params_number(params, request->numbers[7]);
}

static bool send_single(struct idem__pg_batch *batch,
                        struct idem__pg_request *request)
{
    struct idem__pg_params *params = &batch->conn->params;
    struct idem_slice id = idem_bytes(request->id, IDEM_ID_LEN);

    switch (request->ask) {
    case IDEM__PG_ASK_LOAD:
        (void)idem__pg_params_bytes(params, id);
        return idem__pg_run(batch, IDEM__PG_LOAD, request);
    case IDEM__PG_ASK_LIST:
    case IDEM__PG_ASK_LIST_STATUS:
        /* Before every id there is the empty one. */
        id.len = request->from_start ? 0 : id.len;
        (void)idem__pg_params_bytes(params, id);
        (void)idem__pg_params_number(params, request->limit);
        if (request->ask == IDEM__PG_ASK_LIST) {
            return idem__pg_run(batch, IDEM__PG_LIST_ALL, request);
        }
        (void)idem__pg_params_number(params, request->numbers[0]);
        (void)idem__pg_params_number(params, request->numbers[1]);
        (void)idem__pg_params_number(params, request->numbers[2]);
        return idem__pg_run(batch, IDEM__PG_LIST_STATUS, request);
    case IDEM__PG_ASK_RAISE:
        (void)idem__pg_params_number(params, request->numbers[0]);
        return idem__pg_run(batch, IDEM__PG_RAISE, request);
    case IDEM__PG_ASK_WAIT:
        return idem__pg_run(batch, IDEM__PG_WAIT, request);
    case IDEM__PG_ASK_PURGE:
        add_victims(params, request);
        return idem__pg_run(batch, IDEM__PG_PURGE, request);
    case IDEM__PG_ASK_PURGE_LIMITS:
        (void)idem__pg_params_number(params, request->numbers[0]);
        (void)idem__pg_params_number(params, request->limit);
        return idem__pg_run(batch, IDEM__PG_PURGE_LIMITS, request);
    case IDEM__PG_ASK_LIMIT_LOOK:
        (void)idem__pg_params_bytes(params, id);
        (void)idem__pg_params_bytes(params, request->request_id);
        return idem__pg_run(batch, IDEM__PG_LIMIT_LOOK, request);
    case IDEM__PG_ASK_LIMIT_COUNT:
        (void)idem__pg_params_bytes(params, id);
        add_count(params, request);
        if (!idem__pg_run(batch, IDEM__PG_LIMIT_COUNT, request)) {
            return false;
        }
        (void)idem__pg_params_bytes(params, id);
        (void)idem__pg_params_bytes(params, request->request_id);
        return idem__pg_run(batch, IDEM__PG_LIMIT_LOOK, request);
    case IDEM__PG_ASK_MARK:
        (void)idem__pg_params_bytes(params, request->name);
        (void)idem__pg_params_bytes(params, request->subject);
        (void)idem__pg_params_number(params, request->numbers[0]);
        (void)idem__pg_params_number(params, request->numbers[1]);
        return idem__pg_run(batch, IDEM__PG_MARK, request);
    case IDEM__PG_ASK_MARK_WAIT:
        return idem__pg_run(batch, IDEM__PG_MARK_WAIT, request);
    case IDEM__PG_ASK_MARK_READ:
        return idem__pg_run(batch, IDEM__PG_MARK_READ, request);
    case IDEM__PG_ASK_LOOK:
    case IDEM__PG_ASK_CLAIM:
    case IDEM__PG_ASK_UPDATE:
        break;
    }
    return true;
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

/* Windows in the order of their ids: see sql.h. */
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
