/* identity.h: the hashes that stand for a key, a request and a body. */
#ifndef IDEM_CORE_IDENTITY_H
#define IDEM_CORE_IDENTITY_H

#include "base/hash.h"

#include <idem.h>

/* Begins a fingerprint of @count parts with the first @parts_len of them; the caller adds
 * the others. 0 or IDEM_EINVALID, as idem_fingerprint(). */
int idem__fingerprint_start(struct idem__hash *hash, struct idem_slice secret,
                            size_t count, const struct idem_slice *parts,
                            size_t parts_len);

/* Ends it, all parts being added. 0 or IDEM_ENOMEM. */
int idem__fingerprint_end(struct idem__hash *hash,
                          uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN]);

/* Sets @ret_digest to the first half of the SHA-256 of @body, to zeros if that is empty.
 * 0 or IDEM_ENOMEM. */
int idem__body_digest(struct idem_slice body, uint8_t ret_digest[16]);

#endif
