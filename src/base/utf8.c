/* Well-formed UTF-8. */
#include "base/utf8.h"

size_t idem__utf8_len(const uint8_t *p, size_t left)
{
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    size_t i;

    if (p[0] < 0xc2 || p[0] > 0xf4 || left < n) {
        return 0;
    }
    for (i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) {
        return 0;
    }
    return n;
}

bool idem__utf8_is(struct idem_slice bytes)
{
    const uint8_t *p = bytes.base;
    size_t i = 0;

    while (i < bytes.len) {
        size_t n = p[i] < 0x80 ? 1 : idem__utf8_len(p + i, bytes.len - i);

        if (n == 0) {
            return false;
        }
        i += n;
    }
    return true;
}
