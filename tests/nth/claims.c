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

/* All of a short program's life. */
static void live_whole(const char *path, struct told *told)
{
    struct idem_store *store;

    story_arm();
    told->open = STORY_ASKED;
    told->open = story_open_at(path, 0, &store);
    if (told->open == 0) {
        story_claim(store, told, IDEM_STATUS_COMPLETED);
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
    story_close(store, told);
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
    story_close(store, told);
}

const struct story stories_claims[] = {
    {.name = "make a store", .live = live_open, .judge = judge_new},
    {"open", story_prepare, live_open, .judge = judge_old},
    {"open with a thread", story_prepare, live_open_thread, .judge = judge_old},
    {"a whole life", story_prepare, live_whole, .ends = IDEM_STATUS_COMPLETED},
    {"complete", story_prepare, .ends = IDEM_STATUS_COMPLETED},
    {"fail", story_prepare, .ends = IDEM_STATUS_FAILED},
    {"release", story_prepare, .ends = IDEM_STATUS_RELEASED},
    {"unknown", story_prepare, .ends = IDEM_STATUS_UNKNOWN},
    {"expire", story_prepare, .ends = IDEM_STATUS_IN_PROGRESS},
    {"a large result", story_prepare, live_large,
     .ends = IDEM_STATUS_COMPLETED},
    {"once", story_prepare, live_once, .ends = IDEM_STATUS_COMPLETED},
    {.name = NULL},
};
