/* Tests of src/key/canonical.c: what means the same has one text. */
#include "key/canonical.h"

#include "heap.h"
#include "rng.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static int canonical(struct idem_slice json, struct idem__buffer *out)
{
    struct idem__tree tree = {0};
    int rc = idem__tree_read(&tree, json, &why);

    if (rc == 0) {
        rc = idem__canonical(&tree, 0, IDEM_FLAVOUR_NONE, out, &why);
    }
    idem__tree_free(&tree);
    return rc;
}

static void is_written(const char *json, const char *want)
{
    struct idem__buffer out = {0};

    assert_ok(canonical(idem_str(json), &out));
    assert_text(idem__buffer_slice(&out), want);
    idem__buffer_free(&out);
}

/* Members by code point, which is not the order of UTF-16; no blanks; the escapes
 * that JSON needs and no other. */
TEST(canonical, isOneText)
{
    is_written(" { \"b\" : [ 1 , true , null ] , \"a\" : { } } ",
               "{\"a\":{},\"b\":[1e0,true,null]}");
    is_written("{\"\\ud83d\\ude00\":1,\"\\uffff\":2,\"\":3,\"a\":4,\"A\":5}",
               "{\"\":3e0,\"A\":5e0,\"a\":4e0,\"\xef\xbf\xbf\":2e0,"
               "\"\xf0\x9f\x98\x80\":1e0}");
    is_written("\"\\u0041\\/\\u00e9\\u007f\\u2028\"",
               "\"A/\xc3\xa9\x7f\xe2\x80\xa8\"");
    is_written("\"a\x7f\"", "\"a\x7f\"");
    is_written("\"\\u0000\\u0008\\u0009\\u000a\\u000c\\u000d\\u001F\\u0022"
               "\\u005C\"",
               "\"\\u0000\\b\\t\\n\\f\\r\\u001f\\\"\\\\\"");
}

/* A number is its decimal value: no digit is lost or added, however it is spelled
 * and however large it is. */
TEST(canonical, hasNumbersByValue)
{
    static const char *const rows[][2] = {
        {"1", "1e0"},
        {"1.0", "1e0"},
        {"10e-1", "1e0"},
        {"0.00001E+5", "1e0"},
        {"1200", "12e2"},
        {"12.50", "125e-1"},
        {"-0.0150", "-15e-3"},
        {"10.05", "1005e-2"},
        {"0", "0"},
        {"-0", "0"},
        {"-0.00e99999999999999999999", "0"},
        {"9007199254740993", "9007199254740993e0"},
        {"9007199254740992", "9007199254740992e0"},
        {"108086391057176360", "10808639105717636e1"},
        {"0.1000000000000000055511151231257827",
         "1000000000000000055511151231257827e-34"},
        {"1e999999999", "1e999999999"},
        {"1000e999999999", "1e1000000002"},
        {"1e-0999999999", "1e-999999999"},
        {"1e00000000000000000000000000000007", "1e7"},
        {"1e99999999999999999", "1e99999999999999999"},
        {"0.1e100000000000000000", "1e99999999999999999"},
    };

    EACH(row, rows) {
        is_written((*row)[0], (*row)[1]);
    }
}

/* What has no one meaning has no canonical text. */
TEST(canonical, isRefused)
{
    static const char *const rows[] = {
        "{\"a\":1,\"\\u0061\":2}",
        "\"\\ud800\"",
        "[\"\\udc00\\ud800\"]",
        "\"\xc3\"",
        "01",
        "1e100000000000000000",
        "10e99999999999999999",
        "[1,]",
        "",
        "NaN",
        "\xef\xbb\xbf{}",
        "{} {}",
    };
    struct idem__buffer out = {0};

    EACH(row, rows) {
        assert_code(IDEM_EINVALID, canonical(idem_str(*row), &out));
    }
    idem__buffer_free(&out);
}

/* No memory is an error, whenever it happens. */
TEST(canonical, failsWithoutMemory)
{
    bool failed = true;
    long n;
    int rc;

    for (n = 0; failed; n++) {
        struct idem__buffer out = {0};

        heap_fail(n, /* on= */ false);
        rc = canonical(idem_str("{\"b\":[1,\"x\"],\"a\":{\"c\":null}}"), &out);
        failed = heap_fail_never();
        idem__buffer_free(&out);
        assert_code(failed ? IDEM_ENOMEM : IDEM_OK, rc);
    }
    assert_true(n > 3);
}

/* ---- Pairs ---------------------------------------------------------------
 *
 * A value is made, and written twice, each time in another spelling: that is one
 * text. Then one thing in it is changed that means something: those are two.
 */

enum {
    NODES_MAX = 40,
    CHARS_MAX = 6,
    DIGITS_MAX = 24,
};

enum kind {
    NUL,
    FALSE,
    TRUE,
    NUMBER,
    STRING,
    ARRAY,
    OBJECT,
    KINDS,
};

struct text {
    uint32_t chars[CHARS_MAX + 2];
    unsigned len;
};

struct node {
    enum kind kind;
    struct text name;
    struct text string;
    bool negative;
    char digits[DIGITS_MAX + 1]; /* Without zeros at either end; 0: none. */
    long exponent;
    unsigned children[4];
    unsigned len;
};

static struct node nodes[NODES_MAX];
static unsigned nodes_len;
static struct rng rng;

static void make_text(struct text *text)
{
    static const uint32_t palette[] = {
        'a',    'b',    'Z',     '1',     ' ',      '"',  '\\', '/',
        0,      1,      8,       '\n',    0x1f,     0x7f, 0x80, 0xe9,
        0x7ff,  0x800,  0x20ac,  0xd7ff,  't',      'e',  '.',  0xe000,
        0xfffd, 0xffff, 0x10000, 0x1f600, 0x10ffff, '0'};
    unsigned i;

    text->len = rng_below(&rng, CHARS_MAX + 1);
    for (i = 0; i < text->len; i++) {
        text->chars[i] = palette[rng_below(&rng, COUNT(palette))];
    }
}

static void make_number(struct node *node)
{
    unsigned len = 1 + rng_below(&rng, DIGITS_MAX);
    unsigned i;

    node->negative = rng_below(&rng, 3) == 0;
    for (i = 0; i < len; i++) {
        bool edge = i == 0 || i == len - 1;

        node->digits[i] = (char)('0' + edge + rng_below(&rng, edge ? 9 : 10));
    }
    node->digits[len] = '\0';
    node->exponent = (long)rng_below(&rng, 61) - 30;
    if (rng_below(&rng, 8) == 0) {
        node->exponent *= 99999999;
    }
    if (rng_below(&rng, 10) == 0) {
        node->digits[0] = '\0';
        node->exponent = 0;
    }
}

/* The members of one object have names of their own: each begins with another
 * character. */
static unsigned make_node(unsigned depth)
{
    unsigned number = nodes_len++;
    struct node *node = &nodes[number];
    unsigned i;

    memset(node, 0, sizeof(*node));
    node->kind = (enum kind)rng_below(&rng, depth < 3 ? KINDS : ARRAY);
    make_number(node);
    make_text(&node->string);
    if (node->kind >= ARRAY) {
        node->len = rng_below(&rng, 4);
    }
    for (i = 0; i < node->len && nodes_len < NODES_MAX - 1; i++) {
        unsigned child = make_node(depth + 1);

        make_text(&nodes[child].name);
        memmove(nodes[child].name.chars + 1, nodes[child].name.chars,
                nodes[child].name.len * sizeof(uint32_t));
        nodes[child].name.chars[0] = 'p' + i;
        nodes[child].name.len++;
        node->children[i] = child;
    }
    node->len = i;
    return number;
}

/* ---- A spelling ---- */

static void blanks(struct idem__buffer *out)
{
    static const char *const some[] = {"", "", "", " ", "\n\t", "\r\n  "};

    idem__buffer_str(out, some[rng_below(&rng, COUNT(some))]);
}

static void unit(struct idem__buffer *out, uint32_t u)
{
    char text[8];

    (void)snprintf(text, sizeof(text),
                   rng_below(&rng, 2) == 0 ? "\\u%04x" : "\\u%04X",
                   (unsigned)u);
    idem__buffer_str(out, text);
}

static void utf8(struct idem__buffer *out, uint32_t c)
{
    uint8_t bytes[4];
    unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
    unsigned i;

    bytes[0] = (uint8_t)(first[more] | c >> (6 * more));
    for (i = 1; i <= more; i++) {
        bytes[i] = (uint8_t)(0x80 | (c >> (6 * (more - i)) & 0x3f));
    }
    idem__buffer_add(out, bytes, more + 1);
}

static void spell_text(struct idem__buffer *out, const struct text *text)
{
    unsigned i;

    idem__buffer_str(out, "\"");
    for (i = 0; i < text->len; i++) {
        uint32_t c = text->chars[i];
        bool must = c < ' ' || c == '"' || c == '\\';

        if (c == '\n' && rng_below(&rng, 2) == 0) {
            idem__buffer_str(out, "\\n");
        } else if (c == '/' && rng_below(&rng, 2) == 0) {
            idem__buffer_str(out, "\\/");
        } else if (!must && rng_below(&rng, 2) == 0) {
            utf8(out, c);
        } else if (c >= 0x10000) {
            unit(out, 0xd800 + ((c - 0x10000) >> 10));
            unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
        } else {
            unit(out, c);
        }
    }
    idem__buffer_str(out, "\"");
}

static void zeros(struct idem__buffer *out, unsigned n)
{
    for (; n > 0; n--) {
        idem__buffer_str(out, "0");
    }
}

/* The point goes anywhere in the digits or the zeros around them, and the exponent
 * makes up for it; without an exponent where that is not much. */
static void spell_number(struct idem__buffer *out, const struct node *node)
{
    unsigned len = (unsigned)strlen(node->digits);
    unsigned after = rng_below(&rng, 3); /* Zeros, after the digits. */
    unsigned point = rng_below(&rng, len + 4);
    long exponent = node->exponent;
    char text[32];

    if ((node->negative && len > 0) || rng_below(&rng, 2) == 0) {
        idem__buffer_str(out, node->negative || len == 0 ? "-" : "");
    }
    if (exponent <= 0 && exponent > -30 && rng_below(&rng, 2) == 0) {
        point = len < (unsigned)-exponent ? 0 : len - (unsigned)-exponent;
        idem__buffer_add(out, node->digits, point);
        idem__buffer_str(out, point == 0 ? "0" : "");
        if (exponent < 0 || after > 0) {
            idem__buffer_str(out, ".");
            zeros(out, point == 0 ? (unsigned)-exponent - len : 0);
            idem__buffer_add(out, node->digits + point, len - point);
            zeros(out, exponent == 0 && after == 0 ? 1 : after);
        }
        return;
    }
    if (point == 0 || len == 0) {
        idem__buffer_str(out, "0.");
        zeros(out, after);
        idem__buffer_str(out, len == 0 ? "0" : node->digits);
        exponent += (long)(after + len);
    } else if (point < len) {
        idem__buffer_add(out, node->digits, point);
        idem__buffer_str(out, ".");
        idem__buffer_str(out, node->digits + point);
        zeros(out, after);
        exponent += (long)(len - point);
    } else {
        idem__buffer_str(out, node->digits);
        zeros(out, after);
        exponent -= (long)after;
    }
    (void)snprintf(text, sizeof(text), "%c%s%s%ld",
                   rng_below(&rng, 2) == 0 ? 'e' : 'E',
                   exponent < 0              ? "-"
                   : rng_below(&rng, 2) == 0 ? "+"
                                             : "",
                   rng_below(&rng, 2) == 0 ? "00" : "", labs(exponent));
    idem__buffer_str(out, text);
}

static void spell(struct idem__buffer *out, unsigned number)
{
    static const char *const words[] = {"null", "false", "true"};
    const struct node *node = &nodes[number];
    unsigned order[4] = {0, 1, 2, 3};
    unsigned i;

    blanks(out);
    if (node->kind == NUMBER) {
        spell_number(out, node);
    } else if (node->kind == STRING) {
        spell_text(out, &node->string);
    } else if (node->kind < NUMBER) {
        idem__buffer_str(out, words[node->kind]);
    } else {
        idem__buffer_str(out, node->kind == ARRAY ? "[" : "{");
        for (i = node->len; node->kind == OBJECT && i > 1; i--) {
            unsigned k = rng_below(&rng, i);
            unsigned other = order[k];

            order[k] = order[i - 1];
            order[i - 1] = other;
        }
        for (i = 0; i < node->len; i++) {
            idem__buffer_str(out, i > 0 ? "," : "");
            if (node->kind == OBJECT) {
                blanks(out);
                spell_text(out, &nodes[node->children[order[i]]].name);
                blanks(out);
                idem__buffer_str(out, ":");
            }
            spell(out, node->children[order[i]]);
        }
        blanks(out);
        idem__buffer_str(out, node->kind == ARRAY ? "]" : "}");
    }
    blanks(out);
}

/* ---- A change ---- */

static void change_text(struct text *text)
{
    unsigned at = text->len == 0 ? 0 : rng_below(&rng, text->len);

    if (text->len > 0 && rng_below(&rng, 2) == 0) {
        text->chars[at] = text->chars[at] == 'x' ? 'y' : 'x';
    } else {
        text->chars[text->len++] = 'x';
    }
}

/* The number as the text that a person would take for it. */
static void quote(struct node *node)
{
    size_t i;

    node->kind = STRING;
    node->string.len = 0;
    for (i = 0; i < CHARS_MAX && node->digits[i] != '\0'; i++) {
        node->string.chars[node->string.len++] = (uint32_t)node->digits[i];
    }
}

static void change_number(struct node *node)
{
    size_t len = strlen(node->digits);

    switch (len == 0 ? 4 : rng_below(&rng, 4)) {
    case 0:
        node->negative = !node->negative;
        break;
    case 1:
        node->exponent += rng_below(&rng, 2) == 0 ? 1 : -1;
        break;
    case 2: /* The last digit: one further than a double knows, with luck. */
        node->digits[len - 1] = node->digits[len - 1] == '1' ? '2' : '1';
        if (len > 1 && node->digits[len - 1] == '1') {
            node->digits[0] = node->digits[0] == '5' ? '6' : '5';
        }
        break;
    case 3:
        quote(node);
        break;
    default:
        (void)strcpy(node->digits, "1");
        node->exponent = -40;
        break;
    }
}

/* One thing, which is never what it was. */
static void change(void)
{
    struct node *node = &nodes[rng_below(&rng, nodes_len)];
    unsigned more = nodes_len;

    switch (node->kind) {
    case NUL:
        node->kind = FALSE;
        break;
    case FALSE:
        node->kind = TRUE;
        break;
    case TRUE:
        node->kind = NUL;
        break;
    case NUMBER:
        change_number(node);
        break;
    case STRING:
        change_text(&node->string);
        break;
    default:
        if (node->len > 0 && rng_below(&rng, 2) == 0) {
            if (node->kind == OBJECT && rng_below(&rng, 2) == 0) {
                change_text(&nodes[node->children[0]].name);
            } else {
                node->len--;
            }
        } else if (node->len == 0 || node->kind == OBJECT) {
            node->kind = node->kind == ARRAY ? OBJECT : ARRAY;
        } else if (node->len < 4) {
            memset(&nodes[more], 0, sizeof(nodes[more]));
            nodes_len++;
            node->children[node->len++] = more; /* Null, at the end. */
        } else {
            node->len--;
        }
        break;
    }
}

static void write_out(struct idem__buffer *json, struct idem__buffer *out)
{
    json->len = 0;
    out->len = 0;
    spell(json, 0);
    if (canonical(idem__buffer_slice(json), out) != 0) {
        fail_with("%s: %.*s", why.text, (int)json->len,
                  (const char *)json->base);
    }
}

static bool is_same(const struct idem__buffer *a, const struct idem__buffer *b)
{
    return a->len == b->len && memcmp(a->base, b->base, a->len) == 0;
}

/* Another spelling is the same text, another meaning is not. */
TEST(canonical, isOneForOneMeaning)
{
    const char *is_long = getenv("IDEM_TEST_LONG");
    unsigned pairs = is_long != NULL && is_long[0] == '1' ? 1000000 : 20000;
    struct idem__buffer json[3] = {{0}, {0}, {0}}, out[3] = {{0}, {0}, {0}};
    unsigned i;

    for (i = 0; i < pairs; i++) {
        rng.state = i;
        nodes_len = 0;
        (void)make_node(0);
        write_out(&json[0], &out[0]);
        write_out(&json[1], &out[1]);
        change();
        write_out(&json[2], &out[2]);
        if (!is_same(&out[0], &out[1]) || is_same(&out[0], &out[2])) {
            fail_with("pair %u\n%.*s\n%.*s\nchanged\n%.*s", i, (int)json[0].len,
                      (const char *)json[0].base, (int)json[1].len,
                      (const char *)json[1].base, (int)json[2].len,
                      (const char *)json[2].base);
        }
    }
    for (i = 0; i < 3; i++) {
        idem__buffer_free(&json[i]);
        idem__buffer_free(&out[i]);
    }
}
