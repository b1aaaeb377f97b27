/* A record as an item of a table that another library has, and back. */
#include "aws/dynamodb/layout/layout.h"

#include "aws/dynamodb/layout/envelope.h"
#include "aws/dynamodb/layout/foreign.h"
#include "aws/dynamodb/layout/value.h"
#include "core/digest.h"
#include "core/error.h"

#include <idem/form.h>
#include <stdarg.h>
#include <stdio.h>

/* Attributes of ours. */
#define HEAD IDEM__FOREIGN_HEAD
#define RESULT IDEM__FOREIGN_RESULT
#define INPUT IDEM__FOREIGN_INPUT

void idem__scratch_free(struct idem__scratch *scratch)
{
    idem__tree_free(&scratch->tree);
    idem__buffer_free(&scratch->text);
    idem__buffer_free(&scratch->words);
}

/* ---- What a table can hold ---- */

int idem__layout_check(const struct idem__table_conf *table,
                       const struct idem_op *op, struct idem_error *ret_error)
{
    enum idem__layout layout = table->layout;
    bool one = op->verb != IDEM_OP_LIST && op->verb != IDEM_OP_PURGE;

    if (layout == IDEM__LAYOUT_OWN || !one) {
        return 0;
    }
    if (op->verb == IDEM_OP_LIMIT || op->commit != NULL) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "layout %s has %s: use a table of idem's own",
                           idem__layout_name(layout),
                           op->commit == NULL
                               ? "no rate limits"
                               : "no place for writes of a caller's own");
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
    return 0;
}

int idem__layout_fits(const struct idem__item *item, size_t head_len,
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

/* ---- Helpers ---- */

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

/* ---- Writing ---- */

void idem__layout_put_key(struct idem__buffer *out,
                          const struct idem__table_conf *table,
                          struct idem_slice key)
{
    idem__buffer_str(out, "{\"");
    idem__buffer_str(out, table->attrs[IDEM__ATTR_KEY]);
    idem__buffer_str(out, "\":");
    if (table->attrs[IDEM__ATTR_SORT][0] != '\0') {
        idem__json_s(out, table->partition);
        idem__foreign_name(out, table->attrs[IDEM__ATTR_SORT]);
    }
    idem__buffer_str(out, "{\"S\":");
    idem__json_string(out, key);
    idem__buffer_str(out, "}");
}

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

/* The library's own attributes of @item: its result, or what @words has.
 * *@ret_result: it is the result. False: it is not there. */
static bool data_of(const struct idem__foreign *f,
                    const struct idem__item *item, struct idem__buffer *words,
                    struct idem_slice *ret_data, bool *ret_result)
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

    if (data_of(f, item, &words, &data, &result)) {
        idem__foreign_name(out, table->attrs[IDEM__ATTR_DATA]);
        (void)idem__value_write(out, data, f->native, &scratch, &plain);
        idem__tree_free(&scratch);
    }
    out->failed = out->failed || words.failed;
    idem__buffer_free(&words);
    if (!plain || !result) {
        add_bytes(out, RESULT, item->result.stored);
    }
}

void idem__layout_put(struct idem__buffer *out,
                      const struct idem__table_conf *table,
                      const struct idem__item *item, struct idem_slice head,
                      const struct idem_slice *old)
{
    bool deletes = idem__layout_deletes(table->layout, &item->record);

    idem__buffer_str(out, deletes ? ",\"Key\":" : ",\"Item\":");
    idem__layout_put_key(out, table, item->record.key);
    if (!deletes) {
        idem__foreign_of(table)->write(out, table, &item->record);
        add_result(out, table, item);
        add_bytes(out, HEAD, head);
        add_bytes(out, INPUT, item->input.stored);
    }
    idem__buffer_str(out, "}");
    if (old != NULL) {
        idem__buffer_add(out, old->base, old->len);
        return;
    }
    idem__buffer_str(out, ",\"ConditionExpression\":\"attribute_not_exists(#k)"
                          "\",\"ExpressionAttributeNames\":{\"#k\":\"");
    idem__buffer_str(out, table->attrs[IDEM__ATTR_KEY]);
    idem__buffer_str(out, "\"}");
}

/* ---- The condition ---- */

static const char *json_text(json_object *value, size_t *ret_len)
{
    return json_object_to_json_string_length(value,
                                             JSON_C_TO_STRING_PLAIN |
                                                 JSON_C_TO_STRING_NOSLASHESCAPE,
                                             ret_len);
}

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
    for (i = 0; f->control != NULL && f->control[i] != NULL; i++) {
        names[n++] = f->control[i];
    }
    names[n++] = HEAD;
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

/* "#a = :a AND attribute_not_exists(#b) ...", and the meaning of the names. */
static void add_condition(struct idem__buffer *out,
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
            text = json_text(value, &len);
            idem__buffer_add(out, text, len);
            any = true;
        }
    }
    idem__buffer_str(out, "}");
}

/* ---- Reading ---- */

static int read_identity(json_object *object,
                         const struct idem__table_conf *table,
                         const uint8_t *id, struct idem__buffer *memory,
                         struct idem_record *record, struct idem_error *error)
{
    const char *key = idem__layout_key(table);
    int rc =
        idem__foreign_text(object, key, IDEM_KEY_MAX + 1, memory, &record->key);

    record->scope = idem_bytes(NULL, 0);
    if (rc != 0 || record->key.len == 0) {
        return idem__foreign_corrupt(error,
                                     "it has no key: no string in \"%s\"", key);
    }
    rc = idem_id(record->scope, record->key, record->id);
    if (rc == IDEM_ENOMEM) {
        return idem__error_plain(error, rc);
    }
    if (rc != 0 || (id != NULL && memcmp(id, record->id, IDEM_ID_LEN) != 0)) {
        return idem__foreign_corrupt(error,
                                     "its key is not one that was requested, "
                                     "or has more than 255 bytes");
    }
    return 0;
}

/* Bytes of ours: 1; 0: there are none. */
static int read_bytes(json_object *object, const char *name,
                      struct idem__buffer *memory, struct idem_slice *ret)
{
    struct idem_slice text;
    int rc = idem__json_attribute(object, name, "B", &text);

    *ret = idem_bytes(NULL, 0);
    if (rc == 1 && idem__json_bytes(text, memory, ret) != 0) {
        return IDEM_ECORRUPT;
    }
    return rc;
}

static void set_body(struct idem__body *body, struct idem_slice bytes)
{
    memset(body, 0, sizeof(*body));
    if (bytes.len > 0) {
        body->place = IDEM__PLACE_INLINE;
        body->stored = bytes;
    }
}

/* 1: the library's attribute is what we would write for @item; 0; IDEM_ENOMEM. */
static int same_data(json_object *object, const struct idem__table_conf *table,
                     const struct idem__item *item,
                     struct idem__scratch *scratch)
{
    const struct idem__foreign *f = idem__foreign_of(table);
    const char *name = table->attrs[IDEM__ATTR_DATA];
    struct idem__buffer *text = &scratch->text;
    json_object *there = NULL;
    json_object *own = NULL;
    struct idem_slice data;
    bool result, plain, same;
    int rc = IDEM_ENOMEM;

    if (!data_of(f, item, &scratch->words, &data, &result)) {
        return idem__foreign_is(object, name, NULL);
    }
    if (!json_object_object_get_ex(object, name, &there)) {
        return 0;
    }
    idem__buffer_reset(text, 64 * 1024);
    if (!scratch->words.failed &&
        idem__value_write(text, data, f->native, &scratch->tree, &plain)) {
        own = idem__json_parse(idem__buffer_slice(text), &rc);
    }
    scratch->words.failed = false;
    same = own != NULL && idem__value_same(own, there);
    (void)json_object_put(own);
    return own == NULL && rc == IDEM_ENOMEM ? rc : same;
}

/* The bytes of our record's result: ours, or just theirs. 1: they go with what the
 * library has; 0: they do not; or a code. */
static int read_own_result(json_object *object,
                           const struct idem__table_conf *table,
                           struct idem__item *item, struct idem__buffer *memory,
                           struct idem__scratch *scratch)
{
    const struct idem_record *record = &item->record;
    bool shared =
        record->status == IDEM_STATUS_COMPLETED && record->result_len > 0;
    struct idem_slice bytes;
    int ours = read_bytes(object, RESULT, memory, &bytes);

    if (ours < 0) {
        return ours;
    }
    shared = shared && ours == 0;
    if (shared && idem__foreign_text(object, table->attrs[IDEM__ATTR_DATA],
                                     SIZE_MAX, memory, &bytes) != 0) {
        return 0;
    }
    if (idem_record_check_body(bytes, record->result_len,
                               record->result_digest) != 0) {
        return ours == 1 ? IDEM_ECORRUPT : 0;
    }
    set_body(&item->result, bytes);
    return shared ? 1 : same_data(object, table, item, scratch);
}

/* Our record, if it is there and still goes with the rest. 1; 0; or a code. */
static int read_own(json_object *object, const struct idem__table_conf *table,
                    struct idem__buffer *memory, struct idem__scratch *scratch,
                    struct idem__item *item, struct idem_error *error)
{
    struct idem_slice scope = item->record.scope;
    struct idem_slice key = item->record.key;
    struct idem_slice head, input;
    int rc = read_bytes(object, HEAD, memory, &head);

    if (rc < 0) {
        return idem__foreign_corrupt(error, "its head is not binary");
    }
    if (rc == 1) {
        rc = idem_record_decode(item->record.id, head, &item->record, error);
        item->record.scope = scope;
        item->record.key = key;
        rc = rc == 0 ? 1 : rc;
    }
    if (rc != 1 ||
        !idem__foreign_of(table)->agrees(table, object, &item->record)) {
        return rc < 0 ? rc : 0;
    }
    rc = read_own_result(object, table, item, memory, scratch);
    if (rc == 1 && read_bytes(object, INPUT, memory, &input) >= 0 &&
        idem_record_check_body(input, item->record.input_len,
                               item->record.input_digest) == 0) {
        set_body(&item->input, input);
        return 1;
    }
    if (rc == 0 || rc == IDEM_ENOMEM) {
        return rc == 0 ? 0 : idem__error_plain(error, rc);
    }
    return idem__foreign_corrupt(error, "its head and its bodies do not agree");
}

/* The library's result, as JSON. */
static int read_result(json_object *object,
                       const struct idem__table_conf *table,
                       struct idem__buffer *memory, struct idem__item *item,
                       struct idem_error *error)
{
    const struct idem__foreign *f = idem__foreign_of(table);
    const char *name = table->attrs[IDEM__ATTR_DATA];
    struct idem_record *record = &item->record;
    size_t from = memory->len;
    struct idem_slice bytes;
    json_object *value = NULL;

    if (!json_object_object_get_ex(object, name, &value) ||
        (!f->native && idem__foreign_is(object, name, NULL))) {
        record->result.not_kept = true;
        return 0;
    }
    if (f->native) {
        if (!idem__value_read(value, memory)) {
            return idem__foreign_corrupt(error, "its \"%s\" is not a value",
                                         name);
        }
        bytes = idem_bytes(memory->base + from, memory->len - from);
    } else if (idem__foreign_text(object, name, SIZE_MAX, memory, &bytes) !=
               0) {
        return idem__foreign_corrupt(
            error,
            "its \"%s\" is not a string: another library than that of this "
            "layout wrote it",
            name);
    }
    record->result.content_type = idem_str("application/json");
    if (f->answers) {
        struct idem_result answer;
        int rc = idem__envelope_read(bytes, memory, &answer);

        if (rc == 1) {
            record->result = answer;
            bytes = answer.bytes;
        } else if (rc != 0) {
            return idem__error_plain(error, rc);
        }
    }
    record->result_len = bytes.len;
    set_body(&item->result, bytes);
    return idem__body_digest(bytes, record->result_digest);
}

/* The input of the work as the library has it: a text as it is, else JSON. */
static int read_input(json_object *object, const char *name,
                      struct idem__buffer *memory, struct idem__item *item,
                      struct idem_error *error)
{
    size_t from = memory->len;
    struct idem_slice bytes;
    json_object *value;

    if (name == NULL || !json_object_object_get_ex(object, name, &value) ||
        idem__foreign_is(object, name, NULL)) {
        return 0;
    }
    if (idem__foreign_text(object, name, SIZE_MAX, memory, &bytes) != 0) {
        if (!idem__value_read(value, memory)) {
            return idem__foreign_corrupt(error, "its \"%s\" is not a value",
                                         name);
        }
        bytes = idem_bytes(memory->base + from, memory->len - from);
    }
    item->record.input_len = bytes.len;
    set_body(&item->input, bytes);
    return idem__body_digest(bytes, item->record.input_digest);
}

/* The record that the library's attributes make. */
static int make_up(json_object *object, const struct idem__table_conf *table,
                   struct idem__buffer *memory, struct idem__item *item,
                   struct idem_error *error)
{
    struct idem_record *record = &item->record;
    struct idem_record fresh = {.scope = record->scope,
                                .key = record->key,
                                .fence = record->fence,
                                .attempts = 1};
    bool has_result = false;
    uint8_t digest[16];
    int rc;

    memcpy(fresh.id, record->id, sizeof(fresh.id));
    memset(&item->result, 0, sizeof(item->result));
    memset(&item->input, 0, sizeof(item->input));
    *record = fresh;
    rc = idem__foreign_of(table)->read(table, object, record, memory,
                                       &has_result, error);
    if (rc == 0 && has_result) {
        rc = read_result(object, table, memory, item, error);
    }
    if (rc == 0) {
        rc = read_input(object, idem__foreign_of(table)->input, memory, item,
                        error);
    }
    if (rc != 0) {
        return rc;
    }
    /* Nobody has this nonce, and it is the same at each reading. */
    rc = idem__body_digest(item->head, digest);
    memcpy(record->nonce, digest, sizeof(record->nonce));
    return rc == 0 ? 0 : idem__error_plain(error, rc);
}

int idem__layout_read(const struct idem__table_conf *table, json_object *object,
                      const uint8_t *id, struct idem__buffer *memory,
                      struct idem__scratch *scratch,
                      struct idem__item *ret_item, struct idem_error *ret_error)
{
    size_t len = 0;
    size_t from;
    int rc;

    memset(ret_item, 0, sizeof(*ret_item));
    if (!json_object_is_type(object, json_type_object)) {
        return idem__foreign_corrupt(ret_error, "it is not an item");
    }
    memory->len = 0;
    /* Slices point into it: it must not move. */
    if (json_text(object, &len) == NULL ||
        idem__buffer_room(memory, 5 * len + 4096) == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = read_identity(object, table, id, memory, &ret_item->record, ret_error);
    if (rc != 0) {
        return rc;
    }
    from = memory->len;
    add_condition(memory, table, object);
    if (memory->failed) {
        memory->failed = false;
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    ret_item->head = idem_bytes(memory->base + from, memory->len - from);
    rc = read_own(object, table, memory, scratch, ret_item, ret_error);
    if (rc == 0) {
        rc = make_up(object, table, memory, ret_item, ret_error);
    }
    return rc == 1 ? 0 : rc;
}
