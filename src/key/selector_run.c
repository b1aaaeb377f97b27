/* Runs a compiled selector: steps of paths, copies of nodes, and parts that combine
 * other parts. */
#include "core/error.h"
#include "key/selector.h"

#include <stdlib.h>

static int run(struct idem_selector *s, uint32_t part, uint32_t input);

static struct idem__tree_node *node_to_change(struct idem_selector *s,
                                              uint32_t number)
{
    return (struct idem__tree_node *)(void *)s->tree.nodes.base + number;
}

static uint32_t values_len(const struct idem_selector *s)
{
    return (uint32_t)(s->values.len / sizeof(uint32_t));
}

static uint32_t value_at(const struct idem_selector *s, uint32_t at)
{
    return ((const uint32_t *)(const void *)s->values.base)[at];
}

/* ---- Steps of a path ---- */

static int member(struct idem_selector *s, const struct idem__part *part,
                  uint32_t input)
{
    const struct idem__tree_node *node = idem__value_node(s, input);
    const uint8_t *name = s->text.base + part->text;
    uint32_t end = node->end;
    uint32_t steps = 0, found = s->null;
    uint32_t i;
    int rc;

    if (node->kind != IDEM__TREE_OBJECT && node->kind != IDEM__TREE_NULL) {
        return idem__error(&s->error, IDEM_EINVALID,
                           "%s has no member \"%.*s\"", idem__value_kind(node),
                           part->text_len > 60 ? 60 : (int)part->text_len,
                           (const char *)name);
    }
    for (i = input + 1; i < end && found == s->null;
         i = idem__value_node(s, i)->end) {
        struct idem_slice its =
            idem__tree_name(&s->tree, idem__value_node(s, i));

        steps++;
        if (its.len == part->text_len &&
            (its.len == 0 || memcmp(its.base, name, its.len) == 0)) {
            found = i;
        }
    }
    rc = idem__value_charge(s, steps);
    return rc == 0 ? idem__value_give(s, found) : rc;
}

static int element(struct idem_selector *s, int32_t index, uint32_t input)
{
    const struct idem__tree_node *node = idem__value_node(s, input);
    int64_t left = index < 0 ? (int64_t)node->count + index : index;
    uint32_t i = input + 1;
    int rc;

    if (node->kind == IDEM__TREE_NULL) {
        return idem__value_give(s, s->null);
    }
    if (node->kind != IDEM__TREE_ARRAY) {
        return idem__error(&s->error, IDEM_EINVALID, "%s has no element %d",
                           idem__value_kind(node), index);
    }
    if (left < 0 || left >= node->count) {
        return idem__value_give(s, s->null);
    }
    rc = idem__value_charge(s, (size_t)left);
    for (; left > 0; left--) {
        i = idem__value_node(s, i)->end;
    }
    return rc == 0 ? idem__value_give(s, i) : rc;
}

/* Gives each element of an array. It refuses an object, because two senders may order
 * its members differently. */
static int each(struct idem_selector *s, uint32_t input)
{
    const struct idem__tree_node *node = idem__value_node(s, input);
    uint32_t end = node->end;
    uint32_t i;
    int rc = 0;

    if (node->kind == IDEM__TREE_OBJECT) {
        return idem__value_fail(
            s, IDEM_EINVALID,
            "[] takes the elements of an array, and the members "
            "of an object have no order: name them");
    }
    if (node->kind != IDEM__TREE_ARRAY) {
        return idem__error(&s->error, IDEM_EINVALID,
                           "[] takes the elements of an array, and this is %s",
                           idem__value_kind(node));
    }
    for (i = input + 1; rc == 0 && i < end; i = idem__value_node(s, i)->end) {
        rc = idem__value_give(s, i);
    }
    return rc;
}

/* ---- Copies ---- */

struct gone {
    const uint32_t *at; /* Numbers of nodes, ascending. */
    const uint32_t *end;
};

static bool is_gone(struct gone *gone, uint32_t number)
{
    while (gone->at < gone->end && *gone->at < number) {
        gone->at++;
    }
    return gone->at < gone->end && *gone->at == number;
}

/* Copies a node with all nodes inside it, except those in @gone. */
static int copy(struct idem_selector *s, uint32_t number, struct gone *gone)
{
    struct idem__tree_node node = *idem__value_node(s, number);
    uint32_t end = node.end;
    uint32_t count = 0, fresh = 0, i;
    int rc = idem__value_make(s, node, &fresh);

    if (rc != 0) {
        return rc;
    }
    /* The copy shares its texts, but charge for them: the output has them once for each
     * node. */
    rc = idem__value_charge(s, ((size_t)node.text_len + node.name_len) /
                                   IDEM__VALUE_BYTES_PER_STEP);
    if (node.kind != IDEM__TREE_ARRAY && node.kind != IDEM__TREE_OBJECT) {
        return rc;
    }
    for (i = number + 1; rc == 0 && i < end; i = idem__value_node(s, i)->end) {
        if (!is_gone(gone, i)) {
            rc = copy(s, i, gone);
            count++;
        }
    }
    node_to_change(s, fresh)->count = count;
    node_to_change(s, fresh)->end = idem__tree_len(&s->tree);
    return rc;
}

/* Removes the values from @base on. */
static void drop(struct idem_selector *s, uint32_t base)
{
    s->values.len = (size_t)base * sizeof(uint32_t);
}

static int list(struct idem_selector *s, uint32_t inner, uint32_t input)
{
    uint32_t base = values_len(s);
    struct gone none = {NULL, NULL};
    uint32_t number = 0, len, i;
    int rc = inner == 0 ? 0 : run(s, inner, input);

    if (rc != 0) {
        goto done;
    }
    rc = idem__value_make(s,
                          (struct idem__tree_node){.kind = IDEM__TREE_ARRAY,
                                                   .made = true},
                          &number);
    len = values_len(s);
    for (i = base; rc == 0 && i < len; i++) {
        rc = copy(s, value_at(s, i), &none);
    }
    if (rc != 0) {
        goto done;
    }
    node_to_change(s, number)->count = len - base;
    node_to_change(s, number)->end = idem__tree_len(&s->tree);
done:
    drop(s, base);
    return rc == 0 ? idem__value_give(s, number) : rc;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Copies the input without the nodes to which the paths lead. A path to a missing value
 * leads to s->null, which is not in the input. */
static int del(struct idem_selector *s, uint32_t paths, uint32_t input)
{
    uint32_t base = values_len(s);
    uint32_t fresh = idem__tree_len(&s->tree);
    int rc = run(s, paths, input);
    uint32_t *first = (uint32_t *)(void *)s->values.base + base;
    struct gone gone = {first, first + (values_len(s) - base)};

    if (rc != 0) {
        goto done;
    }
    rc = idem__value_charge(s, (size_t)(gone.end - gone.at));
    if (rc != 0) {
        goto done;
    }
    if (gone.end - gone.at > 1) {
        qsort(first, (size_t)(gone.end - gone.at), sizeof(*first),
              compare_numbers);
    }
    /* copy() adds no values, so these do not move while it reads them. */
    if (is_gone(&gone, input)) {
        rc = idem__value_make(s,
                              (struct idem__tree_node){.kind = IDEM__TREE_NULL},
                              &fresh);
    } else {
        fresh = idem__tree_len(&s->tree);
        rc = copy(s, input, &gone);
    }
done:
    drop(s, base);
    return rc == 0 ? idem__value_give(s, fresh) : rc;
}

/* ---- Parts that combine parts ---- */

/* Removes the values from @from to @to. */
static void take_out(struct idem_selector *s, uint32_t from, uint32_t to)
{
    uint32_t *all = (uint32_t *)(void *)s->values.base;

    if (to > from) {
        memmove(all + from, all + to,
                s->values.len - (size_t)to * sizeof(uint32_t));
        s->values.len -= (size_t)(to - from) * sizeof(uint32_t);
    }
}

/* Runs b for each value of a. If a fails after some values, b still gets those: the
 * values that ? lets through must not depend on a later failure. */
static int pipe_through(struct idem_selector *s, const struct idem__part *part,
                        uint32_t input)
{
    uint32_t base = values_len(s);
    int failure = run(s, part->a, input);
    uint32_t end = values_len(s);
    int rc = s->final ? failure : 0;
    uint32_t i;

    for (i = base; rc == 0 && i < end; i++) {
        rc = run(s, part->b, value_at(s, i));
    }
    take_out(s, base, end);
    return rc != 0 ? rc : failure;
}

static bool is_true(const struct idem_selector *s, uint32_t number)
{
    enum idem__tree_kind kind = idem__value_node(s, number)->kind;

    return kind != IDEM__TREE_NULL && kind != IDEM__TREE_FALSE;
}

/* Gives all values of a that are neither null nor false; if there are none, those of b.
 * A failure in a is not caught: jq 1.6 fails as well, after it has run b. */
static int otherwise(struct idem_selector *s, const struct idem__part *part,
                     uint32_t input)
{
    uint32_t base = values_len(s);
    uint32_t kept = base, i;
    int rc = run(s, part->a, input);
    uint32_t *all = (uint32_t *)(void *)s->values.base;

    if (rc != 0) {
        return rc;
    }
    for (i = base; i < values_len(s); i++) {
        if (is_true(s, all[i])) {
            all[kept++] = all[i];
        }
    }
    drop(s, kept);
    return kept > base ? 0 : run(s, part->b, input);
}

/* Joins each value on the left to each on the right; the right one varies more slowly,
 * as in jq. */
static int sum(struct idem_selector *s, const struct idem__part *part,
               uint32_t input)
{
    uint32_t base = values_len(s);
    int failure = run(s, part->b, input);
    uint32_t middle = values_len(s);
    int rc = s->final ? failure : 0;
    uint32_t i, k;

    for (i = base; rc == 0 && i < middle; i++) {
        uint32_t from = values_len(s);
        int rc_left = run(s, part->a, input);
        uint32_t to = values_len(s);

        rc = s->final ? rc_left : 0;
        for (k = from; rc == 0 && k < to; k++) {
            rc = idem__value_join(s, value_at(s, k), value_at(s, i));
        }
        take_out(s, from, to);
        rc = rc != 0 ? rc : rc_left;
    }
    take_out(s, base, middle);
    return rc != 0 ? rc : failure;
}

static int attempt(struct idem_selector *s, uint32_t part, uint32_t input)
{
    int rc = run(s, part, input);

    return s->final ? rc : 0;
}

static int run(struct idem_selector *s, uint32_t number, uint32_t input)
{
    const struct idem__part *part = idem__part_at(s, number);
    int rc = idem__value_charge(s, 1);

    if (rc != 0) {
        return rc;
    }
    switch (part->kind) {
    case IDEM__PART_THIS:
        return idem__value_give(s, input);
    case IDEM__PART_MEMBER:
        return member(s, part, input);
    case IDEM__PART_INDEX:
        return element(s, part->index, input);
    case IDEM__PART_EACH:
        return each(s, input);
    case IDEM__PART_LITERAL:
        return idem__value_literal(s, part);
    case IDEM__PART_FROMJSON:
        return idem__value_of_json(s, input);
    case IDEM__PART_BASE64D:
        return idem__value_of_base64(s, input);
    case IDEM__PART_DOWNCASE:
        return idem__value_downcase(s, input);
    case IDEM__PART_TOSTRING:
        return idem__value_to_text(s, input);
    case IDEM__PART_TRY:
        return attempt(s, part->a, input);
    case IDEM__PART_DEL:
        return del(s, part->a, input);
    case IDEM__PART_LIST:
        return list(s, part->a, input);
    case IDEM__PART_PIPE:
        return pipe_through(s, part, input);
    case IDEM__PART_COMMA:
        rc = run(s, part->a, input);
        return rc == 0 ? run(s, part->b, input) : rc;
    case IDEM__PART_ELSE:
        return otherwise(s, part, input);
    case IDEM__PART_JOIN:
        break;
    }
    return sum(s, part, input);
}

void idem__selector_reset(struct idem_selector *s)
{
    idem__tree_reset(&s->tree);
    s->tree.nodes_max = IDEM__SELECTOR_NODES_MAX;
    idem__buffer_reset(&s->values, IDEM__VALUE_KEEP);
    s->steps = IDEM__SELECTOR_STEPS_MAX;
    s->final = false;
    s->packed = false;
}

int idem__selector_run(struct idem_selector *s, struct idem_error *ret_error)
{
    int rc;

    if (s->tree.halves) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the JSON text has half a surrogate pair");
    }
    /* Allocate the buffer even if nothing is selected, so that its base is not NULL. */
    rc = idem__buffer_room(&s->values, sizeof(uint32_t)) == NULL
             ? idem__value_no_memory(s)
             : idem__value_make(s,
                                (struct idem__tree_node){.kind =
                                                             IDEM__TREE_NULL},
                                &s->null);
    if (rc == 0) {
        rc = run(s, s->root, 0);
    }
    if (rc != 0) {
        idem__buffer_reset(&s->values, IDEM__VALUE_KEEP);
        (void)idem__error(ret_error, rc, "%s", s->error.text);
    }
    return rc;
}
