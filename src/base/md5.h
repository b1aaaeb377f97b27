/* MD5, which other libraries make their keys with. It protects nothing here. */
#ifndef IDEM_BASE_MD5_H
#define IDEM_BASE_MD5_H

#include <idem.h>

#define IDEM__MD5_LEN 16

/* 0, or IDEM_ENOMEM when libcrypto cannot. */
int idem__md5(struct idem_slice bytes, uint8_t ret_digest[IDEM__MD5_LEN]);

#endif
