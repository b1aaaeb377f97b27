/* A record as an item of a table of idem's own: see item.h. */
#include "aws/dynamodb/layout/layout.h"

/* It holds every record, scope and key. */
static int check(const struct idem__table_conf *table, const struct idem_op *op,
                 struct idem_error *ret_error)
{
    (void)table;
    (void)op;
    (void)ret_error;
    return 0;
}

/* Whatever is too long for one item goes to others. */
static int fits(const struct idem__item *item, size_t head_len,
                struct idem_error *ret_error)
{
    (void)item;
    (void)head_len;
    (void)ret_error;
    return 0;
}

static struct idem_slice name_of(const uint8_t *id, struct idem_slice key,
                                 char buf[IDEM__ITEM_ID_LEN + 1])
{
    (void)key;
    idem__item_id(id, buf);
    return idem_str(buf);
}

static void put_key(struct idem__buffer *out,
                    const struct idem__table_conf *table,
                    struct idem_slice name)
{
    (void)table;
    idem__buffer_str(out, "{\"id\":{\"S\":");
    idem__json_string(out, name);
    idem__buffer_str(out, "}");
}

static void put_item(struct idem__buffer *out,
                     const struct idem__table_conf *table,
                     const struct idem__item *item, struct idem_slice head)
{
    idem__item_write(out, item, head, table->index);
}

static void put_condition(struct idem__buffer *out,
                          const struct idem__table_conf *table,
                          const struct idem_slice *old)
{
    (void)table;
    if (old == NULL) {
        idem__buffer_str(
            out, ",\"ConditionExpression\":\"attribute_not_exists(id)\"");
        return;
    }
    idem__buffer_str(out, ",\"ConditionExpression\":\"rec = :r\","
                          "\"ExpressionAttributeValues\":{\":r\":");
    idem__json_b(out, *old);
    idem__buffer_str(out, "}");
}

static int read(const struct idem__table_conf *table, json_object *object,
                const uint8_t *id, struct idem__buffer *memory,
                struct idem__scratch *scratch, struct idem__item *ret_item,
                struct idem_error *ret_error)
{
    (void)table;
    (void)scratch;
    return idem__item_read(object, id, memory, ret_item, ret_error);
}

static const struct idem__layout_ops ops = {
    .check = check,
    .fits = fits,
    .name = name_of,
    .put_key = put_key,
    .put_item = put_item,
    .put_condition = put_condition,
    .read = read,
};

static const char *const gives_up[] = {NULL};

const struct idem__layout_kind idem__layout_own = {
    .ops = &ops,
    .ours = true,
    .parts = true,
    .index = true,
    .attrs = {[IDEM__ATTR_KEY] = "id", [IDEM__ATTR_EXPIRY] = "ttl"},
    .fixed_names = true,
    .gives_up = gives_up,
    .scan_filter = ",\"FilterExpression\":\"attribute_not_exists(body) AND "
                   "attribute_not_exists(lim)\"",
    /* All that item.h has but "body"; several are reserved words. */
    .sweep_filter =
        ",\"FilterExpression\":\"attribute_not_exists(lim)\","
        "\"ProjectionExpression\":\"id,rec,made,writes,#k,#s,#r,#rz,"
        "#ri,#i,#iz,#ii,#it\",\"ExpressionAttributeNames\":{"
        "\"#k\":\"key\",\"#s\":\"scope\",\"#r\":\"result\","
        "\"#rz\":\"result_z\",\"#ri\":\"result_in\","
        "\"#i\":\"input\",\"#iz\":\"input_z\","
        "\"#ii\":\"input_in\",\"#it\":\"input_ttl\"}",
};
