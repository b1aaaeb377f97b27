/* A command may use its token to say itself how it ended. */
#include "run/self_report.h"

/* Every attempt has another nonce, and a person who decides takes it away. */
static bool is_same_attempt(const struct idem_record *a,
                            const struct idem_record *b)
{
    return a->fence == b->fence &&
           memcmp(a->nonce, b->nonce, sizeof(a->nonce)) == 0;
}

enum idem_status self_report(struct idem_store *store,
                             const struct idem_attempt *attempt)
{
    const struct idem_record *ours = attempt->record;
    const struct idem_record *now;
    struct idem_answer *answer;
    enum idem_status status = 0;

    if (idem_get(store, ours->scope, ours->key, &answer, NULL) != 0) {
        return 0;
    }
    now = idem_answer_record(answer);
    if (is_same_attempt(ours, now) &&
        idem_record_status(now) != IDEM_STATUS_IN_PROGRESS) {
        status = idem_record_status(now);
    }
    idem_answer_destroy(answer);
    return status;
}
