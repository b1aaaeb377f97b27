/* Compiles a selector in one pass by recursive descent. */
#include "core/error.h"
#include "key/selector.h"

enum {
    INDEX_DIGITS_MAX = 9,
};

static uint32_t read_selector(struct idem__reader *r);

/* ---- Strings ---- */

/* Reads the bytes up to a quotation mark or "\(", with the escapes of JSON. Returns
 * true if they ended with the mark. */
static bool read_piece(struct idem__reader *r)
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
        (void)idem__reader_refuse(r, from,
                                  "the text has no closing quotation mark");
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
        (void)idem__reader_refuse(
            r, from,
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

/* Reads a text, after its opening mark. @plain: without "\( )". */
static uint32_t read_text(struct idem__reader *r, enum idem__part_kind kind,
                          bool plain)
{
    const char *opening = r->at - 1;
    uint32_t part = 0, inner;
    bool ends;

    for (;;) {
        size_t from = r->selector->text.len;
        uint32_t piece;

        ends = read_piece(r);
        piece = idem__reader_add_text(r, kind, IDEM__TREE_STRING, from);
        part = part == 0
                   ? piece
                   : idem__reader_add_two(r, IDEM__PART_JOIN, part, piece);
        if (ends || r->rc != 0) {
            return part;
        }
        if (plain) {
            return idem__reader_refuse(
                r, opening, "a name cannot contain \\( ): write it out");
        }
        inner = read_selector(r);
        idem__reader_want(r, ")", "a )");
        inner =
            idem__reader_add_two(r, IDEM__PART_PIPE, inner,
                                 idem__reader_add_one(r, IDEM__PART_TOSTRING));
        part = idem__reader_add_two(r, IDEM__PART_JOIN, part, inner);
    }
}

/* ---- Terms ---- */

static uint32_t read_index(struct idem__reader *r)
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
        return idem__reader_refuse(
            r, from,
            "[ ] takes a name, as in .[\"a\"], an index, as in .[0], or "
            "nothing, as in .[]");
    }
    part.index = minus ? -part.index : part.index;
    idem__reader_skip(r);
    if (*r->at == ':') {
        return idem__reader_refuse(
            r, r->at,
            "slices are not supported: select the whole text, or elements by "
            "index, as in [.[0], .[1]]");
    }
    return idem__reader_add(r, part);
}

/* Reads a step in brackets, after "[". */
static uint32_t read_brackets(struct idem__reader *r)
{
    uint32_t part;

    idem__reader_skip(r);
    if (*r->at == ']') {
        part = idem__reader_add_one(r, IDEM__PART_EACH);
    } else if (idem__reader_take(r, "\"")) {
        part = read_text(r, IDEM__PART_MEMBER, /* plain= */ true);
    } else if (*r->at == ':') {
        part = idem__reader_refuse(
            r, r->at,
            "slices are not supported: select the whole text, or elements by "
            "index, as in [.[0], .[1]]");
    } else {
        part = read_index(r);
    }
    idem__reader_want(r, "]", "a ]");
    return r->rc == 0 ? part : 0;
}

/* Reads one step of a path. Returns 0 without a failure if there is none. */
static uint32_t read_step(struct idem__reader *r)
{
    struct idem__buffer *text = &r->selector->text;
    size_t from = text->len;
    const char *p;

    idem__reader_skip(r);
    p = r->at;
    if (*p == '[') {
        r->at++;
        return read_brackets(r);
    }
    if (*p != '.') {
        return 0;
    }
    if (idem__reader_is_name(p[1], true)) {
        r->at++;
        while (idem__reader_is_name(*r->at, false)) {
            r->at++;
        }
        idem__buffer_add(text, p + 1, (size_t)(r->at - p - 1));
        return idem__reader_add_text(r, IDEM__PART_MEMBER, IDEM__TREE_STRING,
                                     from);
    }
    r->at++;
    idem__reader_skip(r);
    if (idem__reader_take(r, "\"")) {
        return read_text(r, IDEM__PART_MEMBER, /* plain= */ true);
    }
    if (idem__reader_take(r, "[")) {
        return read_brackets(r);
    }
    r->at = p;
    return 0;
}

/* Reads a list, after "[". */
static uint32_t read_list(struct idem__reader *r)
{
    uint32_t inner;

    if (idem__reader_take(r, "]")) {
        return idem__reader_add_one(r, IDEM__PART_LIST);
    }
    inner = read_selector(r);
    idem__reader_want(r, "]", "a ]");
    return idem__reader_add_around(r, IDEM__PART_LIST, inner);
}

static uint32_t read_del(struct idem__reader *r)
{
    const char *from;
    uint32_t inner;

    idem__reader_want(r, "(", "a path in ( )");
    idem__reader_skip(r);
    from = r->at;
    inner = read_selector(r);
    idem__reader_want(r, ")", "a )");
    if (r->rc == 0 && !idem__part_at(r->selector, inner)->path) {
        return idem__reader_refuse(
            r, from, "del() takes paths alone, as in del(.a, .b[0])");
    }
    return idem__reader_add_around(r, IDEM__PART_DEL, inner);
}

static uint32_t read_number(struct idem__reader *r)
{
    struct idem__buffer *text = &r->selector->text;
    size_t from = text->len;
    size_t len = strspn(r->at + 1, "0123456789.eE+-") + 1;
    struct idem__tree tree = {0};
    struct idem_error why;
    uint32_t number, part;
    int rc;

    /* A sign belongs to the number here: "1 + .a" is a sum, but "1+.a" is refused as a
     * malformed number. */
    rc = idem__tree_add(&tree, idem_bytes(r->at, len), &number, &why);
    if (rc == 0) {
        idem__buffer_add(text, r->at, len);
        part = idem__reader_add_text(r, IDEM__PART_LITERAL, IDEM__TREE_NUMBER,
                                     from);
        r->at += len;
    } else {
        part = idem__reader_refuse(r, r->at, "not a number as JSON has them");
    }
    idem__tree_free(&tree);
    return part;
}

static uint32_t read_word(struct idem__reader *r)
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
    size_t len = idem__reader_word_len(r->at);
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i].word) == len &&
            strncmp(words[i].word, r->at, len) == 0) {
            r->at += len;
            return words[i].kind == IDEM__PART_DEL
                       ? read_del(r)
                       : idem__reader_add(
                             r, (struct idem__part){.kind = words[i].kind,
                                                    .literal = words[i].literal,
                                                    .values = 1});
        }
    }
    return idem__reader_refuse_word(r, "a path, as in .a");
}

/* Reads the first part of a term. */
static uint32_t read_start(struct idem__reader *r)
{
    uint32_t part;

    idem__reader_skip(r);
    if (*r->at == '.' && r->at[1] != '.') {
        part = read_step(r);
        if (part == 0 && r->rc == 0) {
            r->at++;
            part = idem__reader_add_one(r, IDEM__PART_THIS);
        }
        return part;
    }
    if (idem__reader_take(r, "(")) {
        part = read_selector(r);
        idem__reader_want(r, ")", "a )");
        return r->rc == 0 ? part : 0;
    }
    if (idem__reader_take(r, "[")) {
        return read_list(r);
    }
    if (idem__reader_take(r, "\"")) {
        return read_text(r, IDEM__PART_LITERAL, /* plain= */ false);
    }
    if ((*r->at >= '0' && *r->at <= '9') ||
        (*r->at == '-' && r->at[1] >= '0' && r->at[1] <= '9')) {
        return read_number(r);
    }
    return read_word(r);
}

static uint32_t read_term(struct idem__reader *r)
{
    uint32_t part = read_start(r);

    while (r->rc == 0) {
        uint32_t step;

        if (idem__reader_take(r, "?")) {
            part = idem__reader_add_around(r, IDEM__PART_TRY, part);
            continue;
        }
        step = read_step(r);
        if (step == 0) {
            break;
        }
        /* The ? covers this step only: a failure of the part before it still fails. */
        if (idem__reader_take(r, "?")) {
            step = idem__reader_add_around(r, IDEM__PART_TRY, step);
        }
        part = idem__reader_add_two(r, IDEM__PART_PIPE, part, step);
    }
    return part;
}

/* ---- Operators between terms ---- */

static bool take_plus(struct idem__reader *r)
{
    idem__reader_skip(r);
    return *r->at == '+' && r->at[1] != '=' && idem__reader_take(r, "+");
}

static uint32_t read_sum(struct idem__reader *r)
{
    uint32_t part = read_term(r);

    while (r->rc == 0 && take_plus(r)) {
        part = idem__reader_add_two(r, IDEM__PART_JOIN, part, read_term(r));
    }
    return part;
}

/* Reads alternatives, which group from the right: a // (b // c). */
static uint32_t read_choice(struct idem__reader *r)
{
    uint32_t part = read_sum(r);

    if (r->rc == 0 && idem__reader_take(r, "//")) {
        part = idem__reader_add_two(r, IDEM__PART_ELSE, part, read_choice(r));
    }
    return part;
}

static uint32_t read_comma(struct idem__reader *r)
{
    uint32_t part = read_choice(r);

    while (r->rc == 0 && idem__reader_take(r, ",")) {
        part = idem__reader_add_two(r, IDEM__PART_COMMA, part, read_choice(r));
    }
    return part;
}

static bool take_pipe(struct idem__reader *r)
{
    idem__reader_skip(r);
    return *r->at == '|' && r->at[1] != '=' && idem__reader_take(r, "|");
}

static uint32_t read_selector(struct idem__reader *r)
{
    uint32_t part;

    if (++r->depth > IDEM__SELECTOR_DEPTH_MAX) {
        return idem__reader_refuse(r, r->at, "brackets are nested too deeply");
    }
    part = read_comma(r);
    while (r->rc == 0 && take_pipe(r)) {
        part = idem__reader_add_two(r, IDEM__PART_PIPE, part, read_comma(r));
    }
    r->depth--;
    return r->rc == 0 ? part : 0;
}

int idem__selector_compile(struct idem_selector *selector, const char *text,
                           struct idem_error *ret_error)
{
    struct idem__reader r = {.selector = selector,
                             .text = text,
                             .at = text,
                             .error = ret_error};

    if (strlen(text) > IDEM__SELECTOR_LEN_MAX) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "a selector has at most %d bytes; this one has %zu",
                           IDEM__SELECTOR_LEN_MAX, strlen(text));
    }
    /* Allocate the buffer now: a selector without names and texts would leave its base
     * NULL, and runs add offsets to it. */
    if (idem__buffer_room(&selector->text, 1) == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    selector->root = read_selector(&r);
    if (r.rc == 0) {
        idem__reader_skip(&r);
        if (*r.at != '\0') {
            (void)idem__reader_refuse_word(&r, "a | or its end");
        }
    }
    return r.rc;
}
