/* The zlib that a static program has inside. */
#include "lambda/deflate.h"

bool cli_zlib_get(struct cli_zlib *ret_zlib)
{
    *ret_zlib = (struct cli_zlib){
        .init = deflateInit2_,
        .deflate = deflate,
        .end = deflateEnd,
        .bound = deflateBound,
        .crc = crc32,
    };
    return true;
}
