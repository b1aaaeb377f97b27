/* Computes the hashes that identify a key, a request and a body. */
#ifndef IDEM_CORE_IDENTITY_H
#define IDEM_CORE_IDENTITY_H

#include "base/hash.h"

#include <idem.h>

/* Starts a fingerprint of @count parts and adds the first @parts_len of them, @parts. The
 * caller adds the others to @hash. 0 or IDEM_EINVALID, as for idem_fingerprint(). */
int idem__fingerprint_start(struct idem__hash *hash, struct idem_slice secret,
                            size_t count, const struct idem_slice *parts,
                            size_t parts_len);

/* Finishes the fingerprint after all parts were added. 0 or IDEM_ENOMEM. */
int idem__fingerprint_end(struct idem__hash *hash,
                          uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN]);

/* Sets @ret_digest to the first half of the SHA-256 of @body, or to zeros if @body is
 * empty. 0 or IDEM_ENOMEM. */
int idem__body_digest(struct idem_slice body, uint8_t ret_digest[16]);

#endif
