/* Builds the tree of an HTTP request directly: it copies the bytes once, and does not
 * write JSON first to parse it again. */
#include "key/selector.h"

#include "base/bytes.h"
#include "core/error.h"

#include <idem/http.h>
#include <stdlib.h>

/* An argument or a header: a name with one value. @number keeps the order of the
 * request. */
struct pair {
    struct idem_slice name;
    struct idem_slice value;
    size_t number;
};

/* ---- Nodes ---- */

/* Adds @node and returns its number. A failure shows at the end, in
 * tree->nodes.failed. */
static uint32_t add(struct idem__tree *tree, struct idem__tree_node node)
{
    uint32_t number = idem__tree_len(tree);

    node.end = number + 1;
    idem__buffer_add(&tree->nodes, &node, sizeof(node));
    return number;
}

static uint32_t add_bytes(struct idem__tree *tree, struct idem_slice bytes)
{
    uint32_t at = (uint32_t)tree->text.len;

    idem__buffer_add(&tree->text, bytes.base, bytes.len);
    return at;
}

static struct idem__tree_node named(struct idem__tree *tree,
                                    enum idem__tree_kind kind,
                                    struct idem_slice name)
{
    return (struct idem__tree_node){.kind = kind,
                                    .named = true,
                                    .name = add_bytes(tree, name),
                                    .name_len = (uint32_t)name.len};
}

/* Adds @text as a string, or null if it is not UTF-8: a text with replaced bytes could
 * equal the text of another request. */
static void add_value(struct idem__tree *tree, struct idem__tree_node node,
                      struct idem_slice text)
{
    node.kind = IDEM__TREE_NULL;
    if (idem__utf8_is(text)) {
        node.kind = IDEM__TREE_STRING;
        node.text = add_bytes(tree, text);
        node.text_len = (uint32_t)text.len;
    }
    (void)add(tree, node);
}

/* Closes the array or object @number: all nodes after it are inside it. */
static void close_node(struct idem__tree *tree, uint32_t number, uint32_t count)
{
    struct idem__tree_node *node =
        (struct idem__tree_node *)(void *)tree->nodes.base + number;

    if (!tree->nodes.failed) {
        node->count = count;
        node->end = idem__tree_len(tree);
    }
}

/* ---- Names and values ---- */

static int compare_slices(struct idem_slice a, struct idem_slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len == 0 ? 0 : memcmp(a.base, b.base, len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a;
    const struct pair *y = b;
    int order = compare_slices(x->name, y->name);

    return order != 0 ? order
                      : (x->number > y->number) - (x->number < y->number);
}

/* Adds one member. A name that occurs several times has an array of its values. */
static void add_member(struct idem__tree *tree, const struct pair *p,
                       size_t len)
{
    uint32_t array;
    size_t i;

    if (len == 1) {
        add_value(tree, named(tree, IDEM__TREE_NULL, p->name), p->value);
        return;
    }
    array = add(tree, named(tree, IDEM__TREE_ARRAY, p->name));
    for (i = 0; i < len; i++) {
        add_value(tree, (struct idem__tree_node){.count = 0}, p[i].value);
    }
    close_node(tree, array, (uint32_t)len);
}

static int add_pairs(struct idem__tree *tree, const char *member,
                     struct idem__buffer *pairs, const char *what,
                     struct idem_error *error)
{
    uint32_t object =
        add(tree, named(tree, IDEM__TREE_OBJECT, idem_str(member)));
    struct pair *p = (struct pair *)(void *)pairs->base;
    size_t len = pairs->len / sizeof(*p);
    uint32_t count = 0;
    size_t i, n;

    if (pairs->failed) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    if (len > 1) {
        qsort(p, len, sizeof(*p), compare_pairs);
    }
    for (i = 0; i < len; i += n, count++) {
        if (!idem__utf8_is(p[i].name)) {
            return idem__error(error, IDEM_EINVALID,
                               "the name of %s is not UTF-8", what);
        }
        for (n = 1;
             i + n < len && compare_slices(p[i].name, p[i + n].name) == 0;) {
            n++;
        }
        add_member(tree, p + i, n);
    }
    close_node(tree, object, count);
    return 0;
}

static void add_pair(struct idem__buffer *pairs, struct idem_slice name,
                     struct idem_slice value)
{
    struct pair pair = {name, value, pairs->len / sizeof(pair)};

    idem__buffer_add(pairs, &pair, sizeof(pair));
}

/* ---- The query ---- */

/* Decodes the encoding of forms in place: the result is never longer. */
static struct idem_slice decode(char *p, size_t len)
{
    size_t from, to = 0;

    for (from = 0; from < len; from++, to++) {
        p[to] = p[from] == '+' ? ' ' : p[from];
        if (p[from] == '%' && len - from > 2 &&
            idem__hex_value(p[from + 1]) >= 0 &&
            idem__hex_value(p[from + 2]) >= 0) {
            p[to] = (char)(idem__hex_value(p[from + 1]) * 16 +
                           idem__hex_value(p[from + 2]));
            from += 2;
        }
    }
    return idem_bytes(p, to);
}

static int add_query(struct idem__tree *tree, struct idem_slice query,
                     struct idem_error *error)
{
    struct idem__buffer text = {NULL, 0, 0, false};
    struct idem__buffer pairs = {NULL, 0, 0, false};
    size_t at = 0;
    int rc;

    idem__buffer_add(&text, query.base, query.len);
    while (!text.failed && at < text.len) {
        char *p = (char *)text.base + at;
        const char *end = memchr(p, '&', text.len - at);
        size_t len = end != NULL ? (size_t)(end - p) : text.len - at;
        char *equals = memchr(p, '=', len);
        size_t name = equals != NULL ? (size_t)(equals - p) : len;

        if (len > 0) {
            add_pair(&pairs, decode(p, name),
                     equals != NULL ? decode(equals + 1, len - name - 1)
                                    : idem_bytes(p, 0));
        }
        at += len + 1;
    }
    pairs.failed = pairs.failed || text.failed;
    rc = add_pairs(tree, "query", &pairs, "an argument", error);
    idem__buffer_free(&pairs);
    idem__buffer_free(&text);
    return rc;
}

/* ---- Headers ---- */

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static int add_headers(struct idem__tree *tree,
                       const struct idem_selector_request *request,
                       struct idem_error *error)
{
    struct idem__buffer text = {NULL, 0, 0, false};
    struct idem__buffer pairs = {NULL, 0, 0, false};
    size_t len = 0;
    size_t i, k;
    int rc;

    for (i = 0; i < request->headers_len; i++) {
        len += request->headers[i].name.len;
    }
    /* Reserve all room at once, so that the names do not move. */
    if (idem__buffer_room(&text, len) == NULL) {
        pairs.failed = true;
    }
    for (i = 0; !pairs.failed && i < request->headers_len; i++) {
        struct idem_slice name = request->headers[i].name;
        uint8_t *p = text.base + text.len;

        for (k = 0; k < name.len; k++) {
            p[k] = lower(((const uint8_t *)name.base)[k]);
        }
        text.len += name.len;
        add_pair(&pairs, idem_bytes(p, name.len), request->headers[i].value);
    }
    rc = add_pairs(tree, "headers", &pairs, "a header", error);
    idem__buffer_free(&pairs);
    idem__buffer_free(&text);
    return rc;
}

/* ---- The body ---- */

/* Adds the body. Whether it is JSON shows in the body itself, because many clients set
 * any Content-Type. Only an array or object counts: a number or a word may as well be
 * plain text. */
static int add_body(struct idem__tree *tree, struct idem_slice body,
                    struct idem_error *error)
{
    struct idem__tree_node node =
        named(tree, IDEM__TREE_NULL, idem_str("body"));
    const char *p = body.base;
    uint32_t number;
    size_t i = 0;
    int rc = IDEM_EINVALID;

    while (i < body.len && p[i] != '\0' && strchr(" \t\r\n", p[i]) != NULL) {
        i++;
    }
    if (i < body.len && (p[i] == '{' || p[i] == '[')) {
        size_t nodes = tree->nodes.len, text = tree->text.len;

        rc = idem__tree_add(tree, body, &number, NULL);
        if (rc == IDEM_ENOMEM) {
            return idem__error_plain(error, rc);
        }
        if (tree->halves) { /* UTF-8 cannot hold them: keep it as a text. */
            tree->halves = false;
            tree->nodes.len = nodes;
            tree->text.len = text;
            rc = IDEM_EINVALID;
        }
        tree->twins = false;
    }
    if (rc != 0) {
        add_value(tree, node, body);
    } else {
        struct idem__tree_node *it =
            (struct idem__tree_node *)(void *)tree->nodes.base + number;

        it->named = true;
        it->name = node.name;
        it->name_len = node.name_len;
    }
    return 0;
}

int idem__request_tree(const struct idem_selector_request *request,
                       struct idem__tree *tree, struct idem_error *ret_error)
{
    struct idem_slice path = request->target;
    struct idem_slice query = idem_bytes("", 0);
    const char *mark = path.len > 0 ? memchr(path.base, '?', path.len) : NULL;
    uint32_t object;
    int rc;

    if (request->body.len > IDEM__TREE_LEN_MAX) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the body has %zu bytes, and at most %d are taken",
                           request->body.len, IDEM__TREE_LEN_MAX);
    }
    if (mark != NULL) {
        path.len = (size_t)(mark - (const char *)path.base);
        query = idem_bytes(mark + 1, request->target.len - path.len - 1);
    }
    object = add(tree, (struct idem__tree_node){.kind = IDEM__TREE_OBJECT});
    add_value(tree, named(tree, IDEM__TREE_NULL, idem_str("method")),
              request->method);
    add_value(tree, named(tree, IDEM__TREE_NULL, idem_str("path")), path);
    rc = add_query(tree, query, ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = add_headers(tree, request, ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = add_body(tree, request->body, ret_error);
    if (rc != 0) {
        return rc;
    }
    close_node(tree, object, 5);
    return tree->nodes.failed || tree->text.failed
               ? idem__error_plain(ret_error, IDEM_ENOMEM)
               : 0;
}

/* ---- The key ---- */

static const char key_header[] = "idempotency-key";

static bool is_key_header(const struct idem__tree *tree,
                          const struct idem__tree_node *node)
{
    const uint8_t *p = tree->text.base + node->name;
    size_t i;

    for (i = 0; i < node->name_len && i < sizeof(key_header); i++) {
        if (lower(p[i]) != (uint8_t)key_header[i]) {
            return false;
        }
    }
    return node->name_len == sizeof(key_header) - 1;
}

struct key {
    char text[IDEM_KEY_MAX];
    size_t len;
    bool found;
};

static int take_key(struct key *key, struct idem_slice value,
                    struct idem_error *error)
{
    char text[IDEM_KEY_MAX];
    size_t len;
    int rc = idem_http_key(value, text, &len, error);

    if (rc != 0) {
        return rc;
    }
    if (key->found && (len != key->len || memcmp(text, key->text, len) != 0)) {
        return idem__error(error, IDEM_EINVALID,
                           "the request has two Idempotency-Keys that differ");
    }
    memcpy(key->text, text, len);
    key->len = len;
    key->found = true;
    return 0;
}

/* Replaces the header @number by the one key that its values, one or several, mean. */
static int read_values(struct idem__tree *tree, uint32_t number,
                       struct key *key, struct idem_error *error)
{
    const struct idem__tree_node *node = idem__tree_at(tree, number);
    uint32_t end = node->end;
    uint32_t i = number + (node->kind == IDEM__TREE_ARRAY);
    struct idem__tree_node *to_change;
    uint32_t at;
    int rc = 0;

    for (; rc == 0 && i < end; i = idem__tree_at(tree, i)->end) {
        rc =
            take_key(key, idem__tree_text(tree, idem__tree_at(tree, i)), error);
    }
    if (rc != 0 || !key->found) {
        return rc;
    }
    at = add_bytes(tree, idem_bytes(key->text, key->len));
    if (tree->text.failed) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    to_change = (struct idem__tree_node *)(void *)tree->nodes.base + number;
    to_change->kind = IDEM__TREE_STRING;
    to_change->text = at;
    to_change->text_len = (uint32_t)key->len;
    memcpy(tree->text.base + to_change->name, key_header,
           sizeof(key_header) - 1);
    return 0;
}

int idem__request_read_key(struct idem__tree *tree,
                           struct idem_error *ret_error)
{
    const struct idem__tree_node *top = idem__tree_at(tree, 0);
    struct key key = {.found = false};
    uint32_t i, k;
    int rc = 0;

    for (i = 1; top->kind == IDEM__TREE_OBJECT && rc == 0 &&
                i < idem__tree_at(tree, 0)->end;
         i = idem__tree_at(tree, i)->end) {
        struct idem_slice name = idem__tree_name(tree, idem__tree_at(tree, i));

        if (idem__tree_at(tree, i)->kind != IDEM__TREE_OBJECT ||
            compare_slices(name, idem_str("headers")) != 0) {
            continue;
        }
        for (k = i + 1; rc == 0 && k < idem__tree_at(tree, i)->end;
             k = idem__tree_at(tree, k)->end) {
            if (is_key_header(tree, idem__tree_at(tree, k))) {
                rc = read_values(tree, k, &key, ret_error);
            }
        }
    }
    return rc;
}
