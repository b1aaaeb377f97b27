/* Writes a record as an item of another library's table. */
#include "aws/dynamodb/layout/foreign.h"

#include "core/error.h"
#include "core/slice.h"

#include <idem/form.h>
#include <stdarg.h>
#include <stdio.h>

/* The kind is the first member. */
const struct idem__foreign *idem__foreign_of(
    const struct idem__table_conf *table)
{
    return (const struct idem__foreign *)table->layout;
}

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
    const char *point;
    uint64_t number;

    if (rc != 1) {
        return rc;
    }
    point = text.len == 0 ? NULL : memchr(text.base, '.', text.len);
    if (point != NULL) {
        text.len = (size_t)(point - (const char *)text.base);
    }
    if (!idem__digits(text, 999999999999999, &number)) {
        return IDEM_ECORRUPT;
    }
    *ret_number = (int64_t)number;
    return 1;
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
    const char *layout = table->layout->name;

    if (op->verb == IDEM_OP_LIST || op->verb == IDEM_OP_PURGE) {
        return 0; /* They have no key. */
    }
    if (op->verb == IDEM_OP_LIMIT || op->commit != NULL) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "layout %s has %s: use a table of idem's own",
                           layout,
                           op->commit == NULL
                               ? "no rate limits"
                               : "no room for the caller's own writes");
    }
    if (op->verb == IDEM_OP_END &&
        (op->u.end.failures_max != 0 || op->u.end.retry_after_ms != 0)) {
        return idem__layout_check_budgets(table, ret_error);
    }
    if (op->scope.len > 0) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "layout %s has no scopes: leave the scope empty",
                           layout);
    }
    if (!idem__utf8_is(op->key)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "layout %s takes only keys in UTF-8", layout);
    }
    if (idem__slice_equal(op->key, idem_str(IDEM__MOVE_NAME))) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "layout %s reserves the key \"" IDEM__MOVE_NAME
                           "\" for the mark of a move",
                           layout);
    }
    return 0;
}

static int fits(const struct idem__item *item, size_t head_len,
                struct idem_error *ret_error)
{
    /* The item may hold the result twice: in the library's attribute and in ours. */
    size_t total = idem__item_size(item, head_len) + item->result.stored.len;

    if (total <= IDEM__FOREIGN_MAX) {
        return 0;
    }
    return idem__error(ret_error, IDEM_EINVALID,
                       "the record takes %zu bytes; an item of this layout "
                       "holds at most %d",
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

/* The head of an item that was read is the text of the condition. */
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

/* ---- The condition of a write over an item ----
 *
 * The library may have written the item since we read it, and so may another process of
 * ours. So a write is conditional on the attributes by which both decide: status, times,
 * kind.control and our head.
 *
 *     "#a = :a AND attribute_not_exists(#b) ...", with the names and values of the letters
 */

enum {
    PARTS_MAX = 16,
};

/* Lists the attributes on which a write is conditional. */
static size_t parts_of(const struct idem__table_conf *table,
                       const char *names[PARTS_MAX])
{
    static const enum idem__attr times[] = {IDEM__ATTR_STATUS,
                                            IDEM__ATTR_EXPIRY, IDEM__ATTR_LOCK};
    const struct idem__foreign *f = idem__foreign_of(table);
    size_t n = 0;
    size_t i;

    for (i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (table->attrs[times[i]][0] != '\0') {
            names[n++] = table->attrs[times[i]];
        }
    }
    for (i = 0; f->kind.control != NULL && f->kind.control[i] != NULL; i++) {
        names[n++] = f->kind.control[i];
    }
    names[n++] = IDEM__FOREIGN_HEAD;
    return n;
}

/* Gets the value of @name (NULL: it is missing), and the letter of part @i. */
static json_object *part_at(json_object *object, const char *name, size_t i,
                            char ret_letter[2])
{
    json_object *value = NULL;

    (void)json_object_object_get_ex(object, name, &value);
    ret_letter[0] = (char)('a' + i);
    return value;
}

static void add_all(struct idem__buffer *out, const char *const *texts)
{
    for (; *texts != NULL; texts++) {
        idem__buffer_str(out, *texts);
    }
}

void idem__foreign_condition(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             json_object *object)
{
    const char *names[PARTS_MAX];
    size_t n = parts_of(table, names);
    char letter[2] = "";
    json_object *value;
    bool any = false;
    size_t i;

    idem__buffer_str(out, ",\"ConditionExpression\":\"");
    for (i = 0; i < n; i++) {
        const char *gone[] = {"attribute_not_exists(#", letter, ")", NULL};
        const char *same[] = {"#", letter, " = :", letter, NULL};

        value = part_at(object, names[i], i, letter);
        idem__buffer_str(out, i == 0 ? "" : " AND ");
        add_all(out, value == NULL ? gone : same);
    }
    idem__buffer_str(out, "\",\"ExpressionAttributeNames\":{");
    for (i = 0; i < n; i++) {
        const char *entry[] = {
            i == 0 ? "\"#" : ",\"#", letter, "\":\"", names[i], "\"", NULL};

        (void)part_at(object, names[i], i, letter);
        add_all(out, entry);
    }
    for (i = 0; i < n; i++) {
        const char *entry[] = {any ? ",\":"
                                   : "},\"ExpressionAttributeValues\":{\":",
                               letter, "\":", NULL};
        const char *text;
        size_t len;

        value = part_at(object, names[i], i, letter);
        if (value != NULL) {
            add_all(out, entry);
            text = idem__json_text(value, &len);
            idem__buffer_add(out, text, len);
            any = true;
        }
    }
    idem__buffer_str(out, "}");
}

/* ---- Writing ---- */

static void add_bytes(struct idem__buffer *out, const char *name,
                      struct idem_slice bytes)
{
    if (bytes.len > 0) {
        idem__foreign_name(out, name);
        idem__json_b(out, bytes);
    }
}

/* The library cannot read the frames of a command's output. Appends to @words only what the
 * command wrote to its standard output. False: the result has no frames. */
static bool unframe(const struct idem__item *item, struct idem__buffer *words)
{
    struct idem_result result = item->record.result;
    struct idem_slice rest, bytes;
    enum idem_stream stream;
    struct idem_form form;

    result.bytes = item->result.stored;
    idem_form_read(&result, &form);
    if (!form.framed || form.kind == IDEM_FORM_DAMAGED) {
        return false;
    }
    rest = form.bytes;
    while (idem_form_next(&form, &rest, &stream, &bytes)) {
        if (stream == IDEM_STREAM_STDOUT) {
            idem__buffer_add(words, bytes.base, bytes.len);
        }
    }
    return true;
}

bool idem__foreign_data(const struct idem__foreign *f,
                        const struct idem__item *item,
                        struct idem__buffer *words, struct idem_slice *ret_data,
                        bool *ret_result)
{
    bool done = item->record.status == IDEM_STATUS_COMPLETED &&
                item->record.result_len > 0;

    words->len = 0;
    *ret_result = false;
    if ((f->tells != NULL && f->tells(item, words)) ||
        (done && unframe(item, words))) {
        *ret_data = idem__buffer_slice(words);
        return true;
    }
    *ret_data = item->result.stored;
    *ret_result = done;
    return done;
}

static void add_result(struct idem__buffer *out,
                       const struct idem__table_conf *table,
                       const struct idem__item *item)
{
    const struct idem__foreign *f = idem__foreign_of(table);
    struct idem__buffer words = {.len = 0};
    struct idem__tree scratch = {0};
    struct idem_slice data;
    bool plain = false;
    bool result;

    if (idem__foreign_data(f, item, &words, &data, &result)) {
        idem__foreign_name(out, table->attrs[IDEM__ATTR_DATA]);
        (void)idem__value_write(out, data, f->native, &scratch, &plain);
        idem__tree_free(&scratch);
    }
    out->failed = out->failed || words.failed;
    idem__buffer_free(&words);
    if (!plain || !result) {
        add_bytes(out, IDEM__FOREIGN_RESULT, item->result.stored);
    }
}

static void put_item(struct idem__buffer *out,
                     const struct idem__table_conf *table,
                     const struct idem__item *item, struct idem_slice head)
{
    idem__layout_put_key(out, table, item->record.key);
    idem__foreign_of(table)->write(out, table, &item->record);
    add_result(out, table, item);
    add_bytes(out, IDEM__FOREIGN_HEAD, head);
    add_bytes(out, IDEM__FOREIGN_INPUT, item->input.stored);
    idem__buffer_str(out, "}");
}

const struct idem__layout_ops idem__foreign_ops = {
    .check = check,
    .fits = fits,
    .name = name_of,
    .put_key = put_key,
    .put_item = put_item,
    .put_condition = put_condition,
    .read = idem__foreign_read,
};
