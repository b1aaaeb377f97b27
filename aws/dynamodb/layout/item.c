/* Writes a record as an item of the table, and reads it back. */
#include "aws/dynamodb/layout/item.h"

#include "base/host.h"
#include "core/error.h"

#include <idem/operator.h>
#include <stdio.h>

static const char hex_digits[] = "0123456789abcdef";

static void put_hex(const uint8_t *bytes, size_t len, char *to)
{
    size_t i;

    for (i = 0; i < len; i++) {
        to[2 * i] = hex_digits[bytes[i] >> 4];
        to[2 * i + 1] = hex_digits[bytes[i] & 15];
    }
}

static bool get_hex(struct idem_slice text, uint8_t *to, size_t len)
{
    const char *p = text.base;
    size_t i;

    if (text.len != 2 * len) {
        return false;
    }
    for (i = 0; i < text.len; i++) {
        const char *at = p[i] == '\0' ? NULL : strchr(hex_digits, p[i]);

        if (at == NULL) {
            return false;
        }
        to[i / 2] = (uint8_t)(to[i / 2] << 4 | (at - hex_digits));
    }
    return true;
}

void idem__item_id(const uint8_t id[IDEM_ID_LEN],
                   char ret_text[IDEM__ITEM_ID_LEN + 1])
{
    put_hex(id, IDEM_ID_LEN, ret_text);
    ret_text[IDEM__ITEM_ID_LEN] = '\0';
}

bool idem__item_id_read(struct idem_slice text, uint8_t ret_id[IDEM_ID_LEN])
{
    return get_hex(text, ret_id, IDEM_ID_LEN);
}

void idem__part_name(const uint8_t id[IDEM_ID_LEN], char kind,
                     const uint8_t tag[IDEM__TAG_LEN], uint32_t i,
                     char ret_name[IDEM__PART_NAME_MAX])
{
    char tag_text[2 * IDEM__TAG_LEN + 1] = "";

    put_hex(tag, IDEM__TAG_LEN, tag_text);
    idem__item_id(id, ret_name);
    (void)snprintf(ret_name + IDEM__ITEM_ID_LEN,
                   IDEM__PART_NAME_MAX - IDEM__ITEM_ID_LEN, "#%c#%s#%u", kind,
                   tag_text, (unsigned)i);
}

/* Reads "ID#K#TAG#I". I can be any text, but not empty. */
bool idem__part_name_read(struct idem_slice name, uint8_t ret_id[IDEM_ID_LEN],
                          char *ret_kind, uint8_t ret_tag[IDEM__TAG_LEN])
{
    enum {
        KIND_AT = IDEM__ITEM_ID_LEN + 1,
        TAG_AT = KIND_AT + 2,
        NUMBER_AT = TAG_AT + 2 * IDEM__TAG_LEN + 1,
    };
    const char *p = name.base;

    if (name.len <= NUMBER_AT || p[KIND_AT - 1] != '#' ||
        (p[KIND_AT] != 'r' && p[KIND_AT] != 'i') || p[TAG_AT - 1] != '#' ||
        p[NUMBER_AT - 1] != '#' ||
        !get_hex(idem_bytes(p, IDEM__ITEM_ID_LEN), ret_id, IDEM_ID_LEN) ||
        !get_hex(idem_bytes(p + TAG_AT, 2 * IDEM__TAG_LEN), ret_tag,
                 IDEM__TAG_LEN)) {
        return false;
    }
    *ret_kind = p[KIND_AT];
    return true;
}

/* ---- Writing ---- */

/* True while an attempt is at work, a person must decide, or a failure must be found. */
static bool is_open(const struct idem_record *record)
{
    return record->status == IDEM_STATUS_IN_PROGRESS ||
           record->status == IDEM_STATUS_FAILED ||
           record->status == IDEM_STATUS_UNKNOWN || idem_outcome_failed(record);
}

int64_t idem__item_ttl_ms(const struct idem_record *record)
{
    return idem__time_add(record->expires_ms, IDEM__TTL_GUARD_MS);
}

static size_t body_size(const char *name, const struct idem__body *body)
{
    switch (body->place) {
    case IDEM__PLACE_INLINE:
        return strlen(name) + 2 * body->packed + body->stored.len;
    case IDEM__PLACE_APART:
        return strlen(name) + 3 + 2 * IDEM__TAG_LEN + 6;
    case IDEM__PLACE_NONE:
        break;
    }
    return 0;
}

/* DynamoDB counts a number as a byte for every two digits, and one or two more. A time in ms
 * has 13 digits. */
#define NUMBER_SIZE 9

size_t idem__item_size(const struct idem__item *item, size_t head_len)
{
    const struct idem_record *record = &item->record;

    return (sizeof("id") - 1 + IDEM__ITEM_ID_LEN) +
           (sizeof("rec") - 1 + head_len) +
           (sizeof("status") - 1 + strlen(idem_status_name(record->status))) +
           (sizeof("key") - 1 + record->key.len) +
           (record->scope.len > 0 ? sizeof("scope") - 1 + record->scope.len
                                  : 0) +
           (sizeof("open") - 1 + 1) + (sizeof("since") - 1 + NUMBER_SIZE) +
           (sizeof("ttl") - 1 + NUMBER_SIZE) +
           body_size("result", &item->result) +
           body_size("input", &item->input) +
           (item->input.place == IDEM__PLACE_APART
                ? sizeof("input_ttl") - 1 + NUMBER_SIZE
                : 0) +
           (item->has_writes ? sizeof("writes") - 1 + IDEM__TAG_LEN : 0);
}

static void add_name(struct idem__buffer *out, const char *name,
                     const char *suffix)
{
    idem__buffer_str(out, ",\"");
    idem__buffer_str(out, name);
    idem__buffer_str(out, suffix);
    idem__buffer_str(out, "\":");
}

static void add_clear(struct idem__buffer *out, const char *name,
                      struct idem_slice text)
{
    if (text.len == 0) {
        return;
    }
    add_name(out, name, "");
    if (idem__utf8_is(text)) {
        idem__buffer_str(out, "{\"S\":");
        idem__json_string(out, text);
        idem__buffer_str(out, "}");
    } else {
        idem__json_b(out, text);
    }
}

static void add_body(struct idem__buffer *out, const char *name,
                     const struct idem__body *body)
{
    char text[2 * IDEM__TAG_LEN + 16];

    switch (body->place) {
    case IDEM__PLACE_INLINE:
        add_name(out, name, body->packed ? "_z" : "");
        idem__json_b(out, body->stored);
        break;
    case IDEM__PLACE_APART:
        put_hex(body->tag, IDEM__TAG_LEN, text);
        (void)snprintf(text + 2 * IDEM__TAG_LEN,
                       sizeof(text) - 2 * IDEM__TAG_LEN, ":%u%s",
                       (unsigned)body->parts, body->packed ? ":z" : "");
        add_name(out, name, "_in");
        idem__json_s(out, text);
        break;
    case IDEM__PLACE_NONE:
        break;
    }
}

static void add_index(struct idem__buffer *out,
                      const struct idem_record *record)
{
    char shard[2] = {hex_digits[record->id[0] >> 4], '\0'};

    add_name(out, "open", "");
    idem__json_s(out, shard);
    add_name(out, "since", "");
    idem__json_n(out, (uint64_t)record->created_ms);
}

void idem__item_write(struct idem__buffer *out, const struct idem__item *item,
                      struct idem_slice head, bool index)
{
    const struct idem_record *record = &item->record;
    int64_t ttl_ms = idem__item_ttl_ms(record);
    char id[IDEM__ITEM_ID_LEN + 1];

    idem__item_id(record->id, id);
    idem__buffer_str(out, "{\"id\":");
    idem__json_s(out, id);
    add_name(out, "rec", "");
    idem__json_b(out, head);
    add_name(out, "status", "");
    idem__json_s(out, idem_status_name(record->status));
    add_clear(out, "key", record->key);
    add_clear(out, "scope", record->scope);
    add_body(out, "result", &item->result);
    add_body(out, "input", &item->input);
    if (item->input.place == IDEM__PLACE_APART &&
        item->input.ttl_ms != IDEM_NEVER) {
        add_name(out, "input_ttl", "");
        idem__json_n(out, (uint64_t)item->input.ttl_ms / 1000);
    }
    if (item->has_writes) {
        add_name(out, "writes", "");
        idem__json_b(out, idem_bytes(item->writes, IDEM__TAG_LEN));
    }
    if (index && is_open(record)) {
        add_index(out, record);
    }
    if (ttl_ms != IDEM_NEVER) {
        add_name(out, "ttl", "");
        idem__json_n(out, (uint64_t)(ttl_ms + 999) / 1000);
    }
    idem__buffer_str(out, "}");
}

/* ---- Reading ---- */

static int corrupt(struct idem_error *error, const char *what)
{
    return idem__error(error, IDEM_ECORRUPT, "the record cannot be trusted: %s",
                       what);
}

/* Reads scope or key: a string, or binary if they are not UTF-8. */
static int read_clear(json_object *object, const char *name,
                      struct idem__buffer *memory, struct idem_slice *ret)
{
    struct idem_slice text = {NULL, 0};
    int rc = idem__json_attribute(object, name, "S", &text);

    if (rc < 0) {
        rc = idem__json_attribute(object, name, "B", &text);
        return rc < 0 ? rc : idem__json_bytes(text, memory, ret);
    }
    *ret = idem_bytes(memory->base + memory->len, text.len);
    if (text.len > memory->cap - memory->len) {
        return IDEM_ECORRUPT;
    }
    if (text.len > 0) {
        memcpy(memory->base + memory->len, text.base, text.len);
        memory->len += text.len;
    }
    return 0;
}

static int read_id(json_object *object, const uint8_t *id,
                   struct idem_record *record)
{
    struct idem_slice text;

    if (idem__json_attribute(object, "id", "S", &text) != 1 ||
        !idem__item_id_read(text, record->id) ||
        (id != NULL && memcmp(id, record->id, IDEM_ID_LEN) != 0)) {
        return IDEM_ECORRUPT;
    }
    return 0;
}

/* The id is the hash of scope and key, so the names that people see must match it. */
static int read_names(json_object *object, const uint8_t *id,
                      struct idem__buffer *memory, struct idem_record *record)
{
    struct idem_slice scope = {NULL, 0};
    struct idem_slice key = {NULL, 0};
    uint8_t computed[IDEM_ID_LEN];
    int rc = read_id(object, id, record);

    rc = rc != 0 ? rc : read_clear(object, "scope", memory, &scope);
    rc = rc != 0 ? rc : read_clear(object, "key", memory, &key);
    rc = rc != 0 ? rc : idem_id(scope, key, computed);
    if (rc != 0 || memcmp(computed, record->id, IDEM_ID_LEN) != 0) {
        return rc == IDEM_ENOMEM ? rc : IDEM_ECORRUPT;
    }
    record->scope = scope;
    record->key = key;
    return 0;
}

/* Reads "TAG:N" or "TAG:N:z". */
static int read_apart(struct idem_slice text, struct idem__body *body)
{
    const char *p = text.base;
    size_t at = 2 * IDEM__TAG_LEN;
    size_t first;

    if (text.len < at + 2 || p[at] != ':' ||
        !get_hex(idem_bytes(p, at), body->tag, IDEM__TAG_LEN)) {
        return IDEM_ECORRUPT;
    }
    first = ++at;
    for (; at < text.len && p[at] >= '0' && p[at] <= '9' && at < first + 4;
         at++) {
        body->parts = body->parts * 10 + (uint32_t)(p[at] - '0');
    }
    body->packed = text.len == at + 2 && p[at] == ':' && p[at + 1] == 'z';
    if (body->parts < 1 || body->parts > IDEM__PARTS_MAX ||
        (at != text.len && !body->packed)) {
        return IDEM_ECORRUPT;
    }
    body->place = IDEM__PLACE_APART;
    return 0;
}

/* A body has exactly one of three forms; an empty one has none. */
static int read_body(json_object *object, const char *name, uint64_t len,
                     struct idem__buffer *memory, struct idem__body *body)
{
    static const struct {
        const char *suffix;
        const char *type;
        bool packed;
    } all[] = {{"_in", "S", false}, {"", "B", false}, {"_z", "B", true}};
    struct idem_slice text;
    char variant[16];
    int forms = 0;
    size_t i;

    memset(body, 0, sizeof(*body));
    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        int rc;

        (void)snprintf(variant, sizeof(variant), "%s%s", name, all[i].suffix);
        rc = idem__json_attribute(object, variant, all[i].type, &text);
        forms += rc == 1;
        if (rc == 1 && i == 0) {
            rc = read_apart(text, body);
        } else if (rc == 1) {
            body->place = IDEM__PLACE_INLINE;
            body->packed = all[i].packed;
            rc = idem__json_bytes(text, memory, &body->stored);
        }
        if (rc < 0) {
            return IDEM_ECORRUPT;
        }
    }
    return forms == (len > 0) ? 0 : IDEM_ECORRUPT;
}

/* Reads how long the parts of the input stay. A damaged attribute counts as a time that is
 * over: the next write then gives the parts a new one. */
static void read_input_ttl(json_object *object, struct idem__body *input)
{
    struct idem_slice text;
    uint64_t seconds = 0;
    int rc = idem__json_attribute(object, "input_ttl", "N", &text);

    if (rc == 1) {
        (void)idem__digits(text, 999999999999999, &seconds);
    }
    input->ttl_ms = rc == 0 ? IDEM_NEVER : (int64_t)seconds * 1000;
}

/* Reads the digest of the other writes in the transaction that completed the record. */
static int read_writes(json_object *object, struct idem__buffer *memory,
                       struct idem__item *item)
{
    struct idem_slice text;
    struct idem_slice bytes;
    int rc = idem__json_attribute(object, "writes", "B", &text);

    if (rc != 1) {
        return rc;
    }
    rc = idem__json_bytes(text, memory, &bytes);
    if (rc != 0 || bytes.len != IDEM__TAG_LEN) {
        return IDEM_ECORRUPT;
    }
    memcpy(item->writes, bytes.base, IDEM__TAG_LEN);
    item->has_writes = true;
    return 0;
}

/* The slices of an item need no more than all its strings together. */
static size_t memory_needed(json_object *object)
{
    size_t total = 0;

    json_object_object_foreach(object, name, value)
    {
        (void)name;
        if (!json_object_is_type(value, json_type_object)) {
            continue;
        }
        json_object_object_foreach(value, type, text)
        {
            (void)type;
            if (json_object_is_type(text, json_type_string)) {
                total += (size_t)json_object_get_string_len(text);
            }
        }
    }
    return total;
}

int idem__item_read(json_object *object, const uint8_t *id,
                    struct idem__buffer *memory, struct idem__item *ret_item,
                    struct idem_error *ret_error)
{
    struct idem_record record;
    struct idem_slice head;
    struct idem_slice text;
    int rc;

    memset(ret_item, 0, sizeof(*ret_item));
    memset(&record, 0, sizeof(record));
    if (!json_object_is_type(object, json_type_object)) {
        return corrupt(ret_error, "it is not an item");
    }
    memory->len = 0;
    if (idem__buffer_room(memory, memory_needed(object)) == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = read_names(object, id, memory, &record);
    ret_item->record = record;
    if (rc != 0) {
        return rc == IDEM_ENOMEM
                   ? idem__error_plain(ret_error, rc)
                   : corrupt(ret_error,
                             "its scope and key do not match its id");
    }
    if (idem__json_attribute(object, "rec", "B", &text) != 1 ||
        idem__json_bytes(text, memory, &head) != 0) {
        return corrupt(ret_error, "it has no head");
    }
    rc = idem__record_decode(record.id, head, &ret_item->record, ret_error);
    ret_item->record.scope = record.scope;
    ret_item->record.key = record.key;
    if (rc != 0) {
        return rc;
    }
    ret_item->head = head;
    if (read_body(object, "result", ret_item->record.result_len, memory,
                  &ret_item->result) != 0 ||
        read_body(object, "input", ret_item->record.input_len, memory,
                  &ret_item->input) != 0 ||
        read_writes(object, memory, ret_item) != 0) {
        return corrupt(ret_error, "its bodies do not match its head");
    }
    read_input_ttl(object, &ret_item->input);
    return 0;
}
