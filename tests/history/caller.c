/* Notes each call, makes it, and notes its answer. */
#include "caller.h"

#include "../lib/verbs.h"

#include <idem/operator.h>

#include <stdlib.h>
#include <time.h>

bool caller_goes_on(const struct caller *caller)
{
    return caller->writer.calls < caller->calls &&
           __atomic_load_n(caller->stopped, __ATOMIC_RELAXED) == 0;
}

int caller_begin(struct caller *caller, const char *key,
                 const struct idem_request *request,
                 struct caller_held *ret_held)
{
    struct idem_attempt *attempt = NULL;
    struct call_id id = write_begin(&caller->writer, key, request);
    int rc = idem_begin(caller->store, request, &attempt, NULL);

    write_answer(&caller->writer, id, rc, attempt, NULL);
    if (rc == 0) {
        ret_held->attempt = attempt;
        ret_held->id = id;
        if (snprintf(ret_held->key, sizeof(ret_held->key), "%s", key) >=
            (int)sizeof(ret_held->key)) {
            abort();
        }
    }
    return rc;
}

/* If the first answer was lost, and another caller has claimed the key since, LOST does
 * not tell whether this call was done before that. */
static void write_told(struct caller *caller, struct call_id id, int rc)
{
    bool unsure = caller->lossy && rc == IDEM_ELOST;

    write_answer(&caller->writer, id, unsure ? IDEM_EUNKNOWN : rc, NULL, NULL);
}

int caller_end(struct caller *caller, const struct caller_held *held,
               const struct idem_outcome *outcome)
{
    struct call_id id = write_end(&caller->writer, held->key, held->id,
                                  held->attempt->fence, outcome);
    int rc = verb_end(held->attempt, outcome);

    /* A completion that was done finds itself on record. */
    if (outcome->status == IDEM_STATUS_COMPLETED) {
        write_answer(&caller->writer, id, rc, NULL, NULL);
    } else {
        write_told(caller, id, rc);
    }
    return rc;
}

int caller_renew(struct caller *caller, const struct caller_held *held,
                 int64_t lease_ms)
{
    struct call_id id = write_renew(&caller->writer, held->key, held->id,
                                    held->attempt->fence, lease_ms);
    int rc = idem_renew(held->attempt, lease_ms, NULL);

    write_answer(&caller->writer, id, rc, NULL, NULL);
    return rc;
}

int caller_expire(struct caller *caller, const struct caller_held *held)
{
    struct call_id id = write_expire(&caller->writer, held->key, held->id,
                                     held->attempt->fence);
    int rc = idem_expire(held->attempt, NULL);

    write_told(caller, id, rc);
    return rc;
}

int caller_resolve(struct caller *caller, const char *key, uint64_t fence,
                   const char *who, const struct idem_outcome *outcome,
                   bool force)
{
    struct call_id id =
        write_resolve(&caller->writer, key, fence, who, outcome, force);
    int rc = verb_resolve(caller->store, idem_str(""), idem_str(key), fence,
                          who, outcome, force ? IDEM_RESOLVE_FORCE : 0);

    write_answer(&caller->writer, id, rc, NULL, NULL);
    return rc;
}

int caller_purge(struct caller *caller, uint64_t max)
{
    struct call_id id = write_purge(&caller->writer);
    int rc = idem_purge(caller->store, max, NULL, NULL);

    write_answer(&caller->writer, id, rc, NULL, NULL);
    return rc;
}

uint64_t caller_get(struct caller *caller, const char *key)
{
    struct call_id id = write_get(&caller->writer, key);
    struct idem_answer *answer = NULL;
    const struct idem_record *record = NULL;
    uint64_t fence = 0;
    int rc =
        idem_get(caller->store, idem_str(""), idem_str(key), &answer, NULL);

    if (rc == 0) {
        record = idem_answer_record(answer);
        fence = record->fence;
    }
    write_answer(&caller->writer, id, rc, NULL, record);
    idem_answer_destroy(answer);
    return fence;
}

void caller_pause(int64_t ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&ts, NULL);
}

int64_t caller_now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
