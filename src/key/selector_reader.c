/* Reads the signs and words of a selector, refuses others, and adds parts. */
#include "key/selector.h"

#include "core/error.h"

#include <stdio.h>

enum {
    VALUES_MAX = 1000, /* Counts stop here. */
    WORD_SHOWN_MAX = 32,
};

/* ---- Words that are refused ---- */

/* The parts of jq that people try, each with its replacement here. */
static const struct {
    const char *word;
    const char *hint;
} refused[] = {
    {"..", "name the path, as in .a.b"},
    {"$", "write the path where it is needed"},
    {"{", "write a list, as in [.a, .b]"},
    {"==", ".a // .b takes the first that is present"},
    {"!=", ".a // .b takes the first that is present"},
    {"<", ".a // .b takes the first that is present"},
    {">", ".a // .b takes the first that is present"},
    {"=", "no assignment: del(.a) removes a member"},
    {"|=", "no assignment: del(.a) removes a member"},
    {"+=", "no assignment: del(.a) removes a member"},
    {"*", "no arithmetic: select the member as it is"},
    {"%", "no arithmetic: select the member as it is"},
    {"-", "no arithmetic: select the member as it is"},
    {"/", "no arithmetic: // separates alternatives"},
    {"add", "join texts with +, or write a list, as in [.a, .b]"},
    {"and", ".a // .b takes the first that is present"},
    {"any", ".a // .b takes the first that is present"},
    {"as", "write the path where it is needed"},
    {"ascii_upcase", "compare in lower case: ascii_downcase"},
    {"def", "write the path where it is needed"},
    {"delpaths", "write the paths: del(.a, .b)"},
    {"empty", ".a? gives nothing where .a cannot be taken"},
    {"env", "name the member that has it, as in .a"},
    {"error", "null is refused anyway: select the member as it is"},
    {"first", "take it by its index: .[0]"},
    {"foreach", ".[] takes each element, as in [.[] | .a]"},
    {"getpath", "write the path, as in .a.b"},
    {"has", ".a // .b takes the first that is present"},
    {"if", ".a // .b takes the first that is present"},
    {"join", "write a list, as in [.a, .b], or a text: \"\\(.a),\\(.b)\""},
    {"keys", "name the members, as in [.a, .b]"},
    {"last", "take it by its index: .[-1]"},
    {"length", "select the value to compare itself"},
    {"limit", "take elements by index: [.[0], .[1]]"},
    {"ltrimstr", "select the whole text, as in .a"},
    {"map", "[.[] | .a] is map(.a)"},
    {"not", ".a // .b takes the first that is present"},
    {"or", ".a // .b takes the first that is present"},
    {"paths", "name the members, as in [.a, .b]"},
    {"pick", "write a list, as in [.a, .b]"},
    {"reduce", ".[] takes each element, as in [.[] | .a]"},
    {"rtrimstr", "select the whole text, as in .a"},
    {"select", ".a // .b takes the first that is present"},
    {"sort", "write a list in the order you want, as in [.a, .b]"},
    {"split", "select the whole text, as in .a"},
    {"sub", "select the whole text, as in .a"},
    {"test", "select the whole text, as in .a"},
    {"to_entries", "name the members, as in [.a, .b]"},
    {"tojson", "select the value itself: it is compared as JSON"},
    {"tonumber", "select the text itself: a number and its text are one key"},
    {"try", "write ? after the path that may fail, as in .a?"},
    {"values", ".a // .b takes the first that is present"},
    {"with_entries", "remove members with del(.a)"},
    {"@base64", "select the text itself"},
    {"@csv", "write a list, as in [.a, .b]"},
    {"@html", "select the text itself"},
    {"@json", "select the value itself: it is compared as JSON"},
    {"@sh", "select the text itself"},
    {"@text", "tostring, or a text: \"\\(.a)\""},
    {"@tsv", "write a list, as in [.a, .b]"},
    {"@uri", "select the text itself"},
};

bool idem__reader_is_name(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

size_t idem__reader_word_len(const char *p)
{
    size_t n = *p == '@';

    if (idem__reader_is_name(p[n], true)) {
        while (idem__reader_is_name(p[n], false)) {
            n++;
        }
        return n;
    }
    if (*p == '.' || *p == '=' || *p == '!' || *p == '<' || *p == '>' ||
        ((*p == '|' || *p == '+') && p[1] == '=')) {
        return p[1] == '=' || (*p == '.' && p[1] == '.') ? 2 : 1;
    }
    return *p != '\0';
}

static const char *hint_of(const char *word, size_t len)
{
    size_t i;

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (strlen(refused[i].word) == len &&
            strncmp(refused[i].word, word, len) == 0) {
            return refused[i].hint;
        }
    }
    return NULL;
}

/* The first failure counts: later ones follow from it. */
uint32_t idem__reader_refuse(struct idem__reader *r, const char *at,
                             const char *what)
{
    if (r->rc == 0) {
        r->rc = idem__error(r->error, IDEM_EINVALID,
                            "not a selector, at byte %zu: %s",
                            (size_t)(at - r->text) + 1, what);
    }
    return 0;
}

/* Names the word in the message and, if people try it often, its replacement. */
uint32_t idem__reader_refuse_word(struct idem__reader *r, const char *expected)
{
    size_t len = idem__reader_word_len(r->at);
    const char *hint = hint_of(r->at, len);
    char what[200];

    if (*r->at == '\0') {
        (void)snprintf(what, sizeof(what), "it ends where %s is expected",
                       expected);
    } else if (hint != NULL) {
        (void)snprintf(what, sizeof(what), "\"%.*s\" is not part of it; %s",
                       (int)len, r->at, hint);
    } else {
        (void)snprintf(what, sizeof(what),
                       "\"%.*s\" is not part of it; expected %s",
                       len > WORD_SHOWN_MAX ? WORD_SHOWN_MAX : (int)len, r->at,
                       expected);
    }
    return idem__reader_refuse(r, r->at, what);
}

/* ---- Parts ---- */

void idem__reader_skip(struct idem__reader *r)
{
    for (;;) {
        if (*r->at == '#') {
            r->at += strcspn(r->at, "\n");
        } else if (*r->at != '\0' && strchr(" \t\r\n", *r->at) != NULL) {
            r->at++;
        } else {
            return;
        }
    }
}

bool idem__reader_take(struct idem__reader *r, const char *sign)
{
    size_t len = strlen(sign);

    idem__reader_skip(r);
    if (r->rc != 0 || strncmp(r->at, sign, len) != 0) {
        return false;
    }
    r->at += len;
    return true;
}

void idem__reader_want(struct idem__reader *r, const char *sign,
                       const char *named)
{
    if (r->rc == 0 && !idem__reader_take(r, sign)) {
        (void)idem__reader_refuse_word(r, named);
    }
}

/* Returns the number of the part, or 0 after a failure. */
uint32_t idem__reader_add(struct idem__reader *r, struct idem__part part)
{
    struct idem__buffer *parts = &r->selector->parts;

    if (r->rc == 0) {
        idem__buffer_add(parts, &part, sizeof(part));
        r->rc = parts->failed ? idem__error_plain(r->error, IDEM_ENOMEM) : 0;
    }
    return r->rc == 0 ? (uint32_t)(parts->len / sizeof(part)) : 0;
}

uint32_t idem__reader_add_one(struct idem__reader *r, enum idem__part_kind kind)
{
    return idem__reader_add(r,
                            (struct idem__part){.kind = kind,
                                                .values = 1,
                                                .path =
                                                    kind == IDEM__PART_THIS ||
                                                    kind == IDEM__PART_EACH});
}

/* Returns how many values two parts give together. */
static uint32_t values_of(enum idem__part_kind kind, uint32_t a, uint32_t b)
{
    uint32_t n = kind == IDEM__PART_COMMA  ? a + b
                 : kind == IDEM__PART_ELSE ? (a > b ? a : b)
                                           : a * b;

    return n > VALUES_MAX ? VALUES_MAX : n;
}

uint32_t idem__reader_add_two(struct idem__reader *r, enum idem__part_kind kind,
                              uint32_t a, uint32_t b)
{
    const struct idem__part *x, *y;

    if (r->rc != 0) {
        return 0;
    }
    x = idem__part_at(r->selector, a);
    y = idem__part_at(r->selector, b);
    return idem__reader_add(
        r, (struct idem__part){.kind = kind,
                               .a = a,
                               .b = b,
                               .values = values_of(kind, x->values, y->values),
                               .path = x->path && y->path &&
                                       (kind == IDEM__PART_PIPE ||
                                        kind == IDEM__PART_COMMA)});
}

/* a?, del(a), [a] */
uint32_t idem__reader_add_around(struct idem__reader *r,
                                 enum idem__part_kind kind, uint32_t a)
{
    const struct idem__part *x;

    if (r->rc != 0) {
        return 0;
    }
    x = idem__part_at(r->selector, a);
    return idem__reader_add(
        r, (struct idem__part){.kind = kind,
                               .a = a,
                               .values = kind == IDEM__PART_TRY ? x->values : 1,
                               .path = kind == IDEM__PART_TRY && x->path});
}

uint32_t idem__reader_add_text(struct idem__reader *r,
                               enum idem__part_kind kind,
                               enum idem__tree_kind literal, size_t from)
{
    struct idem__buffer *text = &r->selector->text;

    if (r->rc == 0 && text->failed) {
        r->rc = idem__error_plain(r->error, IDEM_ENOMEM);
    }
    return idem__reader_add(
        r, (struct idem__part){.kind = kind,
                               .literal = literal,
                               .text = (uint32_t)from,
                               .text_len = (uint32_t)(text->len - from),
                               .values = 1,
                               .path = kind == IDEM__PART_MEMBER});
}
