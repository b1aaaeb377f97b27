/* An HTTP answer, and where it is cut on its way. What is read of it does not
 * depend on the cuts; it is whole at one byte and not before; and what is said to
 * be its body lies in it.
 */
#include "aws/client/http.h"

#include "fuzz.h"

#include <stdlib.h>

enum {
    CUTS = 6,
    ANSWER_MAX = 4096
};

struct heard {
    char lines[2 * ANSWER_MAX];
    size_t lines_len;
    char body[ANSWER_MAX];
    size_t body_len;
};

static bool on_line(void *ctx, struct idem_slice line)
{
    struct heard *heard = ctx;

    must(heard->lines_len + line.len + 1 <= sizeof(heard->lines));
    if (line.len > 0) {
        memcpy(heard->lines + heard->lines_len, line.base, line.len);
    }
    heard->lines_len += line.len;
    heard->lines[heard->lines_len++] = '\n';
    return true;
}

static bool on_body(void *ctx, struct idem_slice bytes)
{
    struct heard *heard = ctx;

    must(bytes.len > 0 && heard->body_len + bytes.len <= sizeof(heard->body));
    memcpy(heard->body + heard->body_len, bytes.base, bytes.len);
    heard->body_len += bytes.len;
    return true;
}

/* A copy of its own, so that the reader cannot go one byte further unseen. */
static size_t feed(struct idem__http *http, struct idem_slice bytes)
{
    uint8_t *copy = malloc(bytes.len + 1);
    size_t used;

    must(copy != NULL);
    if (bytes.len > 0) {
        memcpy(copy, bytes.base, bytes.len);
    }
    must(idem__http_feed(http, idem_bytes(copy, bytes.len), &used) ==
         http->state);
    must(used <= bytes.len);
    must(used == bytes.len || http->state == IDEM__HTTP_DONE ||
         http->state == IDEM__HTTP_BAD);
    free(copy);
    return used;
}

/* Reads @text with cuts before the bytes whose numbers rise in @cuts. */
static size_t read_cut(struct idem__http *http, struct heard *heard,
                       struct idem_slice text, const size_t *cuts,
                       size_t cuts_len)
{
    const uint8_t *p = text.base;
    size_t at = 0;
    size_t used = 0;
    size_t i;

    memset(heard, 0, sizeof(*heard));
    http->on_line = on_line;
    http->on_body = on_body;
    http->ctx = heard;
    idem__http_start(http);
    for (i = 0; i <= cuts_len; i++) {
        size_t to = i < cuts_len && cuts[i] < text.len ? cuts[i] : text.len;

        if (to > at || i == cuts_len) {
            used += feed(http, idem_bytes(p + at, to - at));
            at = to;
        }
    }
    return used;
}

static void same(const struct idem__http *a, const struct heard *x,
                 const struct idem__http *b, const struct heard *y)
{
    must(a->state == b->state && a->status == b->status);
    must(a->flaw == b->flaw);
    must(a->state != IDEM__HTTP_DONE || a->keeps == b->keeps);
    must(x->lines_len == y->lines_len && x->body_len == y->body_len);
    must(memcmp(x->lines, y->lines, x->lines_len) == 0);
    must(memcmp(x->body, y->body, x->body_len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct heard whole_heard;
    static struct heard cut_heard;
    struct tape tape = tape_of(data, len);
    struct idem__http whole = {.part = {.base = NULL}};
    struct idem__http cut = {.part = {.base = NULL}};
    struct idem_slice text;
    size_t cuts[CUTS];
    size_t used;
    size_t at = 0;
    size_t i;

    for (i = 0; i < CUTS; i++) {
        at += take_u8(&tape);
        cuts[i] = at;
    }
    text = take_bytes(&tape, ANSWER_MAX);
    used = read_cut(&whole, &whole_heard, text, cuts, 0);
    if (whole.state == IDEM__HTTP_DONE) {
        must(whole.status >= 200 && whole.status <= 999);
        /* It ends with its last byte. */
        (void)read_cut(&cut, &cut_heard,
                       idem_bytes(text.base, used > 0 ? used - 1 : 0), cuts,
                       CUTS);
        must(cut.state != IDEM__HTTP_DONE && cut.state != IDEM__HTTP_BAD);
        must(idem__http_end(&cut) == IDEM__HTTP_BAD);
    }
    (void)read_cut(&cut, &cut_heard, text, cuts, CUTS);
    same(&whole, &whole_heard, &cut, &cut_heard);
    (void)idem__http_end(&whole);
    (void)idem__http_end(&cut);
    same(&whole, &whole_heard, &cut, &cut_heard);
    must(whole.state == IDEM__HTTP_DONE || whole.state == IDEM__HTTP_BAD);
    idem__http_free(&whole);
    idem__http_free(&cut);
    return 0;
}
