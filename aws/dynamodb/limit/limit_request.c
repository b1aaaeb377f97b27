/* The requests about rate limits, as JSON. */
#include "aws/dynamodb/limit/limit_request.h"

#include "base/base64.h"
#include "core/slice.h"

#include <stdio.h>

#define NAME_LEN 16 /* Bytes of a request's identity in an attribute's name. */

enum {
    NAME_MAX_LEN = 32,
    SHARDS_FEW = 4,
    SHARDS_FEW_TO = 4096,
};

unsigned idem__limit_shards(const struct idem_limit_request *limit)
{
    if (limit->max <= IDEM__LIMIT_SMALL) {
        return 0;
    }
    return limit->max <= SHARDS_FEW_TO ? SHARDS_FEW : IDEM__LIMIT_SHARDS_MAX;
}

void idem__limit_item_id(const uint8_t id[IDEM_ID_LEN], int shard,
                         char ret_text[IDEM__LIMIT_ID_MAX])
{
    char text[IDEM__ITEM_ID_LEN + 1];

    idem__item_id(id, text);
    if (shard < 0) {
        (void)snprintf(ret_text, IDEM__LIMIT_ID_MAX, "limit#%s", text);
    } else {
        (void)snprintf(ret_text, IDEM__LIMIT_ID_MAX, "limit#%s#%d", text,
                       shard);
    }
}

/* ---- Writing ---- */

/* The name of the request's attribute in the item of its window. */
static void entry_name(const struct idem_op *op, char ret_name[NAME_MAX_LEN])
{
    ret_name[0] = 'r';
    idem__base64_write(IDEM__BASE64_URL,
                       idem_bytes(op->u.limit.request, NAME_LEN), ret_name + 1);
    ret_name[1 + idem__base64_len(IDEM__BASE64_URL, NAME_LEN)] = '\0';
}

static void add_entry(struct idem__buffer *out, int64_t entry)
{
    idem__buffer_str(out, entry < 0 ? "{\"N\":\"-" : "{\"N\":\"");
    idem__buffer_u64(out, (uint64_t)(entry < 0 ? -entry : entry));
    idem__buffer_str(out, "\"}");
}

static void add_table(struct idem__buffer *out,
                      const struct idem__table_conf *table)
{
    idem__buffer_str(out, "\"TableName\":");
    idem__json_string(out, idem_str(table->name));
}

static void add_key(struct idem__buffer *out, const uint8_t id[IDEM_ID_LEN],
                    int shard)
{
    char text[IDEM__LIMIT_ID_MAX];

    idem__limit_item_id(id, shard, text);
    idem__buffer_str(out, "{\"id\":");
    idem__json_s(out, text);
    idem__buffer_str(out, "}");
}

/* ,":t":... */
static void add_ttl(struct idem__buffer *out, const struct idem_op *op,
                    const char *name)
{
    int64_t ms = idem__limit_expires(&op->u.limit.limit);

    idem__buffer_str(out, name);
    idem__json_n(out, (uint64_t)(ms + 999) / 1000);
}

static void begin_update(struct idem__buffer *out,
                         const struct idem__table_conf *table,
                         const struct idem_op *op)
{
    idem__buffer_str(out, "{");
    add_table(out, table);
    idem__buffer_str(out, ",\"Key\":");
    add_key(out, op->u.limit.window, -1);
}

/* Names and values, and what is asked for in return. */
static void add_entry_names(struct idem__buffer *out, const struct idem_op *op)
{
    char name[NAME_MAX_LEN];

    entry_name(op, name);
    idem__buffer_str(out, ",\"ExpressionAttributeNames\":{\"#t\":\"ttl\","
                          "\"#r\":");
    idem__json_string(out, idem_str(name));
    idem__buffer_str(out, "},\"ExpressionAttributeValues\":{");
}

static void end_update(struct idem__buffer *out)
{
    idem__buffer_str(out,
                     "},\"ReturnValues\":\"UPDATED_NEW\","
                     "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}");
}

void idem__limit_request_admit(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               const struct idem_op *op)
{
    const struct idem_limit_request *limit = &op->u.limit.limit;

    begin_update(out, table, op);
    idem__buffer_str(
        out, ",\"UpdateExpression\":\"SET #r = :m - if_not_exists(lim, :z), "
             "lim = if_not_exists(lim, :z) + :c, #t = :t\","
             "\"ConditionExpression\":\"attribute_not_exists(#r) AND "
             "attribute_not_exists(big) AND "
             "(attribute_not_exists(lim) OR lim <= :m)\"");
    add_entry_names(out, op);
    idem__buffer_str(out, "\":z\":{\"N\":\"0\"},\":m\":");
    idem__json_n(out, limit->max - limit->cost);
    idem__buffer_str(out, ",\":c\":");
    idem__json_n(out, limit->cost);
    add_ttl(out, op, ",\":t\":");
    end_update(out);
}

void idem__limit_request_refuse(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_op *op,
                                const struct idem_limit_decision *decision)
{
    begin_update(out, table, op);
    idem__buffer_str(
        out, ",\"UpdateExpression\":\"SET #r = :e, refs = :n, #t = :t\","
             "\"ConditionExpression\":\"attribute_not_exists(#r) AND "
             "lim = :l AND (attribute_not_exists(refs) OR refs < :n)\"");
    add_entry_names(out, op);
    idem__buffer_str(out, "\":e\":");
    add_entry(out, decision->entry);
    idem__buffer_str(out, ",\":n\":");
    idem__json_n(out, decision->refusals);
    idem__buffer_str(out, ",\":l\":");
    idem__json_n(out, decision->used);
    add_ttl(out, op, ",\":t\":");
    end_update(out);
}

void idem__limit_request_get(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             const uint8_t id[IDEM_ID_LEN])
{
    idem__buffer_str(out, "{");
    add_table(out, table);
    idem__buffer_str(out, ",\"Key\":");
    add_key(out, id, -1);
    idem__buffer_str(out, ",\"ConsistentRead\":true}");
}

static void begin_shards(struct idem__buffer *out,
                         const struct idem__table_conf *table,
                         const struct idem_op *op, unsigned shards)
{
    unsigned i;

    idem__buffer_str(out, "{\"RequestItems\":{");
    idem__json_string(out, idem_str(table->name));
    idem__buffer_str(out, ":{\"Keys\":[");
    for (i = 0; i < shards; i++) {
        idem__buffer_str(out, i == 0 ? "" : ",");
        add_key(out, op->u.limit.window, (int)i);
    }
}

void idem__limit_request_shards(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_op *op, unsigned shards)
{
    begin_shards(out, table, op, shards);
    idem__buffer_str(out, ",");
    add_key(out, op->u.limit.window, -1);
    idem__buffer_str(out, "]}}}");
}

void idem__limit_request_all(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             const struct idem_op *op)
{
    begin_shards(out, table, op, IDEM__LIMIT_SHARDS_MAX);
    idem__buffer_str(out, ",");
    add_key(out, op->u.limit.window, -1);
    idem__buffer_str(out, ",");
    add_key(out, op->u.limit.request, -1);
    idem__buffer_str(out, "],\"ConsistentRead\":true}}}");
}

static void add_take(struct idem__buffer *out,
                     const struct idem__table_conf *table,
                     const struct idem_op *op, unsigned shard, uint64_t share,
                     uint64_t take)
{
    idem__buffer_str(out, ",{\"Update\":{");
    add_table(out, table);
    idem__buffer_str(out, ",\"Key\":");
    add_key(out, op->u.limit.window, (int)shard);
    idem__buffer_str(
        out, ",\"UpdateExpression\":\"SET lim = if_not_exists(lim, :z) + :c, "
             "#t = :t\",\"ConditionExpression\":\"attribute_not_exists(lim) "
             "OR lim <= :m\",\"ExpressionAttributeNames\":{\"#t\":\"ttl\"},"
             "\"ExpressionAttributeValues\":{\":z\":{\"N\":\"0\"},\":m\":");
    idem__json_n(out, share - take);
    idem__buffer_str(out, ",\":c\":");
    idem__json_n(out, take);
    add_ttl(out, op, ",\":t\":");
    idem__buffer_str(out,
                     "},\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}}");
}

static void add_refusal(struct idem__buffer *out,
                        const struct idem__table_conf *table,
                        const struct idem_op *op)
{
    idem__buffer_str(out, ",{\"Update\":{");
    add_table(out, table);
    idem__buffer_str(out, ",\"Key\":");
    add_key(out, op->u.limit.window, 0);
    idem__buffer_str(
        out, ",\"UpdateExpression\":\"SET refs = if_not_exists(refs, :z) + :o, "
             "lim = if_not_exists(lim, :z), #t = :t\","
             "\"ConditionExpression\":\"attribute_not_exists(refs) OR "
             "refs < :n\",\"ExpressionAttributeNames\":{\"#t\":\"ttl\"},"
             "\"ExpressionAttributeValues\":{\":z\":{\"N\":\"0\"},"
             "\":o\":{\"N\":\"1\"},\":n\":");
    idem__json_n(out, IDEM_LIMIT_REFUSALS);
    add_ttl(out, op, ",\":t\":");
    idem__buffer_str(out,
                     "},\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}}");
}

static void add_mark(struct idem__buffer *out,
                     const struct idem__table_conf *table,
                     const struct idem_op *op)
{
    char name[NAME_MAX_LEN];

    entry_name(op, name);
    idem__buffer_str(out, ",{\"Update\":{");
    add_table(out, table);
    idem__buffer_str(out, ",\"Key\":");
    add_key(out, op->u.limit.window, -1);
    idem__buffer_str(out,
                     ",\"UpdateExpression\":\"SET big = :o, "
                     "lim = if_not_exists(lim, :z), #t = :t\","
                     "\"ConditionExpression\":\"attribute_not_exists(#r)\","
                     "\"ExpressionAttributeNames\":{\"#t\":\"ttl\",\"#r\":");
    idem__json_string(out, idem_str(name));
    idem__buffer_str(out,
                     "},\"ExpressionAttributeValues\":{\":o\":{\"N\":\"1\"},"
                     "\":z\":{\"N\":\"0\"}");
    add_ttl(out, op, ",\":t\":");
    idem__buffer_str(out,
                     "},\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}}");
}

/* The request with its entry, where it is not there. */
static void add_request(struct idem__buffer *out,
                        const struct idem__table_conf *table,
                        const struct idem_op *op, int64_t entry)
{
    char text[IDEM__LIMIT_ID_MAX];

    idem__limit_item_id(op->u.limit.request, -1, text);
    idem__buffer_str(out, "{");
    add_table(out, table);
    idem__buffer_str(out, ",\"Item\":{\"id\":");
    idem__json_s(out, text);
    idem__buffer_str(out, ",\"lim\":");
    add_entry(out, entry);
    add_ttl(out, op, ",\"ttl\":");
    idem__buffer_str(out,
                     "},\"ConditionExpression\":\"attribute_not_exists(id)\","
                     "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}");
}

void idem__limit_request_transact(struct idem__buffer *out,
                                  const struct idem__table_conf *table,
                                  const struct idem_op *op,
                                  const struct idem_limit_decision *decision,
                                  const uint64_t shares[IDEM__LIMIT_SHARDS_MAX],
                                  const uint64_t takes[IDEM__LIMIT_SHARDS_MAX],
                                  bool marks)
{
    unsigned i;

    idem__buffer_str(out, "{\"TransactItems\":[{\"Put\":");
    add_request(out, table, op, decision->entry);
    idem__buffer_str(out, "}");
    if (!decision->limited.admitted) {
        add_refusal(out, table, op);
    }
    for (i = 0; i < IDEM__LIMIT_SHARDS_MAX; i++) {
        if (decision->limited.admitted && takes[i] > 0) {
            add_take(out, table, op, i, shares[i], takes[i]);
        }
    }
    if (marks) {
        add_mark(out, table, op);
    }
    idem__buffer_str(out, "]}");
}

/* The count of a small limit, if it is still @own. */
static void add_count(struct idem__buffer *out,
                      const struct idem__table_conf *table,
                      const struct idem_op *op,
                      const struct idem_limit_state *own,
                      const struct idem_limit_decision *decision)
{
    uint64_t cost =
        decision->limited.admitted ? op->u.limit.limit.cost : (uint64_t)0;

    idem__buffer_str(out, ",{\"Update\":{");
    add_table(out, table);
    idem__buffer_str(out, ",\"Key\":");
    add_key(out, op->u.limit.window, -1);
    idem__buffer_str(
        out, ",\"UpdateExpression\":\"SET lim = :n, refs = :f, #t = :t\","
             "\"ConditionExpression\":\"lim = :l AND "
             "(attribute_not_exists(refs) OR refs <= :f)\","
             "\"ExpressionAttributeNames\":{\"#t\":\"ttl\"},"
             "\"ExpressionAttributeValues\":{\":l\":");
    idem__json_n(out, own->used);
    idem__buffer_str(out, ",\":n\":");
    idem__json_n(out, own->used + cost);
    idem__buffer_str(out, ",\":f\":");
    idem__json_n(out, decision->refusals);
    add_ttl(out, op, ",\":t\":");
    idem__buffer_str(out, "}}}");
}

void idem__limit_request_beside(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_op *op,
                                const struct idem_limit_state *own,
                                const struct idem_limit_decision *decision)
{
    idem__buffer_str(out, "{\"TransactItems\":[{\"Put\":");
    add_request(out, table, op, decision->entry);
    idem__buffer_str(out, "}");
    add_count(out, table, op, own, decision);
    idem__buffer_str(out, "]}");
}

/* ---- Reading ---- */

/* A number of at most 18 digits. 1, 0 for none, or IDEM_ECORRUPT. */
static int read_number(json_object *item, const char *name, int64_t *ret)
{
    struct idem_slice text;
    const char *p;
    int64_t n = 0;
    bool negative;
    size_t i;
    int rc = idem__json_attribute(item, name, "N", &text);

    if (rc != 1) {
        return rc;
    }
    p = text.base;
    negative = text.len > 0 && p[0] == '-';
    if (text.len <= negative || text.len > 18) {
        return IDEM_ECORRUPT;
    }
    for (i = negative; i < text.len; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return IDEM_ECORRUPT;
        }
        n = n * 10 + (p[i] - '0');
    }
    *ret = negative ? -n : n;
    return 1;
}

static int read_refusals(json_object *item, uint64_t *ret)
{
    int64_t n = 0;

    if (read_number(item, "refs", &n) < 0 || n < 0) {
        return IDEM_ECORRUPT;
    }
    *ret = (uint64_t)n;
    return 0;
}

int idem__limit_read_shard(json_object *item, uint64_t *ret_used,
                           uint64_t *ret_refusals)
{
    int64_t used;
    int rc = read_number(item, "lim", &used);

    if (rc != 1 || used < 0) {
        return IDEM_ECORRUPT;
    }
    *ret_used = (uint64_t)used;
    return read_refusals(item, ret_refusals);
}

int idem__limit_read_window(json_object *item, const struct idem_op *op,
                            struct idem_limit_state *ret_state, bool *ret_big)
{
    char name[NAME_MAX_LEN];
    int64_t big = 0;
    int rc;

    memset(ret_state, 0, sizeof(*ret_state));
    *ret_big = false;
    if (item == NULL) {
        return 0;
    }
    ret_state->has_window = true;
    rc = idem__limit_read_shard(item, &ret_state->used, &ret_state->refusals);
    if (rc != 0) {
        return rc;
    }
    if (read_number(item, "big", &big) < 0) {
        return IDEM_ECORRUPT;
    }
    *ret_big = big != 0;
    entry_name(op, name);
    rc = read_number(item, name, &ret_state->entry);
    ret_state->has_entry = rc == 1;
    return rc < 0 ? rc : 0;
}

int idem__limit_read_entry(json_object *item,
                           struct idem_limit_state *ret_state)
{
    memset(ret_state, 0, sizeof(*ret_state));
    if (item == NULL) {
        return 0;
    }
    ret_state->has_entry = true;
    return read_number(item, "lim", &ret_state->entry) == 1 ? 0 : IDEM_ECORRUPT;
}

bool idem__limit_is_item(json_object *item, const uint8_t id[IDEM_ID_LEN])
{
    char wanted[IDEM__LIMIT_ID_MAX];
    struct idem_slice text;

    idem__limit_item_id(id, -1, wanted);
    return idem__json_attribute(item, "id", "S", &text) == 1 &&
           idem__slice_equal(text, idem_str(wanted));
}

int idem__limit_shard_of(json_object *item)
{
    struct idem_slice text;
    const char *p;
    size_t i;
    int shard = 0;

    if (idem__json_attribute(item, "id", "S", &text) != 1) {
        return -1;
    }
    p = text.base;
    for (i = text.len; i > 0 && p[i - 1] != '#'; i--) {
    }
    if (i == 0 || i == text.len || text.len - i > 2) {
        return -1;
    }
    for (; i < text.len; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return -1;
        }
        shard = shard * 10 + (p[i] - '0');
    }
    return shard < IDEM__LIMIT_SHARDS_MAX ? shard : -1;
}
