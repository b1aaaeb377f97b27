/* Writes the canonical text of a value: ours, or another library's. */
#include "key/canonical.h"

#include "base/heap.h"
#include "core/error.h"

enum {
    PYTHON_DIGITS_MAX = 4300, /* Python's int() refuses more. */
};

struct writer {
    const struct idem__tree *tree;
    enum idem_flavour flavour;
    struct idem__buffer *out;
    struct idem_error *error;
};

static int write_value(struct writer *w, uint32_t number);

/* ---- Strings ---- */

static void add_unit(struct idem__buffer *out, uint32_t unit)
{
    static const char digits[] = "0123456789abcdef";
    char text[6] = {'\\', 'u'};
    int i;

    for (i = 0; i < 4; i++) {
        text[2 + i] = digits[unit >> (12 - 4 * i) & 15];
    }
    idem__buffer_add(out, text, sizeof(text));
}

/* Returns the character at @p, and its length in *@ret_len. */
static uint32_t point_at(const uint8_t *p, size_t *ret_len)
{
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    size_t i;

    for (i = 1; i < n; i++) {
        c = c << 6 | (p[i] & 0x3f);
    }
    *ret_len = n;
    return c;
}

static bool is_half(uint32_t c)
{
    return c >= 0xd800 && c < 0xe000;
}

/* Adds an escape of two characters, which all flavours use for the same characters. */
static bool add_short(struct idem__buffer *out, uint32_t c)
{
    static const char chars[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    const char *at = c == 0 || c > '\\' ? NULL : strchr(chars, (int)c);
    char text[2] = {'\\'};

    if (at == NULL) {
        return false;
    }
    text[1] = letters[at - chars];
    idem__buffer_add(out, text, sizeof(text));
    return true;
}

static void add_ascii(struct idem__buffer *out, uint32_t c)
{
    if (c >= 0x10000) {
        add_unit(out, 0xd800 + ((c - 0x10000) >> 10));
        c = 0xdc00 + ((c - 0x10000) & 0x3ff);
    }
    add_unit(out, c);
}

static void add_char(const struct writer *w, const uint8_t *p, uint32_t c,
                     size_t len)
{
    if (add_short(w->out, c)) {
        return;
    }
    if (w->flavour == IDEM_FLAVOUR_PYTHON && (c < ' ' || c > '~')) {
        add_ascii(w->out, c);
    } else if (c < ' ' || is_half(c)) {
        add_unit(w->out, c);
    } else {
        idem__buffer_add(w->out, p, len);
    }
}

static void write_string(const struct writer *w, struct idem_slice text)
{
    const uint8_t *p = text.base;
    size_t at = 0;
    size_t len;

    idem__buffer_str(w->out, "\"");
    for (;;) {
        uint32_t c;

        len = idem__json_plain_len(p + at, text.len - at);
        idem__buffer_add(w->out, p + at, len);
        at += len;
        if (at == text.len) {
            break;
        }
        c = point_at(p + at, &len);
        add_char(w, p + at, c, len);
        at += len;
    }
    idem__buffer_str(w->out, "\"");
}

/* ---- Numbers ---- */

static void write_integer(const struct writer *w, struct idem_slice number)
{
    if (number.len == 2 && memcmp(number.base, "-0", 2) == 0) {
        idem__buffer_str(w->out, "0");
    } else {
        idem__buffer_add(w->out, number.base, number.len);
    }
}

static int write_number(const struct writer *w, struct idem_slice number)
{
    double value;

    if (w->flavour == IDEM_FLAVOUR_NONE) {
        return idem__number_decimal(w->out, number)
                   ? 0
                   : idem__error(w->error, IDEM_EINVALID,
                                 "a number has an exponent of too many digits");
    }
    value = idem__number_read(number);
    if (w->flavour == IDEM_FLAVOUR_TYPESCRIPT) {
        idem__number_javascript(w->out, value);
    } else if (idem__number_is_integer(number)) {
        if (number.len - (*(const char *)number.base == '-') >
            PYTHON_DIGITS_MAX) {
            return idem__error(w->error, IDEM_EINVALID,
                               "python reads no integer of more than %d digits",
                               PYTHON_DIGITS_MAX);
        }
        write_integer(w, number);
    } else {
        idem__number_python(w->out, value);
    }
    return 0;
}

/* ---- Arrays and objects ---- */

static const char *comma(const struct writer *w)
{
    return w->flavour == IDEM_FLAVOUR_PYTHON ? ", " : ",";
}

static int write_array(struct writer *w, uint32_t number)
{
    uint32_t end = idem__tree_at(w->tree, number)->end;
    uint32_t i;
    int rc = 0;

    idem__buffer_str(w->out, "[");
    for (i = number + 1; rc == 0 && i < end;
         i = idem__tree_at(w->tree, i)->end) {
        idem__buffer_str(w->out, i == number + 1 ? "" : comma(w));
        rc = write_value(w, i);
    }
    idem__buffer_str(w->out, "]");
    return rc;
}

/* In JavaScript, assigning this name to a plain object sets its prototype, so the copy
 * that Powertools sorts does not have this member. */
static bool vanishes(const struct writer *w, struct idem_slice name)
{
    static const char proto[] = "__proto__";

    return w->flavour == IDEM_FLAVOUR_TYPESCRIPT &&
           name.len == sizeof(proto) - 1 &&
           memcmp(name.base, proto, name.len) == 0;
}

static int write_members(struct writer *w, const uint32_t *members, size_t len)
{
    bool first = true;
    size_t i;
    int rc = 0;

    for (i = 0; rc == 0 && i < len; i++) {
        struct idem_slice name =
            idem__tree_name(w->tree, idem__tree_at(w->tree, members[i]));

        if (vanishes(w, name)) {
            continue;
        }
        idem__buffer_str(w->out, first ? "" : comma(w));
        write_string(w, name);
        idem__buffer_str(w->out,
                         w->flavour == IDEM_FLAVOUR_PYTHON ? ": " : ":");
        rc = write_value(w, members[i]);
        first = false;
    }
    return rc;
}

static int write_object(struct writer *w, uint32_t number)
{
    const struct idem__tree_node *node = idem__tree_at(w->tree, number);
    uint32_t *members = idem__alloc(node->count * sizeof(*members));
    size_t n = 0;
    uint32_t i;
    int rc;

    if (members == NULL) {
        return idem__error_plain(w->error, IDEM_ENOMEM);
    }
    for (i = number + 1; i < node->end; i = idem__tree_at(w->tree, i)->end) {
        members[n++] = i;
    }
    rc = idem__order(w->tree, w->flavour, members, n, w->error);
    idem__buffer_str(w->out, "{");
    if (rc == 0) {
        rc = write_members(w, members, n);
    }
    idem__buffer_str(w->out, "}");
    idem__free(members);
    return rc;
}

static int write_value(struct writer *w, uint32_t number)
{
    const struct idem__tree_node *node = idem__tree_at(w->tree, number);

    switch (node->kind) {
    case IDEM__TREE_NULL:
        idem__buffer_str(w->out, "null");
        return 0;
    case IDEM__TREE_FALSE:
        idem__buffer_str(w->out, "false");
        return 0;
    case IDEM__TREE_TRUE:
        idem__buffer_str(w->out, "true");
        return 0;
    case IDEM__TREE_NUMBER:
        return write_number(w, idem__tree_text(w->tree, node));
    case IDEM__TREE_STRING:
        write_string(w, idem__tree_text(w->tree, node));
        return 0;
    case IDEM__TREE_ARRAY:
        return write_array(w, number);
    case IDEM__TREE_OBJECT:
        break;
    }
    return write_object(w, number);
}

void idem__canonical_string(struct idem__buffer *out, struct idem_slice text)
{
    const struct writer w = {.flavour = IDEM_FLAVOUR_NONE, .out = out};

    write_string(&w, text);
}

int idem__canonical(const struct idem__tree *tree, uint32_t number,
                    enum idem_flavour flavour, struct idem__buffer *out,
                    struct idem_error *ret_error)
{
    struct writer w = {tree, flavour, out, ret_error};
    int rc;

    if (flavour == IDEM_FLAVOUR_NONE && tree->halves) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "a text has half a surrogate pair");
    }
    rc = write_value(&w, number);
    return rc == 0 && out->failed ? idem__error_plain(ret_error, IDEM_ENOMEM)
                                  : rc;
}
