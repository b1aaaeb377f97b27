/* Reads from an event what its rule names: keys, the parts that are compared, times. */
#include "aws/lambda/event_source.h"

#include "base/base64.h"
#include "core/error.h"
#include "key/canonical.h"

#include <idem/http.h>

#include <stdio.h>
#include <strings.h>

/* ---- Keys --------------------------------------------------------------- */

/* Returns the text at @at; of a list, its first text. With "#" or "{}" in @place, also
 * the text of a number or an object. */
static struct idem_slice value_of(const struct idem__tree *event, uint32_t at,
                                  const char *place)
{
    const struct idem__tree_node *node = idem__tree_at(event, at);

    if (at != 0 &&
        ((node->kind == IDEM__TREE_NUMBER && strchr(place, '#') != NULL) ||
         (node->kind == IDEM__TREE_OBJECT && strchr(place, '{') != NULL))) {
        return idem__tree_raw(event, node);
    }
    if (at != 0 && node->kind == IDEM__TREE_ARRAY && node->count > 0) {
        return idem__lambda_text_of(event, at + 1);
    }
    return idem__lambda_text_of(event, at);
}

int idem__lambda_join(const struct idem__tree *event, uint32_t unit,
                      const char *const *places, struct idem__buffer *to,
                      struct idem_error *ret_error)
{
    size_t i;

    for (i = 0; places[i] != NULL; i++) {
        struct idem_slice value =
            value_of(event, idem__lambda_find(event, unit, places[i]),
                     places[i]);

        if (value.len == 0 && strchr(places[i], '?') == NULL) {
            return idem__error(ret_error, IDEM_EINVALID, "%s has no %.*s",
                               unit == 0 ? "the event" : "a record",
                               (int)strcspn(places[i], "?#{"), places[i]);
        }
        idem__buffer_str(to, i == 0 ? "" : "/");
        idem__buffer_add(to, value.base, value.len);
    }
    return 0;
}

/* A search for a header, which may be there several times but must have one value. */
struct search {
    const char *name;
    struct idem_slice value;
    size_t found;
    bool is_odd; /* A value is not a text. */
    bool is_two; /* Two values differ. */
};

static void look_at(struct search *search, const struct idem__tree *event,
                    uint32_t at)
{
    struct idem_slice value = idem__lambda_text_of(event, at);

    if (idem__tree_at(event, at)->kind != IDEM__TREE_STRING) {
        search->is_odd = true;
        return;
    }
    if (search->found > 0 &&
        (value.len != search->value.len ||
         memcmp(value.base, search->value.base, value.len) != 0)) {
        search->is_two = true;
    }
    search->value = value;
    search->found++;
}

static void search_map(struct search *search, const struct idem__tree *event,
                       const char *place)
{
    uint32_t map = idem__lambda_find(event, 0, place);
    uint32_t at;
    uint32_t i;

    if (map == 0 || idem__tree_at(event, map)->kind != IDEM__TREE_OBJECT) {
        return;
    }
    for (at = map + 1; at < idem__tree_at(event, map)->end;
         at = idem__tree_at(event, at)->end) {
        const struct idem__tree_node *node = idem__tree_at(event, at);
        struct idem_slice name = idem__tree_name(event, node);

        if (name.len != strlen(search->name) ||
            strncasecmp(name.base, search->name, name.len) != 0) {
            continue;
        }
        if (node->kind != IDEM__TREE_ARRAY) {
            look_at(search, event, at);
            continue;
        }
        for (i = at + 1; i < node->end; i = idem__tree_at(event, i)->end) {
            look_at(search, event, i);
        }
    }
}

/* Searches both maps, because "headers" has only the last one of several values. */
static struct search search_header(const struct idem__tree *event,
                                   const char *name)
{
    struct search search = {.name = name};

    search_map(&search, event, "headers");
    search_map(&search, event, "multiValueHeaders");
    return search;
}

bool idem__lambda_has_key_header(const struct idem__tree *event)
{
    struct search search = search_header(event, "idempotency-key");

    search_map(&search, event, "request.headers"); /* AppSync's. */
    return search.found > 0 || search.is_odd;
}

/* Reads the key from its header, in either map and any case: a plain word, or a text in
 * quotes as in structured headers. */
static int read_header(const struct idem__tree *event, struct idem__buffer *key,
                       struct idem_error *error)
{
    struct search search = search_header(event, "idempotency-key");
    char text[IDEM_KEY_MAX];
    size_t len;

    if (search.is_odd || search.is_two) {
        return idem__error(error, IDEM_EINVALID,
                           search.is_odd ? "the Idempotency-Key is not a text"
                                         : "more than one Idempotency-Key");
    }
    if (search.found == 0) {
        return idem__error(error, IDEM_ENOTFOUND,
                           "the header Idempotency-Key is missing");
    }
    if (idem_http_key(search.value, text, &len, NULL) != 0) {
        return idem__error(
            error, IDEM_EINVALID,
            "the Idempotency-Key is not valid: expected 1 to 255 visible ASCII "
            "characters, best in quotes");
    }
    idem__buffer_add(key, text, len);
    return 0;
}

int idem__lambda_key(const struct idem__lambda_rule *rule,
                     const struct idem__tree *event, uint32_t unit,
                     const char *request_id, struct idem__buffer *key,
                     struct idem_error *ret_error)
{
    struct idem_slice text = idem_str(request_id);
    uint32_t at;

    if (rule->shape == IDEM__LAMBDA_HTTP) {
        return read_header(event, key, ret_error);
    }
    if (rule->key[0] != NULL) {
        return idem__lambda_join(event, unit, rule->key, key, ret_error);
    }
    at = idem__lambda_child(event, unit, idem_str("idempotencyKey"));
    if (at != 0) {
        text = idem__lambda_text_of(event, at);
    }
    idem__buffer_add(key, text.base, text.len);
    return text.len > 0
               ? 0
               : idem__error(ret_error, IDEM_EINVALID,
                             at == 0
                                 ? "the request has no id"
                                 : "idempotencyKey is not a text, or empty");
}

/* ---- The parts that are compared ---------------------------------------- */

/* Appends an array of the values at @places, each in an array of its own: [VALUE], or []
 * if there is none. */
static void add_places(const struct idem__tree *event, uint32_t unit,
                       const char *const *places, struct idem__buffer *to)
{
    size_t i;

    idem__buffer_str(to, "[");
    for (i = 0; places[i] != NULL; i++) {
        uint32_t at = idem__lambda_find(event, unit, places[i]);
        struct idem_slice raw =
            at == 0 ? idem_bytes(NULL, 0)
                    : idem__tree_raw(event, idem__tree_at(event, at));

        idem__buffer_str(to, i == 0 ? "[" : ",[");
        idem__buffer_add(to, raw.base, raw.len);
        idem__buffer_str(to, "]");
    }
    idem__buffer_str(to, "]");
}

/* Adds a part made of JSON: its canonical form or, if it has none, its bytes. */
static int add_json_part(const struct idem__tree *event, uint32_t unit,
                         const char *const *places,
                         struct idem__lambda_parts *parts)
{
    struct idem__tree tree = {.halves = false};
    struct idem__buffer raw = {.len = 0};
    int rc = IDEM_ENOMEM;

    add_places(event, unit, places, &raw);
    if (!raw.failed) {
        rc = idem__tree_read(&tree, idem__buffer_slice(&raw), NULL);
    }
    if (rc == 0) {
        rc = idem__canonical(&tree, 0, IDEM_FLAVOUR_NONE, &parts->json, NULL);
    }
    if (rc == IDEM_EINVALID) {
        parts->json.len = 0;
        idem__buffer_add(&parts->json, raw.base, raw.len);
        rc = 0;
    }
    parts->part[parts->len++] = idem__buffer_slice(&parts->json);
    idem__buffer_free(&raw);
    idem__tree_free(&tree);
    return rc == 0 && parts->json.failed ? IDEM_ENOMEM : rc;
}

/* Decodes the body. False: it is not base64, and stays as it is; or memory ran out. */
static bool decode(struct idem__lambda_parts *parts)
{
    uint8_t *room = idem__buffer_room(&parts->decoded,
                                      idem__base64_max(parts->body.len) + 1);
    size_t len;

    if (room == NULL ||
        idem__base64_read(IDEM__BASE64, parts->body, room, &len) != 0) {
        return false;
    }
    parts->body = idem_bytes(room, len);
    return true;
}

static bool is_encoded(const struct idem__tree *event)
{
    uint32_t at =
        idem__lambda_find(event, 0, "isBase64Encoded|is_base64_encoded");

    return at != 0 && idem__tree_at(event, at)->kind == IDEM__TREE_TRUE;
}

/* Reads the content type and the body of a request. Two different content types count as
 * none. */
static int read_request(const struct idem__tree *event,
                        struct idem__lambda_parts *parts,
                        struct idem_error *error)
{
    struct search type = search_header(event, "content-type");

    if (!type.is_odd && !type.is_two) {
        parts->type = type.value;
    }
    if (is_encoded(event) && !decode(parts) && !parts->decoded.failed) {
        return idem__error(error, IDEM_EINVALID, "the body is not base64");
    }
    return 0;
}

int idem__lambda_read_parts(const struct idem__lambda_rule *rule,
                            const struct idem__tree *event, uint32_t unit,
                            struct idem__lambda_parts *parts,
                            struct idem_error *ret_error)
{
    size_t i;
    int rc = 0;

    for (i = 0; rule->parts[i] != NULL; i++) {
        parts->part[parts->len++] =
            idem__lambda_text_of(event, idem__lambda_find(event, unit,
                                                          rule->parts[i]));
    }
    if (rule->json[0] != NULL) {
        rc = add_json_part(event, unit, rule->json, parts);
    }
    if (rule->body != NULL) {
        parts->body =
            idem__lambda_text_of(event,
                                 idem__lambda_find(event, unit, rule->body));
        if (rule->is_base64) {
            (void)decode(parts);
        }
    } else if (rule->body_json[0] != NULL) {
        parts->type = idem_str("application/json");
        add_places(event, unit, rule->body_json, &parts->decoded);
        parts->body = idem__buffer_slice(&parts->decoded);
    } else {
        parts->type = idem_str("application/json");
        parts->body = idem__tree_raw(event, idem__tree_at(event, unit));
    }
    if (rc == 0 && rule->shape == IDEM__LAMBDA_HTTP) {
        rc = read_request(event, parts, ret_error);
    }
    if (rc == IDEM_ENOMEM || parts->decoded.failed) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    return rc;
}

/* ---- When it happened --------------------------------------------------- */

int64_t idem__lambda_time(const struct idem__lambda_rule *rule,
                          const struct idem__tree *event, uint32_t unit)
{
    uint32_t at =
        rule->time == NULL ? 0 : idem__lambda_find(event, unit, rule->time);

    if (at != 0 && !rule->is_time_ms &&
        idem__tree_at(event, at)->kind == IDEM__TREE_NUMBER) {
        return idem__lambda_time_seconds(
            idem__tree_raw(event, idem__tree_at(event, at)));
    }
    return idem__lambda_time_of(value_of(event, at, "#"));
}
