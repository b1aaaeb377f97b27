/* Numbers on their way through jq. */
#include "key/exact.h"

#include "core/error.h"
#include "key/number.h"

#include <stdio.h>

enum {
    EXACT_DIGITS = 15, /* Any integer of so many is a double. */
    NUMBER_MAX = 400,  /* Bytes that are looked at. */
};

/* U+F8FF is nobody's; what a string of the input says cannot be taken for a mark,
 * because the first run has a string in its place and no number. */
static const char mark[] = "\xef\xa3\xbf"
                           "idem:";

/* jq gives it back just as it is. */
static bool comes_back(struct idem_slice number)
{
    const char *p = number.base;
    size_t i = number.len > 1 && p[0] == '-';

    if (number.len - i > EXACT_DIGITS || (i == 1 && p[1] == '0')) {
        return false;
    }
    for (; i < number.len; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return false;
        }
    }
    return true;
}

/* The double next to it is what every reader makes of it, but for an integer that
 * is too large to be one. */
static bool is_double(struct idem_slice number)
{
    double value = idem__number_read(number);
    char text[NUMBER_MAX];

    if (number.len > NUMBER_MAX) {
        return false;
    }
    if (!idem__number_is_integer(number)) {
        return value - value == 0; /* Not infinite. */
    }
    return snprintf(text, sizeof(text), "%.0f", value) == (int)number.len &&
           memcmp(text, number.base, number.len) == 0;
}

bool idem__exact_mark(const struct idem__tree *input,
                      struct idem__buffer *ret_marked)
{
    const uint8_t *json = input->json.base;
    uint32_t from = 0;
    uint32_t i;

    for (i = 0; i < idem__tree_len(input); i++) {
        const struct idem__tree_node *node = idem__tree_at(input, i);

        if (node->kind == IDEM__TREE_NUMBER &&
            !comes_back(idem__tree_raw(input, node))) {
            idem__buffer_add(ret_marked, json + from, node->from - from);
            idem__buffer_str(ret_marked, "\"");
            idem__buffer_str(ret_marked, mark);
            idem__buffer_u64(ret_marked, i);
            idem__buffer_str(ret_marked, "\"");
            from = node->to;
        }
    }
    if (from > 0) {
        idem__buffer_add(ret_marked, json + from, input->json.len - from);
    }
    return from > 0;
}

static bool same(struct idem_slice a, struct idem_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

/* The number of @input for which the string @node of @marked is the mark, or
 * NULL. */
static const struct idem__tree_node *marked_number(
    const struct idem__tree *input, const struct idem__tree *marked,
    const struct idem__tree_node *node)
{
    struct idem_slice text = idem__tree_text(marked, node);
    const char *p = text.base;
    uint32_t i = 0;
    size_t at = sizeof(mark) - 1;

    if (node->kind != IDEM__TREE_STRING || text.len <= at ||
        text.len > at + 9 || memcmp(p, mark, at) != 0) {
        return NULL;
    }
    for (; at < text.len; at++) {
        if (p[at] < '0' || p[at] > '9') {
            return NULL;
        }
        i = i * 10 + (uint32_t)(p[at] - '0');
    }
    if (i >= idem__tree_len(input) ||
        idem__tree_at(input, i)->kind != IDEM__TREE_NUMBER) {
        return NULL;
    }
    return idem__tree_at(input, i);
}

/* The nodes say the same, but for what is in them. */
static bool alike(const struct idem__tree *plain,
                  const struct idem__tree_node *a,
                  const struct idem__tree *marked,
                  const struct idem__tree_node *b)
{
    if (a->kind != b->kind || a->end != b->end || a->count != b->count) {
        return false;
    }
    return (a->kind != IDEM__TREE_STRING && a->kind != IDEM__TREE_NUMBER) ||
           same(idem__tree_raw(plain, a), idem__tree_raw(marked, b));
}

static bool merge(const struct idem__tree *input,
                  const struct idem__tree *plain,
                  const struct idem__tree *marked, struct idem__buffer *out)
{
    const uint8_t *json = plain->json.base;
    uint32_t from = 0;
    uint32_t i;

    if (marked == NULL || idem__tree_len(plain) != idem__tree_len(marked)) {
        return false;
    }
    for (i = 0; i < idem__tree_len(plain); i++) {
        const struct idem__tree_node *a = idem__tree_at(plain, i);
        const struct idem__tree_node *b = idem__tree_at(marked, i);
        const struct idem__tree_node *own = marked_number(input, marked, b);

        if (!same(idem__tree_name(plain, a), idem__tree_name(marked, b))) {
            return false;
        }
        if (a->kind == IDEM__TREE_NUMBER && own != NULL) {
            struct idem_slice digits = idem__tree_raw(input, own);

            if (idem__number_read(idem__tree_raw(plain, a)) !=
                idem__number_read(digits)) {
                return false;
            }
            idem__buffer_add(out, json + from, a->from - from);
            idem__buffer_add(out, digits.base, digits.len);
            from = a->to;
        } else if (!alike(plain, a, marked, b)) {
            return false;
        }
    }
    idem__buffer_add(out, json + from, plain->json.len - from);
    return true;
}

static int all_are_doubles(const struct idem__tree *input,
                           struct idem_error *error)
{
    uint32_t i;

    for (i = 0; i < idem__tree_len(input); i++) {
        const struct idem__tree_node *node = idem__tree_at(input, i);
        struct idem_slice raw = idem__tree_raw(input, node);

        if (node->kind == IDEM__TREE_NUMBER && !is_double(raw)) {
            return idem__error(error, IDEM_EINVALID,
                               "the program may compute with %.*s%s, which jq "
                               "would round",
                               raw.len > 40 ? 40 : (int)raw.len,
                               (const char *)raw.base,
                               raw.len > 40 ? "..." : "");
        }
    }
    return 0;
}

int idem__exact_merge(const struct idem__tree *input,
                      const struct idem__tree *plain,
                      const struct idem__tree *marked,
                      struct idem__buffer *ret_merged,
                      struct idem_error *ret_error)
{
    int rc = 0;

    if (!merge(input, plain, marked, ret_merged)) {
        ret_merged->len = 0;
        rc = all_are_doubles(input, ret_error);
        idem__buffer_add(ret_merged, plain->json.base, plain->json.len);
    }
    return ret_merged->failed ? idem__error_plain(ret_error, IDEM_ENOMEM) : rc;
}
