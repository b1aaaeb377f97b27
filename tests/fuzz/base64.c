/* Both alphabets of base64. Each text that is read is the one that is written,
 * each text that is written is read, and libcrypto writes the same. */
#include "base/base64.h"
#include "base64.h"
#include "fuzz.h"

#include <openssl/evp.h>
#include <stdlib.h>

enum {
    INPUT_MAX = 1024,
    TEXT_MAX = 2 * INPUT_MAX
};

static void write_and_read_url(struct idem_slice bytes)
{
    char text[TEXT_MAX];
    uint8_t back[INPUT_MAX];
    size_t need = (bytes.len * 4 + 2) / 3;
    size_t n;

    memset(text, '?', sizeof(text));
    must(idem__base64_encode(bytes, text, need) == IDEM_EINVALID);
    must(text[0] == '?');
    must(idem__base64_encode(bytes, text, need + 1) == 0);
    must(strlen(text) == need && text[need + 1] == '?');
    must(strpbrk(text, "+/=") == NULL);
    must(idem__base64_decode(idem_bytes(text, need), back, bytes.len, &n) == 0);
    must(same_bytes(idem_bytes(back, n), bytes));
    if (bytes.len > 0) {
        must(idem__base64_decode(idem_bytes(text, need), back, bytes.len - 1,
                                 &n) == IDEM_EINVALID);
    }
}

static void write_and_read_mime(struct idem_slice bytes)
{
    char text[TEXT_MAX];
    char theirs[TEXT_MAX];
    uint8_t back[TEXT_MAX];
    size_t n;

    cli_base64(bytes, text);
    must(strlen(text) == cli_base64_len(bytes.len));
    must(EVP_EncodeBlock((unsigned char *)theirs,
                         bytes.len > 0 ? bytes.base : (const unsigned char *)"",
                         (int)bytes.len) == (int)strlen(text));
    must(strcmp(text, theirs) == 0);
    must(cli_base64_decode(idem_str(text), back, &n));
    must(same_bytes(idem_bytes(back, n), bytes));
}

/* @buf is as long as the reader may need, so that one byte more is seen. */
static void read_and_write_url(struct idem_slice text)
{
    size_t cap = text.len / 4 * 3 + text.len % 4;
    uint8_t *buf = malloc(cap + 1);
    char back[TEXT_MAX];
    size_t n;

    must(buf != NULL);
    if (idem__base64_decode(text, buf, cap, &n) == 0) {
        must(idem__base64_encode(idem_bytes(buf, n), back, sizeof(back)) == 0);
        must(same_bytes(idem_str(back), text));
    }
    free(buf);
}

static void read_and_write_mime(struct idem_slice text)
{
    uint8_t *buf = malloc(text.len / 4 * 3);
    char back[TEXT_MAX];
    size_t n;

    if (cli_base64_decode(text, buf, &n)) {
        cli_base64(idem_bytes(buf, n), back);
        must(same_bytes(idem_str(back), text));
    }
    free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct idem_slice input = idem_bytes(data, len);

    if (len <= INPUT_MAX) {
        write_and_read_url(input);
        write_and_read_mime(input);
        read_and_write_url(input);
        read_and_write_mime(input);
    }
    return 0;
}
