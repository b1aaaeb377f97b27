/* The HTTP room. The first byte of the input says what the rest is:
 *
 * - the value of an Idempotency-Key header. A key that is read is 1 to 255 bytes
 *   of visible ASCII and spaces, and is read again when it is quoted anew.
 * - the head of an answer that somebody put into the store. What is read is valid,
 *   is nothing that must never be given out, and is written again as it was read.
 * - an Accept-Encoding. Who takes two codings takes each; who takes one that is
 *   not mentioned takes any. All take a body that is not encoded.
 */
#include "fuzz.h"

#include <idem/http.h>

#include <strings.h>

static void read_key(struct idem_slice value)
{
    char key[IDEM_KEY_MAX];
    char again[IDEM_KEY_MAX];
    char quoted[2 * IDEM_KEY_MAX + 2];
    size_t quoted_len = 0;
    size_t len;
    size_t again_len;
    size_t i;

    if (idem_http_key(value, key, &len, NULL) != 0) {
        return;
    }
    must(len >= 1 && len <= IDEM_KEY_MAX);
    quoted[quoted_len++] = '"';
    for (i = 0; i < len; i++) {
        must(key[i] >= ' ' && key[i] < 0x7f);
        if (key[i] == '"' || key[i] == '\\') {
            quoted[quoted_len++] = '\\';
        }
        quoted[quoted_len++] = key[i];
    }
    quoted[quoted_len++] = '"';
    must(idem_http_key(idem_bytes(quoted, quoted_len), again, &again_len,
                       NULL) == 0);
    must(same_bytes(idem_bytes(key, len), idem_bytes(again, again_len)));
}

static void read_head(struct idem_slice meta)
{
    static char buf[IDEM_META_MAX];
    struct idem_http_head head;
    struct idem_slice rest;
    struct idem_slice name;
    struct idem_slice value;
    const char *start;
    int status;
    int rc = 1;

    if (meta.len > sizeof(buf) ||
        idem_http_head_read(meta, &status, &rest) != 0) {
        return;
    }
    must(idem_http_head_open(&head, buf, sizeof(buf), status) == 0);
    start = rest.base;
    while (idem_http_head_next(&rest, &name, &value, &rc)) {
        must(idem_http_header_valid(name, value));
        must(!idem_http_header_never(name));
        must(name.len != 10 || strncasecmp(name.base, "set-cookie", 10) != 0);
        must(memchr(value.base, '\n', value.len) == NULL);
        must((const char *)name.base >= start);
        must(idem_http_head_add(&head, name, value) == 0);
        start = name.base;
    }
    must(rc == 0 || rc == IDEM_ECORRUPT);
    must(head.len <= meta.len || meta.len == 0);
}

static bool mentions(struct idem_slice text, const char *word)
{
    const char *p = text.base;
    size_t len = strlen(word);
    size_t i;

    for (i = 0; i + len <= text.len; i++) {
        if (strncasecmp(p + i, word, len) == 0) {
            return true;
        }
    }
    return false;
}

static void weigh(struct tape *tape)
{
    struct idem_slice first = take_bytes(tape, 16);
    struct idem_slice second = take_bytes(tape, 16);
    struct idem_slice accept = take_rest(tape);
    char both[33];

    memcpy(both, first.base, first.len);
    both[first.len] = ',';
    memcpy(both + first.len + 1, second.base, second.len);
    must(idem_http_accepts(accept,
                           idem_bytes(both, first.len + 1 + second.len)) ==
         (idem_http_accepts(accept, first) &&
          idem_http_accepts(accept, second)));
    must(idem_http_accepts(accept, idem_str("identity")));
    must(!idem_http_accepts(accept, idem_str("br")) || mentions(accept, "br") ||
         mentions(accept, "*"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);

    switch (take_up_to(&tape, 2)) {
    case 0:
        read_key(take_rest(&tape));
        break;
    case 1:
        read_head(take_rest(&tape));
        break;
    default:
        weigh(&tape);
        break;
    }
    return 0;
}
