/* Items of a DynamoDB table. The first byte of the input says what the rest is:
 *
 * - an answer that may hold an item. One that is read is bound to its id, and is
 *   written as an item that is read as the same. The answer may come from anybody:
 *   nothing of it is believed that the record's checksum does not cover.
 * - a record with bodies, inline, packed or apart. Its item is JSON in UTF-8 and
 *   is read back with all of its members; and where one byte of it is changed, it
 *   is refused, or still stands for that very record.
 * - a text that may be UTF-8: this reader of it and the program's agree.
 * - an answer that may hold an item of another library's layout. One that is read
 *   stands for a record without a fault, and that record written as an item of ours
 *   is read as the same.
 */
#include "aws/dynamodb/layout/foreign.h"
#include "core/record.h"
#include "fuzz.h"
#include "text/text.h"

#include <stdlib.h>

static bool same_body(const struct idem__body *a, const struct idem__body *b)
{
    return a->place == b->place && a->packed == b->packed &&
           a->parts == b->parts &&
           (a->place != IDEM__PLACE_INLINE ||
            same_bytes(a->stored, b->stored)) &&
           (a->place != IDEM__PLACE_APART ||
            memcmp(a->tag, b->tag, IDEM__TAG_LEN) == 0);
}

/* Bodies are read by those who fetch them. */
static bool same_item(const struct idem__item *a, const struct idem__item *b)
{
    struct idem_record ra = a->record;
    struct idem_record rb = b->record;

    memset(&ra.result.bytes, 0, sizeof(ra.result.bytes));
    memset(&rb.result.bytes, 0, sizeof(rb.result.bytes));
    memset(&ra.input, 0, sizeof(ra.input));
    memset(&rb.input, 0, sizeof(rb.input));
    return same_record(&ra, &rb) && same_bytes(a->head, b->head) &&
           same_body(&a->result, &b->result) && same_body(&a->input, &b->input);
}

/* 0 or the code; *ret_object keeps what @ret_item points to beside @memory. */
static int read_item(struct idem_slice text, struct idem__buffer *memory,
                     struct idem__item *ret_item)
{
    struct idem_error error = {0};
    int rc;
    json_object *object = idem__json_parse(text, &rc);

    if (object == NULL) {
        must(rc == IDEM_ECORRUPT);
        return rc;
    }
    rc = idem__item_read(object, NULL, memory, ret_item, &error);
    must(rc == 0 || rc == IDEM_ECORRUPT);
    must(rc == error.code);
    (void)json_object_put(object);
    return rc;
}

static void write_and_read(const struct idem__item *item, bool index)
{
    struct idem__buffer out = {.base = NULL};
    struct idem__buffer memory = {.base = NULL};
    struct idem__item back;

    idem__item_write(&out, item, item->head, index);
    must(!out.failed);
    must(cli_is_utf8(idem__buffer_slice(&out)));
    must(out.len <= 2 * idem__item_size(item, item->head.len) + 16384);
    must(read_item(idem__buffer_slice(&out), &memory, &back) == 0);
    must(same_item(item, &back));
    idem__buffer_free(&memory);
    idem__buffer_free(&out);
}

static void read_answer(struct idem_slice text)
{
    struct idem__buffer memory = {.base = NULL};
    struct idem__item item;

    if (read_item(text, &memory, &item) == 0) {
        must(idem__record_fault(&item.record) == NULL);
        write_and_read(&item, true);
    }
    idem__buffer_free(&memory);
}

static void take_body(struct tape *tape, uint64_t len, struct idem__body *body)
{
    size_t i;

    memset(body, 0, sizeof(*body));
    if (len == 0) {
        return;
    }
    body->packed = take_bool(tape);
    if (take_bool(tape)) {
        body->place = IDEM__PLACE_INLINE;
        body->stored = take_bytes(tape, 1000);
        return;
    }
    body->place = IDEM__PLACE_APART;
    body->parts = 1 + take_up_to(tape, IDEM__PARTS_MAX - 1);
    for (i = 0; i < IDEM__TAG_LEN; i++) {
        body->tag[i] = take_u8(tape);
    }
}

static void make_item(struct tape *tape)
{
    static uint8_t head[IDEM_HEAD_MAX];
    struct idem__buffer out = {.base = NULL};
    struct idem__buffer memory = {.base = NULL};
    size_t at = take_u64(tape);
    uint8_t bits = take_u8(tape);
    struct idem__item item;
    struct idem__item back;
    size_t len;

    memset(&item, 0, sizeof(item));
    take_record(tape, &item.record);
    must(idem__record_encode(&item.record, head, sizeof(head), &len) == 0);
    item.head = idem_bytes(head, len);
    take_body(tape, item.record.result_len, &item.result);
    take_body(tape, item.record.input_len, &item.input);
    write_and_read(&item, take_bool(tape));

    idem__item_write(&out, &item, item.head, true);
    out.base[at % out.len] ^= bits;
    if (read_item(idem__buffer_slice(&out), &memory, &back) == 0) {
        must(back.record.fence == item.record.fence);
        must(same_bytes(back.head, item.head));
        must(same_bytes(back.record.key, item.record.key));
        must(same_bytes(back.record.scope, item.record.scope));
    }
    idem__buffer_free(&memory);
    idem__buffer_free(&out);
}

/* The item that is written for @item, or NULL: it is deleted. The caller puts it
 * back. */
static json_object *written(const struct idem__table_conf *table,
                            const struct idem__item *item)
{
    static uint8_t head[IDEM_HEAD_MAX];
    struct idem__buffer out = {.base = NULL};
    json_object *object = NULL;
    json_object *request;
    size_t len;
    int rc;

    must(idem__record_encode(&item->record, head, sizeof(head), &len) == 0);
    idem__buffer_str(&out, "{\"TableName\":\"t\"");
    idem__layout_put(&out, table, item, idem_bytes(head, len), NULL);
    idem__buffer_str(&out, "}");
    must(!out.failed);
    request = idem__json_parse(idem__buffer_slice(&out), &rc);
    must(request != NULL);
    if (json_object_object_get_ex(request, "Item", &object)) {
        (void)json_object_get(object);
    }
    (void)json_object_put(request);
    idem__buffer_free(&out);
    return object;
}

static void read_foreign(struct tape *tape)
{
    static const struct idem__layout_kind *const layouts[] = {
        &idem__foreign_powertools.kind,
        &idem__foreign_powertools_native.kind,
        &idem__foreign_lock_token.kind,
        &idem__foreign_idempotency_store.kind,
        &idem__foreign_http_idempotency.kind,
    };
    struct idem__table_conf table = {.layout = NULL};
    struct idem__buffer memory[2] = {{.base = NULL}, {.base = NULL}};
    struct idem__scratch scratch = {.text = {.base = NULL}};
    struct idem_error error = {0};
    struct idem__item item, back;
    json_object *object, *again;
    int rc;

    table.layout = layouts[take_up_to(tape, 4)];
    must(idem__layout_settle(&table, &error) == 0);
    object = idem__json_parse(take_rest(tape), &rc);
    if (object == NULL) {
        return;
    }
    rc = idem__layout_read(&table, object, NULL, &memory[0], &scratch, &item,
                           &error);
    must(rc == 0 || rc == IDEM_ECORRUPT);
    must(rc == error.code);
    if (rc == 0) {
        must(idem__record_fault(&item.record) == NULL);
        again = written(&table, &item);
        must(again != NULL);
        must(idem__layout_read(&table, again, item.record.id, &memory[1],
                               &scratch, &back, &error) == 0);
        must(memcmp(back.record.nonce, item.record.nonce, 16) == 0);
        must(same_bytes(back.result.stored, item.result.stored));
        must(same_bytes(back.input.stored, item.input.stored));
        (void)json_object_put(again);
    }
    (void)json_object_put(object);
    idem__scratch_free(&scratch);
    idem__buffer_free(&memory[0]);
    idem__buffer_free(&memory[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    struct idem_slice rest;

    switch (take_up_to(&tape, 3)) {
    case 0:
        read_answer(take_rest(&tape));
        break;
    case 1:
        make_item(&tape);
        break;
    case 3:
        read_foreign(&tape);
        break;
    default:
        rest = take_rest(&tape);
        must(idem__utf8_is(rest) == cli_is_utf8(rest));
        break;
    }
    return 0;
}
