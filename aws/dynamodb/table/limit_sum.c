/* Adding up the requests of approximate limits from a table's stream. */
#include "aws/dynamodb/table/limit_sum.h"

#include "aws/dynamodb/table/admin.h"
#include "base/heap.h"
#include "base/sha256.h"
#include "core/error.h"

#include <idem/dynamodb.h>
#include <stdio.h>

enum {
    PLACES = 16,
    BATCH_TEXT = 32,
};

static bool number_at(json_object *image, const char *name, uint64_t *ret)
{
    struct idem_slice text;
    const char *p;
    size_t i;

    if (idem__json_attribute(image, name, "N", &text) != 1 || text.len == 0 ||
        text.len > 18) {
        return false;
    }
    p = text.base;
    *ret = 0;
    for (i = 0; i < text.len; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return false;
        }
        *ret = *ret * 10 + (uint64_t)(p[i] - '0');
    }
    return true;
}

/* The sum of @window; a new one if there is none. NULL: no memory. */
static struct idem__limit_sum *sum_of(struct idem__limit_sums *sums,
                                      struct idem_slice window)
{
    struct idem__limit_sum *sum;
    size_t i;

    for (i = sums->len; i > 0; i--) {
        if (memcmp(sums->sums[i - 1].window, window.base, window.len) == 0) {
            return &sums->sums[i - 1];
        }
    }
    if (sums->len == sums->cap) {
        size_t cap = sums->cap == 0 ? 16 : 2 * sums->cap;

        sum = idem__realloc(sums->sums, cap * sizeof(*sum));
        if (sum == NULL) {
            return NULL;
        }
        sums->sums = sum;
        sums->cap = cap;
    }
    sum = &sums->sums[sums->len++];
    memset(sum, 0, sizeof(*sum));
    memcpy(sum->window, window.base, window.len);
    return sum;
}

/* The record's own number goes into the identity of what is added up. */
static int mix(struct idem__limit_sum *sum, struct idem_slice sequence)
{
    uint8_t before[IDEM_ID_LEN];
    struct idem_slice parts[] = {{before, sizeof(before)}, sequence};

    memcpy(before, sum->batch, sizeof(before));
    return idem__sha256(parts, 2, sum->batch);
}

static int add_image(struct idem__limit_sums *sums, json_object *image,
                     struct idem_slice sequence)
{
    struct idem__limit_sum *sum;
    struct idem_slice window;
    uint64_t cost;
    uint64_t ttl_s;

    if (idem__json_attribute(image, "win", "S", &window) != 1 ||
        window.len != IDEM__ITEM_ID_LEN || !number_at(image, "cost", &cost) ||
        !number_at(image, "ttl", &ttl_s)) {
        return 0;
    }
    sum = sum_of(sums, window);
    if (sum == NULL) {
        return IDEM_ENOMEM;
    }
    sum->cost += cost;
    sum->requests++;
    if (ttl_s > sum->ttl_s) {
        sum->ttl_s = ttl_s;
    }
    return mix(sum, sequence);
}

static json_object *member(json_object *object, const char *name,
                           json_type type)
{
    json_object *found = NULL;

    return json_object_is_type(object, json_type_object) &&
                   json_object_object_get_ex(object, name, &found) &&
                   json_object_is_type(found, type)
               ? found
               : NULL;
}

int idem__limit_sums_read(struct idem__limit_sums *sums, json_object *event)
{
    json_object *records = member(event, "Records", json_type_array);
    size_t n = records == NULL ? 0 : json_object_array_length(records);
    size_t i;
    int rc = records == NULL ? IDEM_EINVALID : 0;

    for (i = 0; i < n && rc == 0; i++) {
        json_object *record = json_object_array_get_idx(records, i);
        json_object *name = member(record, "eventName", json_type_string);
        json_object *change = member(record, "dynamodb", json_type_object);
        json_object *number =
            member(change, "SequenceNumber", json_type_string);
        json_object *image = member(change, "NewImage", json_type_object);

        if (name == NULL || number == NULL) {
            rc = IDEM_EINVALID;
        } else if (image != NULL &&
                   strcmp(json_object_get_string(name), "INSERT") == 0) {
            rc = add_image(sums, image,
                           idem_str(json_object_get_string(number)));
        }
    }
    return rc;
}

void idem__limit_sums_finish(struct idem__limit_sums *sums)
{
    idem__free(sums->sums);
    memset(sums, 0, sizeof(*sums));
}

void idem__limit_request_sum(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             const struct idem__limit_sum *sum)
{
    char text[IDEM__ITEM_ID_LEN + 1];
    char id[IDEM__ITEM_ID_LEN + 16];
    char place[8];

    (void)snprintf(id, sizeof(id), "limit#%s#0", sum->window);
    (void)snprintf(place, sizeof(place), "b%d", sum->batch[0] % PLACES);
    idem__item_id(sum->batch, text);
    text[BATCH_TEXT] = '\0';
    idem__buffer_str(out, "{\"TableName\":");
    idem__json_string(out, idem_str(table->name));
    idem__buffer_str(out, ",\"Key\":{\"id\":");
    idem__json_s(out, id);
    idem__buffer_str(
        out, "},\"UpdateExpression\":\"SET lim = if_not_exists(lim, :z) + :c, "
             "#t = :t, #b = :b\",\"ConditionExpression\":"
             "\"attribute_not_exists(#b) OR #b <> :b\","
             "\"ExpressionAttributeNames\":{\"#t\":\"ttl\",\"#b\":");
    idem__json_string(out, idem_str(place));
    idem__buffer_str(
        out, "},\"ExpressionAttributeValues\":{\":z\":{\"N\":\"0\"},\":c\":");
    idem__json_n(out, sum->cost);
    idem__buffer_str(out, ",\":t\":");
    idem__json_n(out, sum->ttl_s);
    idem__buffer_str(out, ",\":b\":");
    idem__json_s(out, text);
    idem__buffer_str(out, "}}");
}

/* ---- The call ---- */

static int take(struct idem__admin *admin, const struct idem__limit_sum *sum,
                struct idem_error *error)
{
    struct idem__answer answer;
    int rc = 0;

    admin->out.len = 0;
    idem__limit_request_sum(&admin->out, &admin->store->env.table, sum);
    if (admin->out.failed) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    /* A second copy of it is refused. */
    idem__admin_call(admin, IDEM__TARGET("UpdateItem"), /* safe= */ true,
                     &answer);
    if (answer.said != IDEM__SAID_OK && answer.said != IDEM__SAID_REFUSED) {
        rc = idem__error(error, answer.error.code, "%s", answer.error.text);
    }
    idem__answer_finish(&answer);
    return rc;
}

static int take_all(const char *place, const struct idem__limit_sums *sums,
                    uint64_t *ret_requests, struct idem_error *error)
{
    struct idem__admin admin;
    size_t i;
    int rc = idem__admin_open(place, &admin, error);

    if (rc != 0) {
        return rc;
    }
    *ret_requests = 0;
    for (i = 0; i < sums->len && rc == 0; i++) {
        rc = take(&admin, &sums->sums[i], error);
        *ret_requests += sums->sums[i].requests;
    }
    idem__admin_close(&admin);
    return rc;
}

int idem_dynamodb_limit_sum(const char *place, struct idem_slice event,
                            uint64_t *ret_requests,
                            struct idem_error *ret_error)
{
    struct idem__limit_sums sums = {0};
    uint64_t requests = 0;
    json_object *object;
    int rc;

    object = idem__json_parse(event, &rc);
    if (object == NULL && rc != IDEM_ENOMEM) {
        rc = IDEM_EINVALID;
    } else if (object != NULL) {
        rc = idem__limit_sums_read(&sums, object);
    }
    if (rc == IDEM_ENOMEM) {
        rc = idem__error_plain(ret_error, rc);
    } else if (rc != 0) {
        rc = idem__error(ret_error, IDEM_EINVALID,
                         "it is not an event of a DynamoDB stream");
    } else if (sums.len > 0) {
        rc = take_all(place, &sums, &requests, ret_error);
    }
    if (rc == 0 && ret_requests != NULL) {
        *ret_requests = requests;
    }
    idem__limit_sums_finish(&sums);
    (void)json_object_put(object);
    return rc;
}
