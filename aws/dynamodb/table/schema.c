/* The key and the index of a store's table. */
#include "aws/dynamodb/table/table.h"

static struct idem__schema_part part(const char *name, const char *role,
                                     const char *type)
{
    return (struct idem__schema_part){name, role, type};
}

/* The index of open records, by the time at which their life began; see item.h. */
static struct idem__schema_index open_index(void)
{
    return (struct idem__schema_index){
        .name = "open",
        .projection = "KEYS_ONLY",
        .key = {part("open", "HASH", "S"), part("since", "RANGE", "N")},
    };
}

/* The index by which programs of the article find work that is in progress, or failed. */
static struct idem__schema_index status_index(
    const struct idem__table_conf *table)
{
    return (struct idem__schema_index){
        .name = "byStatus",
        .projection = "ALL",
        .key = {part(table->attrs[IDEM__ATTR_STATUS], "HASH", "S"),
                part(idem__layout_key(table), "RANGE", "S")},
    };
}

void idem__schema_of(const struct idem__table_conf *table,
                     struct idem__schema *ret_schema)
{
    const struct idem__layout_kind *kind = idem__layout_of(table);
    bool sorted = table->attrs[IDEM__ATTR_SORT][0] != '\0';

    memset(ret_schema, 0, sizeof(*ret_schema));
    ret_schema->key_len = sorted ? 2 : 1;
    ret_schema->key[0] =
        part(sorted ? table->attrs[IDEM__ATTR_KEY] : idem__layout_key(table),
             "HASH", "S");
    if (sorted) {
        ret_schema->key[1] = part(idem__layout_key(table), "RANGE", "S");
    }
    if (kind->status_index) {
        ret_schema->index = status_index(table);
        ret_schema->makes_index = true;
    } else if (kind->index) {
        ret_schema->index = open_index();
        ret_schema->makes_index = table->index;
    }
}

/* ---- As JSON ---- */

static void put_element(struct idem__buffer *out, const char *name,
                        const char *member, const char *value)
{
    idem__buffer_str(out, "{\"AttributeName\":\"");
    idem__buffer_str(out, name);
    idem__buffer_str(out, "\",\"");
    idem__buffer_str(out, member);
    idem__buffer_str(out, "\":\"");
    idem__buffer_str(out, value);
    idem__buffer_str(out, "\"}");
}

static void put_key(struct idem__buffer *out,
                    const struct idem__schema_part *key, size_t key_len)
{
    size_t i;

    idem__buffer_str(out, "\"KeySchema\":[");
    for (i = 0; i < key_len; i++) {
        idem__buffer_str(out, i == 0 ? "" : ",");
        put_element(out, key[i].name, "KeyType", key[i].role);
    }
    idem__buffer_str(out, "]");
}

void idem__schema_put_index(struct idem__buffer *out,
                            const struct idem__schema_index *index)
{
    idem__buffer_str(out, "{\"IndexName\":\"");
    idem__buffer_str(out, index->name);
    idem__buffer_str(out, "\",");
    put_key(out, index->key, 2);
    idem__buffer_str(out, ",\"Projection\":{\"ProjectionType\":\"");
    idem__buffer_str(out, index->projection);
    idem__buffer_str(out, "\"}}");
}

/* True if @name is an attribute of the key of the table. */
static bool is_of_key(const struct idem__schema *schema, const char *name)
{
    return strcmp(name, schema->key[0].name) == 0 ||
           (schema->key_len == 2 && strcmp(name, schema->key[1].name) == 0);
}

/* The attributes of all keys, each once. */
static void put_attributes(struct idem__buffer *out,
                           const struct idem__schema *schema)
{
    const struct idem__schema_part *key = schema->index.key;
    size_t i;

    idem__buffer_str(out, "\"AttributeDefinitions\":[");
    for (i = 0; i < schema->key_len; i++) {
        idem__buffer_str(out, i == 0 ? "" : ",");
        put_element(out, schema->key[i].name, "AttributeType",
                    schema->key[i].type);
    }
    for (i = 0; schema->makes_index && i < 2; i++) {
        if (!is_of_key(schema, key[i].name)) {
            idem__buffer_str(out, ",");
            put_element(out, key[i].name, "AttributeType", key[i].type);
        }
    }
    idem__buffer_str(out, "]");
}

void idem__schema_put(struct idem__buffer *out,
                      const struct idem__schema *schema)
{
    idem__buffer_str(out, ",");
    put_key(out, schema->key, schema->key_len);
    idem__buffer_str(out, ",");
    put_attributes(out, schema);
    if (schema->makes_index) {
        idem__buffer_str(out, ",\"GlobalSecondaryIndexes\":[");
        idem__schema_put_index(out, &schema->index);
        idem__buffer_str(out, "]");
    }
}
