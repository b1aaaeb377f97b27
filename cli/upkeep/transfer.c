/* Records as lines of JSON, and back. */
#include "upkeep/transfer.h"

#include "base/base64.h"
#include "contract/kind.h"
#include "process/host.h"
#include "record/record.h"
#include "text/json.h"
#include "text/text.h"

#include <stdarg.h>
#include <stdlib.h>

/* ---- Writing ---- */

static void add_head(struct cli_json *json, const struct idem_record *record)
{
    uint8_t head[IDEM_HEAD_MAX];
    size_t len;

    if (idem__record_encode(record, head, sizeof(head), &len) != 0) {
        json->text.failed = true;
        return;
    }
    cli_json_base64(json, "head", idem_bytes(head, len));
}

int cli_transfer_write(FILE *f, const struct idem_record *record)
{
    struct cli_json json;

    cli_json_init(&json);
    cli_json_stored(&json, record); /* Readable without decoding. */
    add_head(&json, record);
    if (record->result.bytes.len > 0) {
        cli_json_base64(&json, "result", record->result.bytes);
    }
    if (record->input.len > 0) {
        cli_json_base64(&json, "input", record->input);
    }
    return cli_json_end(&json, f);
}

int cli_transfer_end(FILE *f, uint64_t count, const struct idem_move *move)
{
    struct cli_json json;

    cli_json_init(&json);
    cli_json_count(&json, "idem_export_end", count);
    cli_json_count(&json, "fence_floor", move->fence_floor);
    cli_json_ms(&json, "store_ms", move->store_ms);
    return cli_json_end(&json, f);
}

int cli_transfer_header(FILE *f, const char *store_url,
                        const struct idem_move *move)
{
    struct cli_json json;
    char shown[IDEM_STORE_URL_MAX + 1];

    cli_json_init(&json);
    cli_json_count(&json, "idem_export", CLI_TRANSFER_VERSION);
    cli_json_ms(&json, "exported_ms", cli_now_ms());
    cli_json_bytes(&json, "store",
                   idem_str(idem_url_hide(store_url, shown, sizeof(shown))));
    if (move != NULL) {
        cli_json_hex(&json, "move", idem_bytes(move->id, sizeof(move->id)));
    }
    return cli_json_end(&json, f);
}

/* ---- Reading ---- */

static enum cli_transfer_kind bad(struct cli_transfer *t, const char *format,
                                  ...) __attribute__((format(printf, 2, 3)));

static enum cli_transfer_kind bad(struct cli_transfer *t, const char *format,
                                  ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(t->why, sizeof(t->why), format, args);
    va_end(args);
    return CLI_TRANSFER_BAD;
}

/* Parses a line that is one object and nothing else. NULL: @t says why. */
static struct json_object *parse(struct idem_slice line, struct cli_transfer *t)
{
    struct json_tokener *tokener;
    struct json_object *object;
    enum json_tokener_error error;

    /* json-c would take a NUL for the end, and ignore the rest of the line. */
    if (line.len > 0 && memchr(line.base, '\0', line.len) != NULL) {
        (void)bad(t, "not JSON: it contains a NUL byte");
        return NULL;
    }
    tokener = json_tokener_new();
    if (tokener == NULL) {
        (void)bad(t, "out of memory");
        return NULL;
    }
    json_tokener_set_flags(tokener,
                           JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    object = json_tokener_parse_ex(tokener, line.base, (int)line.len);
    error = json_tokener_get_error(tokener);
    json_tokener_free(tokener);
    if (error == json_tokener_continue) {
        (void)bad(t, "it is cut short");
    } else if (error != json_tokener_success) {
        (void)bad(t, "not JSON: %s", json_tokener_error_desc(error));
    } else if (!json_object_is_type(object, json_type_object)) {
        (void)bad(t, "not a JSON object");
    } else {
        return object;
    }
    (void)json_object_put(object);
    return NULL;
}

/* The text of the member @name; its base is NULL if it has none. */
static struct idem_slice text_of(struct json_object *object, const char *name)
{
    struct json_object *member;

    if (!json_object_object_get_ex(object, name, &member) ||
        !json_object_is_type(member, json_type_string)) {
        return idem_bytes(NULL, 0);
    }
    return idem_bytes(json_object_get_string(member),
                      (size_t)json_object_get_string_len(member));
}

/* The bytes of NAME, or of NAME_hex where they are not valid text. */
static bool read_name(struct json_object *object, const char *name, char *buf,
                      size_t max, struct idem_slice *ret_bytes)
{
    struct idem_slice text = text_of(object, name);
    char name_hex[16];
    size_t len;

    if (text.base != NULL && text.len <= max) {
        memcpy(buf, text.base, text.len);
        *ret_bytes = idem_bytes(buf, text.len);
        return true;
    }
    (void)snprintf(name_hex, sizeof(name_hex), "%s_hex", name);
    text = text_of(object, name_hex);
    if (text.base == NULL || !cli_unhex(text, (uint8_t *)buf, max, &len)) {
        return false;
    }
    *ret_bytes = idem_bytes(buf, len);
    return true;
}

static enum cli_transfer_kind read_head(struct json_object *object,
                                        struct cli_transfer *t)
{
    struct idem_slice text = text_of(object, "head");
    struct idem_record *record = &t->record;
    struct idem_error error = {0};
    struct idem_slice scope;
    struct idem_slice key;
    uint8_t id[IDEM_ID_LEN];
    size_t len;

    if (!read_name(object, "scope", t->scope, sizeof(t->scope), &scope) ||
        !read_name(object, "key", t->key, sizeof(t->key), &key) ||
        idem_id(scope, key, id) != 0) {
        return bad(t, "it has no scope and key");
    }
    if (text.base == NULL || idem__base64_max(text.len) > sizeof(t->head) ||
        idem__base64_read(IDEM__BASE64, text, t->head, &len) != 0) {
        return bad(t, "it has no head in base64");
    }
    if (idem__record_decode(id, idem_bytes(t->head, len), record, &error) !=
        0) {
        return bad(t, "%s", error.text);
    }
    memcpy(record->id, id, sizeof(id));
    record->scope = scope;
    record->key = key;
    return CLI_TRANSFER_RECORD;
}

/* The bytes of result or input, which @len and @digest of the head vouch for. */
static enum cli_transfer_kind read_body(struct json_object *object,
                                        const char *name, uint64_t len,
                                        const uint8_t digest[16],
                                        struct cli_transfer *t, uint8_t **to,
                                        struct idem_slice *ret_bytes)
{
    struct idem_slice text = text_of(object, name);
    size_t got = 0;

    *to = malloc(idem__base64_max(text.len) + 1);
    if (*to == NULL) {
        return CLI_TRANSFER_NOMEM;
    }
    if (idem__base64_read(IDEM__BASE64, text, *to, &got) != 0) {
        return bad(t, "its %s is not in base64", name);
    }
    *ret_bytes = idem_bytes(*to, got);
    if (idem__record_check_body(*ret_bytes, len, digest) != 0) {
        return bad(t, "its %s is not the one that was recorded", name);
    }
    return CLI_TRANSFER_RECORD;
}

/* A person who changes "status" in a line must learn that this has no effect. */
static enum cli_transfer_kind compare(struct json_object *object,
                                      struct cli_transfer *t)
{
    enum cli_transfer_kind kind = CLI_TRANSFER_RECORD;
    struct json_object_iterator at;
    struct json_object_iterator end;
    struct json_object *stored;
    struct cli_json json;

    cli_json_init(&json);
    cli_json_stored(&json, &t->record);
    stored = cli_json_parse(&json);
    cli_json_finish(&json);
    if (stored == NULL) {
        return CLI_TRANSFER_NOMEM;
    }

    at = json_object_iter_begin(stored);
    end = json_object_iter_end(stored);
    for (; !json_object_iter_equal(&at, &end) && kind == CLI_TRANSFER_RECORD;
         json_object_iter_next(&at)) {
        const char *name = json_object_iter_peek_name(&at);
        struct json_object *told;

        if (json_object_object_get_ex(object, name, &told) &&
            !json_object_equal(json_object_iter_peek_value(&at), told)) {
            kind = bad(t, "its \"%s\" does not match its head", name);
        }
    }

    (void)json_object_put(stored);
    return kind;
}

static enum cli_transfer_kind read_record(struct json_object *object,
                                          struct cli_transfer *t)
{
    struct idem_record *record = &t->record;
    enum cli_transfer_kind kind = read_head(object, t);

    if (kind == CLI_TRANSFER_RECORD) {
        kind = read_body(object, "result", record->result_len,
                         record->result_digest, t, &t->result,
                         &record->result.bytes);
    }
    if (kind == CLI_TRANSFER_RECORD) {
        kind = read_body(object, "input", record->input_len,
                         record->input_digest, t, &t->input, &record->input);
    }
    return kind == CLI_TRANSFER_RECORD ? compare(object, t) : kind;
}

static enum cli_transfer_kind read_header(struct json_object *object,
                                          struct cli_transfer *t)
{
    struct json_object *version;
    struct idem_slice id = text_of(object, "move");
    size_t len;

    (void)json_object_object_get_ex(object, "idem_export", &version);
    t->version = json_object_get_int64(version);
    t->move = (struct idem_move){0};
    t->moves = json_object_object_get_ex(object, "move", NULL);
    if (t->moves && (!cli_unhex(id, t->move.id, sizeof(t->move.id), &len) ||
                     len != sizeof(t->move.id))) {
        return bad(t, "its \"move\" is not the id of one");
    }
    return CLI_TRANSFER_HEADER;
}

static bool read_count(struct json_object *object, const char *name,
                       uint64_t *ret_count)
{
    struct json_object *member;

    if (!json_object_object_get_ex(object, name, &member) ||
        !json_object_is_type(member, json_type_int) ||
        json_object_get_int64(member) < 0) {
        return false;
    }
    *ret_count = json_object_get_uint64(member);
    return true;
}

static enum cli_transfer_kind read_end(struct json_object *object,
                                       struct cli_transfer *t)
{
    uint64_t store_ms;

    if (!read_count(object, "idem_export_end", &t->count) ||
        !read_count(object, "fence_floor", &t->move.fence_floor) ||
        !read_count(object, "store_ms", &store_ms) || store_ms > INT64_MAX) {
        return bad(t, "it is not the last line of an export");
    }
    t->move.store_ms = (int64_t)store_ms;
    return CLI_TRANSFER_END;
}

enum cli_transfer_kind cli_transfer_read(struct idem_slice line,
                                         struct cli_transfer *transfer)
{
    struct json_object *object = parse(line, transfer);
    enum cli_transfer_kind kind;

    transfer->result = NULL;
    transfer->input = NULL;
    if (object == NULL) {
        return CLI_TRANSFER_BAD;
    }
    if (json_object_object_get_ex(object, "idem_export", NULL)) {
        kind = read_header(object, transfer);
    } else if (json_object_object_get_ex(object, "idem_export_end", NULL)) {
        kind = read_end(object, transfer);
    } else {
        kind = read_record(object, transfer);
    }
    (void)json_object_put(object);
    return kind;
}

void cli_transfer_finish(struct cli_transfer *transfer)
{
    free(transfer->result);
    free(transfer->input);
    transfer->result = NULL;
    transfer->input = NULL;
}
