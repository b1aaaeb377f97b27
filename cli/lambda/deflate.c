/* zlib is loaded when it is needed; libcurl has brought it to this machine. */
#include "lambda/deflate.h"

#include "text/error.h"

#include <dlfcn.h>

static bool find(void *library, const char *name, void *slot)
{
    void *function = dlsym(library, name);

    memcpy(slot, &function, sizeof(function));
    return function != NULL;
}

bool cli_zlib_get(struct cli_zlib *ret_zlib)
{
    void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL || !find(library, "deflateInit2_", &ret_zlib->init) ||
        !find(library, "deflate", &ret_zlib->deflate) ||
        !find(library, "deflateEnd", &ret_zlib->end) ||
        !find(library, "deflateBound", &ret_zlib->bound) ||
        !find(library, "crc32", &ret_zlib->crc)) {
        cli_say("zlib is needed to write a zip file, and is not installed: "
                "apt install zlib1g");
        return false;
    }
    return true;
}
