/* Reads the record of another library's item: our own, if the library's attributes still
 * match it, or else one made up from these attributes. */
#include "aws/dynamodb/layout/foreign.h"
#include "aws/dynamodb/layout/json.h"
#include "core/error.h"
#include "core/identity.h"

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
                                     "its key is not the requested one, or "
                                     "exceeds 255 bytes");
    }
    return 0;
}

/* Reads an attribute of ours. Returns 1, 0 if it is missing, or IDEM_ECORRUPT. */
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

/* Returns 1 if the library's attribute is the one that we would write for @item, 0 if not,
 * or IDEM_ENOMEM. */
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

    if (!idem__foreign_data(f, item, &scratch->words, &data, &result)) {
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

/* Reads the result of our record from our attribute, or if that is missing from the
 * library's. Returns 1 if both match the record, 0 if the library has replaced its own, or
 * a code. */
static int read_own_result(json_object *object,
                           const struct idem__table_conf *table,
                           struct idem__item *item, struct idem__buffer *memory,
                           struct idem__scratch *scratch)
{
    const struct idem_record *record = &item->record;
    bool shared =
        record->status == IDEM_STATUS_COMPLETED && record->result_len > 0;
    struct idem_slice bytes;
    int ours = read_bytes(object, IDEM__FOREIGN_RESULT, memory, &bytes);

    if (ours < 0) {
        return ours;
    }
    shared = shared && ours == 0;
    if (shared && idem__foreign_text(object, table->attrs[IDEM__ATTR_DATA],
                                     SIZE_MAX, memory, &bytes) != 0) {
        return 0;
    }
    if (idem__record_check_body(bytes, record->result_len,
                                record->result_digest) != 0) {
        return ours == 1 ? IDEM_ECORRUPT : 0;
    }
    set_body(&item->result, bytes);
    return shared ? 1 : same_data(object, table, item, scratch);
}

/* Reads our record. Returns 1, 0 if it is missing or the library has written the item
 * since, or a code. */
static int read_own(json_object *object, const struct idem__table_conf *table,
                    struct idem__buffer *memory, struct idem__scratch *scratch,
                    struct idem__item *item, struct idem_error *error)
{
    struct idem_slice scope = item->record.scope;
    struct idem_slice key = item->record.key;
    struct idem_slice head, input;
    int rc = read_bytes(object, IDEM__FOREIGN_HEAD, memory, &head);

    if (rc < 0) {
        return idem__foreign_corrupt(error, "its head is not binary");
    }
    if (rc == 1) {
        rc = idem__record_decode(item->record.id, head, &item->record, error);
        item->record.scope = scope;
        item->record.key = key;
        rc = rc == 0 ? 1 : rc;
    }
    if (rc != 1 ||
        !idem__foreign_of(table)->agrees(table, object, &item->record)) {
        return rc < 0 ? rc : 0;
    }
    rc = read_own_result(object, table, item, memory, scratch);
    if (rc == 1 &&
        read_bytes(object, IDEM__FOREIGN_INPUT, memory, &input) >= 0 &&
        idem__record_check_body(input, item->record.input_len,
                                item->record.input_digest) == 0) {
        set_body(&item->input, input);
        return 1;
    }
    if (rc == 0 || rc == IDEM_ENOMEM) {
        return rc == 0 ? 0 : idem__error_plain(error, rc);
    }
    return idem__foreign_corrupt(error, "its bodies do not match its head");
}

/* Reads the library's result as JSON, or if it is an HTTP response as that. */
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

/* Reads the library's input of the work: a string as it is, any other value as JSON. */
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

/* Makes up a record from the library's attributes. */
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
    if (rc != 0) {
        return rc;
    }
    if (has_result) {
        rc = read_result(object, table, memory, item, error);
        if (rc != 0) {
            return rc;
        }
    }
    rc = read_input(object, idem__foreign_of(table)->kind.input, memory, item,
                    error);
    if (rc != 0) {
        return rc;
    }
    /* No owner has this nonce, and each reading of the same item makes it again. */
    rc = idem__body_digest(item->head, digest);
    memcpy(record->nonce, digest, sizeof(record->nonce));
    return rc == 0 ? 0 : idem__error_plain(error, rc);
}

int idem__foreign_read(const struct idem__table_conf *table,
                       json_object *object, const uint8_t *id,
                       struct idem__buffer *memory,
                       struct idem__scratch *scratch,
                       struct idem__item *ret_item,
                       struct idem_error *ret_error)
{
    size_t len = 0;
    size_t from;
    int rc;

    memset(ret_item, 0, sizeof(*ret_item));
    if (!json_object_is_type(object, json_type_object)) {
        return idem__foreign_corrupt(ret_error, "it is not an item");
    }
    memory->len = 0;
    /* Slices point into @memory, so it must not move: make room for all of them first. */
    if (idem__json_text(object, &len) == NULL ||
        idem__buffer_room(memory, 5 * len + 4096) == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = read_identity(object, table, id, memory, &ret_item->record, ret_error);
    if (rc != 0) {
        return rc;
    }
    from = memory->len;
    idem__foreign_condition(memory, table, object);
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
