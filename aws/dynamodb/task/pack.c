/* Packing with zstd. The library is loaded when the first large result is met:
 * programs whose results are small do not pay for it, nor need it. */
#include "aws/dynamodb/task/pack.h"

#include <dlfcn.h>
#include <pthread.h>

enum {
    LEVEL = 3,
    GAIN_DIVISOR = 8,
    KEEP_BYTES = 64 * 1024 /* Larger ones are given back. */
};

static struct {
    size_t (*bound)(size_t len);
    void *(*create_packer)(void);
    size_t (*free_packer)(void *packer);
    size_t (*pack)(void *packer, void *to, size_t cap, const void *from,
                   size_t len, int level);
    void *(*create_unpacker)(void);
    size_t (*free_unpacker)(void *unpacker);
    size_t (*unpack)(void *unpacker, void *to, size_t cap, const void *from,
                     size_t len);
    unsigned (*is_error)(size_t code);
} zstd;

/* One of each is kept from one result to the next. To make them anew would take
 * longer than to pack: they are so large that the system is asked for the memory
 * each time. A caller that finds none here makes one. */
static void *spare_packer;
static void *spare_unpacker;

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
            find(library, "ZSTD_createCCtx", &zstd.create_packer) &&
            find(library, "ZSTD_freeCCtx", &zstd.free_packer) &&
            find(library, "ZSTD_compressCCtx", &zstd.pack) &&
            find(library, "ZSTD_createDCtx", &zstd.create_unpacker) &&
            find(library, "ZSTD_freeDCtx", &zstd.free_unpacker) &&
            find(library, "ZSTD_decompressDCtx", &zstd.unpack) &&
            find(library, "ZSTD_isError", &zstd.is_error);
}

/* NULL: no memory. */
static void *take(void **spare, void *(*create)(void))
{
    void *context = __atomic_exchange_n(spare, NULL, __ATOMIC_ACQ_REL);

    return context != NULL ? context : create();
}

/* @len is what it was used for. */
static void give(void **spare, void *context, size_t len,
                 size_t (*free_context)(void *context))
{
    if (len <= KEEP_BYTES) {
        context = __atomic_exchange_n(spare, context, __ATOMIC_ACQ_REL);
    }
    (void)free_context(context); /* NULL is allowed. */
}

bool idem__pack(struct idem_slice bytes, struct idem__buffer *out)
{
    void *packer;
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
    packer = to == NULL ? NULL : take(&spare_packer, zstd.create_packer);
    if (packer == NULL) {
        idem__buffer_reset(out, 0);
        return false;
    }
    len = zstd.pack(packer, to, cap, bytes.base, bytes.len, LEVEL);
    give(&spare_packer, packer, bytes.len, zstd.free_packer);
    if (zstd.is_error(len) != 0 || len > bytes.len - bytes.len / GAIN_DIVISOR) {
        return false;
    }
    out->len = len;
    return true;
}

int idem__unpack(struct idem_slice packed, size_t len, struct idem__buffer *out)
{
    void *unpacker;
    uint8_t *to;
    size_t got;

    (void)pthread_once(&once, load);
    if (!there) {
        return IDEM_ECONFIG;
    }
    to = idem__buffer_room(out, len);
    unpacker = to == NULL ? NULL : take(&spare_unpacker, zstd.create_unpacker);
    if (unpacker == NULL) {
        return IDEM_ENOMEM;
    }
    got = zstd.unpack(unpacker, to, len, packed.base, packed.len);
    give(&spare_unpacker, unpacker, len, zstd.free_unpacker);
    if (got != len) {
        return IDEM_ECORRUPT;
    }
    out->len += len;
    return 0;
}
