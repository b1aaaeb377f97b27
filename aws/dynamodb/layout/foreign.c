/* A record as an item of a table that another library has. */
#include "aws/dynamodb/layout/foreign.h"

#include "core/error.h"
#include "core/slice.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- Attributes ---- */

void idem__foreign_name(struct idem__buffer *out, const char *name)
{
    idem__buffer_str(out, ",\"");
    idem__buffer_str(out, name);
    idem__buffer_str(out, "\":");
}

int idem__foreign_corrupt(struct idem_error *error, const char *format, ...)
{
    char why[160];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    return idem__error(error, IDEM_ECORRUPT, "the record cannot be trusted: %s",
                       why);
}

int idem__foreign_number(json_object *object, const char *name,
                         int64_t *ret_number)
{
    struct idem_slice text;
    int rc = idem__foreign_is(object, name, NULL)
                 ? 0
                 : idem__json_attribute(object, name, "N", &text);
    const char *p;
    int64_t number = 0;
    size_t i;

    if (rc != 1) {
        return rc;
    }
    p = text.base;
    for (i = 0; i < text.len && p[i] != '.'; i++) {
        if (p[i] < '0' || p[i] > '9' || i == 15) {
            return IDEM_ECORRUPT;
        }
        number = number * 10 + (p[i] - '0');
    }
    *ret_number = number;
    return i > 0 ? 1 : IDEM_ECORRUPT;
}

bool idem__foreign_is(json_object *object, const char *name, const char *text)
{
    struct idem_slice there;
    json_object *value = NULL;

    if (text == NULL) {
        return !json_object_object_get_ex(object, name, &value) ||
               json_object_object_get_ex(value, "NULL", NULL);
    }
    return idem__json_attribute(object, name, "S", &there) == 1 &&
           there.len == strlen(text) &&
           memcmp(there.base, text, there.len) == 0;
}

int idem__foreign_text(json_object *object, const char *name, size_t max,
                       struct idem__buffer *memory, struct idem_slice *ret)
{
    struct idem_slice text;
    int rc = idem__foreign_is(object, name, NULL)
                 ? 0
                 : idem__json_attribute(object, name, "S", &text);

    *ret = idem_bytes(NULL, 0);
    if (rc != 1) {
        return rc;
    }
    text.len = text.len < max ? text.len : max;
    *ret = idem_bytes(memory->base + memory->len, text.len);
    idem__buffer_add(memory, text.base, text.len);
    return 0;
}

/* ---- What a table can hold ---- */

static int check(const struct idem__table_conf *table, const struct idem_op *op,
                 struct idem_error *ret_error)
{
    enum idem__layout layout = table->layout;

    if (op->verb == IDEM_OP_LIST || op->verb == IDEM_OP_PURGE) {
        return 0; /* They have no key. */
    }
    if (op->verb == IDEM_OP_LIMIT || op->commit != NULL) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "layout %s has %s: use a table of idem's own",
                           idem__layout_name(layout),
                           op->commit == NULL
                               ? "no rate limits"
                               : "no place for writes of a caller's own");
    }
    if (op->verb == IDEM_OP_END &&
        (op->u.end.failures_max != 0 || op->u.end.retry_after_ms != 0)) {
        return idem__layout_check_budgets(table, ret_error);
    }
    if (op->scope.len > 0) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "layout %s has no scopes: leave the scope empty",
                           idem__layout_name(layout));
    }
    if (!idem__json_is_utf8(op->key)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "layout %s has keys of text only: this one is no "
                           "UTF-8",
                           idem__layout_name(layout));
    }
    if (idem__slice_equal(op->key, idem_str(IDEM__MOVE_NAME))) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "layout %s has the mark of a move in the item "
                           "\"" IDEM__MOVE_NAME "\": that is not a key",
                           idem__layout_name(layout));
    }
    return 0;
}

static int fits(const struct idem__item *item, size_t head_len,
                struct idem_error *ret_error)
{
    /* A result may be there twice: as ours, and as theirs. */
    size_t total = idem__item_size(item, head_len) + item->result.stored.len;

    if (total <= IDEM__FOREIGN_MAX) {
        return 0;
    }
    return idem__error(ret_error, IDEM_EINVALID,
                       "the record would have %zu bytes, and one item of this "
                       "layout holds %d",
                       total, IDEM__FOREIGN_MAX);
}

/* ---- Keys and conditions ---- */

static struct idem_slice name_of(const uint8_t *id, struct idem_slice key,
                                 char buf[IDEM__ITEM_ID_LEN + 1])
{
    (void)id;
    (void)buf;
    return key;
}

static void put_key(struct idem__buffer *out,
                    const struct idem__table_conf *table,
                    struct idem_slice name)
{
    idem__buffer_str(out, "{\"");
    idem__buffer_str(out, table->attrs[IDEM__ATTR_KEY]);
    idem__buffer_str(out, "\":");
    if (table->attrs[IDEM__ATTR_SORT][0] != '\0') {
        idem__json_s(out, table->partition);
        idem__foreign_name(out, table->attrs[IDEM__ATTR_SORT]);
    }
    idem__buffer_str(out, "{\"S\":");
    idem__json_string(out, name);
    idem__buffer_str(out, "}");
}

/* The head of an item that was read is the condition itself; see
 * foreign_condition.c. */
static void put_condition(struct idem__buffer *out,
                          const struct idem__table_conf *table,
                          const struct idem_slice *old)
{
    if (old != NULL) {
        idem__buffer_add(out, old->base, old->len);
        return;
    }
    idem__buffer_str(out, ",\"ConditionExpression\":\"attribute_not_exists(#k)"
                          "\",\"ExpressionAttributeNames\":{\"#k\":\"");
    idem__buffer_str(out, table->attrs[IDEM__ATTR_KEY]);
    idem__buffer_str(out, "\"}");
}

const struct idem__layout_ops idem__foreign_ops = {
    .check = check,
    .fits = fits,
    .name = name_of,
    .put_key = put_key,
    .put_item = idem__foreign_put_item,
    .put_condition = put_condition,
    .read = idem__foreign_read,
};
