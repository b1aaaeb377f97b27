/* Reading a selector: one pass, no token is looked at twice. */
#include "key/selector.h"

#include "base/text.h"
#include "core/error.h"

#include <stdio.h>

enum {
    VALUES_MAX = 1000, /* More of them are as many. */
    INDEX_DIGITS_MAX = 9,
    WORD_SHOWN_MAX = 32,
};

struct reader {
    struct idem_selector *selector;
    const char *text;
    const char *at;
    unsigned depth;
    int rc; /* The first failure. */
    struct idem_error *error;
};

static uint32_t read_selector(struct reader *r);

/* ---- What is refused ---- */

/* The parts of jq that people reach for, and what does it here. */
static const struct {
    const char *word;
    const char *hint;
} refused[] = {
    {"..", "name the path, as in .a.b"},
    {"$", "write the path where it is needed"},
    {"{", "write a list, as in [.a, .b]"},
    {"==", ".a // .b takes what is there"},
    {"!=", ".a // .b takes what is there"},
    {"<", ".a // .b takes what is there"},
    {">", ".a // .b takes what is there"},
    {"=", "nothing is assigned: del(.a) takes a member away"},
    {"|=", "nothing is assigned: del(.a) takes a member away"},
    {"+=", "nothing is assigned: del(.a) takes a member away"},
    {"*", "nothing is computed: select the member as it is"},
    {"%", "nothing is computed: select the member as it is"},
    {"-", "nothing is computed: select the member as it is"},
    {"/", "nothing is computed: // stands between alternatives"},
    {"add", "join texts with +, or write a list, as in [.a, .b]"},
    {"and", ".a // .b takes what is there"},
    {"any", ".a // .b takes what is there"},
    {"as", "write the path where it is needed"},
    {"ascii_upcase", "compare in lower case: ascii_downcase"},
    {"def", "write the path where it is needed"},
    {"delpaths", "write the paths: del(.a, .b)"},
    {"empty", ".a? gives nothing where .a cannot be taken"},
    {"env", "name the member that has it, as in .a"},
    {"error", "null is refused anyway: select the member as it is"},
    {"first", "take it by its place: .[0]"},
    {"foreach", ".[] takes each element, as in [.[] | .a]"},
    {"getpath", "write the path, as in .a.b"},
    {"has", ".a // .b takes what is there"},
    {"if", ".a // .b takes what is there"},
    {"join", "write a list, as in [.a, .b], or a text: \"\\(.a),\\(.b)\""},
    {"keys", "name the members, as in [.a, .b]"},
    {"last", "take it by its place: .[-1]"},
    {"length", "select what is to be compared itself"},
    {"limit", "take elements by their places: [.[0], .[1]]"},
    {"ltrimstr", "select the whole text, as in .a"},
    {"map", "[.[] | .a] is map(.a)"},
    {"not", ".a // .b takes what is there"},
    {"or", ".a // .b takes what is there"},
    {"paths", "name the members, as in [.a, .b]"},
    {"pick", "write a list, as in [.a, .b]"},
    {"reduce", ".[] takes each element, as in [.[] | .a]"},
    {"rtrimstr", "select the whole text, as in .a"},
    {"select", ".a // .b takes what is there"},
    {"sort", "write a list in the order you want, as in [.a, .b]"},
    {"split", "select the whole text, as in .a"},
    {"sub", "select the whole text, as in .a"},
    {"test", "select the whole text, as in .a"},
    {"to_entries", "name the members, as in [.a, .b]"},
    {"tojson", "select the value itself: it is compared as JSON"},
    {"tonumber", "select the text itself: a number and its text are one key"},
    {"try", "write ? after what may fail, as in .a?"},
    {"values", ".a // .b takes what is there"},
    {"with_entries", "take members away with del(.a)"},
    {"@base64", "select the text itself"},
    {"@csv", "write a list, as in [.a, .b]"},
    {"@html", "select the text itself"},
    {"@json", "select the value itself: it is compared as JSON"},
    {"@sh", "select the text itself"},
    {"@text", "tostring, or a text: \"\\(.a)\""},
    {"@tsv", "write a list, as in [.a, .b]"},
    {"@uri", "select the text itself"},
};

static bool is_name(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

/* A name, or the signs up to the next one. */
static size_t word_len(const char *p)
{
    size_t n = *p == '@';

    if (is_name(p[n], true)) {
        while (is_name(p[n], false)) {
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

/* Returns 0, as for a part that is missing. @what says what should be at @at. */
static uint32_t refuse(struct reader *r, const char *at, const char *what)
{
    if (r->rc == 0) {
        r->rc = idem__error(r->error, IDEM_EINVALID,
                            "not a selector, at byte %zu: %s",
                            (size_t)(at - r->text) + 1, what);
    }
    return 0;
}

/* Something else is here than what a selector goes on with. */
static uint32_t refuse_word(struct reader *r, const char *expected)
{
    size_t len = word_len(r->at);
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
    return refuse(r, r->at, what);
}

/* ---- Parts ---- */

static void skip_blanks(struct reader *r)
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

/* Takes @sign, if it is the next one. */
static bool take(struct reader *r, const char *sign)
{
    size_t len = strlen(sign);

    skip_blanks(r);
    if (r->rc != 0 || strncmp(r->at, sign, len) != 0) {
        return false;
    }
    r->at += len;
    return true;
}

static void want(struct reader *r, const char *sign, const char *named)
{
    if (r->rc == 0 && !take(r, sign)) {
        (void)refuse_word(r, named);
    }
}

/* Its number, or 0. */
static uint32_t add(struct reader *r, struct idem__part part)
{
    struct idem__buffer *parts = &r->selector->parts;

    if (r->rc == 0) {
        idem__buffer_add(parts, &part, sizeof(part));
        r->rc = parts->failed ? idem__error_plain(r->error, IDEM_ENOMEM) : 0;
    }
    return r->rc == 0 ? (uint32_t)(parts->len / sizeof(part)) : 0;
}

static uint32_t add_one(struct reader *r, enum idem__part_kind kind)
{
    return add(r, (struct idem__part){.kind = kind,
                                      .values = 1,
                                      .path = kind == IDEM__PART_THIS ||
                                              kind == IDEM__PART_EACH});
}

/* How many values come of two parts that stand so. */
static uint32_t values_of(enum idem__part_kind kind, uint32_t a, uint32_t b)
{
    uint32_t n = kind == IDEM__PART_COMMA  ? a + b
                 : kind == IDEM__PART_ELSE ? (a > b ? a : b)
                                           : a * b;

    return n > VALUES_MAX ? VALUES_MAX : n;
}

static uint32_t add_two(struct reader *r, enum idem__part_kind kind, uint32_t a,
                        uint32_t b)
{
    const struct idem__part *x, *y;

    if (r->rc != 0) {
        return 0;
    }
    x = idem__part_at(r->selector, a);
    y = idem__part_at(r->selector, b);
    return add(r, (struct idem__part){.kind = kind,
                                      .a = a,
                                      .b = b,
                                      .values =
                                          values_of(kind, x->values, y->values),
                                      .path = x->path && y->path &&
                                              (kind == IDEM__PART_PIPE ||
                                               kind == IDEM__PART_COMMA)});
}

/* a?, del(a), [a] */
static uint32_t add_around(struct reader *r, enum idem__part_kind kind,
                           uint32_t a)
{
    const struct idem__part *x;

    if (r->rc != 0) {
        return 0;
    }
    x = idem__part_at(r->selector, a);
    return add(r,
               (struct idem__part){.kind = kind,
                                   .a = a,
                                   .values =
                                       kind == IDEM__PART_TRY ? x->values : 1,
                                   .path = kind == IDEM__PART_TRY && x->path});
}

static uint32_t add_text(struct reader *r, enum idem__part_kind kind,
                         enum idem__tree_kind literal, size_t from)
{
    struct idem__buffer *text = &r->selector->text;

    if (r->rc == 0 && text->failed) {
        r->rc = idem__error_plain(r->error, IDEM_ENOMEM);
    }
    return add(r, (struct idem__part){.kind = kind,
                                      .literal = literal,
                                      .text = (uint32_t)from,
                                      .text_len = (uint32_t)(text->len - from),
                                      .values = 1,
                                      .path = kind == IDEM__PART_MEMBER});
}

/* ---- Strings ---- */

/* The bytes up to a quotation mark or "\(", read as JSON has them. True: it was the
 * mark. */
static bool read_piece(struct reader *r)
{
    struct idem__buffer *text = &r->selector->text;
    struct idem__tree tree = {0};
    struct idem__buffer json = {0};
    const char *from = r->at;
    struct idem_error why;
    uint32_t number;
    bool ends;
    int rc;

    while (*r->at != '\0' && *r->at != '"' &&
           !(r->at[0] == '\\' && r->at[1] == '(')) {
        r->at += 1 + (r->at[0] == '\\' && r->at[1] != '\0');
    }
    ends = *r->at == '"';
    if (*r->at == '\0') {
        (void)refuse(r, from, "the text has no closing quotation mark");
        return true;
    }
    idem__buffer_str(&json, "\"");
    idem__buffer_add(&json, from, (size_t)(r->at - from));
    idem__buffer_str(&json, "\"");
    rc = json.failed
             ? IDEM_ENOMEM
             : idem__tree_add(&tree, idem__buffer_slice(&json), &number, &why);
    if (rc == IDEM_ENOMEM) {
        r->rc = idem__error_plain(r->error, rc);
    } else if (rc != 0 || tree.halves) {
        (void)refuse(r, from,
                     "the text is not one of JSON: an unknown escape, a "
                     "control character, or bytes that are not UTF-8");
    } else {
        struct idem_slice s = idem__tree_text(&tree, idem__tree_at(&tree, 0));

        idem__buffer_add(text, s.base, s.len);
    }
    idem__buffer_free(&json);
    idem__tree_free(&tree);
    r->at += ends ? 1 : 2;
    return ends;
}

/* From after the opening mark. @plain: nothing may be put in. */
static uint32_t read_text(struct reader *r, enum idem__part_kind kind,
                          bool plain)
{
    const char *opening = r->at - 1;
    uint32_t part = 0, inner;
    bool ends;

    for (;;) {
        size_t from = r->selector->text.len;
        uint32_t piece;

        ends = read_piece(r);
        piece = add_text(r, kind, IDEM__TREE_STRING, from);
        part = part == 0 ? piece : add_two(r, IDEM__PART_JOIN, part, piece);
        if (ends || r->rc != 0) {
            return part;
        }
        if (plain) {
            return refuse(r, opening,
                          "a name has no \\( ) in it: write it out");
        }
        inner = read_selector(r);
        want(r, ")", "a )");
        inner =
            add_two(r, IDEM__PART_PIPE, inner, add_one(r, IDEM__PART_TOSTRING));
        part = add_two(r, IDEM__PART_JOIN, part, inner);
    }
}

/* ---- Terms ---- */

static uint32_t read_index(struct reader *r)
{
    const char *from = r->at;
    struct idem__part part = {.kind = IDEM__PART_INDEX,
                              .values = 1,
                              .path = true};
    bool minus = *r->at == '-';

    r->at += minus;
    while (*r->at >= '0' && *r->at <= '9' &&
           r->at - from < INDEX_DIGITS_MAX + minus) {
        part.index = part.index * 10 + (*r->at++ - '0');
    }
    if (r->at == from + minus || (*r->at >= '0' && *r->at <= '9')) {
        return refuse(r, from,
                      "in [ ] is a name, as in .[\"a\"], a place, as in .[0], "
                      "or nothing, as in .[]");
    }
    part.index = minus ? -part.index : part.index;
    skip_blanks(r);
    if (*r->at == ':') {
        return refuse(r, r->at,
                      "nothing is cut: select the whole text, or elements by "
                      "their places, as in [.[0], .[1]]");
    }
    return add(r, part);
}

/* After "[". */
static uint32_t read_brackets(struct reader *r)
{
    uint32_t part;

    skip_blanks(r);
    if (*r->at == ']') {
        part = add_one(r, IDEM__PART_EACH);
    } else if (take(r, "\"")) {
        part = read_text(r, IDEM__PART_MEMBER, /* plain= */ true);
    } else if (*r->at == ':') {
        part = refuse(r, r->at,
                      "nothing is cut: select the whole text, or elements by "
                      "their places, as in [.[0], .[1]]");
    } else {
        part = read_index(r);
    }
    want(r, "]", "a ]");
    return r->rc == 0 ? part : 0;
}

/* One step of a path, if there is one: 0 and no failure is none. */
static uint32_t read_step(struct reader *r)
{
    struct idem__buffer *text = &r->selector->text;
    size_t from = text->len;
    const char *p;

    skip_blanks(r);
    p = r->at;
    if (*p == '[') {
        r->at++;
        return read_brackets(r);
    }
    if (*p != '.') {
        return 0;
    }
    if (is_name(p[1], true)) {
        r->at++;
        while (is_name(*r->at, false)) {
            r->at++;
        }
        idem__buffer_add(text, p + 1, (size_t)(r->at - p - 1));
        return add_text(r, IDEM__PART_MEMBER, IDEM__TREE_STRING, from);
    }
    r->at++;
    skip_blanks(r);
    if (take(r, "\"")) {
        return read_text(r, IDEM__PART_MEMBER, /* plain= */ true);
    }
    if (take(r, "[")) {
        return read_brackets(r);
    }
    r->at = p;
    return 0;
}

/* "[" or a literal, at r->at. */
static uint32_t read_list(struct reader *r)
{
    uint32_t inner;

    if (take(r, "]")) {
        return add_one(r, IDEM__PART_LIST);
    }
    inner = read_selector(r);
    want(r, "]", "a ]");
    return add_around(r, IDEM__PART_LIST, inner);
}

static uint32_t read_del(struct reader *r)
{
    const char *from;
    uint32_t inner;

    want(r, "(", "a path in ( )");
    skip_blanks(r);
    from = r->at;
    inner = read_selector(r);
    want(r, ")", "a )");
    if (r->rc == 0 && !idem__part_at(r->selector, inner)->path) {
        return refuse(r, from, "del() takes paths alone, as in del(.a, .b[0])");
    }
    return add_around(r, IDEM__PART_DEL, inner);
}

static uint32_t read_number(struct reader *r)
{
    struct idem__buffer *text = &r->selector->text;
    size_t from = text->len;
    size_t len = strspn(r->at + 1, "0123456789.eE+-") + 1;
    struct idem__tree tree = {0};
    struct idem_error why;
    uint32_t number, part;
    int rc;

    /* "1 + .a" has blanks around its sign; "1+.a" is a number that is none. */
    rc = idem__tree_add(&tree, idem_bytes(r->at, len), &number, &why);
    if (rc == 0) {
        idem__buffer_add(text, r->at, len);
        part = add_text(r, IDEM__PART_LITERAL, IDEM__TREE_NUMBER, from);
        r->at += len;
    } else {
        part = refuse(r, r->at, "not a number as JSON has them");
    }
    idem__tree_free(&tree);
    return part;
}

static uint32_t read_word(struct reader *r)
{
    static const struct {
        const char *word;
        enum idem__part_kind kind;
        enum idem__tree_kind literal;
    } words[] = {
        {"null", IDEM__PART_LITERAL, IDEM__TREE_NULL},
        {"true", IDEM__PART_LITERAL, IDEM__TREE_TRUE},
        {"false", IDEM__PART_LITERAL, IDEM__TREE_FALSE},
        {"fromjson", IDEM__PART_FROMJSON, 0},
        {"tostring", IDEM__PART_TOSTRING, 0},
        {"ascii_downcase", IDEM__PART_DOWNCASE, 0},
        {"@base64d", IDEM__PART_BASE64D, 0},
        {"del", IDEM__PART_DEL, 0},
    };
    size_t len = word_len(r->at);
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i].word) == len &&
            strncmp(words[i].word, r->at, len) == 0) {
            r->at += len;
            return words[i].kind == IDEM__PART_DEL
                       ? read_del(r)
                       : add(r, (struct idem__part){.kind = words[i].kind,
                                                    .literal = words[i].literal,
                                                    .values = 1});
        }
    }
    return refuse_word(r, "a path, as in .a");
}

/* The first part of a term. */
static uint32_t read_start(struct reader *r)
{
    uint32_t part;

    skip_blanks(r);
    if (*r->at == '.' && r->at[1] != '.') {
        part = read_step(r);
        if (part == 0 && r->rc == 0) {
            r->at++;
            part = add_one(r, IDEM__PART_THIS);
        }
        return part;
    }
    if (take(r, "(")) {
        part = read_selector(r);
        want(r, ")", "a )");
        return r->rc == 0 ? part : 0;
    }
    if (take(r, "[")) {
        return read_list(r);
    }
    if (take(r, "\"")) {
        return read_text(r, IDEM__PART_LITERAL, /* plain= */ false);
    }
    if ((*r->at >= '0' && *r->at <= '9') ||
        (*r->at == '-' && r->at[1] >= '0' && r->at[1] <= '9')) {
        return read_number(r);
    }
    return read_word(r);
}

static uint32_t read_term(struct reader *r)
{
    uint32_t part = read_start(r);

    while (r->rc == 0) {
        uint32_t step;

        if (take(r, "?")) {
            part = add_around(r, IDEM__PART_TRY, part);
            continue;
        }
        step = read_step(r);
        if (step == 0) {
            break;
        }
        /* Of the step alone: what it is taken of fails as it would. */
        if (take(r, "?")) {
            step = add_around(r, IDEM__PART_TRY, step);
        }
        part = add_two(r, IDEM__PART_PIPE, part, step);
    }
    return part;
}

/* ---- What stands between terms ---- */

static bool take_plus(struct reader *r)
{
    skip_blanks(r);
    return *r->at == '+' && r->at[1] != '=' && take(r, "+");
}

static uint32_t read_sum(struct reader *r)
{
    uint32_t part = read_term(r);

    while (r->rc == 0 && take_plus(r)) {
        part = add_two(r, IDEM__PART_JOIN, part, read_term(r));
    }
    return part;
}

/* From the right: a // (b // c). */
static uint32_t read_choice(struct reader *r)
{
    uint32_t part = read_sum(r);

    if (r->rc == 0 && take(r, "//")) {
        part = add_two(r, IDEM__PART_ELSE, part, read_choice(r));
    }
    return part;
}

static uint32_t read_comma(struct reader *r)
{
    uint32_t part = read_choice(r);

    while (r->rc == 0 && take(r, ",")) {
        part = add_two(r, IDEM__PART_COMMA, part, read_choice(r));
    }
    return part;
}

static bool take_pipe(struct reader *r)
{
    skip_blanks(r);
    return *r->at == '|' && r->at[1] != '=' && take(r, "|");
}

static uint32_t read_selector(struct reader *r)
{
    uint32_t part;

    if (++r->depth > IDEM__SELECTOR_DEPTH_MAX) {
        return refuse(r, r->at, "too many brackets in brackets");
    }
    part = read_comma(r);
    while (r->rc == 0 && take_pipe(r)) {
        part = add_two(r, IDEM__PART_PIPE, part, read_comma(r));
    }
    r->depth--;
    return r->rc == 0 ? part : 0;
}

int idem__selector_compile(struct idem_selector *selector, const char *text,
                           struct idem_error *ret_error)
{
    struct reader r = {.selector = selector,
                       .text = text,
                       .at = text,
                       .error = ret_error};

    if (strlen(text) > IDEM__SELECTOR_LEN_MAX) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "a selector has at most %d bytes; this one has %zu",
                           IDEM__SELECTOR_LEN_MAX, strlen(text));
    }
    /* Also a selector without names has a place for them. */
    if (idem__buffer_room(&selector->text, 1) == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    selector->root = read_selector(&r);
    if (r.rc == 0) {
        skip_blanks(&r);
        if (*r.at != '\0') {
            (void)refuse_word(&r, "a | or its end");
        }
    }
    return r.rc;
}
