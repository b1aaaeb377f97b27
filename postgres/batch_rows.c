/* Sends claims, updates and looks: many of them as arrays in the parameters of one
 * statement, one alone with plain parameters. */
#include "core/decide.h"
#include "postgres/conn.h"

enum {
    ROW_COLUMNS = 11
};

static void begin_rows(struct idem__pg_params *params)
{
    static const Oid types[ROW_COLUMNS] = {IDEM__PG_BYTEAS, IDEM__PG_BYTEAS,
                                           IDEM__PG_BYTEAS, IDEM__PG_BYTEAS,
                                           IDEM__PG_INT8S,  IDEM__PG_INT8S,
                                           IDEM__PG_INT8S,  IDEM__PG_BYTEAS,
                                           IDEM__PG_BYTEAS, IDEM__PG_BYTEAS,
                                           IDEM__PG_BYTEAS};
    size_t i;

    for (i = 0; i < ROW_COLUMNS; i++) {
        (void)idem__pg_params_array(params, types[i]);
    }
}

static void add_body(struct idem__pg_params *params, size_t place, bool set,
                     struct idem_slice body)
{
    if (set && body.len > 0) {
        idem__pg_params_add_bytes(params, place, body);
    } else {
        idem__pg_params_add_null(params, place);
    }
}

static void add_one_body(struct idem__pg_params *params, bool set,
                         struct idem_slice body)
{
    if (set && body.len > 0) {
        (void)idem__pg_params_bytes(params, body);
    } else {
        (void)idem__pg_params_null(params, IDEM__PG_BYTEA);
    }
}

static void add_row(struct idem__pg_params *params,
                    const struct idem__pg_write *write)
{
    const struct idem_record *r = write->record;
    size_t i = 0;

    idem__pg_params_add_bytes(params, i++, idem_bytes(r->id, IDEM_ID_LEN));
    idem__pg_params_add_bytes(params, i++, r->scope);
    idem__pg_params_add_bytes(params, i++, r->key);
    idem__pg_params_add_bytes(params, i++,
                              idem_bytes(r->nonce, sizeof(r->nonce)));
    idem__pg_params_add_number(params, i++, (int64_t)r->fence);
    idem__pg_params_add_number(params, i++, (int64_t)r->status);
    idem__pg_params_add_number(params, i++, idem__deadline(r));
    idem__pg_params_add_bytes(params, i++,
                              idem_bytes(idem__pg_tag_of(write),
                                         IDEM__PG_TAG_LEN));
    idem__pg_params_add_bytes(params, i++, write->head);
    add_body(params, i++, write->set_result, r->result.bytes);
    add_body(params, i++, write->set_input, r->input);
}

/* The same as plain parameters, without scope, key and input. */
static void add_one(struct idem__pg_params *params,
                    const struct idem__pg_write *write)
{
    const struct idem_record *r = write->record;

    (void)idem__pg_params_bytes(params, idem_bytes(r->id, IDEM_ID_LEN));
    (void)idem__pg_params_bytes(params, idem_bytes(r->nonce, sizeof(r->nonce)));
    (void)idem__pg_params_number(params, (int64_t)r->fence);
    (void)idem__pg_params_number(params, (int64_t)r->status);
    (void)idem__pg_params_number(params, idem__deadline(r));
    (void)idem__pg_params_bytes(params, idem_bytes(idem__pg_tag_of(write),
                                                   IDEM__PG_TAG_LEN));
    (void)idem__pg_params_bytes(params, write->head);
    add_one_body(params, write->set_result, r->result.bytes);
}

static bool has(const struct idem__pg_batch *batch, enum idem__pg_ask ask)
{
    const struct idem__pg_request *request = batch->sent.first;

    while (request != NULL && request->ask != ask) {
        request = request->next;
    }
    return request != NULL;
}

/* Returns a set of bits: 1 the result is written, too, 2 the input is, 4 something begins
 * (which a moved store refuses). */
static int64_t sets_of(const struct idem__pg_write *write)
{
    return (write->set_result ? 1 : 0) | (write->set_input ? 2 : 0) |
           (write->begins ? 4 : 0);
}

static bool send_update(struct idem__pg_batch *batch)
{
    struct idem__pg_params *params = &batch->conn->params;
    const struct idem__pg_request *request = batch->sent.first;
    const struct idem__pg_write *write = &request->write;
    bool ends = write->set_result && !write->set_input && !write->begins;

    add_one(params, write);
    if (!ends) {
        add_one_body(params, write->set_input, write->record->input);
        (void)idem__pg_params_number(params, sets_of(write));
    }
    (void)idem__pg_params_bytes(params, request->found);
    return idem__pg_run(batch, ends ? IDEM__PG_END_ONE : IDEM__PG_UPDATE_ONE,
                        NULL);
}

static bool send_updates(struct idem__pg_batch *batch)
{
    struct idem__pg_params *params = &batch->conn->params;
    size_t found;
    size_t sets;
    size_t i;

    if (!has(batch, IDEM__PG_ASK_UPDATE)) {
        return true;
    }
    if (idem__pg_speaks_for_itself(batch)) {
        return send_update(batch);
    }
    begin_rows(params);
    found = idem__pg_params_array(params, IDEM__PG_BYTEAS);
    sets = idem__pg_params_array(params, IDEM__PG_INT8S);
    for (i = 0; i < batch->by_id_len; i++) {
        const struct idem__pg_request *request = batch->by_id[i];

        if (request->ask == IDEM__PG_ASK_UPDATE) {
            add_row(params, &request->write);
            idem__pg_params_add_bytes(params, found, request->found);
            idem__pg_params_add_number(params, sets, sets_of(&request->write));
        }
    }
    return idem__pg_run(batch, IDEM__PG_UPDATE, NULL);
}

/* Returns the fence to compare with the fence floor. An import brings its old fence, which
 * may be below that: the greatest number lets it in. */
static int64_t above_of(const struct idem__pg_write *write)
{
    return write->old_fence ? INT64_MAX : (int64_t)write->record->fence;
}

/* Returns the server's time from which on a claim is not written: the end of its lease.
 * See CLAIM in sql.c. */
static int64_t until_of(const struct idem__pg_batch *batch,
                        const struct idem__pg_write *write)
{
    const int64_t latest_ms = 253402300799000; /* The end of the year 9999. */
    int64_t end_ms = write->record->lease_end_ms;

    return batch->conn->place->host_clock || write->old_fence ||
                   end_ms > latest_ms
               ? latest_ms
               : end_ms;
}

/* Reads the records that refuse claims of @batch. */
static bool send_there(struct idem__pg_batch *batch)
{
    struct idem__pg_params *params = &batch->conn->params;
    size_t ids = idem__pg_params_array(params, IDEM__PG_BYTEAS);
    size_t tags = idem__pg_params_array(params, IDEM__PG_BYTEAS);
    size_t i;

    for (i = 0; i < batch->by_id_len; i++) {
        const struct idem__pg_request *request = batch->by_id[i];

        if (request->ask == IDEM__PG_ASK_CLAIM) {
            idem__pg_params_add_bytes(params, ids,
                                      idem_bytes(request->write.record->id,
                                                 IDEM_ID_LEN));
            idem__pg_params_add_bytes(
                params, tags,
                idem_bytes(idem__pg_tag_of(&request->write), IDEM__PG_TAG_LEN));
        }
    }
    return idem__pg_run(batch, IDEM__PG_THERE, NULL);
}

static bool send_claim(struct idem__pg_batch *batch)
{
    struct idem__pg_params *params = &batch->conn->params;
    const struct idem__pg_write *write = &batch->sent.first->write;
    const struct idem_record *r = write->record;

    add_one(params, write);
    add_one_body(params, write->set_input, r->input);
    (void)idem__pg_params_bytes(params, r->scope);
    (void)idem__pg_params_bytes(params, r->key);
    (void)idem__pg_params_number(params, above_of(write));
    (void)idem__pg_params_number(params, until_of(batch, write));
    if (!idem__pg_run(batch, IDEM__PG_CLAIM_ONE, NULL)) {
        return false;
    }
    if (!idem__pg_shows(batch)) {
        return true;
    }
    (void)idem__pg_params_bytes(params, idem_bytes(r->id, IDEM_ID_LEN));
    (void)idem__pg_params_bytes(params, idem_bytes(idem__pg_tag_of(write),
                                                   IDEM__PG_TAG_LEN));
    return idem__pg_run(batch, IDEM__PG_THERE_ONE, NULL);
}

static bool send_claims(struct idem__pg_batch *batch)
{
    struct idem__pg_params *params = &batch->conn->params;
    size_t above;
    size_t until;
    size_t i;

    if (!has(batch, IDEM__PG_ASK_CLAIM)) {
        return true;
    }
    if (idem__pg_speaks_for_itself(batch)) {
        return send_claim(batch);
    }
    begin_rows(params);
    above = idem__pg_params_array(params, IDEM__PG_INT8S);
    until = idem__pg_params_array(params, IDEM__PG_INT8S);
    for (i = 0; i < batch->by_id_len; i++) {
        const struct idem__pg_request *request = batch->by_id[i];

        if (request->ask == IDEM__PG_ASK_CLAIM) {
            add_row(params, &request->write);
            idem__pg_params_add_number(params, above,
                                       above_of(&request->write));
            idem__pg_params_add_number(params, until,
                                       until_of(batch, &request->write));
        }
    }
    return idem__pg_run(batch, IDEM__PG_CLAIM, NULL) &&
           (!idem__pg_shows(batch) || send_there(batch));
}

static bool send_looks(struct idem__pg_batch *batch)
{
    size_t ids;
    size_t i;

    if (!has(batch, IDEM__PG_ASK_LOOK)) {
        return true;
    }
    if (idem__pg_speaks_for_itself(batch)) {
        (void)idem__pg_params_bytes(&batch->conn->params,
                                    idem_bytes(batch->sent.first->id,
                                               IDEM_ID_LEN));
        return idem__pg_run(batch, IDEM__PG_LOOK_ONE, NULL);
    }
    ids = idem__pg_params_array(&batch->conn->params, IDEM__PG_BYTEAS);
    for (i = 0; i < batch->by_id_len; i++) {
        const struct idem__pg_request *request = batch->by_id[i];

        if (request->ask == IDEM__PG_ASK_LOOK) {
            idem__pg_params_add_bytes(&batch->conn->params, ids,
                                      idem_bytes(request->id, IDEM_ID_LEN));
        }
    }
    return idem__pg_run(batch, IDEM__PG_LOOK, NULL);
}

bool idem__pg_send_rows(struct idem__pg_batch *batch)
{
    return send_updates(batch) && send_claims(batch) && send_looks(batch);
}
