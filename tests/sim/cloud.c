/* Where the table of DynamoDB is. */
#include "cloud.h"

#include "../lib/table.h"
#include "base/base64.h"
#include "flight.h"
#include "history.h"
#include "table.h"

#include <assert.h>
#include <stdlib.h>

enum {
    DUE_MAX = 16 /* Items that are deleted in one go. */
};

const char cloud_table[] = "table";

static struct table cloud;
static char ids[KEYS_MAX][IDEM__ITEM_ID_LEN + 1];

void cloud_open(struct world *w)
{
    (void)w;
    table_init(&cloud, cloud_table);
}

void cloud_close(void)
{
    if (cloud.items != NULL) {
        table_finish(&cloud);
    }
}

static const char *id_of(const struct key *key)
{
    char *id = ids[key->no];

    if (id[0] == '\0') {
        idem__item_id(key->name->id, id);
    }
    return id;
}

/* ---- Deletions ---- */

static bool is_due(const struct world *w, json_object *item)
{
    struct idem_slice text;

    return idem__json_attribute(item, "ttl", "N", &text) == 1 &&
           strtoll(text.base, NULL, 10) < w->now / 1000;
}

/* A head that is gone from the table is gone for the judges. */
static void follow(struct world *w)
{
    unsigned i;

    for (i = 0; i < w->config.keys; i++) {
        struct key *key = &w->keys[i];

        if (stored(key)->rev != 0 && table_item(&cloud, id_of(key)) == NULL) {
            key->flipped = false;
            table_forget(w, key, w->now);
        }
    }
}

/* What is past its "ttl" may be deleted at once, or days later. */
static void delete_due(struct world *w)
{
    const char *due[DUE_MAX];
    unsigned n = 0;
    unsigned i;

    if (!rng_chance(&w->rng, w->config.ttl_permille)) {
        return;
    }
    json_object_object_foreach(cloud.items, id, item)
    {
        if (n < DUE_MAX && is_due(w, item)) {
            due[n++] = id;
        }
    }
    for (i = 0; i < n; i++) {
        w->stats->net[NET_TTL]++;
        json_object_object_del(cloud.items, due[i]);
    }
    if (n > 0) {
        history_deleted(w);
        follow(w);
    }
}

/* ---- Damage ---- */

/* The attribute that holds byte @key->flipped_at: the head, then the result. */
static json_object *damaged(struct key *key, size_t *ret_at)
{
    json_object *item = table_item(&cloud, id_of(key));
    bool head = key->flipped_at < stored(key)->head_len;
    json_object *attribute = NULL;

    *ret_at = key->flipped_at - (head ? 0 : stored(key)->head_len);
    (void)json_object_object_get_ex(item, head ? "rec" : "result", &attribute);
    return attribute;
}

static size_t bytes_of(json_object *attribute, uint8_t bytes[ROW_MAX])
{
    json_object *text = NULL;
    size_t len = 0;

    if (!json_object_object_get_ex(attribute, "B", &text) ||
        json_object_get_string_len(text) > ROW_MAX) {
        return 0;
    }
    (void)idem__base64_read(IDEM__BASE64,
                            idem_bytes(json_object_get_string(text),
                                       (size_t)json_object_get_string_len(
                                           text)),
                            bytes, &len);
    return len;
}

bool cloud_choose_flip(struct world *w, struct key *key)
{
    json_object *item = table_item(&cloud, id_of(key));
    json_object *attribute = NULL;
    uint8_t bytes[ROW_MAX];
    size_t head_len;
    size_t result_len = 0;

    if (item == NULL || !json_object_object_get_ex(item, "rec", &attribute)) {
        return false;
    }
    head_len = bytes_of(attribute, bytes);
    if (json_object_object_get_ex(item, "result", &attribute)) {
        result_len = bytes_of(attribute, bytes);
    }
    key->rows[key->at].head_len = head_len;
    key->flipped_at = rng_below(&w->rng, (unsigned)(head_len + result_len));
    return true;
}

void cloud_flip(struct key *key)
{
    struct idem__buffer out = {.len = 0};
    uint8_t bytes[ROW_MAX];
    size_t at;
    json_object *attribute = damaged(key, &at);
    size_t len = bytes_of(attribute, bytes);
    json_object *value;
    int rc;

    assert(at < len);
    bytes[at] ^= key->flipped_bits;
    idem__json_b(&out, idem_bytes(bytes, len));
    value = idem__json_parse(idem__buffer_slice(&out), &rc);
    idem__buffer_free(&out);
    (void)json_object_object_add(table_item(&cloud, id_of(key)),
                                 key->flipped_at < stored(key)->head_len
                                     ? "rec"
                                     : "result",
                                 value);
}

/* ---- Requests ---- */

static int apply(struct flight *p)
{
    return table_apply(&cloud, p->target, idem__buffer_slice(&p->body),
                       &p->answer);
}

static bool is(const struct flight *p, const char *operation)
{
    return strcmp(strchr(p->target, '.') + 1, operation) == 0;
}

/* What it was that was read, or stood in the way. */
static void look(struct flight *p)
{
    p->before = stored(p->key)->view;
    p->before.exists = stored(p->key)->rev != 0;
    flight_mark_flipped(p);
}

static void put(struct world *w, struct flight *p)
{
    look(p);
    p->status = apply(p);
    if (p->status == 200) {
        flight_commit(w, p);
        return;
    }
    note(w, EV_REFUSE, p->client, (int64_t)p->no, (int64_t)stored(p->key)->rev);
    w->stats->faults[FAULT_RACED]++;
    p->refused = true;
}

static void drop_old(struct flight *p)
{
    int rc;
    json_object *object = idem__json_parse(idem__buffer_slice(&p->answer), &rc);

    json_object_object_del(object, "Item");
    p->answer.len = 0;
    idem__buffer_str(&p->answer, json_object_to_json_string(object));
    (void)json_object_put(object);
}

static void answer(struct flight *p, int status, const char *type)
{
    p->status = status;
    p->answer.len = 0;
    idem__buffer_str(&p->answer,
                     "{\"__type\":\"com.amazonaws.dynamodb.v20120810#");
    idem__buffer_str(&p->answer, type);
    idem__buffer_str(&p->answer, "\",\"message\":\"simulated\"}");
}

static void arrive(struct world *w, struct flight *p)
{
    delete_due(w);
    cloud.spare = p->net == NET_LEFT_OVER ? 1 : 0;
    if (is(p, "PutItem")) {
        put(w, p);
    } else {
        if (is(p, "GetItem")) {
            look(p);
        }
        p->status = apply(p);
        follow(w);
    }
    if (p->net == NET_FAILED_AFTER) {
        answer(p, 500, "InternalServerError");
    } else if (p->net == NET_NO_OLD_ITEM && p->refused) {
        drop_old(p);
    }
}

void cloud_arrive(struct world *w, struct flight *p)
{
    switch (p->net) {
    case NET_FAILED_BEFORE:
        answer(p, 500, "InternalServerError");
        break;
    case NET_THROTTLED:
        answer(p, 400, "ProvisionedThroughputExceededException");
        break;
    case NET_CONFLICT:
        answer(p, 400, "TransactionConflictException");
        break;
    default:
        arrive(w, p);
        break;
    }
}
