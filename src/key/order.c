/* Sorts the members of an object as each language does. */
#include "key/canonical.h"

#include "core/error.h"

#include <locale.h>
#include <stdlib.h>
#include <wctype.h>

/* ---- By code point: Python ---- */

static int by_code_point(const void *a, const void *b, void *context)
{
    const struct idem__tree *tree = context;
    struct idem_slice x =
        idem__tree_name(tree, idem__tree_at(tree, *(const uint32_t *)a));
    struct idem_slice y =
        idem__tree_name(tree, idem__tree_at(tree, *(const uint32_t *)b));
    size_t len = x.len < y.len ? x.len : y.len;
    int order = len == 0 ? 0 : memcmp(x.base, y.base, len);

    return order != 0 ? order : (x.len > y.len) - (x.len < y.len);
}

/* ---- By lower case: TypeScript ----
 *
 * Powertools sorts the names by toLowerCase(), as UTF-16, and then assigns each to a
 * new object, which has its array indices first, by number. Names that differ only in
 * case keep the order in which they came.
 */

enum {
    DOTTED_I = 0x130, /* Its lower case is two characters: i, and a dot
                         above. */
    DOT_ABOVE = 0x307,
    SIGMA = 0x3a3,
};

/* Iterates over the UTF-16 units of a name in lower case. */
struct units {
    const uint8_t *p;
    const uint8_t *end;
    uint32_t left; /* The second unit of a character; 0: none. */
    locale_t locale;
};

static uint32_t next_point(struct units *u)
{
    uint32_t c = *u->p++;
    int more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;

    c &= more == 0 ? 0x7f : 0x3fu >> more;
    for (; more > 0; more--) {
        c = c << 6 | (*u->p++ & 0x3f);
    }
    return c;
}

static uint32_t lower(const struct units *u, uint32_t c)
{
    if (c < 0x80) {
        return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
    }
    return c == DOTTED_I ? 'i' : (uint32_t)towlower_l((wint_t)c, u->locale);
}

/* Returns the next unit; 0x10000 at the end. */
static uint32_t next_unit(struct units *u)
{
    uint32_t c = u->left;

    u->left = 0;
    if (c != 0) {
        return c;
    }
    if (u->p == u->end) {
        return 0x10000;
    }
    c = next_point(u);
    if (c == DOTTED_I) {
        u->left = DOT_ABOVE;
    }
    c = lower(u, c);
    if (c >= 0x10000) {
        u->left = 0xdc00 + ((c - 0x10000) & 0x3ff);
        c = 0xd800 + ((c - 0x10000) >> 10);
    }
    return c;
}

struct by_lower_case {
    const struct idem__tree *tree;
    locale_t locale;
};

/* True for "0" to "4294967294", which JavaScript treats as array indices. */
static bool is_index(struct idem_slice name, uint64_t *ret_index)
{
    const char *p = name.base;
    uint64_t index = 0;
    size_t i;

    if (name.len == 0 || name.len > 10 || (p[0] == '0' && name.len > 1)) {
        return false;
    }
    for (i = 0; i < name.len; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return false;
        }
        index = index * 10 + (uint64_t)(p[i] - '0');
    }
    *ret_index = index;
    return index < UINT32_MAX;
}

static int compare_units(const struct by_lower_case *by, struct idem_slice x,
                         struct idem_slice y)
{
    struct units a = {x.base, (const uint8_t *)x.base + x.len, 0, by->locale};
    struct units b = {y.base, (const uint8_t *)y.base + y.len, 0, by->locale};
    uint32_t m, n;

    do {
        m = next_unit(&a);
        n = next_unit(&b);
    } while (m == n && m != 0x10000);
    if (m == n) {
        return 0;
    }
    /* A name that ends sorts before a longer one. */
    return m == 0x10000 || (n != 0x10000 && m < n) ? -1 : 1;
}

static int compare_lower(const void *a, const void *b, void *context)
{
    const struct by_lower_case *by = context;
    uint32_t m = *(const uint32_t *)a, n = *(const uint32_t *)b;
    struct idem_slice x = idem__tree_name(by->tree, idem__tree_at(by->tree, m));
    struct idem_slice y = idem__tree_name(by->tree, idem__tree_at(by->tree, n));
    uint64_t i = 0, k = 0;
    bool x_is = is_index(x, &i), y_is = is_index(y, &k);
    int order;

    if (x_is != y_is) {
        return x_is ? -1 : 1;
    }
    order = x_is ? (i > k) - (i < k) : compare_units(by, x, y);
    return order != 0 ? order : (m > n) - (m < n);
}

/* True if the name has a capital sigma, whose lower case depends on the letters around
 * it. */
static bool has_sigma(struct idem_slice name)
{
    const uint8_t *p = name.base;
    size_t i;

    for (i = 1; i < name.len; i++) {
        if (p[i - 1] == (0xc0 | SIGMA >> 6) &&
            p[i] == (0x80 | (SIGMA & 0x3f))) {
            return true;
        }
    }
    return false;
}

static int check_names(const struct idem__tree *tree, const uint32_t *members,
                       size_t len, struct idem_error *error)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (has_sigma(idem__tree_name(tree, idem__tree_at(tree, members[i])))) {
            return idem__error(error, IDEM_EINVALID,
                               "a name with a capital sigma has no place of "
                               "its own among others in typescript");
        }
    }
    return 0;
}

static int sort_lower(const struct idem__tree *tree, uint32_t *members,
                      size_t len, struct idem_error *error)
{
    struct by_lower_case by = {.tree = tree};
    int rc = len > 1 ? check_names(tree, members, len, error) : 0;

    if (rc != 0) {
        return rc;
    }
    by.locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
    if (by.locale == NULL) {
        return idem__error(error, IDEM_EINVALID,
                           "the locale C.UTF-8, which typescript's order "
                           "needs, is not installed");
    }
    qsort_r(members, len, sizeof(*members), compare_lower, &by);
    freelocale(by.locale);
    return 0;
}

int idem__order(const struct idem__tree *tree, enum idem_flavour flavour,
                uint32_t *members, size_t len, struct idem_error *ret_error)
{
    struct idem__tree copy = *tree;

    if (flavour == IDEM_FLAVOUR_TYPESCRIPT) {
        return sort_lower(tree, members, len, ret_error);
    }
    qsort_r(members, len, sizeof(*members), by_code_point, &copy);
    return 0;
}
