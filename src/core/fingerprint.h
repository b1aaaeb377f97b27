/* The inside of fingerprints: their parts one after the other. */
#ifndef IDEM_CORE_FINGERPRINT_H
#define IDEM_CORE_FINGERPRINT_H

#include "base/hash.h"

/* Begins the fingerprint of @count parts with the @parts_len first of them. 0 or
 * IDEM_EINVALID, as idem_fingerprint(). */
int idem__fingerprint_start(struct idem__hash *hash, struct idem_slice secret,
                            size_t count, const struct idem_slice *parts,
                            size_t parts_len);

/* All parts were added. 0 or IDEM_ENOMEM. */
int idem__fingerprint_end(struct idem__hash *hash,
                          uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN]);

#endif
