/* The digest of a body: the first half of its SHA-256. */
#ifndef IDEM_CORE_DIGEST_H
#define IDEM_CORE_DIGEST_H

#include <idem.h>

/* 0 or IDEM_ENOMEM. The digest of an empty body is all zeros. */
int idem__body_digest(struct idem_slice body, uint8_t ret_digest[16]);

#endif
