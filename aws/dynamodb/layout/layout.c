/* The layouts of the items in a table, one row for each; our own is the first. */
#include "aws/dynamodb/layout/layout.h"

#include "aws/dynamodb/layout/foreign.h"
#include "core/error.h"

#include <stdio.h>

static const struct {
    const char *name;
    const struct idem__layout_kind *kind;
} layouts[] = {
    [IDEM__LAYOUT_OWN] = {"", &idem__layout_own},
    [IDEM__LAYOUT_PYTHON] = {"powertools-python",
                             &idem__foreign_powertools.kind},
    [IDEM__LAYOUT_TYPESCRIPT] = {"powertools-typescript",
                                 &idem__foreign_powertools_native.kind},
    [IDEM__LAYOUT_LOCK_TOKEN] = {"lock-token", &idem__foreign_lock_token.kind},
    [IDEM__LAYOUT_IDEMPOTENCY_STORE] = {"idempotency-store",
                                        &idem__foreign_idempotency_store.kind},
    [IDEM__LAYOUT_HTTP_IDEMPOTENCY] = {"http-idempotency",
                                       &idem__foreign_http_idempotency.kind},
};

enum {
    LAYOUTS = sizeof(layouts) / sizeof(layouts[0]),
};

void idem__scratch_free(struct idem__scratch *scratch)
{
    idem__tree_free(&scratch->tree);
    idem__buffer_free(&scratch->text);
    idem__buffer_free(&scratch->words);
}

enum idem__layout idem__layout_find(const char *name)
{
    size_t i;

    for (i = 1; i < LAYOUTS; i++) {
        if (strcmp(layouts[i].name, name) == 0) {
            return (enum idem__layout)i;
        }
    }
    return IDEM__LAYOUT_OWN;
}

const char *idem__layout_name(enum idem__layout layout)
{
    return layouts[layout].name;
}

void idem__layout_list(char *buf, size_t cap)
{
    size_t len = 0;
    size_t i;

    for (i = 1; i < LAYOUTS && len < cap; i++) {
        len += (size_t)snprintf(buf + len, cap - len, "%s%s",
                                i == 1             ? ""
                                : i == LAYOUTS - 1 ? " and "
                                                   : ", ",
                                layouts[i].name);
    }
}

const struct idem__layout_kind *idem__layout_of(
    const struct idem__table_conf *table)
{
    return layouts[table->layout].kind;
}

/* The row is the first member. */
const struct idem__foreign *idem__foreign_of(
    const struct idem__table_conf *table)
{
    return (const struct idem__foreign *)layouts[table->layout].kind;
}

bool idem__layout_deletes(enum idem__layout layout,
                          const struct idem_record *record)
{
    return layouts[layout].kind->drops &&
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
                             idem__layout_name(table->layout));
}

/* ---- Through the row of the table's layout ---- */

int idem__layout_check(const struct idem__table_conf *table,
                       const struct idem_op *op, struct idem_error *ret_error)
{
    return idem__layout_of(table)->ops->check(table, op, ret_error);
}

int idem__layout_fits(const struct idem__table_conf *table,
                      const struct idem__item *item, size_t head_len,
                      struct idem_error *ret_error)
{
    return idem__layout_of(table)->ops->fits(item, head_len, ret_error);
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

    if (idem__layout_deletes(table->layout, record)) {
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
