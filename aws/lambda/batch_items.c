/* Reads the records of a batch, and reports those that failed. */
#include "aws/lambda/batch.h"

#include "base/heap.h"
#include "core/slice.h"

#include <stdlib.h>

const char idem__batch_no_memory[] = "out of memory";

void idem__batch_log(const struct batch *b, const struct item *item,
                     const char *level, const char *what)
{
    struct idem__lambda_field fields[] = {
        {"key", idem__buffer_slice(&item->unit.key), 0},
        {"item", idem__buffer_slice(&item->name), 0},
        {NULL, {NULL, 0}, 0},
    };

    if (fields[1].text.base == NULL) {
        fields[1].name = NULL;
    }
    if (fields[0].text.base == NULL) {
        fields[0] = fields[1];
        fields[1].name = NULL;
    }
    idem__lambda_log(b->lambda->now, level, fields, "%s", what);
}

/* ---- Reading them ------------------------------------------------------- */

/* Reads a record. Returns NULL, or why the whole event cannot be handled. */
static const char *read_item(struct batch *b, struct item *item, uint32_t at,
                             struct idem_slice list)
{
    const struct idem__tree *event = &b->lambda->tree;
    struct idem_error error = {0};
    int rc;

    if (idem__tree_at(event, at)->kind != IDEM__TREE_OBJECT) {
        return "a record is not an object";
    }
    item->unit.rule = b->rule;
    item->unit.at = at;
    item->unit.list = list;
    if (b->rule->shape != IDEM__LAMBDA_RECORDS &&
        idem__lambda_join(event, at, b->rule->item, &item->name, NULL) != 0) {
        return "a record has no id to report it by";
    }
    if (idem__lambda_join(event, at, b->rule->group, &item->group, NULL) != 0) {
        item->group.len = 0;
    }
    rc = idem__lambda_unit_init(b->lambda, &item->unit, &error);
    if (rc != 0) {
        idem__batch_log(b, item, "ERROR", error.text);
        item->state = rc == IDEM_EINVALID ? ITEM_INVALID : ITEM_FAILED;
    } else if (item->name.failed || item->group.failed ||
               idem_id(idem__buffer_slice(&item->unit.scope),
                       idem__buffer_slice(&item->unit.key), item->id) != 0) {
        item->state = ITEM_FAILED;
    }
    return NULL;
}

/* Reads the array @at of records, called @name if it is one of several. */
static const char *read_list(struct batch *b, uint32_t at,
                             struct idem_slice name)
{
    const struct idem__tree_node *list = idem__tree_at(&b->lambda->tree, at);
    const char *why = NULL;
    uint32_t end = list->end;

    if (list->kind != IDEM__TREE_ARRAY) {
        return "the records are not a list";
    }
    for (at++; why == NULL && at < end;
         at = idem__tree_at(&b->lambda->tree, at)->end) {
        why = read_item(b, &b->items[b->len++], at, name);
    }
    return why;
}

/* Returns the number of records, or a little more. */
static size_t count(const struct idem__tree *event, uint32_t at)
{
    const struct idem__tree_node *all = idem__tree_at(event, at);
    uint32_t end = all->end;
    size_t n = all->count;

    if (all->kind == IDEM__TREE_OBJECT) {
        for (at++; at < end; at = idem__tree_at(event, at)->end) {
            n += idem__tree_at(event, at)->count;
        }
    }
    return n;
}

static const char *read_all(struct batch *b, uint32_t at)
{
    const struct idem__tree *event = &b->lambda->tree;
    uint32_t end = idem__tree_at(event, at)->end;
    const char *why = NULL;

    if (idem__tree_at(event, at)->kind == IDEM__TREE_ARRAY) {
        return read_list(b, at, idem_bytes(NULL, 0));
    }
    for (at++; why == NULL && at < end; at = idem__tree_at(event, at)->end) {
        why =
            read_list(b, at, idem__tree_name(event, idem__tree_at(event, at)));
    }
    return why;
}

static int compare(const void *a, const void *b)
{
    const struct item *x = *(const struct item *const *)a;
    const struct item *y = *(const struct item *const *)b;
    int order = memcmp(x->id, y->id, sizeof(x->id));

    return order != 0 ? order : x < y ? -1 : 1;
}

/* Finds records of one key: each later one follows the first. */
static bool find_twins(struct batch *b)
{
    struct item **sorted = idem__alloc(b->len * sizeof(struct item *));
    size_t i;

    if (sorted == NULL) {
        return false;
    }
    for (i = 0; i < b->len; i++) {
        sorted[i] = &b->items[i];
    }
    qsort(sorted, b->len, sizeof(struct item *), compare);
    for (i = 1; i < b->len; i++) {
        struct item *before = sorted[i - 1];
        struct item *first = before->first == NULL ? before : before->first;

        if (sorted[i]->state == ITEM_OPEN && first->state == ITEM_OPEN &&
            memcmp(first->id, sorted[i]->id, sizeof(first->id)) == 0) {
            sorted[i]->first = first;
        }
    }
    idem__free(sorted);
    return true;
}

const char *idem__batch_read(struct batch *b)
{
    uint32_t at = idem__lambda_records(b->rule, &b->lambda->tree);
    const char *why;
    size_t len;

    len = at == IDEM__LAMBDA_NOWHERE ? SIZE_MAX : count(&b->lambda->tree, at);
    if (len > IDEM__LAMBDA_RECORDS_MAX) {
        return "the records are not a list of at most 10,000";
    }
    b->items = idem__zalloc((len + 1) * sizeof(*b->items));
    if (b->items == NULL) {
        return idem__batch_no_memory;
    }
    why = read_all(b, at);
    return why != NULL || find_twins(b) ? why : idem__batch_no_memory;
}

void idem__batch_free(struct batch *b)
{
    size_t i;

    for (i = 0; i < b->len; i++) {
        idem_attempt_destroy(b->items[i].attempt);
        idem__lambda_unit_finish(&b->items[i].unit);
        idem__buffer_free(&b->items[i].name);
        idem__buffer_free(&b->items[i].group);
    }
    idem__free(b->items);
}

/* ---- The report --------------------------------------------------------- */

/* True if @item is named as a failure. In a stream Lambda itself sends again all that
 * follows the first failure, so the records that wait need not be named. */
static bool is_reported(const struct batch *b, const struct item *item)
{
    if (item->state == ITEM_DONE ||
        (item->state == ITEM_WAITS && b->rule->shape >= IDEM__LAMBDA_STREAM)) {
        return false;
    }
    /* A message that is in the batch twice has one name, which is listed once. */
    return item->first == NULL || item->first->state == ITEM_DONE ||
           !idem__slice_equal(idem__buffer_slice(&item->first->name),
                              idem__buffer_slice(&item->name));
}

/* Adds the name of @item. For Kafka, the name of a partition is that of its list of
 * records: TOPIC-NUMBER. */
static void add_name(const struct batch *b, const struct item *item,
                     struct idem__buffer *to)
{
    static const char *const places[][2] = {{"topic", NULL},
                                            {"partition#", NULL},
                                            {"offset#", NULL}};
    struct idem__buffer partition = {0};
    const struct idem__tree *event = &b->lambda->tree;
    uint32_t at = item->unit.at;

    if (b->rule->shape != IDEM__LAMBDA_PARTITION) {
        idem__json_pair(to, "itemIdentifier", idem__buffer_slice(&item->name));
        return;
    }
    (void)idem__lambda_join(event, at, places[0], &partition, NULL);
    idem__buffer_str(&partition, "-");
    (void)idem__lambda_join(event, at, places[1], &partition, NULL);
    idem__json_name(to, "itemIdentifier");
    idem__buffer_str(to, "{");
    idem__json_pair(to, "partition", idem__buffer_slice(&partition));
    idem__json_name(to, "offset");
    (void)idem__lambda_join(event, at, places[2], to, NULL);
    idem__buffer_str(to, "}");
    idem__buffer_free(&partition);
}

void idem__batch_report(struct batch *b)
{
    struct idem__buffer *to = &b->lambda->response;
    bool any = false;
    size_t i;

    b->lambda->error_type[0] = '\0';
    idem__buffer_reset(to, to->cap);
    idem__buffer_str(to, "{\"batchItemFailures\":[");
    for (i = 0; i < b->len; i++) {
        if (is_reported(b, &b->items[i])) {
            idem__buffer_str(to, any ? ",{" : "{");
            add_name(b, &b->items[i], to);
            idem__buffer_str(to, "}");
            any = true;
        }
    }
    idem__buffer_str(to, "]}");
}
