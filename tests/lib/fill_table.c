/* Records for a DynamoDB table, as the bodies of BatchWriteItem, a line each.
 *
 *     fill_table TABLE RECORDS [EXPIRED]
 *
 * Of a thousand records EXPIRED (100) are past their retention; 8 are in progress, one
 * failed and one is unknown; the others are completed, with a result of 128 bytes. Each has
 * the form in which the store would have written it. */
#include "aws/dynamodb/layout/item.h"
#include "base/bytes.h"

#include <err.h>
#include <idem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BATCH = 25, /* The most that the service takes. */
    RESULT_LEN = 128,
    KEY_LEN = 18,
    OF = 1000,
    HOUR_MS = 3600 * 1000,
    DAY_MS = 24 * HOUR_MS,
};

/* One record of each kind, with its result in @result. */
struct model {
    struct idem_record record;
    struct idem__body result;
};

enum kind {
    COMPLETED,
    EXPIRED,
    IN_PROGRESS,
    FAILED,
    UNKNOWN,
    KINDS,
};

static void check(int code, const struct idem_error *error)
{
    if (code != 0) {
        errx(1, "%s", error->text);
    }
}

/* ---- Models ---- */

static void end(struct idem_attempt *attempt, enum kind kind)
{
    static const uint8_t bytes[RESULT_LEN];
    struct idem_result result = {.bytes = {NULL, 0}};
    struct idem_error error = {0};
    struct idem_slice why = idem_str("connection refused");
    int rc = 0;

    result.bytes = idem_bytes(bytes, sizeof(bytes));
    if (kind == COMPLETED || kind == EXPIRED) {
        rc = idem_complete(attempt, &result, &error);
    } else if (kind == FAILED) {
        rc = idem_fail(attempt, why, /* result= */ NULL, &error);
    } else if (kind == UNKNOWN) {
        rc = idem_unknown(attempt, why, &error);
    }
    check(rc, &error);
}

/* Keeps the answer, because the record points into it. */
static void make_model(struct idem_store *store, enum kind kind,
                       struct model *ret_model)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;
    struct idem_answer *answer;
    struct idem_error error = {0};
    char key[KEY_LEN + 1];

    (void)snprintf(key, sizeof(key), "%018d", (int)kind);
    request.key = idem_str(key);
    request.owner = idem_str("fill_table");
    request.on_expired_lease = IDEM_HOLD;
    request.lease_ms = DAY_MS;
    request.retention_ms = 30LL * DAY_MS;
    check(idem_begin(store, &request, &attempt, &error), &error);
    end(attempt, kind);
    idem_attempt_destroy(attempt);
    check(idem_get(store, idem_str(""), request.key, &answer, &error), &error);

    memset(ret_model, 0, sizeof(*ret_model));
    ret_model->record = *idem_answer_record(answer);
    if (ret_model->record.result.bytes.len > 0) {
        ret_model->result.place = IDEM__PLACE_INLINE;
        ret_model->result.stored = ret_model->record.result.bytes;
    }
    if (kind == EXPIRED) {
        ret_model->record.created_ms -= 2LL * DAY_MS;
        ret_model->record.started_ms -= 2LL * DAY_MS;
        ret_model->record.ended_ms -= 2LL * DAY_MS;
        ret_model->record.expires_ms = ret_model->record.ended_ms + HOUR_MS;
        ret_model->record.retention_ms = HOUR_MS;
    }
}

/* ---- Items ---- */

static enum kind kind_of(unsigned long i, unsigned long expired)
{
    unsigned long of = i % OF;

    switch (of) {
    case OF - 1:
        return FAILED;
    case OF - 2:
        return UNKNOWN;
    default:
        return of >= OF - 10 ? IN_PROGRESS : of < expired ? EXPIRED : COMPLETED;
    }
}

static void write_item(struct idem__buffer *out, const struct model *model,
                       unsigned long i)
{
    static uint8_t head[IDEM_HEAD_MAX];
    struct idem__item item = {.record = model->record, .result = model->result};
    char key[32];
    size_t len;

    (void)snprintf(key, sizeof(key), "k%017lu", i);
    item.record.key = idem_str(key);
    if (idem_id(item.record.scope, item.record.key, item.record.id) != 0 ||
        idem__record_encode(&item.record, head, sizeof(head), &len) != 0) {
        errx(1, "the record cannot be written");
    }
    idem__buffer_str(out, "{\"PutRequest\":{\"Item\":");
    idem__item_write(out, &item, idem_bytes(head, len), /* index= */ true);
    idem__buffer_str(out, "}}");
}

static void print(const struct idem__buffer *out)
{
    if (out->failed || fwrite(out->base, 1, out->len, stdout) != out->len ||
        putchar('\n') == EOF) {
        err(1, "a batch");
    }
}

static void write_all(const char *table, unsigned long n, unsigned long expired,
                      const struct model *models)
{
    struct idem__buffer out = {.len = 0};
    unsigned long i;

    for (i = 0; i < n; i++) {
        if (i % BATCH == 0) {
            out.len = 0;
            idem__buffer_str(&out, "{\"RequestItems\":{");
            idem__json_string(&out, idem_str(table));
            idem__buffer_str(&out, ":[");
        } else {
            idem__buffer_str(&out, ",");
        }
        write_item(&out, &models[kind_of(i, expired)], i);
        if (i % BATCH == BATCH - 1 || i == n - 1) {
            idem__buffer_str(&out, "]}}");
            print(&out);
        }
    }
    idem__buffer_free(&out);
}

int main(int argc, char **argv)
{
    struct model models[KINDS];
    struct idem_store *store;
    struct idem_error error = {0};
    unsigned long expired = 100;
    enum kind kind;

    if (argc < 3 || argc > 4) {
        errx(64, "usage: fill_table TABLE RECORDS [EXPIRED]");
    }
    if (argc == 4) {
        expired = strtoul(argv[3], NULL, 10);
    }
    check(idem_open("memory:", /* options= */ NULL, &store, &error), &error);
    for (kind = 0; kind < KINDS; kind++) {
        make_model(store, kind, &models[kind]);
    }
    write_all(argv[1], strtoul(argv[2], NULL, 10), expired, models);
    idem_close(store);
    return fflush(stdout) == 0 ? 0 : 1;
}
