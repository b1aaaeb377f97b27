/* Reads a JSON text into a list of nodes. */
#include "key/tree.h"

#include "base/heap.h"
#include "base/bytes.h"
#include "core/error.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    KEEP = 64 * 1024, /* Memory that a tree keeps for the next text. */
};

struct reader {
    struct idem__tree *tree;
    const char *text;
    size_t len;
    size_t at;
    unsigned depth;
    struct idem_error *error;
};

static int refuse(struct reader *r, size_t at, const char *what)
{
    unsigned line = 1, column = 1;
    size_t i;

    for (i = 0; i < at && i < r->len; i++) {
        column++;
        if (r->text[i] == '\n') {
            line++;
            column = 1;
        }
    }
    return idem__error(r->error, IDEM_EINVALID,
                       "the JSON text, line %u, column %u: %s", line, column,
                       what);
}

static int no_memory(struct reader *r)
{
    return idem__error_plain(r->error, IDEM_ENOMEM);
}

/* Returns the next character; 0 at the end and for a NUL, which JSON does not allow. */
static char peek(const struct reader *r)
{
    return r->at < r->len ? r->text[r->at] : '\0';
}

static void skip_blanks(struct reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\n' ||
           peek(r) == '\r') {
        r->at++;
    }
}

static struct idem__tree_node *node_at(struct reader *r, uint32_t number)
{
    return (struct idem__tree_node *)(void *)r->tree->nodes.base + number;
}

/* ---- Strings ---- */

int idem__hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads the four digits after "\u". */
static int read_unit(struct reader *r, uint32_t *ret_unit)
{
    uint32_t unit = 0;
    int i;

    for (i = 0; i < 4; i++) {
        int value = idem__hex_value(peek(r));

        if (value < 0) {
            return refuse(r, r->at, "\\u needs four hexadecimal digits");
        }
        unit = unit * 16 + (uint32_t)value;
        r->at++;
    }
    *ret_unit = unit;
    return 0;
}

static void add_point(struct idem__buffer *out, uint32_t c)
{
    uint8_t bytes[4];
    size_t n = 1;
    size_t i;

    if (c < 0x80) {
        bytes[0] = (uint8_t)c;
    } else if (c < 0x800) {
        bytes[0] = (uint8_t)(0xc0 | c >> 6);
        n = 2;
    } else if (c < 0x10000) {
        bytes[0] = (uint8_t)(0xe0 | c >> 12);
        n = 3;
    } else {
        bytes[0] = (uint8_t)(0xf0 | c >> 18);
        n = 4;
    }
    for (i = 1; i < n; i++) {
        bytes[i] = (uint8_t)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
    }
    idem__buffer_add(out, bytes, n);
}

/* Reads the character of "\u", with the other half of its surrogate pair if that
 * follows. */
static int read_point(struct reader *r)
{
    struct idem__tree *tree = r->tree;
    uint32_t first = 0;
    uint32_t second = 0;
    int rc = read_unit(r, &first);

    if (rc != 0) {
        return rc;
    }
    while (first >= 0xd800 && first < 0xdc00 && r->len - r->at >= 6 &&
           r->text[r->at] == '\\' && r->text[r->at + 1] == 'u') {
        r->at += 2;
        rc = read_unit(r, &second);
        if (rc != 0) {
            return rc;
        }
        if (second >= 0xdc00 && second < 0xe000) {
            add_point(&tree->text,
                      0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            return 0;
        }
        tree->halves = true;
        add_point(&tree->text, first);
        first = second;
    }
    tree->halves = tree->halves || (first >= 0xd800 && first < 0xe000);
    add_point(&tree->text, first);
    return 0;
}

static int read_escape(struct reader *r)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    char c = peek(r);
    const char *at = c == '\0' ? NULL : strchr(letters, c);

    if (c == 'u') {
        r->at++;
        return read_point(r);
    }
    if (at == NULL) {
        return refuse(r, r->at, "unknown escape");
    }
    idem__buffer_add(&r->tree->text, &meanings[at - letters], 1);
    r->at++;
    return 0;
}

/* Reads a string, from its opening quotation mark; appends its bytes to tree->text, and
 * a NUL that is not one of them. */
static int read_string(struct reader *r, uint32_t *ret_at, uint32_t *ret_len)
{
    struct idem__buffer *out = &r->tree->text;
    size_t from = out->len;
    int rc = 0;

    for (r->at++; rc == 0 && peek(r) != '"';) {
        const uint8_t *p = (const uint8_t *)r->text + r->at;
        size_t n;

        if (r->at == r->len) {
            return refuse(r, r->at, "a string is not terminated");
        }
        if (*p < ' ') {
            return refuse(r, r->at, "a control character in a string");
        }
        if (*p == '\\') {
            r->at++;
            rc = read_escape(r);
            continue;
        }
        n = idem__json_plain_len(p, r->len - r->at);
        if (n == 0) {
            n = *p == 0x7f ? 1 : idem__utf8_len(p, r->len - r->at);
        }
        if (n == 0) {
            return refuse(r, r->at, "not UTF-8");
        }
        idem__buffer_add(out, p, n);
        r->at += n;
    }
    r->at++;
    *ret_at = (uint32_t)from;
    *ret_len = (uint32_t)(out->len - from);
    idem__buffer_add(out, "", 1);
    return rc != 0 ? rc : out->failed ? no_memory(r) : 0;
}

/* ---- Values ---- */

static int read_value(struct reader *r, const struct idem__tree_node *member);

static bool skip_digits(struct reader *r)
{
    size_t from = r->at;

    while (peek(r) >= '0' && peek(r) <= '9') {
        r->at++;
    }
    return r->at > from;
}

/* Reads a number, and keeps its digits in tree->text: the JSON text may be gone before
 * a caller wants them. */
static int read_number(struct reader *r, uint32_t number)
{
    struct idem__buffer *out = &r->tree->text;
    size_t from = r->at;
    bool good;

    r->at += peek(r) == '-';
    if (peek(r) == '0') {
        r->at++;
        good = true;
    } else {
        good = skip_digits(r);
    }
    if (good && peek(r) == '.') {
        r->at++;
        good = skip_digits(r);
    }
    if (good && (peek(r) == 'e' || peek(r) == 'E')) {
        r->at++;
        r->at += peek(r) == '+' || peek(r) == '-';
        good = skip_digits(r);
    }
    if (!good) {
        return refuse(r, from, "not a JSON number");
    }
    node_at(r, number)->text = (uint32_t)out->len;
    node_at(r, number)->text_len = (uint32_t)(r->at - from);
    idem__buffer_add(out, r->text + from, r->at - from);
    return out->failed ? no_memory(r) : 0;
}

static int read_word(struct reader *r, const char *word)
{
    size_t len = strlen(word);

    if (r->len - r->at < len || memcmp(r->text + r->at, word, len) != 0) {
        return refuse(r, r->at, "not a JSON value");
    }
    r->at += len;
    return 0;
}

struct name {
    const uint8_t *bytes;
    uint32_t len;
    uint32_t at; /* Its place in the text. */
};

static int compare_names(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    uint32_t len = x->len < y->len ? x->len : y->len;
    int order = len == 0 ? 0 : memcmp(x->bytes, y->bytes, len);

    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

static int find_twin(struct reader *r, struct name *names, uint32_t len)
{
    char what[100];
    uint32_t i;

    qsort(names, len, sizeof(*names), compare_names);
    for (i = 1; i < len; i++) {
        if (compare_names(&names[i - 1], &names[i]) == 0) {
            r->tree->twins = true;
            (void)snprintf(what, sizeof(what),
                           "the object has two members with the name "
                           "\"%.*s\"",
                           names[i].len > 40 ? 40 : (int)names[i].len,
                           (const char *)names[i].bytes);
            return refuse(r,
                          names[i].at > names[i - 1].at ? names[i].at
                                                        : names[i - 1].at,
                          what);
        }
    }
    return 0;
}

/* Checks that no two members of the object @number have the same name. */
static int check_names(struct reader *r, uint32_t number)
{
    const struct idem__tree_node *object = node_at(r, number);
    struct name *names;
    uint32_t i, n = 0;
    int rc;

    if (object->count < 2) {
        return 0;
    }
    names = idem__alloc(object->count * sizeof(*names));
    if (names == NULL) {
        return no_memory(r);
    }
    for (i = number + 1; i < object->end; i = node_at(r, i)->end) {
        const struct idem__tree_node *member = node_at(r, i);

        names[n++] = (struct name){r->tree->text.base + member->name,
                                   member->name_len, member->from};
    }
    rc = find_twin(r, names, n);
    idem__free(names);
    return rc;
}

/* Reads the name of a member and the colon after it. */
static int read_member_name(struct reader *r, uint32_t *ret_name,
                            uint32_t *ret_len)
{
    int rc;

    if (peek(r) != '"') {
        return refuse(r, r->at, "the name of a member is missing");
    }
    rc = read_string(r, ret_name, ret_len);
    if (rc != 0) {
        return rc;
    }
    skip_blanks(r);
    if (peek(r) != ':') {
        return refuse(r, r->at, "a colon is missing");
    }
    r->at++;
    return 0;
}

/* Reads the values in the array or object @number, up to @close. */
static int read_inside(struct reader *r, uint32_t number, char close)
{
    bool object = close == '}';
    struct idem__tree_node member = {.named = object};
    int rc = 0;

    if (++r->depth > IDEM__TREE_DEPTH_MAX) {
        return refuse(r, r->at, "more than 200 levels");
    }
    r->at++;
    skip_blanks(r);
    while (peek(r) != close) {
        if (node_at(r, number)->count > 0) {
            if (peek(r) != ',') {
                return refuse(r, r->at,
                              object ? "a comma or } is missing"
                                     : "a comma or ] is missing");
            }
            r->at++;
            skip_blanks(r);
        }
        if (object) {
            rc = read_member_name(r, &member.name, &member.name_len);
        }
        if (rc == 0) {
            rc = read_value(r, &member);
        }
        if (rc != 0) {
            return rc;
        }
        node_at(r, number)->count++;
        skip_blanks(r);
    }
    r->at++;
    r->depth--;
    node_at(r, number)->end = idem__tree_len(r->tree);
    return object ? check_names(r, number) : 0;
}

static int read_scalar(struct reader *r, uint32_t number,
                       enum idem__tree_kind *ret_kind)
{
    uint32_t at, len;
    int rc;

    switch (peek(r)) {
    case 'n':
        *ret_kind = IDEM__TREE_NULL;
        return read_word(r, "null");
    case 'f':
        *ret_kind = IDEM__TREE_FALSE;
        return read_word(r, "false");
    case 't':
        *ret_kind = IDEM__TREE_TRUE;
        return read_word(r, "true");
    case '"':
        *ret_kind = IDEM__TREE_STRING;
        rc = read_string(r, &at, &len);
        if (rc == 0) {
            node_at(r, number)->text = at;
            node_at(r, number)->text_len = len;
        }
        return rc;
    case '\0':
        if (r->at == r->len) {
            return refuse(r, r->at, "a value is missing");
        }
        return refuse(r, r->at, "not a JSON value");
    default:
        *ret_kind = IDEM__TREE_NUMBER;
        return read_number(r, number);
    }
}

static int read_value(struct reader *r, const struct idem__tree_node *member)
{
    struct idem__tree_node fresh = *member;
    uint32_t number = idem__tree_len(r->tree);
    enum idem__tree_kind kind = IDEM__TREE_ARRAY;
    int rc;

    skip_blanks(r);
    fresh.from = (uint32_t)r->at;
    fresh.end = number + 1;
    idem__buffer_add(&r->tree->nodes, &fresh, sizeof(fresh));
    if (r->tree->nodes.failed) {
        return no_memory(r);
    }
    if (r->tree->nodes_max != 0 &&
        idem__tree_len(r->tree) > r->tree->nodes_max) {
        return refuse(r, r->at, "too many values");
    }
    if (peek(r) == '[') {
        rc = read_inside(r, number, ']');
    } else if (peek(r) == '{') {
        kind = IDEM__TREE_OBJECT;
        rc = read_inside(r, number, '}');
    } else {
        rc = read_scalar(r, number, &kind);
    }
    node_at(r, number)->kind = kind;
    node_at(r, number)->to = (uint32_t)r->at;
    return rc;
}

int idem__tree_add(struct idem__tree *tree, struct idem_slice json,
                   uint32_t *ret_number, struct idem_error *ret_error)
{
    struct reader r = {.tree = tree,
                       .text = json.base,
                       .len = json.len,
                       .error = ret_error};
    const struct idem__tree_node top = {0};
    size_t nodes_len = tree->nodes.len, text_len = tree->text.len;
    uint32_t len_max = tree->len_max != 0 ? tree->len_max : IDEM__TREE_LEN_MAX;
    int rc;

    if (json.len > len_max) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the JSON text has %zu bytes, and at most %u are "
                           "taken",
                           json.len, len_max);
    }
    /* Allocate the buffer even for an empty text, so that its base is not NULL. */
    rc = idem__buffer_room(&tree->text, 1) == NULL ? no_memory(&r)
                                                   : read_value(&r, &top);
    if (rc == 0) {
        skip_blanks(&r);
        rc = r.at == r.len
                 ? 0
                 : refuse(&r, r.at, "unexpected text after the value");
    }
    if (rc != 0) {
        tree->nodes.len = nodes_len;
        tree->text.len = text_len;
        return rc;
    }
    *ret_number = (uint32_t)(nodes_len / sizeof(struct idem__tree_node));
    return 0;
}

void idem__tree_reset(struct idem__tree *tree)
{
    idem__buffer_reset(&tree->nodes, KEEP);
    idem__buffer_reset(&tree->text, KEEP);
    tree->halves = false;
    tree->twins = false;
}

int idem__tree_read(struct idem__tree *tree, struct idem_slice json,
                    struct idem_error *ret_error)
{
    uint32_t number;

    idem__tree_reset(tree);
    tree->json = json;
    return idem__tree_add(tree, json, &number, ret_error);
}

void idem__tree_free(struct idem__tree *tree)
{
    idem__buffer_free(&tree->nodes);
    idem__buffer_free(&tree->text);
    memset(tree, 0, sizeof(*tree));
}

bool idem__tree_is_null(const struct idem__tree *tree, uint32_t number)
{
    uint32_t end = idem__tree_at(tree, number)->end;
    uint32_t i;

    for (i = number; i < end; i++) {
        enum idem__tree_kind kind = idem__tree_at(tree, i)->kind;

        if (kind != IDEM__TREE_NULL && kind != IDEM__TREE_ARRAY &&
            kind != IDEM__TREE_OBJECT) {
            return false;
        }
    }
    return true;
}
