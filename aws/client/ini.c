/* Reads the format of AWS's shared files. */
#include "aws/client/settings.h"

#include <strings.h>

/* ---- Lines ------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_comment(char c)
{
    return c == '#' || c == ';';
}

static struct idem_slice trim(const char *from, const char *to)
{
    while (from < to && is_blank(*from)) {
        from++;
    }
    while (to > from && is_blank(to[-1])) {
        to--;
    }
    return idem_bytes(from, (size_t)(to - from));
}

/* Trims a value, and cuts a comment that follows a blank. */
static struct idem_slice trim_value(const char *from, const char *to)
{
    const char *p;

    for (p = from; p < to; p++) {
        if (is_comment(*p) && p > from && is_blank(p[-1])) {
            to = p;
        }
    }
    return trim(from, to);
}

static bool has_control(const char *from, const char *to)
{
    for (; from < to; from++) {
        if (((unsigned char)*from < ' ' && *from != '\t') || *from == 0x7f) {
            return true;
        }
    }
    return false;
}

void idem__aws_ini_begin(struct idem__aws_ini *ini, struct idem_slice text)
{
    static const char mark[] = "\xef\xbb\xbf";

    memset(ini, 0, sizeof(*ini));
    ini->text = text;
    if (text.len >= 3 && memcmp(text.base, mark, 3) == 0) {
        ini->at = 3;
    }
}

/* Takes the next line, without its line end. */
static void take_line(struct idem__aws_ini *ini, const char **ret_from,
                      const char **ret_to)
{
    const char *from = (const char *)ini->text.base + ini->at;
    size_t left = ini->text.len - ini->at;
    const char *end = memchr(from, '\n', left);

    ini->at = end == NULL ? ini->text.len : ini->at + (size_t)(end - from) + 1;
    ini->number++;
    *ret_from = from;
    *ret_to = end == NULL ? from + left : end;
    if (*ret_to > from && (*ret_to)[-1] == '\r') {
        (*ret_to)--;
    }
}

static int refuse(const char **ret_flaw, const char *flaw)
{
    *ret_flaw = flaw;
    return IDEM_ECONFIG;
}

static int read_section(struct idem__aws_ini *ini, const char *from,
                        const char *to, struct idem__aws_ini_line *line,
                        const char **ret_flaw)
{
    const char *end = memchr(from, ']', (size_t)(to - from));
    struct idem_slice rest;

    if (end == NULL) {
        return refuse(ret_flaw, "section header without a closing ]");
    }
    line->kind = IDEM__AWS_INI_SECTION;
    line->name = trim(from + 1, end);
    rest = trim(end + 1, to);
    if (line->name.len == 0 ||
        (rest.len > 0 && !is_comment(*(const char *)rest.base))) {
        return refuse(ret_flaw, "malformed section header");
    }
    ini->in_section = true;
    ini->set = false;
    return 1;
}

/* Reads "name = value". */
static int read_setting(const char *from, const char *to,
                        struct idem__aws_ini_line *line, const char **ret_flaw)
{
    const char *equals = memchr(from, '=', (size_t)(to - from));

    if (equals == NULL) {
        return refuse(ret_flaw, "expected NAME = VALUE");
    }
    line->name = trim(from, equals);
    line->value = trim_value(equals + 1, to);
    if (line->name.len == 0) {
        return refuse(ret_flaw, "no name before the =");
    }
    return 1;
}

/* Reads a line that begins with a blank, which belongs to the setting above it. */
static int read_indented(struct idem__aws_ini *ini, const char *from,
                         const char *to, struct idem__aws_ini_line *line,
                         const char **ret_flaw)
{
    if (!ini->set) {
        return refuse(ret_flaw, "indented line without a setting above it");
    }
    if (ini->open) {
        line->kind = IDEM__AWS_INI_NESTED;
        return read_setting(from, to, line, ret_flaw);
    }
    line->kind = IDEM__AWS_INI_MORE;
    line->name = idem_bytes(NULL, 0);
    line->value = trim(from, to);
    return 1;
}

int idem__aws_ini_next(struct idem__aws_ini *ini,
                       struct idem__aws_ini_line *ret_line,
                       const char **ret_flaw)
{
    const char *from, *to;
    struct idem_slice said;
    int rc;

    do {
        if (ini->at == ini->text.len) {
            return 0;
        }
        take_line(ini, &from, &to);
        if (has_control(from, to)) {
            return refuse(ret_flaw, "control character");
        }
        said = trim(from, to);
    } while (said.len == 0 || is_comment(*(const char *)said.base));

    if (*from == '[') {
        return read_section(ini, from, to, ret_line, ret_flaw);
    }
    if (!ini->in_section) {
        return refuse(ret_flaw, "setting outside any section");
    }
    if (is_blank(*from)) {
        return read_indented(ini, from, to, ret_line, ret_flaw);
    }
    ret_line->kind = IDEM__AWS_INI_SETTING;
    rc = read_setting(from, to, ret_line, ret_flaw);
    if (rc == 1) {
        ini->set = true;
        ini->open = ret_line->value.len == 0;
    }
    return rc;
}

/* ---- Looking up -------------------------------------------------------- */

static bool same_name(struct idem_slice name, const char *text)
{
    return name.len == strlen(text) &&
           strncasecmp(name.base, text, name.len) == 0;
}

/* Takes the quotes off a name that has them. */
static struct idem_slice unquote(struct idem_slice name)
{
    const char *p = name.base;

    if (name.len >= 2 && p[0] == '"' && p[name.len - 1] == '"') {
        return idem_bytes(p + 1, name.len - 2);
    }
    return name;
}

static bool is_section(struct idem_slice header, const char *kind,
                       struct idem_slice section)
{
    const char *p = header.base;
    size_t len = strlen(kind);

    if (len > 0) {
        if (header.len <= len || memcmp(p, kind, len) != 0 ||
            !is_blank(p[len])) {
            return false;
        }
        header = trim(p + len, p + header.len);
    }
    header = unquote(header);
    return header.len > 0 && header.len == section.len &&
           memcmp(header.base, section.base, section.len) == 0;
}

int idem__aws_ini_find(struct idem_slice text, const char *kind,
                       struct idem_slice section, const char *outer,
                       const char *name, struct idem_slice *ret_value)
{
    enum idem__aws_ini_kind wanted =
        outer == NULL ? IDEM__AWS_INI_SETTING : IDEM__AWS_INI_NESTED;
    struct idem_slice value = {NULL, 0};
    struct idem__aws_ini_line line;
    struct idem__aws_ini ini;
    bool here = false, within = outer == NULL, last = false, cut = false;
    const char *flaw;

    idem__aws_ini_begin(&ini, text);
    while (idem__aws_ini_next(&ini, &line, &flaw) == 1) {
        if (line.kind == IDEM__AWS_INI_MORE) {
            cut = cut || last;
            continue;
        }
        last = false;
        if (line.kind == IDEM__AWS_INI_SECTION) {
            here = is_section(line.name, kind, section);
        }
        if (line.kind == IDEM__AWS_INI_SETTING && outer != NULL) {
            within = same_name(line.name, outer);
        }
        if (here && within && line.kind == wanted &&
            same_name(line.name, name)) {
            value = line.value;
            last = true;
            cut = false;
        }
    }
    if (cut) {
        return IDEM_ECONFIG;
    }
    *ret_value = value;
    return value.len > 0;
}

bool idem__aws_ini_has(struct idem_slice text, const char *kind,
                       struct idem_slice section)
{
    struct idem__aws_ini_line line;
    struct idem__aws_ini ini;
    const char *flaw;

    idem__aws_ini_begin(&ini, text);
    while (idem__aws_ini_next(&ini, &line, &flaw) == 1) {
        if (line.kind == IDEM__AWS_INI_SECTION &&
            is_section(line.name, kind, section)) {
            return true;
        }
    }
    return false;
}
