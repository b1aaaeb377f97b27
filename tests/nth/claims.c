/* Stories of opening a store, of claims, and of how they end. */
#include "story.h"

/* ---- Opening ----------------------------------------------------------- */

static void open_and_close(const char *path, struct told *told, unsigned flags)
{
    struct idem_store *store;

    story_arm();
    told->open = STORY_ASKED;
    told->open = story_open_at(path, flags, &store);
    if (told->open == 0) {
        idem_close(store);
    }
    story_disarm();
}

static void live_open(const char *path, struct told *told)
{
    open_and_close(path, told, 0);
}

static void live_open_thread(const char *path, struct told *told)
{
    open_and_close(path, told, IDEM_OPEN_THREAD);
}

static const char *judge_new(struct idem_store *store, const struct told *told)
{
    (void)told;
    return story_once(store, "next") == 0 ? NULL : "the next claim fails";
}

static const char *judge_old(struct idem_store *store, const struct told *told)
{
    if (told->open == IDEM_ENOTFOUND) {
        return "the store was said not to be there";
    }
    return story_judge(store);
}

/* ---- Claims and their ends --------------------------------------------- */

static void live_complete(const char *path, struct told *told)
{
    story_claim_and_end(path, told, IDEM_STATUS_COMPLETED);
}

static void live_fail(const char *path, struct told *told)
{
    story_claim_and_end(path, told, IDEM_STATUS_FAILED);
}

static void live_release(const char *path, struct told *told)
{
    story_claim_and_end(path, told, IDEM_STATUS_RELEASED);
}

static void live_unknown(const char *path, struct told *told)
{
    story_claim_and_end(path, told, IDEM_STATUS_UNKNOWN);
}

static void live_expire(const char *path, struct told *told)
{
    story_claim_and_end(path, told, IDEM_STATUS_IN_PROGRESS);
}

static const char *judge_end(struct idem_store *store, const struct told *told,
                             enum idem_status wanted)
{
    const char *bad =
        story_judge_key(store, told, /* before= */ 0, (int)wanted);

    return bad != NULL ? bad : story_judge(store);
}

static const char *judge_complete(struct idem_store *store,
                                  const struct told *told)
{
    return judge_end(store, told, IDEM_STATUS_COMPLETED);
}

static const char *judge_fail(struct idem_store *store, const struct told *told)
{
    return judge_end(store, told, IDEM_STATUS_FAILED);
}

static const char *judge_release(struct idem_store *store,
                                 const struct told *told)
{
    return judge_end(store, told, IDEM_STATUS_RELEASED);
}

static const char *judge_unknown(struct idem_store *store,
                                 const struct told *told)
{
    return judge_end(store, told, IDEM_STATUS_UNKNOWN);
}

static const char *judge_expire(struct idem_store *store,
                                const struct told *told)
{
    return judge_end(store, told, IDEM_STATUS_IN_PROGRESS);
}

/* All of a short program's life. */
static void live_whole(const char *path, struct told *told)
{
    struct idem_store *store;
    struct idem_attempt *attempt;

    story_arm();
    told->open = STORY_ASKED;
    told->open = story_open_at(path, 0, &store);
    if (told->open == 0) {
        story_begin(store, told, &attempt);
        if (told->begin == 0) {
            told->end = STORY_ASKED;
            told->end = story_end(attempt, IDEM_STATUS_COMPLETED);
            idem_attempt_destroy(attempt);
        }
        idem_close(store);
    }
    story_disarm();
}

/* A result that fills pages of its own. */
static void live_large(const char *path, struct told *told)
{
    static char bytes[STORY_LARGE];
    struct idem_result result = {.bytes = idem_bytes(bytes, sizeof(bytes))};
    struct idem_store *store = story_open(path);
    struct idem_attempt *attempt = story_begun(store, "k");

    told->begin = 0;
    told->verdict = (int)attempt->verdict;
    told->fence = attempt->fence;
    story_arm();
    told->end = STORY_ASKED;
    told->end = idem_complete(attempt, &result, &story_why);
    idem_attempt_destroy(attempt);
    story_disarm();
    told->after = story_once(store, "after");
    idem_close(store);
}

static void do_work(void *ctx, struct idem_attempt *attempt,
                    struct idem_outcome *ret_outcome)
{
    struct told *told = ctx;

    told->begin = 0;
    told->verdict = (int)attempt->verdict;
    told->fence = attempt->fence;
    told->end = STORY_ASKED;
    ret_outcome->status = IDEM_STATUS_COMPLETED;
    ret_outcome->result.bytes = idem_str(STORY_RESULT);
}

static void live_once(const char *path, struct told *told)
{
    struct idem_store *store = story_open(path);
    struct idem_request request = story_request("k");
    struct idem_attempt *attempt = NULL;
    int rc;

    story_arm();
    told->begin = STORY_ASKED;
    rc = idem_once(store, &request, do_work, told, &attempt, &story_why);
    if (told->end == STORY_ASKED) {
        told->end = rc;
    } else {
        told->begin = rc;
    }
    idem_attempt_destroy(attempt);
    story_disarm();
    told->after = story_once(store, "after");
    idem_close(store);
}

const struct story stories_claims[] = {
    {"make a store", NULL, live_open, judge_new, NULL},
    {"open", story_prepare, live_open, judge_old, NULL},
    {"open with a thread", story_prepare, live_open_thread, judge_old, NULL},
    {"a whole life", story_prepare, live_whole, judge_complete, NULL},
    {"complete", story_prepare, live_complete, judge_complete, NULL},
    {"fail", story_prepare, live_fail, judge_fail, NULL},
    {"release", story_prepare, live_release, judge_release, NULL},
    {"unknown", story_prepare, live_unknown, judge_unknown, NULL},
    {"expire", story_prepare, live_expire, judge_expire, NULL},
    {"a large result", story_prepare, live_large, judge_complete, NULL},
    {"once", story_prepare, live_once, judge_complete, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
