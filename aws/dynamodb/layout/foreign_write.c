/* A record is written as an item of another library's. */
#include "aws/dynamodb/layout/foreign.h"
#include "aws/dynamodb/layout/value.h"

#include <idem/form.h>

static void add_bytes(struct idem__buffer *out, const char *name,
                      struct idem_slice bytes)
{
    if (bytes.len > 0) {
        idem__foreign_name(out, name);
        idem__json_b(out, bytes);
    }
}

/* Frames of a command are for idem alone: @words gets what it wrote to its standard
 * output. False: the result has none. */
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

void idem__foreign_put_item(struct idem__buffer *out,
                            const struct idem__table_conf *table,
                            const struct idem__item *item,
                            struct idem_slice head)
{
    idem__layout_put_key(out, table, item->record.key);
    idem__foreign_of(table)->write(out, table, &item->record);
    add_result(out, table, item);
    add_bytes(out, IDEM__FOREIGN_HEAD, head);
    add_bytes(out, IDEM__FOREIGN_INPUT, item->input.stored);
    idem__buffer_str(out, "}");
}
