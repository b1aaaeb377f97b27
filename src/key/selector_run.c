/* Running a selector. */
#include "key/selector.h"

#include "base/base64.h"
#include "base/text.h"
#include "core/error.h"
#include "key/number.h"

#include <stdlib.h>

enum {
    KEEP = 64 * 1024,    /* Memory that stays for the next run. */
    BYTES_PER_STEP = 16, /* Of a text that is moved ... */
    JSON_PER_STEP = 4,   /* ... or read. */
};

static const char too_much[] =
    "the selector takes more steps, or makes more, than one run may";

static int run(struct idem_selector *s, uint32_t part, uint32_t input);

/* ---- Bounds ---- */

/* A failure that ? does not pass over: jq would have a value here, and another
 * one in its place would be the key of something else; or this says nothing of the
 * input. */
static int fail_for_good(struct idem_selector *s, int code, const char *why)
{
    s->final = true;
    return why == NULL ? idem__error_plain(&s->error, code)
                       : idem__error(&s->error, code, "%s", why);
}

static int no_memory(struct idem_selector *s)
{
    return fail_for_good(s, IDEM_ENOMEM, NULL);
}

/* A step is a part that is run, a node that is looked at or made, or some bytes
 * that are. */
static int charge(struct idem_selector *s, size_t steps)
{
    if (steps > s->steps ||
        idem__tree_len(&s->tree) > IDEM__SELECTOR_NODES_MAX ||
        s->tree.text.len > IDEM__SELECTOR_TEXT_MAX) {
        return fail_for_good(s, IDEM_EINVALID, too_much);
    }
    s->steps -= (uint32_t)steps;
    return 0;
}

/* ---- Values ---- */

static const struct idem__tree_node *node_at(const struct idem_selector *s,
                                             uint32_t number)
{
    return idem__tree_at(&s->tree, number);
}

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

static int give(struct idem_selector *s, uint32_t number)
{
    idem__buffer_add(&s->values, &number, sizeof(number));
    return s->values.failed ? no_memory(s) : charge(s, 1);
}

static int make(struct idem_selector *s, struct idem__tree_node node,
                uint32_t *ret_number)
{
    uint32_t number = idem__tree_len(&s->tree);

    node.end = number + 1;
    idem__buffer_add(&s->tree.nodes, &node, sizeof(node));
    if (s->tree.nodes.failed) {
        return no_memory(s);
    }
    *ret_number = number;
    return charge(s, 1);
}

static int give_made(struct idem_selector *s, struct idem__tree_node node)
{
    uint32_t number = 0;
    int rc = make(s, node, &number);

    return rc == 0 ? give(s, number) : rc;
}

/* A string of what was added to tree.text since it was @from bytes long. */
static int give_text(struct idem_selector *s, size_t from)
{
    size_t len = s->tree.text.len - from;

    if (s->tree.text.failed) {
        return no_memory(s);
    }
    return give_made(s, (struct idem__tree_node){.kind = IDEM__TREE_STRING,
                                                 .text = (uint32_t)from,
                                                 .text_len = (uint32_t)len});
}

/* Adds to tree.text what lies in it already. */
static void add_again(struct idem_selector *s, uint32_t text, uint32_t len)
{
    uint8_t *to = idem__buffer_room(&s->tree.text, len);

    if (to != NULL) {
        memcpy(to, s->tree.text.base + text, len);
        s->tree.text.len += len;
    }
}

static const char *kind_of(const struct idem__tree_node *node)
{
    switch (node->kind) {
    case IDEM__TREE_NULL:
        return "null";
    case IDEM__TREE_FALSE:
    case IDEM__TREE_TRUE:
        return "a boolean";
    case IDEM__TREE_NUMBER:
        return "a number";
    case IDEM__TREE_STRING:
        return "a text";
    case IDEM__TREE_ARRAY:
        return "an array";
    case IDEM__TREE_OBJECT:
        break;
    }
    return "an object";
}

/* ---- Steps of a path ---- */

static int member(struct idem_selector *s, const struct idem__part *part,
                  uint32_t input)
{
    const struct idem__tree_node *node = node_at(s, input);
    const uint8_t *name = s->text.base + part->text;
    uint32_t end = node->end;
    uint32_t steps = 0, found = s->null;
    uint32_t i;
    int rc;

    if (node->kind != IDEM__TREE_OBJECT && node->kind != IDEM__TREE_NULL) {
        return idem__error(&s->error, IDEM_EINVALID,
                           "%s has no member \"%.*s\"", kind_of(node),
                           part->text_len > 60 ? 60 : (int)part->text_len,
                           (const char *)name);
    }
    for (i = input + 1; i < end && found == s->null; i = node_at(s, i)->end) {
        struct idem_slice its = idem__tree_name(&s->tree, node_at(s, i));

        steps++;
        if (its.len == part->text_len &&
            (its.len == 0 || memcmp(its.base, name, its.len) == 0)) {
            found = i;
        }
    }
    rc = charge(s, steps);
    return rc == 0 ? give(s, found) : rc;
}

static int element(struct idem_selector *s, int32_t index, uint32_t input)
{
    const struct idem__tree_node *node = node_at(s, input);
    int64_t left = index < 0 ? (int64_t)node->count + index : index;
    uint32_t i = input + 1;
    int rc;

    if (node->kind == IDEM__TREE_NULL) {
        return give(s, s->null);
    }
    if (node->kind != IDEM__TREE_ARRAY) {
        return idem__error(&s->error, IDEM_EINVALID, "%s has no element %d",
                           kind_of(node), index);
    }
    if (left < 0 || left >= node->count) {
        return give(s, s->null);
    }
    rc = charge(s, (size_t)left);
    for (; left > 0; left--) {
        i = node_at(s, i)->end;
    }
    return rc == 0 ? give(s, i) : rc;
}

/* The members of an object have no order that two senders agree on. */
static int each(struct idem_selector *s, uint32_t input)
{
    const struct idem__tree_node *node = node_at(s, input);
    uint32_t end = node->end;
    uint32_t i;
    int rc = 0;

    if (node->kind == IDEM__TREE_OBJECT) {
        return fail_for_good(
            s, IDEM_EINVALID,
            "[] takes the elements of an array, and the members "
            "of an object have no order: name them");
    }
    if (node->kind != IDEM__TREE_ARRAY) {
        return idem__error(&s->error, IDEM_EINVALID,
                           "[] takes the elements of an array, and this is %s",
                           kind_of(node));
    }
    for (i = input + 1; rc == 0 && i < end; i = node_at(s, i)->end) {
        rc = give(s, i);
    }
    return rc;
}

/* ---- Texts ---- */

static int need_text(struct idem_selector *s, const char *what, uint32_t input)
{
    const struct idem__tree_node *node = node_at(s, input);

    if (node->kind != IDEM__TREE_STRING) {
        return idem__error(&s->error, IDEM_EINVALID,
                           "%s takes a text, and this is %s", what,
                           kind_of(node));
    }
    return charge(s, node->text_len / BYTES_PER_STEP);
}

static int literal(struct idem_selector *s, const struct idem__part *part)
{
    size_t from = s->tree.text.len;

    idem__buffer_add(&s->tree.text, s->text.base + part->text, part->text_len);
    if (s->tree.text.failed) {
        return no_memory(s);
    }
    return give_made(s, (struct idem__tree_node){.kind = part->literal,
                                                 .text = (uint32_t)from,
                                                 .text_len = part->text_len});
}

/* A text takes the values that a key takes: null in one would give all that lack their
 * id one key. */
static int tostring(struct idem_selector *s, uint32_t input)
{
    const struct idem__tree_node *node = node_at(s, input);
    size_t from = s->tree.text.len;

    switch (node->kind) {
    case IDEM__TREE_STRING:
        return give(s, input);
    case IDEM__TREE_TRUE:
    case IDEM__TREE_FALSE:
        idem__buffer_str(&s->tree.text,
                         node->kind == IDEM__TREE_TRUE ? "true" : "false");
        return give_text(s, from);
    case IDEM__TREE_NUMBER:
        idem__buffer_reset(&s->scratch, KEEP);
        if (!idem__number_text(&s->scratch, idem__tree_text(&s->tree, node))) {
            return fail_for_good(s, IDEM_EINVALID,
                                 "a number has an exponent of too many digits");
        }
        idem__buffer_add(&s->tree.text, s->scratch.base, s->scratch.len);
        return s->scratch.failed ? no_memory(s) : give_text(s, from);
    case IDEM__TREE_NULL:
        return fail_for_good(s, IDEM_EINVALID,
                             "null cannot be part of a text: what is named is "
                             "not there");
    case IDEM__TREE_ARRAY:
    case IDEM__TREE_OBJECT:
        break;
    }
    s->final = true;
    return idem__error(&s->error, IDEM_EINVALID, "%s cannot be part of a text",
                       kind_of(node));
}

static int join(struct idem_selector *s, uint32_t left, uint32_t right)
{
    size_t from = s->tree.text.len;
    int rc = need_text(s, "+", left);

    if (rc == 0) {
        rc = need_text(s, "+", right);
    }
    if (rc != 0) {
        s->final = true;
        return rc;
    }
    add_again(s, node_at(s, left)->text, node_at(s, left)->text_len);
    add_again(s, node_at(s, right)->text, node_at(s, right)->text_len);
    return give_text(s, from);
}

static int downcase(struct idem_selector *s, uint32_t input)
{
    size_t from = s->tree.text.len;
    int rc = need_text(s, "ascii_downcase", input);
    size_t i;

    if (rc != 0) {
        return rc;
    }
    add_again(s, node_at(s, input)->text, node_at(s, input)->text_len);
    for (i = from; i < s->tree.text.len; i++) {
        uint8_t *c = s->tree.text.base + i;

        *c = *c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c;
    }
    return give_text(s, from);
}

/* A copy of a text, which stays where it is while the tree grows. */
static int copy_text(struct idem_selector *s, uint32_t input,
                     struct idem_slice *ret_text)
{
    struct idem_slice text = idem__tree_text(&s->tree, node_at(s, input));

    idem__buffer_reset(&s->scratch, KEEP);
    idem__buffer_add(&s->scratch, text.base, text.len);
    *ret_text = idem__buffer_slice(&s->scratch);
    return s->scratch.failed ? no_memory(s) : 0;
}

static int fromjson(struct idem_selector *s, uint32_t input)
{
    struct idem_slice text;
    uint32_t number = 0;
    int rc = need_text(s, "fromjson", input);

    if (rc == 0) {
        rc = charge(s, node_at(s, input)->text_len / JSON_PER_STEP);
    }
    if (rc == 0) {
        rc = copy_text(s, input, &text);
    }
    if (rc != 0) {
        return rc;
    }
    rc = idem__tree_add(&s->tree, text, &number, &s->error);
    /* What two readers understand differently is refused, whatever ? says. */
    if (rc == IDEM_ENOMEM || s->tree.twins) {
        s->final = true;
    }
    if (rc == 0 && s->tree.halves) {
        rc = fail_for_good(s, IDEM_EINVALID,
                           "fromjson: the text has half a surrogate pair");
    }
    return rc == 0 ? give(s, number) : rc;
}

/* With its padding or without. */
static int base64d(struct idem_selector *s, uint32_t input)
{
    size_t from = s->tree.text.len;
    struct idem_slice text;
    const char *p;
    uint8_t *to;
    size_t len;
    int rc = need_text(s, "@base64d", input);

    if (rc == 0) {
        rc = copy_text(s, input, &text);
    }
    if (rc != 0) {
        s->final = true;
        return rc;
    }
    while (s->scratch.len % 4 != 0 && !s->scratch.failed) {
        idem__buffer_str(&s->scratch, "=");
    }
    text = idem__buffer_slice(&s->scratch);
    p = text.base;
    to = idem__buffer_room(&s->tree.text, idem__base64_max(text.len) + 1);
    if (s->scratch.failed || to == NULL) {
        return no_memory(s);
    }
    if (text.len >= 4 && p[text.len - 3] == '=') {
        rc = IDEM_EINVALID; /* No byte has three of them. */
    } else {
        rc = idem__base64_read(IDEM__BASE64, text, to, &len);
    }
    if (rc != 0) {
        return fail_for_good(s, IDEM_EINVALID,
                             "@base64d: the text is not base64");
    }
    if (!idem__utf8_is(idem_bytes(to, len))) {
        return fail_for_good(s, IDEM_EINVALID,
                             "@base64d: what is in it is not UTF-8");
    }
    s->tree.text.len += len;
    return give_text(s, from);
}

/* ---- Copies ---- */

struct gone {
    const uint32_t *at; /* Numbers of nodes, in their order. */
    const uint32_t *end;
};

static bool is_gone(struct gone *gone, uint32_t number)
{
    while (gone->at < gone->end && *gone->at < number) {
        gone->at++;
    }
    return gone->at < gone->end && *gone->at == number;
}

/* Copies a node with what is in it, but for those that are gone. */
static int copy(struct idem_selector *s, uint32_t number, struct gone *gone)
{
    struct idem__tree_node node = *node_at(s, number);
    uint32_t end = node.end;
    uint32_t count = 0, fresh = 0, i;
    int rc = make(s, node, &fresh);

    /* The texts are not copied, but they are written once for each node. */
    if (rc == 0) {
        rc =
            charge(s, ((size_t)node.text_len + node.name_len) / BYTES_PER_STEP);
    }
    if (node.kind != IDEM__TREE_ARRAY && node.kind != IDEM__TREE_OBJECT) {
        return rc;
    }
    for (i = number + 1; rc == 0 && i < end; i = node_at(s, i)->end) {
        if (!is_gone(gone, i)) {
            rc = copy(s, i, gone);
            count++;
        }
    }
    node_to_change(s, fresh)->count = count;
    node_to_change(s, fresh)->end = idem__tree_len(&s->tree);
    return rc;
}

/* Takes the values from @base on off again. */
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

    if (rc == 0) {
        rc = make(s,
                  (struct idem__tree_node){.kind = IDEM__TREE_ARRAY,
                                           .made = true},
                  &number);
    }
    len = values_len(s);
    for (i = base; rc == 0 && i < len; i++) {
        rc = copy(s, value_at(s, i), &none);
    }
    drop(s, base);
    if (rc != 0) {
        return rc;
    }
    node_to_change(s, number)->count = len - base;
    node_to_change(s, number)->end = idem__tree_len(&s->tree);
    return give(s, number);
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* A path leads to a node of the input, or to the one for what is not there. */
static int del(struct idem_selector *s, uint32_t paths, uint32_t input)
{
    uint32_t base = values_len(s);
    uint32_t fresh = idem__tree_len(&s->tree);
    int rc = run(s, paths, input);
    uint32_t *first = (uint32_t *)(void *)s->values.base + base;
    struct gone gone = {first, first + (values_len(s) - base)};

    if (rc == 0) {
        rc = charge(s, (size_t)(gone.end - gone.at));
    }
    if (rc == 0 && gone.end - gone.at > 1) {
        qsort(first, (size_t)(gone.end - gone.at), sizeof(*first),
              compare_numbers);
    }
    /* Copying gives no values, so that those here stay where they are. */
    if (rc == 0 && is_gone(&gone, input)) {
        rc = make(s, (struct idem__tree_node){.kind = IDEM__TREE_NULL}, &fresh);
    } else if (rc == 0) {
        fresh = idem__tree_len(&s->tree);
        rc = copy(s, input, &gone);
    }
    drop(s, base);
    return rc == 0 ? give(s, fresh) : rc;
}

/* ---- Parts of parts ---- */

/* Takes the values from @from to @to out of those that there are. */
static void take_out(struct idem_selector *s, uint32_t from, uint32_t to)
{
    uint32_t *all = (uint32_t *)(void *)s->values.base;

    if (to > from) {
        memmove(all + from, all + to,
                s->values.len - (size_t)to * sizeof(uint32_t));
        s->values.len -= (size_t)(to - from) * sizeof(uint32_t);
    }
}

/* Where a gives some values and then fails, b has its turn with those: what ? lets
 * through does not depend on what fails later. */
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
    enum idem__tree_kind kind = node_at(s, number)->kind;

    return kind != IDEM__TREE_NULL && kind != IDEM__TREE_FALSE;
}

/* All values of a that are neither null nor false; where there is none, b. A
 * failure in a is not passed over: jq 1.6 fails as well, once b is through. */
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

/* For each value on the right each on the left, as jq does. */
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
            rc = join(s, value_at(s, k), value_at(s, i));
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
    int rc = charge(s, 1);

    if (rc != 0) {
        return rc;
    }
    switch (part->kind) {
    case IDEM__PART_THIS:
        return give(s, input);
    case IDEM__PART_MEMBER:
        return member(s, part, input);
    case IDEM__PART_INDEX:
        return element(s, part->index, input);
    case IDEM__PART_EACH:
        return each(s, input);
    case IDEM__PART_LITERAL:
        return literal(s, part);
    case IDEM__PART_FROMJSON:
        return fromjson(s, input);
    case IDEM__PART_BASE64D:
        return base64d(s, input);
    case IDEM__PART_DOWNCASE:
        return downcase(s, input);
    case IDEM__PART_TOSTRING:
        return tostring(s, input);
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
    idem__buffer_reset(&s->values, KEEP);
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
    /* Also where nothing is given, values are somewhere. */
    rc = idem__buffer_room(&s->values, sizeof(uint32_t)) == NULL
             ? no_memory(s)
             : make(s, (struct idem__tree_node){.kind = IDEM__TREE_NULL},
                    &s->null);
    if (rc == 0) {
        rc = run(s, s->root, 0);
    }
    if (rc != 0) {
        idem__buffer_reset(&s->values, KEEP);
        (void)idem__error(ret_error, rc, "%s", s->error.text);
    }
    return rc;
}
