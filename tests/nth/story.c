/* What the stories share: a store, requests, and what must be true of both. */
#include "story.h"

#include <idem/operator.h>
#include <idem/sqlite.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct idem_error story_why;

/* Some days are behind us, so that a retention can be over. */
int64_t story_shift_ms = 10 * STORY_DAY_MS;

int64_t story_ahead_ms;

static int shifted_clock(void *ctx, struct idem_clock_reading *ret)
{
    struct timespec wall;
    struct timespec boot;

    (void)ctx;
    if (clock_gettime(CLOCK_REALTIME, &wall) != 0 ||
        clock_gettime(CLOCK_BOOTTIME, &boot) != 0) {
        return -1;
    }
    ret->wall_ms =
        (int64_t)wall.tv_sec * 1000 + story_shift_ms + story_ahead_ms;
    ret->boot_ms = (int64_t)boot.tv_sec * 1000 + story_shift_ms;
    memset(ret->boot_id, story_ahead_ms == 0 ? 'b' : 'a', sizeof(ret->boot_id));
    return 0;
}

struct idem_open_options story_options(unsigned flags, int64_t timeout_ms)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;

    options.flags = flags;
    options.timeout_ms = timeout_ms;
    options.host.clock = shifted_clock;
    return options;
}

static int open_for(const char *path, unsigned flags, int64_t timeout_ms,
                    struct idem_store **ret_store)
{
    struct idem_open_options options = story_options(flags, timeout_ms);

    return idem_sqlite_open(path, &options, ret_store, &story_why);
}

int story_open_at(const char *path, unsigned flags,
                  struct idem_store **ret_store)
{
    return open_for(path, flags, 30, ret_store);
}

int story_open_after(const char *path, struct idem_store **ret_store)
{
    return open_for(path, 0, 60 * 1000, ret_store);
}

/* Where nothing fails, a store that was not to be had in time was busy, as the
 * machine may be: it is asked again. */
static bool was_busy(int rc)
{
    static unsigned left = 1000;

    return rc == IDEM_EUNAVAILABLE && left > 0 && left-- > 0;
}

void story_must(int rc)
{
    if (rc != 0) {
        fprintf(stderr, "nth: %s: %s\n", idem_error_name(rc), story_why.text);
        abort();
    }
}

struct idem_store *story_open(const char *path)
{
    struct idem_store *store;
    int rc;

    do {
        rc = story_open_at(path, 0, &store);
    } while (was_busy(rc));
    story_must(rc);
    return store;
}

struct idem_request story_request(const char *key)
{
    struct idem_request request = IDEM_REQUEST_INIT;

    request.key = idem_str(key);
    request.on_expired_lease = IDEM_RERUN;
    request.input = idem_str("what to do");
    return request;
}

struct idem_attempt *story_begun(struct idem_store *store, const char *key)
{
    struct idem_request request = story_request(key);
    struct idem_attempt *attempt;

    story_must(idem_begin(store, &request, &attempt, &story_why));
    if (attempt->verdict != IDEM_STARTED) {
        abort();
    }
    return attempt;
}

int story_once(struct idem_store *store, const char *key)
{
    struct idem_request request = story_request(key);
    struct idem_result result = {.bytes = idem_str(STORY_RESULT)};
    struct idem_attempt *attempt;
    int rc;

    do {
        rc = idem_begin(store, &request, &attempt, &story_why);
    } while (was_busy(rc));
    if (rc != 0) {
        return rc;
    }
    do {
        rc = attempt->verdict == IDEM_STARTED
                 ? idem_complete(attempt, &result, &story_why)
                 : IDEM_EINVALID;
    } while (was_busy(rc));
    idem_attempt_destroy(attempt);
    return rc;
}

void story_close(struct idem_store *store, struct told *told)
{
    story_disarm();
    told->after = story_once(store, "after");
    idem_close(store);
}

void story_live(const struct story *story, const char *path, struct told *told)
{
    struct idem_store *store;

    if (story->live != NULL) {
        story->live(path, told);
        return;
    }
    /* The store is opened while all is well; so the first call that fails is one
     * of the verbs. */
    store = story_open(path);
    story_arm();
    story_claim(store, told, story->ends);
    story_close(store, told);
}

/* What another key must be there for: to be left alone. */
void story_prepare(const char *path)
{
    struct idem_store *store = story_open(path);

    story_must(story_once(store, "done"));
    idem_attempt_destroy(story_begun(store, "held"));
    idem_close(store);
}

/* The verb that ends an attempt in @status; IN_PROGRESS: idem_expire(). */
static int end(struct idem_attempt *attempt, enum idem_status status)
{
    struct idem_result result = {.bytes = idem_str(STORY_RESULT)};

    switch (status) {
    case IDEM_STATUS_COMPLETED:
        return idem_complete(attempt, &result, &story_why);
    case IDEM_STATUS_FAILED:
        return idem_fail(attempt, idem_str("no"), &result, &story_why);
    case IDEM_STATUS_RELEASED:
        return idem_release(attempt, idem_str("nothing"), &story_why);
    case IDEM_STATUS_UNKNOWN:
        return idem_unknown(attempt, idem_str("perhaps"), &story_why);
    case IDEM_STATUS_RETRY:
        return idem_retry(attempt, idem_str("again"), &story_why);
    case IDEM_STATUS_IN_PROGRESS:
        break;
    }
    return idem_expire(attempt, &story_why);
}

void story_claim(struct idem_store *store, struct told *told,
                 enum idem_status status)
{
    struct idem_request request = story_request("k");
    struct idem_attempt *attempt;

    told->begin = STORY_ASKED;
    told->begin = idem_begin(store, &request, &attempt, &story_why);
    if (told->begin == 0) {
        told->verdict = (int)attempt->verdict;
        told->fence = attempt->fence;
        told->end = STORY_ASKED;
        told->end = end(attempt, status);
        idem_attempt_destroy(attempt);
    }
}

uint64_t story_had(struct idem_store *store, const char *key,
                   enum idem_status status)
{
    struct idem_attempt *attempt = story_begun(store, key);
    uint64_t fence = attempt->fence;

    story_must(end(attempt, status));
    idem_attempt_destroy(attempt);
    return fence;
}

void story_prepare_k(const char *path, enum idem_status status)
{
    struct idem_store *store;

    story_prepare(path);
    store = story_open(path);
    (void)story_had(store, "k", status);
    idem_close(store);
}

/* ---- What is on record ------------------------------------------------- */

/* The status of a key, 0: absent, or a code. */
int story_status(struct idem_store *store, const char *key, uint64_t *ret_fence,
                 bool *ret_whole)
{
    struct idem_answer *answer;
    const struct idem_record *record;
    int rc = idem_get(store, idem_str(""), idem_str(key), &answer, &story_why);

    if (rc != 0) {
        return rc == IDEM_ENOTFOUND ? 0 : rc;
    }
    record = idem_answer_record(answer);
    rc = (int)record->status;
    *ret_fence = record->fence;
    *ret_whole = record->result.bytes.len == 0 ||
                 record->result.bytes.len == STORY_LARGE ||
                 (record->result.bytes.len == strlen(STORY_RESULT) &&
                  memcmp(record->result.bytes.base, STORY_RESULT,
                         strlen(STORY_RESULT)) == 0);
    idem_answer_destroy(answer);
    return rc;
}

int story_count(void *ctx, int code, const struct idem_record *record)
{
    int *counts = ctx;

    (void)record;
    counts[code != 0]++;
    return 0;
}

/* What must be true whatever happened: nothing is damaged, nobody else's record
 * was touched, and the next one gets its turn. */
const char *story_judge(struct idem_store *store)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    int counts[2] = {0, 0};
    uint64_t fence;
    bool whole;

    if (idem_list(store, &filter, story_count, counts, NULL, &story_why) != 0 ||
        counts[1] > 0) {
        return "there are records that cannot be read";
    }
    if (story_status(store, "done", &fence, &whole) != IDEM_STATUS_COMPLETED ||
        !whole) {
        return "an old outcome is gone";
    }
    if (story_status(store, "held", &fence, &whole) == 0) {
        return "an old claim is gone";
    }
    return story_once(store, "next") == 0 ? NULL : "the next claim fails";
}

/* The record of "k" after a begin and an end that were answered so: what was
 * answered is there; what was refused is not; where nothing was answered, or
 * memory for the answer was missing, either. */
static const char *judge_key(struct idem_store *store, const struct told *told,
                             int before, int wanted)
{
    bool begin_open = told->begin == IDEM_EUNKNOWN ||
                      told->begin == IDEM_ENOMEM || told->begin == STORY_ASKED;
    bool end_open = told->end == IDEM_EUNKNOWN || told->end == IDEM_ENOMEM ||
                    told->end == STORY_ASKED;
    uint64_t fence = 0;
    bool whole = true;
    int status = story_status(store, "k", &fence, &whole);

    if (status < 0 || !whole) {
        return "the record cannot be read";
    }
    if (told->begin == 0) {
        if (told->verdict != IDEM_STARTED) {
            return "a claim got another verdict";
        }
        if (status == 0 || fence != told->fence) {
            return "an acknowledged claim is not there";
        }
        if (told->end == 0) {
            return status == wanted ? NULL : "an acknowledged end is not there";
        }
        if (status == IDEM_STATUS_IN_PROGRESS) {
            return NULL;
        }
        return status == wanted && end_open ? NULL
                                            : "an end was recorded that failed";
    }
    if (status == before) {
        return NULL;
    }
    return begin_open && status == IDEM_STATUS_IN_PROGRESS
               ? NULL
               : "a claim was recorded that failed";
}

const char *story_judge_shown(struct idem_store *store, const struct told *told)
{
    return told->wrong ? "what was shown is not what is on record"
                       : story_judge(store);
}

const char *story_verdict(const struct story *story, struct idem_store *store,
                          const struct told *told)
{
    const char *bad;

    if (story->judge != NULL) {
        return story->judge(store, told);
    }
    bad = judge_key(store, told, story->before, (int)story->ends);
    return bad != NULL ? bad : story_judge(store);
}
