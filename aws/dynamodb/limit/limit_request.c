/* Requests about rate limits as JSON. */
#include "aws/dynamodb/limit/limit_request.h"

#include "base/base64.h"
#include "core/slice.h"

#include <stdio.h>

enum {
    NAME_BYTES =
        16,        /* Bytes of a request's identity in the name of its entry. */
    NAME_LEN = 23, /* 'r' and these in base64. */
};

/* ---- Writing ---- */

static void window_id(const struct idem_op *op, char ret_id[IDEM__LIMIT_ID_MAX])
{
    char text[IDEM__ITEM_ID_LEN + 1];

    idem__item_id(op->u.limit.window, text);
    (void)snprintf(ret_id, IDEM__LIMIT_ID_MAX, "limit#%s", text);
}

/* The name of the request's entry in the item of its window. */
static void entry_name(const struct idem_op *op, char ret_name[NAME_LEN + 1])
{
    ret_name[0] = 'r';
    idem__base64_write(IDEM__BASE64_URL,
                       idem_bytes(op->u.limit.request, NAME_BYTES),
                       ret_name + 1);
    ret_name[NAME_LEN] = '\0';
}

static void entry_id(const char *name, char ret_id[IDEM__LIMIT_ID_MAX])
{
    (void)snprintf(ret_id, IDEM__LIMIT_ID_MAX, "limit#%.*s", NAME_LEN, name);
}

static void add_entry(struct idem__buffer *out, int64_t entry)
{
    idem__buffer_str(out, entry < 0 ? "{\"N\":\"-" : "{\"N\":\"");
    idem__buffer_u64(out, (uint64_t)(entry < 0 ? -entry : entry));
    idem__buffer_str(out, "\"}");
}

static void begin_item(struct idem__buffer *out,
                       const struct idem__table_conf *table, const char *id)
{
    idem__buffer_str(out, "{\"TableName\":");
    idem__json_string(out, idem_str(table->name));
    idem__buffer_str(out, ",\"Key\":{\"id\":");
    idem__json_s(out, id);
    idem__buffer_str(out, "}");
}

static void begin_update(struct idem__buffer *out,
                         const struct idem__table_conf *table,
                         const struct idem_op *op)
{
    char id[IDEM__LIMIT_ID_MAX];

    window_id(op, id);
    begin_item(out, table, id);
}

static void add_ttl(struct idem__buffer *out, const struct idem_op *op,
                    const char *name)
{
    int64_t ms = idem__limit_expires(&op->u.limit.limit);

    idem__buffer_str(out, name);
    idem__json_n(out, (uint64_t)(ms + 999) / 1000);
}

/* Ends a condition: no entries were moved since gen was read. add_moves() has its value. */
static void add_moves_condition(struct idem__buffer *out, uint64_t moves)
{
    idem__buffer_str(out,
                     moves == 0 ? "attribute_not_exists(gen)\"" : "gen = :g\"");
}

static void add_moves(struct idem__buffer *out, const char *name,
                      uint64_t moves)
{
    if (moves > 0) {
        idem__buffer_str(out, name);
        idem__json_n(out, moves);
    }
}

/* Appends the names of an update, and the first of its values. */
static void add_entry_names(struct idem__buffer *out, const struct idem_op *op)
{
    char name[NAME_LEN + 1];

    entry_name(op, name);
    idem__buffer_str(out, ",\"ExpressionAttributeNames\":{\"#t\":\"ttl\","
                          "\"#r\":");
    idem__json_string(out, idem_str(name));
    add_ttl(out, op, "},\"ExpressionAttributeValues\":{\":t\":");
}

static void end_update(struct idem__buffer *out, uint64_t moves)
{
    add_moves(out, ",\":g\":", moves);
    idem__buffer_str(out,
                     "},\"ReturnValues\":\"ALL_NEW\","
                     "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}");
}

void idem__limit_request_admit(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               const struct idem_op *op, uint64_t moves)
{
    const struct idem_limit_request *limit = &op->u.limit.limit;

    begin_update(out, table, op);
    idem__buffer_str(
        out, ",\"UpdateExpression\":\"SET #r = :m - if_not_exists(lim, :z), "
             "lim = if_not_exists(lim, :z) + :c, #t = :t\","
             "\"ConditionExpression\":\"attribute_not_exists(#r) AND "
             "(attribute_not_exists(lim) OR lim <= :m) AND ");
    add_moves_condition(out, moves);
    add_entry_names(out, op);
    idem__buffer_str(out, ",\":z\":{\"N\":\"0\"},\":m\":");
    idem__json_n(out, limit->max - limit->cost);
    idem__buffer_str(out, ",\":c\":");
    idem__json_n(out, limit->cost);
    end_update(out, moves);
}

void idem__limit_request_refuse(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_op *op, uint64_t moves,
                                const struct idem_limit_decision *decision)
{
    begin_update(out, table, op);
    idem__buffer_str(
        out, ",\"UpdateExpression\":\"SET #r = :e, refs = :n, #t = :t\","
             "\"ConditionExpression\":\"attribute_not_exists(#r) AND "
             "lim = :l AND (attribute_not_exists(refs) OR refs < :n) AND ");
    add_moves_condition(out, moves);
    add_entry_names(out, op);
    idem__buffer_str(out, ",\":e\":");
    add_entry(out, decision->entry);
    idem__buffer_str(out, ",\":n\":");
    idem__json_n(out, decision->refusals);
    idem__buffer_str(out, ",\":l\":");
    idem__json_n(out, decision->used);
    end_update(out, moves);
}

void idem__limit_request_window(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_op *op)
{
    begin_update(out, table, op);
    idem__buffer_str(out, ",\"ConsistentRead\":true}");
}

void idem__limit_request_entry(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               const struct idem_op *op)
{
    char name[NAME_LEN + 1];
    char id[IDEM__LIMIT_ID_MAX];

    entry_name(op, name);
    entry_id(name, id);
    begin_item(out, table, id);
    idem__buffer_str(out, ",\"ConsistentRead\":true}");
}

/* ---- Reading ---- */

/* Reads a number of at most 18 digits. Returns 1, 0 if it is missing, or IDEM_ECORRUPT. */
static int read_number(json_object *item, const char *name, int64_t *ret)
{
    struct idem_slice text;
    uint64_t n;
    bool negative;
    int rc = idem__json_attribute(item, name, "N", &text);

    if (rc != 1) {
        return rc;
    }
    negative = text.len > 0 && *(const char *)text.base == '-';
    text.base = (const char *)text.base + negative;
    text.len -= negative;
    if (!idem__digits(text, 999999999999999999, &n)) {
        return IDEM_ECORRUPT;
    }
    *ret = negative ? -(int64_t)n : (int64_t)n;
    return 1;
}

/* True if the attribute @name is an entry. */
static bool is_entry(json_object *window, const char *name, int64_t *ret_entry)
{
    return name[0] == 'r' && strlen(name) == NAME_LEN &&
           read_number(window, name, ret_entry) == 1;
}

/* Reads a number that is not negative; a missing one is 0. Returns 0 or IDEM_ECORRUPT. */
static int read_count(json_object *item, const char *name, uint64_t *ret)
{
    int64_t n = 0;

    if (read_number(item, name, &n) < 0 || n < 0) {
        return IDEM_ECORRUPT;
    }
    *ret = (uint64_t)n;
    return 0;
}

static unsigned count_entries(json_object *window)
{
    int64_t entry;
    unsigned n = 0;

    json_object_object_foreach(window, name, value)
    {
        (void)value;
        n += is_entry(window, name, &entry);
    }
    return n;
}

int idem__limit_read_window(json_object *item, const struct idem_op *op,
                            struct idem__limit_window *ret_window)
{
    struct idem_limit_state *state = &ret_window->state;
    char name[NAME_LEN + 1];
    int64_t used = 0;
    int rc;

    memset(ret_window, 0, sizeof(*ret_window));
    if (item == NULL) {
        return 0;
    }
    entry_name(op, name);
    rc = read_number(item, name, &state->entry);
    if (rc < 0 || read_number(item, "lim", &used) != 1 || used < 0 ||
        read_count(item, "refs", &state->refusals) != 0 ||
        read_count(item, "gen", &ret_window->moves) != 0) {
        return IDEM_ECORRUPT;
    }
    state->has_window = true;
    state->used = (uint64_t)used;
    state->has_entry = rc == 1;
    ret_window->entries = count_entries(item);
    return 0;
}

int idem__limit_read_entry(json_object *item,
                           struct idem_limit_state *ret_state)
{
    memset(ret_state, 0, sizeof(*ret_state));
    if (item == NULL) {
        return 0;
    }
    ret_state->has_entry = true;
    return read_number(item, "lim", &ret_state->entry) == 1 ? 0 : IDEM_ECORRUPT;
}

/* ---- Moving ---- */

struct moved {
    const char *name;
    int64_t entry;
};

/* Lists the entries to move, as many as one batch takes. Both requests must name the same
 * ones, so they come in the order of @window. */
static size_t read_moved(json_object *window,
                         struct moved ret_moved[IDEM__LIMIT_MOVED])
{
    struct json_object_iterator at = json_object_iter_begin(window);
    struct json_object_iterator end = json_object_iter_end(window);
    size_t n = 0;

    for (; n < IDEM__LIMIT_MOVED && !json_object_iter_equal(&at, &end);
         json_object_iter_next(&at)) {
        struct moved *moved = &ret_moved[n];

        moved->name = json_object_iter_peek_name(&at);
        n += is_entry(window, moved->name, &moved->entry);
    }
    return n;
}

void idem__limit_request_move(struct idem__buffer *out,
                              const struct idem__table_conf *table,
                              const struct idem_op *op, json_object *window)
{
    struct moved moved[IDEM__LIMIT_MOVED];
    size_t n = read_moved(window, moved);
    char id[IDEM__LIMIT_ID_MAX];
    size_t i;

    idem__buffer_str(out, "{\"RequestItems\":{");
    idem__json_string(out, idem_str(table->name));
    idem__buffer_str(out, ":[");
    for (i = 0; i < n; i++) {
        entry_id(moved[i].name, id);
        idem__buffer_str(out, i == 0 ? "" : ",");
        idem__buffer_str(out, "{\"PutRequest\":{\"Item\":{\"id\":");
        idem__json_s(out, id);
        idem__buffer_str(out, ",\"lim\":");
        add_entry(out, moved[i].entry);
        add_ttl(out, op, ",\"ttl\":");
        idem__buffer_str(out, "}}}");
    }
    idem__buffer_str(out, "]}}");
}

void idem__limit_request_trim(struct idem__buffer *out,
                              const struct idem__table_conf *table,
                              const struct idem_op *op, json_object *window,
                              uint64_t moves)
{
    struct moved moved[IDEM__LIMIT_MOVED];
    size_t n = read_moved(window, moved);
    size_t i;

    begin_update(out, table, op);
    idem__buffer_str(out, ",\"UpdateExpression\":\"SET gen = :h REMOVE ");
    for (i = 0; i < n; i++) {
        idem__buffer_str(out, i == 0 ? "#" : ",#");
        idem__buffer_u64(out, i);
    }
    idem__buffer_str(out, "\",\"ConditionExpression\":\"");
    add_moves_condition(out, moves);
    idem__buffer_str(out, ",\"ExpressionAttributeNames\":{");
    for (i = 0; i < n; i++) {
        idem__buffer_str(out, i == 0 ? "\"#" : ",\"#");
        idem__buffer_u64(out, i);
        idem__buffer_str(out, "\":");
        idem__json_string(out, idem_str(moved[i].name));
    }
    idem__buffer_str(out, "},\"ExpressionAttributeValues\":{\":h\":");
    idem__json_n(out, moves + 1);
    end_update(out, moves);
}
