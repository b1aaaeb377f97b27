/* A write that was not answered. */
#include "store/remote/pending.h"

#include "base/hash.h"

_Static_assert(sizeof(((struct idem_op *)NULL)->pending_head) ==
                   IDEM__SHA256_LEN,
               "it has the digest of a head");

int idem__pending_note(struct idem_op *op, struct idem_slice head)
{
    op->pending = true;
    return idem__sha256(&head, 1, op->pending_head);
}

bool idem__pending_holds(const struct idem_op *op, struct idem_slice head)
{
    uint8_t digest[IDEM__SHA256_LEN];

    return op->pending &&
           (idem__sha256(&head, 1, digest) != 0 ||
            memcmp(digest, op->pending_head, sizeof(digest)) == 0);
}
