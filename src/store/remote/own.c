/* Recognises an op's own writes after their answers were lost. */
#include "store/remote/own.h"

#include "base/hash.h"

#include <string.h>

/* True if the lease in @record counts from an earlier moment than the owner's own count,
 * which begins before its request. A slow clock wrote it, and another caller might take
 * over while the owner still works. The owner stops two seconds before its lease ends,
 * and others start two seconds after that; of these four seconds one may go to clocks
 * that are a little off. */
bool idem__own_claim_is_short(const struct idem_op *op,
                              const struct idem_decision *decision,
                              const struct idem_record *record,
                              const struct idem_now *now)
{
    enum {
        TOLERATED_MS = 1000
    };
    int64_t asked_ms =
        now->store_ms + now->store_err_ms - (now->boot_ms - op->asked_boot_ms);

    return op->verb == IDEM_OP_BEGIN && op->commit == NULL &&
           decision->verdict == IDEM_STARTED &&
           record->lease_end_ms != IDEM_NEVER &&
           record->lease_end_ms - record->lease_ms + TOLERATED_MS < asked_ms;
}

/* A fence in @op means that this op itself has decided to claim the key. By it,
 * is_unanswered_claim() in core/decide_begin.c recognises a claim whose answer was
 * lost. */
void idem__own_claim_note(struct idem_op *op, const struct idem_record *found,
                          const struct idem_decision *decision)
{
    const struct idem_record *claim =
        decision->change == IDEM_CHANGE_NONE ? found : &decision->next;

    /* Reset it when a later round finds that another caller has the key: this op then has
     * no claim to take back or release. */
    if (op->verb == IDEM_OP_BEGIN) {
        op->fence = decision->verdict == IDEM_STARTED && op->commit == NULL
                        ? claim->fence
                        : 0;
    }
}

bool idem__own_import(const struct idem_op *op, const struct idem_record *found)
{
    const struct idem_record *ours = op->u.import.record;

    return op->verb == IDEM_OP_IMPORT &&
           memcmp(found->nonce, ours->nonce, sizeof(ours->nonce)) == 0;
}

int idem__own_code(int code, bool ambiguous)
{
    switch (code) {
    case IDEM_EUNAVAILABLE:
    case IDEM_EUNKNOWN:
        /* An op without a write in doubt changed nothing. */
        return ambiguous ? IDEM_EUNKNOWN : IDEM_EUNAVAILABLE;
    case IDEM_ECONFIG:
    case IDEM_EDENIED:
    case IDEM_EFULL:
    case IDEM_ENOMEM:
        /* The sentence still names the remedy, but the code must not say that nothing was
         * done. */
        return ambiguous ? IDEM_EUNKNOWN : code;
    default:
        return code;
    }
}

/* ---- A write that was not answered ----
 *
 * The write was conditional on the record that it was decided on. While that record is
 * there unchanged, the service may still apply the write; after a change it cannot. */

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

    /* Without memory for the digest the answer is the safe one: it may still be applied. */
    return op->pending &&
           (idem__sha256(&head, 1, digest) != 0 ||
            memcmp(digest, op->pending_head, sizeof(digest)) == 0);
}
