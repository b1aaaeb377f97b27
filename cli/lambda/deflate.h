/* deflate.h: the functions of zlib that write a zip file. */
#ifndef IDEM_CLI_LAMBDA_DEFLATE_H
#define IDEM_CLI_LAMBDA_DEFLATE_H

#include <stdbool.h>
#include <zlib.h>

struct cli_zlib {
    int (*init)(z_streamp, int, int, int, int, int, const char *, int);
    int (*deflate)(z_streamp, int);
    int (*end)(z_streamp);
    uLong (*bound)(z_streamp, uLong);
    uLong (*crc)(uLong, const Bytef *, uInt);
};

/* False, after saying why: zlib is missing. */
bool cli_zlib_get(struct cli_zlib *ret_zlib);

#endif
