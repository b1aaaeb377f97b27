/* Packing with zstd. The library is loaded when the first large result is met:
 * programs whose results are small do not pay for it, nor need it. */
#include "store/dynamodb/pack.h"

#include <dlfcn.h>
#include <pthread.h>

enum {
    LEVEL = 3,
    GAIN_DIVISOR = 8
};

static struct {
    size_t (*bound)(size_t len);
    size_t (*compress)(void *to, size_t cap, const void *from, size_t len,
                       int level);
    size_t (*decompress)(void *to, size_t cap, const void *from, size_t len);
    unsigned (*is_error)(size_t code);
} zstd;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool there;

static bool find(void *library, const char *name, void *ret_function)
{
    void *symbol = dlsym(library, name);

    memcpy(ret_function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static void load(void)
{
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);

    there = library != NULL &&
            find(library, "ZSTD_compressBound", &zstd.bound) &&
            find(library, "ZSTD_compress", &zstd.compress) &&
            find(library, "ZSTD_decompress", &zstd.decompress) &&
            find(library, "ZSTD_isError", &zstd.is_error);
}

bool idem__pack(struct idem_slice bytes, struct idem__buffer *out)
{
    uint8_t *to;
    size_t cap;
    size_t len;

    out->len = 0;
    (void)pthread_once(&once, load);
    if (!there) {
        return false;
    }
    cap = zstd.bound(bytes.len);
    to = idem__buffer_room(out, cap);
    if (to == NULL) {
        idem__buffer_reset(out, 0);
        return false;
    }
    len = zstd.compress(to, cap, bytes.base, bytes.len, LEVEL);
    if (zstd.is_error(len) != 0 || len > bytes.len - bytes.len / GAIN_DIVISOR) {
        return false;
    }
    out->len = len;
    return true;
}

int idem__unpack(struct idem_slice packed, size_t len, struct idem__buffer *out)
{
    uint8_t *to;

    (void)pthread_once(&once, load);
    if (!there) {
        return IDEM_ECONFIG;
    }
    to = idem__buffer_room(out, len);
    if (to == NULL) {
        return IDEM_ENOMEM;
    }
    if (zstd.decompress(to, len, packed.base, packed.len) != len) {
        return IDEM_ECORRUPT;
    }
    out->len += len;
    return 0;
}
