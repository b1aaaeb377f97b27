/* Writes the place of a list as text and reads it, so that another process can continue
 * the list. */
#include "api/call.h"

#include "base/base64.h"
#include "base/hash.h"

#include <assert.h>
#include <idem/operator.h>
#include <string.h>

/* A place is "p" and then in base64: a checksum of list and cursor, and each word of
 * the cursor as its length and its bytes, the most significant first. Zero words at the
 * end are left out. The checksum guards against mistakes only: a store checks for
 * itself whether it can use the cursor. */
enum {
    SUM_LEN = 4,
    BYTES_MAX = SUM_LEN + IDEM_CURSOR_LEN * (1 + sizeof(uint64_t))
};

static size_t put_word(uint8_t *to, uint64_t word)
{
    size_t len = 0;
    size_t i;

    while (len < sizeof(word) && word >> (8 * len) != 0) {
        len++;
    }
    to[0] = (uint8_t)len;
    for (i = 0; i < len; i++) {
        to[1 + i] = (uint8_t)(word >> (8 * (len - 1 - i)));
    }
    return 1 + len;
}

static size_t put_words(uint8_t *to, const uint64_t *words)
{
    size_t n = IDEM_CURSOR_LEN;
    size_t len = 0;
    size_t i;

    while (n > 0 && words[n - 1] == 0) {
        n--;
    }
    for (i = 0; i < n; i++) {
        len += put_word(to + len, words[i]);
    }
    return len;
}

static bool get_words(const uint8_t *from, size_t len, uint64_t *words)
{
    size_t n = 0;
    size_t i = 0;

    while (i < len && n < IDEM_CURSOR_LEN) {
        size_t bytes = from[i++];
        uint64_t word = 0;

        if (bytes > sizeof(word) || bytes > len - i) {
            return false;
        }
        for (; bytes > 0; bytes--) {
            word = word << 8 | from[i++];
        }
        words[n++] = word;
    }
    return i == len;
}

static void put_sum(const struct idem_store *store, const struct idem_op *op,
                    struct idem_slice words, uint8_t to[SUM_LEN])
{
    const struct idem_filter *filter = &op->u.list.filter;
    const uint8_t flags[] = {
        (uint8_t)filter->statuses, filter->overdue,
        filter->any_scope,         filter->expired,
        filter->failed_outcomes,   filter->newest_first,
    };
    uint32_t sum = idem__crc32(0, idem_str(store->ops->name));
    size_t i;

    sum = idem__crc32(sum, idem_bytes(flags, sizeof(flags)));
    sum = idem__crc32(sum, filter->any_scope ? idem_str("") : filter->scope);
    sum = idem__crc32(sum, words);
    for (i = 0; i < SUM_LEN; i++) {
        to[i] = (uint8_t)(sum >> (8 * i));
    }
}

void idem__list_place_write(const struct idem_store *store,
                            const struct idem_op *op,
                            char place[IDEM_PLACE_MAX])
{
    uint8_t bytes[BYTES_MAX];
    size_t len = put_words(bytes + SUM_LEN, op->u.list.cursor);
    size_t text_len;

    put_sum(store, op, idem_bytes(bytes + SUM_LEN, len), bytes);
    place[0] = 'p';
    len += SUM_LEN;
    text_len = 1 + idem__base64_len(IDEM__BASE64_URL, len);
    assert(text_len < IDEM_PLACE_MAX);
    idem__base64_write(IDEM__BASE64_URL, idem_bytes(bytes, len), place + 1);
    place[text_len] = '\0';
}

int idem__list_place_read(const struct idem_store *store,
                          const char place[IDEM_PLACE_MAX], struct idem_op *op)
{
    size_t text_len = strnlen(place, IDEM_PLACE_MAX);
    uint64_t words[IDEM_CURSOR_LEN] = {0};
    uint8_t bytes[BYTES_MAX];
    uint8_t sum[SUM_LEN];
    size_t len;

    if (text_len == 0) {
        return 0;
    }
    if (text_len == IDEM_PLACE_MAX || place[0] != 'p' ||
        idem__base64_max(text_len - 1) > sizeof(bytes) ||
        idem__base64_read(IDEM__BASE64_URL, idem_bytes(place + 1, text_len - 1),
                          bytes, &len) != 0 ||
        len < SUM_LEN || !get_words(bytes + SUM_LEN, len - SUM_LEN, words)) {
        return IDEM_EINVALID;
    }
    put_sum(store, op, idem_bytes(bytes + SUM_LEN, len - SUM_LEN), sum);
    if (memcmp(sum, bytes, SUM_LEN) != 0) {
        return IDEM_EINVALID;
    }
    memcpy(op->u.list.cursor, words, sizeof(words));
    return 0;
}
