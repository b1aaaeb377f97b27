/* Our own layout (item.h), and the functions that go by the layout of a table. */
#include "aws/dynamodb/layout/layout.h"

#include "core/error.h"

/* ---- Our own ---- */

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

static const struct idem__layout_ops own_ops = {
    .name = name_of,
    .put_key = put_key,
    .put_item = put_item,
    .put_condition = put_condition,
    .read = read,
};

static const char *const nothing[] = {NULL};

static const struct idem__layout_kind own = {
    .ops = &own_ops,
    .ours = true,
    .parts = true,
    .index = true,
    .attrs = {[IDEM__ATTR_KEY] = "id", [IDEM__ATTR_EXPIRY] = "ttl"},
    .fixed_names = true,
    .gives_up = nothing,
    .scan_filter = ",\"FilterExpression\":\"attribute_not_exists(body) AND "
                   "attribute_not_exists(lim)\"",
    /* Every attribute that a purge reads, which excludes "body". Several of the names are
     * reserved words. */
    .sweep_filter =
        ",\"FilterExpression\":\"attribute_not_exists(lim)\","
        "\"ProjectionExpression\":\"id,rec,made,writes,#k,#s,#r,#rz,"
        "#ri,#i,#iz,#ii,#it\",\"ExpressionAttributeNames\":{"
        "\"#k\":\"key\",\"#s\":\"scope\",\"#r\":\"result\","
        "\"#rz\":\"result_z\",\"#ri\":\"result_in\","
        "\"#i\":\"input\",\"#iz\":\"input_z\","
        "\"#ii\":\"input_in\",\"#it\":\"input_ttl\"}",
};

/* ---- For any table ---- */

void idem__scratch_free(struct idem__scratch *scratch)
{
    idem__tree_free(&scratch->tree);
    idem__buffer_free(&scratch->text);
    idem__buffer_free(&scratch->words);
}

const struct idem__layout_kind *idem__layout_of(
    const struct idem__table_conf *table)
{
    return table->layout != NULL ? table->layout : &own;
}

bool idem__layout_deletes(const struct idem__table_conf *table,
                          const struct idem_record *record)
{
    return idem__layout_of(table)->drops &&
           record->status == IDEM_STATUS_RELEASED;
}

int idem__layout_check_budgets(const struct idem__table_conf *table,
                               struct idem_error *ret_error)
{
    return idem__layout_of(table)->ours
               ? 0
               : idem__error(ret_error, IDEM_EINVALID,
                             "layout %s has no room for a budget of failures "
                             "or a pause between attempts: use a table of "
                             "idem's own",
                             table->layout->name);
}

/* ---- Through the row of the table's layout ---- */

int idem__layout_check(const struct idem__table_conf *table,
                       const struct idem_op *op, struct idem_error *ret_error)
{
    const struct idem__layout_ops *ops = idem__layout_of(table)->ops;

    return ops->check == NULL ? 0 : ops->check(table, op, ret_error);
}

int idem__layout_fits(const struct idem__table_conf *table,
                      const struct idem__item *item, size_t head_len,
                      struct idem_error *ret_error)
{
    const struct idem__layout_ops *ops = idem__layout_of(table)->ops;

    return ops->fits == NULL ? 0 : ops->fits(item, head_len, ret_error);
}

void idem__layout_put_key(struct idem__buffer *out,
                          const struct idem__table_conf *table,
                          struct idem_slice name)
{
    idem__layout_of(table)->ops->put_key(out, table, name);
}

void idem__layout_put_record_key(struct idem__buffer *out,
                                 const struct idem__table_conf *table,
                                 const uint8_t id[IDEM_ID_LEN],
                                 struct idem_slice key)
{
    const struct idem__layout_ops *ops = idem__layout_of(table)->ops;
    char buf[IDEM__ITEM_ID_LEN + 1];

    ops->put_key(out, table, ops->name(id, key, buf));
    idem__buffer_str(out, "}");
}

void idem__layout_put_condition(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_slice *old)
{
    idem__layout_of(table)->ops->put_condition(out, table, old);
}

void idem__layout_put(struct idem__buffer *out,
                      const struct idem__table_conf *table,
                      const struct idem__item *item, struct idem_slice head,
                      const struct idem_slice *old)
{
    const struct idem_record *record = &item->record;

    if (idem__layout_deletes(table, record)) {
        idem__buffer_str(out, ",\"Key\":");
        idem__layout_put_record_key(out, table, record->id, record->key);
    } else {
        idem__buffer_str(out, ",\"Item\":");
        idem__layout_of(table)->ops->put_item(out, table, item, head);
    }
    idem__layout_put_condition(out, table, old);
}

int idem__layout_read(const struct idem__table_conf *table, json_object *object,
                      const uint8_t *id, struct idem__buffer *memory,
                      struct idem__scratch *scratch,
                      struct idem__item *ret_item, struct idem_error *ret_error)
{
    return idem__layout_of(table)->ops->read(table, object, id, memory, scratch,
                                             ret_item, ret_error);
}
