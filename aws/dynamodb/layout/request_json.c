/* Requests to DynamoDB as JSON. */
#include "aws/dynamodb/layout/request_json.h"

#include "aws/dynamodb/layout/layout.h"
#include "base/hash.h"

#include <stdio.h>

/* Makes the service report which capacity the request took. */
#define BILLED ",\"ReturnConsumedCapacity\":\"TOTAL\""

static void add_table(struct idem__buffer *out,
                      const struct idem__table_conf *table)
{
    idem__buffer_str(out, "{\"TableName\":");
    idem__json_string(out, idem_str(table->name));
}

static void add_key(struct idem__buffer *out, struct idem_slice id)
{
    idem__buffer_str(out, "{\"id\":{\"S\":");
    idem__json_string(out, id);
    idem__buffer_str(out, "}}");
}

static void add_return_old(struct idem__buffer *out)
{
    idem__buffer_str(out,
                     ",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}");
}

void idem__request_put(struct idem__buffer *out,
                       const struct idem__table_conf *table,
                       const struct idem__item *item, struct idem_slice head,
                       const struct idem_slice *old)
{
    add_table(out, table);
    idem__layout_put(out, table, item, head, old);
    add_return_old(out);
}

/* Names the request by its own digest, so that the service applies two copies of it once. */
static void add_client_token(struct idem__buffer *out)
{
    uint8_t digest[IDEM__SHA256_LEN];
    struct idem_slice text = idem__buffer_slice(out);
    char token[IDEM__ITEM_ID_LEN + 1];

    if (idem__sha256(&text, 1, digest) != 0) {
        out->failed = true;
        return;
    }
    idem__item_id(digest, token);
    token[32] = '\0'; /* 36 characters are allowed. */
    idem__buffer_str(out, ",\"ClientRequestToken\":");
    idem__json_string(out, idem_str(token));
}

void idem__request_transact(struct idem__buffer *out,
                            const struct idem__table_conf *table,
                            const struct idem__item *item,
                            struct idem_slice head,
                            const struct idem_slice *old,
                            struct idem_slice writes)
{
    idem__buffer_str(out, "{\"TransactItems\":[{\"Put\":");
    idem__request_put(out, table, item, head, old);
    idem__buffer_str(out, "},");
    idem__buffer_add(out, writes.base, writes.len);
    idem__buffer_str(out, "]");
    add_client_token(out);
    idem__buffer_str(out, "}");
}

void idem__request_get(struct idem__buffer *out,
                       const struct idem__table_conf *table,
                       const uint8_t id[IDEM_ID_LEN], struct idem_slice key)
{
    add_table(out, table);
    idem__buffer_str(out, ",\"Key\":");
    idem__layout_put_record_key(out, table, id, key);
    idem__buffer_str(out, ",\"ConsistentRead\":true}");
}

void idem__request_delete(struct idem__buffer *out,
                          const struct idem__table_conf *table,
                          const uint8_t id[IDEM_ID_LEN], struct idem_slice key,
                          struct idem_slice old)
{
    add_table(out, table);
    idem__buffer_str(out, ",\"Key\":");
    idem__layout_put_record_key(out, table, id, key);
    idem__layout_put_condition(out, table, &old);
    idem__buffer_str(out, BILLED "}");
}

/* ---- Parts of bodies ---- */

/* Moves *@i to the next part that is not done; false: there is none. */
static bool next_part(const struct idem__parts *parts, uint32_t *i)
{
    while (*i < parts->body->parts && parts->done[*i]) {
        (*i)++;
    }
    return *i < parts->body->parts;
}

static void add_part(struct idem__buffer *out, const struct idem__parts *parts,
                     uint32_t i)
{
    const uint8_t *bytes = parts->stored.base;
    size_t from = (size_t)i * IDEM__PART_LEN;
    size_t len = parts->stored.len - from;
    char name[IDEM__PART_NAME_MAX];

    idem__part_name(parts->id, parts->kind, parts->body->tag, i, name);
    idem__buffer_str(out, "{\"PutRequest\":{\"Item\":{\"id\":");
    idem__json_s(out, name);
    idem__buffer_str(out, ",\"body\":");
    idem__json_b(out, idem_bytes(bytes + from,
                                 len < IDEM__PART_LEN ? len : IDEM__PART_LEN));
    idem__buffer_str(out, ",\"made\":");
    idem__json_n(out, (uint64_t)parts->made_ms);
    if (parts->body->ttl_ms != IDEM_NEVER) {
        idem__buffer_str(out, ",\"ttl\":");
        idem__json_n(out, (uint64_t)(parts->body->ttl_ms + 999) / 1000);
    }
    idem__buffer_str(out, "}}}");
}

static void begin_batch(struct idem__buffer *out,
                        const struct idem__table_conf *table)
{
    idem__buffer_str(out, "{\"RequestItems\":{");
    idem__json_string(out, idem_str(table->name));
    idem__buffer_str(out, ":");
}

void idem__request_parts_put(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             const struct idem__parts *parts)
{
    uint32_t i = 0;
    unsigned n;

    begin_batch(out, table);
    idem__buffer_str(out, "[");
    for (n = 0; n < IDEM__PARTS_PUT && next_part(parts, &i); n++, i++) {
        idem__buffer_str(out, n == 0 ? "" : ",");
        add_part(out, parts, i);
    }
    idem__buffer_str(out, "]}}");
}

void idem__request_parts_delete(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem__parts *parts)
{
    char name[IDEM__PART_NAME_MAX];
    uint32_t i = 0;
    unsigned n;

    begin_batch(out, table);
    idem__buffer_str(out, "[");
    for (n = 0; n < IDEM__PARTS_DELETE && next_part(parts, &i); n++, i++) {
        idem__part_name(parts->id, parts->kind, parts->body->tag, i, name);
        idem__buffer_str(out, n == 0 ? "" : ",");
        idem__buffer_str(out, "{\"DeleteRequest\":{\"Key\":");
        add_key(out, idem_str(name));
        idem__buffer_str(out, "}}");
    }
    idem__buffer_str(out, "]}" BILLED "}");
}

void idem__request_part_delete(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               struct idem_slice name, uint64_t made_ms)
{
    add_table(out, table);
    idem__buffer_str(out, ",\"Key\":");
    add_key(out, name);
    idem__buffer_str(out, ",\"ConditionExpression\":\"made = :m\","
                          "\"ExpressionAttributeValues\":{\":m\":");
    idem__json_n(out, made_ms);
    idem__buffer_str(out, "}" BILLED "}");
}

void idem__request_parts_get(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             const struct idem__parts *parts)
{
    char name[IDEM__PART_NAME_MAX];
    uint32_t i = 0;
    unsigned n;

    begin_batch(out, table);
    idem__buffer_str(out, "{\"ConsistentRead\":true,\"Keys\":[");
    for (n = 0; n < IDEM__PARTS_GET && next_part(parts, &i); n++, i++) {
        idem__part_name(parts->id, parts->kind, parts->body->tag, i, name);
        idem__buffer_str(out, n == 0 ? "" : ",");
        add_key(out, idem_str(name));
    }
    idem__buffer_str(out, "]}}}");
}

/* ---- Pages ---- */

void idem__request_heads_get(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             const uint8_t (*ids)[IDEM_ID_LEN], size_t ids_len)
{
    char text[IDEM__ITEM_ID_LEN + 1];
    size_t i;

    begin_batch(out, table);
    idem__buffer_str(out, "{\"ConsistentRead\":true,\"Keys\":[");
    for (i = 0; i < ids_len; i++) {
        idem__item_id(ids[i], text);
        idem__buffer_str(out, i == 0 ? "" : ",");
        add_key(out, idem_str(text));
    }
    idem__buffer_str(out, "]}}" BILLED "}");
}

static void add_page(struct idem__buffer *out,
                     const struct idem__table_conf *table, uint64_t limit)
{
    add_table(out, table);
    idem__buffer_str(out, ",\"Limit\":");
    idem__buffer_u64(out, limit);
}

static void add_after(struct idem__buffer *out,
                      const struct idem__table_conf *table,
                      struct idem_slice after)
{
    if (after.len > 0) {
        idem__buffer_str(out, ",\"ExclusiveStartKey\":");
        idem__layout_put_key(out, table, after);
        idem__buffer_str(out, "}");
    }
    idem__buffer_str(out, "}");
}

/* Reads only the partition that has the records. */
static void add_partition(struct idem__buffer *out,
                          const struct idem__table_conf *table)
{
    idem__buffer_str(out, ",\"KeyConditionExpression\":\"#p = :p\","
                          "\"ExpressionAttributeNames\":{\"#p\":\"");
    idem__buffer_str(out, table->attrs[IDEM__ATTR_KEY]);
    idem__buffer_str(out, "\"},\"ExpressionAttributeValues\":{\":p\":");
    idem__json_s(out, table->partition);
    idem__buffer_str(out, "}");
}

static bool is_sorted(const struct idem__table_conf *table)
{
    return table->attrs[IDEM__ATTR_SORT][0] != '\0';
}

static void add_filter(struct idem__buffer *out, const char *filter)
{
    if (filter != NULL) {
        idem__buffer_str(out, filter);
    }
}

const char *idem__request_scan(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               struct idem_slice after, uint64_t limit)
{
    add_page(out, table, limit);
    idem__buffer_str(out, ",\"ConsistentRead\":true");
    if (is_sorted(table)) {
        add_partition(out, table);
    } else {
        add_filter(out, idem__layout_of(table)->scan_filter);
    }
    add_after(out, table, after);
    return is_sorted(table) ? IDEM__TARGET("Query") : IDEM__TARGET("Scan");
}

const char *idem__request_sweep(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                struct idem_slice after, uint64_t limit)
{
    add_page(out, table, limit);
    idem__buffer_str(out, BILLED);
    if (is_sorted(table)) {
        add_partition(out, table);
        add_after(out, table, after);
        return IDEM__TARGET("Query");
    }
    add_filter(out, idem__layout_of(table)->sweep_filter);
    add_after(out, table, after);
    return IDEM__TARGET("Scan");
}

void idem__request_query(struct idem__buffer *out,
                         const struct idem__table_conf *table, unsigned shard,
                         struct idem_slice after, uint64_t since,
                         uint64_t limit)
{
    char name[2] = {"0123456789abcdef"[shard & 15], '\0'};

    add_table(out, table);
    idem__buffer_str(out, ",\"IndexName\":\"open\",\"Limit\":");
    idem__buffer_u64(out, limit);
    idem__buffer_str(out, ",\"KeyConditionExpression\":\"#o = :o\","
                          "\"ExpressionAttributeNames\":{\"#o\":\"open\"},"
                          "\"ExpressionAttributeValues\":{\":o\":");
    idem__json_s(out, name);
    idem__buffer_str(out, "}");
    if (after.len > 0) {
        idem__buffer_str(out, ",\"ExclusiveStartKey\":{\"id\":{\"S\":");
        idem__json_string(out, after);
        idem__buffer_str(out, "},\"open\":");
        idem__json_s(out, name);
        idem__buffer_str(out, ",\"since\":");
        idem__json_n(out, since);
        idem__buffer_str(out, "}");
    }
    idem__buffer_str(out, "}");
}
