/* Packing large results with zstd (RFC 8878). */
#ifndef IDEM_AWS_DYNAMODB_TASK_PACK_H
#define IDEM_AWS_DYNAMODB_TASK_PACK_H

#include "base/bytes.h"

/* Packs @bytes into @out (emptied first). False: it gains less than an eighth,
 * or there is no memory; @out is empty then. */
bool idem__pack(struct idem_slice bytes, struct idem__buffer *out);

/* Unpacks to exactly @len bytes, appended to @out.
 *
 * IDEM_ECORRUPT  It is not a frame of that length.
 * IDEM_ENOMEM
 */
int idem__unpack(struct idem_slice packed, size_t len,
                 struct idem__buffer *out);

#endif
