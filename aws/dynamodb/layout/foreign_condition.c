/* The condition of a write over another library's item: all that was seen of it is
 * still the same, ours and theirs.
 *
 *     "#a = :a AND attribute_not_exists(#b) ...", and the meaning of the names
 */
#include "aws/dynamodb/layout/foreign.h"

enum {
    PARTS_MAX = 16,
};

/* The names of all that a write depends on. */
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

/* The value of @name now (NULL: not there), and the letter of part @i. */
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
