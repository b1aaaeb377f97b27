/* Both spellings of base64. Each text that is read is the one that is written,
 * each text that is written is read, and libcrypto writes the same. */
#include "base/base64.h"

#include "fuzz.h"

#include <openssl/evp.h>
#include <stdlib.h>

enum {
    INPUT_MAX = 1024,
    TEXT_MAX = 2 * INPUT_MAX
};

/* Each buffer is as long as it must be, so that a byte more is seen. */
static void write_and_read(enum idem__base64 spelling, struct idem_slice bytes)
{
    size_t len = idem__base64_len(spelling, bytes.len);
    char *text = malloc(len + 1);
    uint8_t *back = malloc(bytes.len + 1);
    size_t n;

    must(text != NULL && back != NULL && idem__base64_max(len) >= bytes.len);
    text[len] = '?';
    back[bytes.len] = '?';
    idem__base64_write(spelling, bytes, text);
    must(text[len] == '?');
    must(idem__base64_read(spelling, idem_bytes(text, len), back, &n) == 0);
    must(same_bytes(idem_bytes(back, n), bytes) && back[n] == '?');
    free(text);
    free(back);
}

static void write_as_libcrypto(struct idem_slice bytes)
{
    unsigned char theirs[TEXT_MAX];
    char text[TEXT_MAX];
    int len =
        EVP_EncodeBlock(theirs,
                        bytes.len > 0 ? bytes.base : (const unsigned char *)"",
                        (int)bytes.len);

    idem__base64_write(IDEM__BASE64, bytes, text);
    must(idem__base64_len(IDEM__BASE64, bytes.len) == (size_t)len);
    must(memcmp(text, theirs, (size_t)len) == 0);
}

static void read_and_write(enum idem__base64 spelling, struct idem_slice text)
{
    uint8_t *bytes = malloc(idem__base64_max(text.len) + 1);
    char back[TEXT_MAX];
    size_t n;

    must(bytes != NULL);
    if (idem__base64_read(spelling, text, bytes, &n) == 0) {
        must(idem__base64_len(spelling, n) == text.len);
        idem__base64_write(spelling, idem_bytes(bytes, n), back);
        must(same_bytes(idem_bytes(back, text.len), text));
    }
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct idem_slice input = idem_bytes(data, len);

    if (len <= INPUT_MAX) {
        write_and_read(IDEM__BASE64, input);
        write_and_read(IDEM__BASE64_URL, input);
        write_as_libcrypto(input);
        read_and_write(IDEM__BASE64, input);
        read_and_write(IDEM__BASE64_URL, input);
    }
    return 0;
}
