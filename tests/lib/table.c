/* A table of DynamoDB in memory. */
#include "table.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    REFUSED = 400
};

void table_init(struct table *table, const char *name)
{
    memset(table, 0, sizeof(*table));
    assert(strlen(name) < sizeof(table->name));
    (void)strcpy(table->name, name);
    table->items = json_object_new_object();
}

void table_finish(struct table *table)
{
    (void)json_object_put(table->items);
    table->items = NULL;
}

size_t table_len(const struct table *table)
{
    return (size_t)json_object_object_length(table->items);
}

json_object *table_item(struct table *table, const char *id)
{
    json_object *item = NULL;

    (void)json_object_object_get_ex(table->items, id, &item);
    return item;
}

/* ---- Small things ---- */

static json_object *member(json_object *object, const char *name)
{
    json_object *value = NULL;

    (void)json_object_object_get_ex(object, name, &value);
    return value;
}

static const char *text_of(json_object *object, const char *name)
{
    json_object *value = member(object, name);

    return value == NULL ? "" : json_object_get_string(value);
}

/* The "S" of attribute @name. */
static const char *string_at(json_object *item, const char *name)
{
    return text_of(member(item, name), "S");
}

static int say(struct idem__buffer *answer, json_object *object, int status)
{
    idem__buffer_str(answer, json_object_to_json_string_ext(
                                 object, JSON_C_TO_STRING_PLAIN |
                                             JSON_C_TO_STRING_NOSLASHESCAPE));
    (void)json_object_put(object);
    return status;
}

static json_object *exception(const char *type, const char *message)
{
    json_object *object = json_object_new_object();
    char name[128];

    (void)snprintf(name, sizeof(name), "com.amazonaws.dynamodb.v20120810#%s",
                   type);
    (void)json_object_object_add(object, "__type",
                                 json_object_new_string(name));
    (void)json_object_object_add(object, "message",
                                 json_object_new_string(message));
    return object;
}

/* ---- Conditions ---- */

static bool holds(json_object *request, json_object *item)
{
    const char *condition = text_of(request, "ConditionExpression");
    json_object *values = member(request, "ExpressionAttributeValues");

    if (strcmp(condition, "attribute_not_exists(id)") == 0) {
        return item == NULL;
    }
    if (strcmp(condition, "rec = :r") == 0) {
        return item != NULL && json_object_equal(member(item, "rec"),
                                                 member(values, ":r")) != 0;
    }
    if (strcmp(condition, "made = :m") == 0) {
        return item != NULL && json_object_equal(member(item, "made"),
                                                 member(values, ":m")) != 0;
    }
    assert(condition[0] == '\0');
    return true;
}

static int refuse(struct idem__buffer *answer, json_object *request,
                  json_object *item)
{
    json_object *object = exception("ConditionalCheckFailedException",
                                    "The conditional request failed");

    if (item != NULL &&
        strcmp(text_of(request, "ReturnValuesOnConditionCheckFailure"),
               "ALL_OLD") == 0) {
        (void)json_object_object_add(object, "Item", json_object_get(item));
    }
    return say(answer, object, REFUSED);
}

/* ---- One item ---- */

static int put_item(struct table *table, json_object *request,
                    struct idem__buffer *answer)
{
    json_object *item = member(request, "Item");
    const char *id = string_at(item, "id");
    json_object *old = table_item(table, id);

    if (!holds(request, old)) {
        return refuse(answer, request, old);
    }
    (void)json_object_object_add(table->items, id, json_object_get(item));
    return say(answer, json_object_new_object(), 200);
}

static int get_item(struct table *table, json_object *request,
                    struct idem__buffer *answer)
{
    json_object *object = json_object_new_object();
    json_object *item =
        table_item(table, string_at(member(request, "Key"), "id"));

    assert(json_object_get_boolean(member(request, "ConsistentRead")));
    if (item != NULL) {
        (void)json_object_object_add(object, "Item", json_object_get(item));
    }
    return say(answer, object, 200);
}

static int delete_item(struct table *table, json_object *request,
                       struct idem__buffer *answer)
{
    const char *id = string_at(member(request, "Key"), "id");
    json_object *old = table_item(table, id);

    if (!holds(request, old)) {
        return refuse(answer, request, old);
    }
    json_object_object_del(table->items, id);
    return say(answer, json_object_new_object(), 200);
}

/* ---- Batches ---- */

static json_object *under_table(const struct table *table, json_object *list)
{
    json_object *object = json_object_new_object();

    (void)json_object_object_add(object, table->name, list);
    return object;
}

static int batch_write(struct table *table, json_object *request,
                       struct idem__buffer *answer)
{
    json_object *list = member(member(request, "RequestItems"), table->name);
    size_t n = json_object_array_length(list);
    json_object *answer_object = json_object_new_object();
    json_object *undone = json_object_new_array();
    size_t i;

    assert(n >= 1 && n <= 25);
    for (i = 0; i < n; i++) {
        json_object *one = json_object_array_get_idx(list, i);
        json_object *item = member(member(one, "PutRequest"), "Item");
        json_object *key = member(member(one, "DeleteRequest"), "Key");

        if (i >= n - (n > table->spare ? table->spare : 0)) {
            (void)json_object_array_add(undone, json_object_get(one));
        } else if (item != NULL) {
            (void)json_object_object_add(table->items, string_at(item, "id"),
                                         json_object_get(item));
        } else {
            json_object_object_del(table->items, string_at(key, "id"));
        }
    }
    if (json_object_array_length(undone) > 0) {
        undone = under_table(table, undone);
    } else {
        (void)json_object_put(undone);
        undone = json_object_new_object();
    }
    (void)json_object_object_add(answer_object, "UnprocessedItems", undone);
    return say(answer, answer_object, 200);
}

/* The units of a batch, as the service reports them: for each table. */
static void add_capacity(json_object *answer, double units)
{
    json_object *of_table = json_object_new_object();
    json_object *list = json_object_new_array();

    (void)json_object_object_add(of_table, "CapacityUnits",
                                 json_object_new_double(units));
    (void)json_object_array_add(list, of_table);
    (void)json_object_object_add(answer, "ConsumedCapacity", list);
}

static int batch_get(struct table *table, json_object *request,
                     struct idem__buffer *answer)
{
    json_object *asked = member(member(request, "RequestItems"), table->name);
    json_object *keys = member(asked, "Keys");
    size_t n = json_object_array_length(keys);
    json_object *found = json_object_new_array();
    json_object *object = json_object_new_object();
    json_object *undone;
    size_t done = n - (n > table->spare ? table->spare : 0);
    size_t i;

    assert(n >= 1 && n <= 100);
    assert(json_object_get_boolean(member(asked, "ConsistentRead")));
    for (i = 0; i < done; i++) {
        json_object *item =
            table_item(table,
                       string_at(json_object_array_get_idx(keys, i), "id"));

        if (item != NULL) {
            (void)json_object_array_add(found, json_object_get(item));
        }
    }
    (void)json_object_object_add(object, "Responses",
                                 under_table(table, found));
    undone = json_object_new_object();
    if (done < n) {
        json_object *left = json_object_new_array();

        for (i = done; i < n; i++) {
            (void)json_object_array_add(
                left, json_object_get(json_object_array_get_idx(keys, i)));
        }
        (void)json_object_object_add(undone, "Keys", left);
        undone = under_table(table, undone);
    }
    (void)json_object_object_add(object, "UnprocessedKeys", undone);
    if (member(request, "ReturnConsumedCapacity") != NULL) {
        add_capacity(object, (double)done);
    }
    return say(answer, object, 200);
}

/* ---- Transactions ---- */

/* One write of a transaction: its item, by its id, and the present one. */
struct change {
    json_object *verb;
    const char *id;
    json_object *old;
    json_object *next; /* NULL: the item is deleted. */
    bool checks_only;
};

static struct change change_of(struct table *table, json_object *write)
{
    struct change change = {.verb = member(write, "Put")};

    if (change.verb != NULL) {
        change.next = member(change.verb, "Item");
        change.id = string_at(change.next, "id");
    } else {
        change.verb = member(write, "Delete");
        if (change.verb == NULL) {
            change.verb = member(write, "ConditionCheck");
            change.checks_only = true;
        }
        assert(change.verb != NULL);
        change.id = string_at(member(change.verb, "Key"), "id");
    }
    change.old = table_item(table, change.id);
    return change;
}

static json_object *reason_for(const struct change *change, bool *ret_held)
{
    json_object *reason = json_object_new_object();

    if (holds(change->verb, change->old)) {
        (void)json_object_object_add(reason, "Code",
                                     json_object_new_string("None"));
        return reason;
    }
    *ret_held = false;
    (void)json_object_object_add(reason, "Code",
                                 json_object_new_string(
                                     "ConditionalCheckFailed"));
    (void)json_object_object_add(reason, "Message",
                                 json_object_new_string(
                                     "The conditional request failed"));
    if (change->old != NULL &&
        strcmp(text_of(change->verb, "ReturnValuesOnConditionCheckFailure"),
               "ALL_OLD") == 0) {
        (void)json_object_object_add(reason, "Item",
                                     json_object_get(change->old));
    }
    return reason;
}

static int transact(struct table *table, json_object *request,
                    struct idem__buffer *answer)
{
    json_object *list = member(request, "TransactItems");
    size_t n = json_object_array_length(list);
    json_object *reasons = json_object_new_array();
    json_object *object;
    bool held = true;
    size_t i;

    assert(n >= 1 && n <= 100);
    assert(strlen(text_of(request, "ClientRequestToken")) == 32);
    for (i = 0; i < n; i++) {
        struct change change =
            change_of(table, json_object_array_get_idx(list, i));

        (void)json_object_array_add(reasons, reason_for(&change, &held));
    }
    if (!held) {
        object = exception("TransactionCanceledException",
                           "Transaction cancelled, please refer cancellation "
                           "reasons for specific reasons");
        (void)json_object_object_add(object, "CancellationReasons", reasons);
        return say(answer, object, REFUSED);
    }
    (void)json_object_put(reasons);
    for (i = 0; i < n; i++) {
        struct change change =
            change_of(table, json_object_array_get_idx(list, i));

        if (change.next != NULL) {
            (void)json_object_object_add(table->items, change.id,
                                         json_object_get(change.next));
        } else if (!change.checks_only) {
            json_object_object_del(table->items, change.id);
        }
    }
    return say(answer, json_object_new_object(), 200);
}

/* ---- Pages ---- */

/* An item, and its place among the others: in the table by id, in the index by
 * since and then id. */
struct place {
    int64_t since;
    const char *id;
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;

    return x->since != y->since ? (x->since > y->since) - (x->since < y->since)
                                : strcmp(x->id, y->id);
}

static struct place place_of(json_object *item, bool of_index)
{
    struct place place = {0, string_at(item, "id")};

    if (of_index) {
        place.since = strtoll(text_of(member(item, "since"), "N"), NULL, 10);
    }
    return place;
}

/* All items in their order; the caller frees the list, which ends with id NULL. */
static struct place *sorted(const struct table *table, bool of_index)
{
    struct place *places = calloc(table_len(table) + 1, sizeof(*places));
    size_t n = 0;

    assert(places != NULL);
    json_object_object_foreach(table->items, id, item)
    {
        (void)id;
        places[n++] = place_of(item, of_index);
    }
    qsort(places, n, sizeof(*places), by_place);
    return places;
}

static json_object *last_key(json_object *item, bool of_index)
{
    static const char *const names[] = {"id", "open", "since"};
    json_object *key = json_object_new_object();
    size_t i;

    for (i = 0; i < (of_index ? 3 : 1); i++) {
        (void)json_object_object_add(key, names[i],
                                     json_object_get(member(item, names[i])));
    }
    return key;
}

static bool selected(json_object *request, json_object *item, bool of_index)
{
    json_object *shard =
        member(member(request, "ExpressionAttributeValues"), ":o");

    if (of_index) {
        return json_object_equal(member(item, "open"), shard) != 0;
    }
    if (strstr(text_of(request, "FilterExpression"),
               "attribute_not_exists(body)") != NULL) {
        return member(item, "body") == NULL;
    }
    return true;
}

/* Returns the part of @item that a scan shows: the attributes that it names, or all. */
static json_object *projected(json_object *request, json_object *item)
{
    const char *at = text_of(request, "ProjectionExpression");
    json_object *names = member(request, "ExpressionAttributeNames");
    json_object *shown;
    size_t len;

    if (at[0] == '\0') {
        return json_object_get(item);
    }
    shown = json_object_new_object();
    for (; *at != '\0'; at += len + (at[len] == ',')) {
        char name[64];
        const char *real = name;
        json_object *value;

        len = strcspn(at, ",");
        (void)snprintf(name, sizeof(name), "%.*s", (int)len, at);
        if (name[0] == '#') {
            real = text_of(names, name);
        }
        value = member(item, real);
        if (value != NULL) {
            (void)json_object_object_add(shown, real, json_object_get(value));
        }
    }
    return shown;
}

static int page(struct table *table, json_object *request, bool of_index,
                struct idem__buffer *answer)
{
    struct place after =
        place_of(member(request, "ExclusiveStartKey"), of_index);
    size_t limit = (size_t)json_object_get_int64(member(request, "Limit"));
    struct place *places = sorted(table, of_index);
    json_object *list = json_object_new_array();
    json_object *object = json_object_new_object();
    size_t looked = 0;
    size_t i;

    if (table->page_max != 0 && limit > table->page_max) {
        limit = table->page_max;
    }
    for (i = 0; places[i].id != NULL; i++) {
        json_object *item = table_item(table, places[i].id);
        bool counts = !of_index || selected(request, item, true);

        if ((after.id[0] != '\0' && by_place(&places[i], &after) <= 0) ||
            !counts) {
            continue;
        }
        if (selected(request, item, of_index)) {
            (void)json_object_array_add(list, of_index
                                                  ? last_key(item, true)
                                                  : projected(request, item));
        }
        if (++looked == limit) {
            (void)json_object_object_add(object, "LastEvaluatedKey",
                                         last_key(item, of_index));
            break;
        }
    }
    free(places);
    (void)json_object_object_add(object, "Count",
                                 json_object_new_int64(
                                     (int64_t)json_object_array_length(list)));
    (void)json_object_object_add(object, "ScannedCount",
                                 json_object_new_int64((int64_t)looked));
    (void)json_object_object_add(object, "Items", list);
    return say(answer, object, 200);
}

/* ---- Updates, in the words of rate limits ---- */

static json_object *attribute_of(json_object *request, json_object *item,
                                 const char *word, const char **ret_name)
{
    json_object *names = member(request, "ExpressionAttributeNames");

    *ret_name = word[0] == '#' ? text_of(names, word) : word;
    return item == NULL ? NULL : member(item, *ret_name);
}

static int64_t number_in(json_object *attribute)
{
    return strtoll(text_of(attribute, "N"), NULL, 10);
}

/* One of: attribute_not_exists(NAME), NAME = :v, NAME < :v, NAME <= :v, and two of
 * them as (... OR ...). */
static bool clause_holds(json_object *request, json_object *item,
                         const char *clause)
{
    json_object *attribute;
    char word[32];
    char operator[4];
    char value[8];
    const char *name;
    const char *other = strstr(clause, " OR ");
    int64_t wanted;

    if (clause[0] == '(') {
        assert(other != NULL);
        return clause_holds(request, item, clause + 1) ||
               clause_holds(request, item, other + 4);
    }
    if (sscanf(clause, "attribute_not_exists(%31[^)])", word) == 1) {
        return attribute_of(request, item, word, &name) == NULL;
    }
    if (sscanf(clause, "%31s %3s %7[:a-z]", word, operator, value) != 3) {
        assert(!"a condition of another form");
    }
    attribute = attribute_of(request, item, word, &name);
    wanted =
        number_in(member(member(request, "ExpressionAttributeValues"), value));
    return attribute != NULL &&
           ((strchr(operator, '=') != NULL && number_in(attribute) == wanted) ||
            (operator[0] == '<' && number_in(attribute) < wanted));
}

static bool update_holds(json_object *request, json_object *item)
{
    const char *clause = text_of(request, "ConditionExpression");
    bool all = true;

    for (; clause != NULL && all; clause = strstr(clause, " AND ")) {
        clause += strncmp(clause, " AND ", 5) == 0 ? 5 : 0;
        all = clause_holds(request, item, clause);
    }
    return all;
}

/* :v, or if_not_exists(NAME, :v). */
static int64_t operand_of(json_object *request, json_object *item,
                          const char *text)
{
    json_object *values = member(request, "ExpressionAttributeValues");
    json_object *attribute = NULL;
    char word[32];
    char value[8];
    const char *name;

    if (sscanf(text, "if_not_exists(%31[^,], %7[:a-z]", word, value) == 2) {
        attribute = attribute_of(request, item, word, &name);
    } else if (sscanf(text, "%7[:a-z]", value) != 1) {
        assert(!"an operand of another form");
    }
    return number_in(attribute != NULL ? attribute : member(values, value));
}

/* NAME = OPERAND, NAME = OPERAND + OPERAND, or with a minus. */
static void set_attribute(json_object *request, json_object *old,
                          json_object *item, const char *text)
{
    json_object *number = json_object_new_object();
    const char *sign;
    const char *next;
    const char *name;
    char word[32];
    char digits[32];
    int at = 0;
    int64_t n;

    (void)sscanf(text, "%31s = %n", word, &at);
    assert(at > 0);
    n = operand_of(request, old, text + at);
    next = strstr(text + at, " = ");
    sign = strpbrk(text + at, "+-");
    if (sign != NULL && (next == NULL || sign < next)) {
        n += (*sign == '-' ? -1 : 1) * operand_of(request, old, sign + 2);
    }
    (void)attribute_of(request, NULL, word, &name);
    (void)snprintf(digits, sizeof(digits), "%lld", (long long)n);
    (void)json_object_object_add(number, "N", json_object_new_string(digits));
    (void)json_object_object_add(item, name, number);
}

static int update_item(struct table *table, json_object *request,
                       struct idem__buffer *answer)
{
    const char *id = string_at(member(request, "Key"), "id");
    const char *text = text_of(request, "UpdateExpression");
    const char *removed = strstr(text, " REMOVE ");
    json_object *old = table_item(table, id);
    json_object *object = json_object_new_object();
    json_object *item = NULL;
    const char *name;
    char word[32];

    if (!update_holds(request, old)) {
        (void)json_object_put(object);
        return refuse(answer, request, old);
    }
    if (json_object_deep_copy(old != NULL ? old : member(request, "Key"), &item,
                              NULL) != 0) {
        assert(!"memory");
    }
    assert(strncmp(text, "SET ", 4) == 0);
    for (text += 4; text != NULL && (removed == NULL || text < removed);) {
        set_attribute(request, old, item, text);
        text = strstr(text, ", ");
        while (text != NULL && text[2] == ':') { /* Of if_not_exists(). */
            text = strstr(text + 2, ", ");
        }
        text = text == NULL ? NULL : text + 2;
    }
    for (text = removed == NULL ? NULL : removed + 8; text != NULL;
         text = strchr(text, ',')) {
        text += *text == ',';
        (void)sscanf(text, "%31[^,]", word);
        (void)attribute_of(request, NULL, word, &name);
        json_object_object_del(item, name);
    }
    (void)json_object_object_add(table->items, id, json_object_get(item));
    assert(strcmp(text_of(request, "ReturnValues"), "ALL_NEW") == 0);
    (void)json_object_object_add(object, "Attributes", item);
    return say(answer, object, 200);
}

/* ---- All of them ---- */

int table_apply(struct table *table, const char *target, struct idem_slice body,
                struct idem__buffer *answer)
{
    const char *dot = strchr(target, '.');
    const char *operation = dot == NULL ? target : dot + 1;
    json_object *request;
    int status = REFUSED;
    int rc;

    answer->len = 0;
    request = idem__json_parse(body, &rc);
    if (request == NULL) {
        return say(answer, exception("SerializationException", ""), REFUSED);
    }
    if (strcmp(operation, "PutItem") == 0) {
        status = put_item(table, request, answer);
    } else if (strcmp(operation, "GetItem") == 0) {
        status = get_item(table, request, answer);
    } else if (strcmp(operation, "DeleteItem") == 0) {
        status = delete_item(table, request, answer);
    } else if (strcmp(operation, "UpdateItem") == 0) {
        status = update_item(table, request, answer);
    } else if (strcmp(operation, "BatchWriteItem") == 0) {
        status = batch_write(table, request, answer);
    } else if (strcmp(operation, "BatchGetItem") == 0) {
        status = batch_get(table, request, answer);
    } else if (strcmp(operation, "TransactWriteItems") == 0) {
        status = transact(table, request, answer);
    } else if (strcmp(operation, "Scan") == 0) {
        status = page(table, request, false, answer);
    } else if (strcmp(operation, "Query") == 0) {
        status = page(table, request, true, answer);
    } else {
        status = say(answer, exception("UnknownOperationException", operation),
                     REFUSED);
    }
    (void)json_object_put(request);
    return status;
}
