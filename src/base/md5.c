/* MD5 by libcrypto's plain functions, which a FIPS provider does not refuse. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/md5.h"

#include <openssl/md5.h>

int idem__md5(struct idem_slice bytes, uint8_t ret_digest[IDEM__MD5_LEN])
{
    MD5_CTX md5;
    bool ok =
        MD5_Init(&md5) == 1 &&
        (bytes.len == 0 || MD5_Update(&md5, bytes.base, bytes.len) == 1) &&
        MD5_Final(ret_digest, &md5) == 1;

    return ok ? 0 : IDEM_ENOMEM;
}
