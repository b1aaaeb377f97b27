/* Stories of the operator, and of a queue. */
#include "story.h"

#include <idem/check.h>
#include <idem/operator.h>
#include <idem/queue.h>
#include <idem/sqlite.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The operator's ---------------------------------------------------- */

static void live_get(const char *path, struct told *told)
{
    struct idem_store *store = story_open(path);
    struct idem_answer *answer = NULL;

    story_arm();
    told->end = STORY_ASKED;
    told->end =
        idem_get(store, idem_str(""), idem_str("done"), &answer, &story_why);
    told->wrong = told->end == IDEM_ENOTFOUND;
    idem_answer_destroy(answer);
    story_close(store, told);
}

/* A list that could not be read to its end does not look like a whole one. */
static void live_list(const char *path, struct told *told)
{
    struct idem_store *store = story_open(path);
    struct idem_filter filter = IDEM_FILTER_INIT;
    int counts[2] = {0, 0};

    story_arm();
    told->end = STORY_ASKED;
    told->end =
        idem_list(store, &filter, story_count, counts, NULL, &story_why);
    told->wrong = counts[1] > 0 || (told->end == 0 && counts[0] != 2);
    story_close(store, told);
}

static void live_count(const char *path, struct told *told)
{
    struct idem_store *store = story_open(path);
    struct idem_counters counters = IDEM_COUNTERS_INIT;

    story_arm();
    told->end = STORY_ASKED;
    told->end = idem_count(store, &counters, &story_why);
    told->wrong = told->end == 0 && counters.started != 2;
    story_close(store, told);
}

struct checked {
    int findings;
    bool wrong;
};

static void note_finding(void *ctx, const struct idem_finding *finding)
{
    struct checked *checked = ctx;

    checked->findings++;
    if (finding->grade == IDEM_GRADE_OK &&
        strcmp(finding->about, "records") == 0 &&
        strncmp(finding->text, "2,", 2) != 0) {
        checked->wrong = true;
    }
}

/* A check that could not look at everything does not say that all is well. */
static void live_check(const char *path, struct told *told)
{
    struct idem_store *store = story_open(path);
    struct checked checked = {0};

    story_arm();
    told->end = STORY_ASKED;
    told->end =
        idem_sqlite_check(path, NULL, note_finding, &checked, &story_why);
    told->wrong = checked.wrong || (told->end == 0 && checked.findings == 0);
    story_close(store, told);
}

static void prepare_unknown(const char *path)
{
    story_prepare_k(path, IDEM_STATUS_UNKNOWN);
}

static void live_resolve(const char *path, struct told *told)
{
    struct idem_store *store = story_open(path);
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED,
                                   .result = {.bytes = idem_str(STORY_RESULT)},
                                   .text = idem_str("looked")};
    uint64_t fence = 0;
    bool whole;

    (void)story_status(store, "k", &fence, &whole);
    story_arm();
    told->end = STORY_ASKED;
    told->end =
        idem_resolve(store, idem_str(""), idem_str("k"), fence, idem_str("ann"),
                     &outcome, /* flags= */ 0, &story_why);
    story_disarm();
    told->after =
        idem_resolve(store, idem_str(""), idem_str("k"), fence, idem_str("ann"),
                     &outcome, /* flags= */ 0, &story_why);
    idem_close(store);
}

/* Asked again the person gets the same, whatever the first time came to. */
static const char *judge_resolve(struct idem_store *store,
                                 const struct told *told)
{
    uint64_t fence;
    bool whole = true;
    int status = story_status(store, "k", &fence, &whole);

    if ((told->end == 0 || told->after == 0) &&
        status != IDEM_STATUS_COMPLETED) {
        return "an acknowledged decision is not there";
    }
    if (!whole ||
        (status != IDEM_STATUS_COMPLETED && status != IDEM_STATUS_UNKNOWN)) {
        return "the record cannot be read";
    }
    return story_judge(store);
}

static void live_import(const char *path, struct told *told)
{
    struct idem_store *store = story_open(path);
    struct idem_answer *answer;
    struct idem_record record;

    story_must(
        idem_get(store, idem_str(""), idem_str("done"), &answer, &story_why));
    record = *idem_answer_record(answer);
    record.key = idem_str("k");
    story_must(idem_id(record.scope, record.key, record.id));
    told->begin = 0;
    told->verdict = IDEM_STARTED;
    told->fence = record.fence;
    story_arm();
    told->end = STORY_ASKED;
    told->end = idem_import(store, &record, NULL, &story_why);
    story_disarm();
    told->after = idem_import(store, &record, NULL, &story_why);
    idem_answer_destroy(answer);
    idem_close(store);
}

static const char *judge_import(struct idem_store *store,
                                const struct told *told)
{
    uint64_t fence = 0;
    bool whole = true;
    int status = story_status(store, "k", &fence, &whole);

    if (!whole || (status != 0 && status != IDEM_STATUS_COMPLETED)) {
        return "the record cannot be read";
    }
    if (told->end == 0 && status == 0) {
        return "an acknowledged import is not there";
    }
    return story_judge(store);
}

enum {
    PURGED = 5,
};

static void gone_name(int i, char buf[16])
{
    (void)snprintf(buf, 16, "gone%d", i);
}

static uint64_t gone_fences[PURGED];

/* Some records whose retention is over, beside those that live. */
static void prepare_gone(const char *path)
{
    struct idem_store *store;
    char key[16];
    int i;

    story_shift_ms -= 2 * STORY_DAY_MS;
    store = story_open(path);
    for (i = 0; i < PURGED; i++) {
        gone_name(i, key);
        gone_fences[i] = story_had(store, key, IDEM_STATUS_COMPLETED);
    }
    idem_close(store);
    story_shift_ms += 2 * STORY_DAY_MS;
    story_prepare(path);
}

static void live_purge(const char *path, struct told *told)
{
    struct idem_store *store = story_open(path);
    uint64_t purged;
    uint64_t left = 0;

    story_arm();
    told->end = STORY_ASKED;
    told->end = idem_purge(store, 0, &purged, &story_why);
    story_disarm();
    told->after = idem_purge(store, 0, &left, &story_why);
    told->wrong = told->end == 0 && (purged != PURGED || left != 0);
    idem_close(store);
}

/* Whoever comes again is new, and has a fence above all that there ever were. */
static const char *judge_purge(struct idem_store *store,
                               const struct told *told)
{
    bool went_back = false;
    char key[16];
    int i;

    if (told->wrong) {
        return "a purge left something, and did not say so";
    }
    for (i = 0; i < PURGED; i++) {
        struct idem_attempt *attempt;

        gone_name(i, key);
        attempt = story_begun(store, key);
        went_back = went_back || attempt->fence <= gone_fences[i];
        idem_attempt_destroy(attempt);
    }
    return went_back ? "a fence went back" : story_judge(store);
}

/* ---- The clock --------------------------------------------------------- */

#define AHEAD_MS (30 * STORY_DAY_MS)

static uint64_t ahead_fence;

/* The store's time ran ahead in an earlier boot, and so did all that it has. */
static void prepare_ahead(const char *path)
{
    struct idem_store *store;
    struct idem_attempt *attempt;

    story_ahead_ms = AHEAD_MS;
    story_prepare(path);
    store = story_open(path);
    attempt = story_begun(store, "k");
    ahead_fence = attempt->fence;
    idem_attempt_destroy(attempt);
    idem_close(store);
    story_ahead_ms = 0;
}

static int set_clock(const char *path, int64_t timeout_ms)
{
    struct idem_open_options options = story_options(0, timeout_ms);
    int64_t from_ms;
    int64_t to_ms;

    return idem_sqlite_set_clock(path, &options, &from_ms, &to_ms, &story_why);
}

static void live_set_clock(const char *path, struct told *told)
{
    story_arm();
    told->end = STORY_ASKED;
    told->end = set_clock(path, 30);
    story_disarm();
    if (told->end != 0) {
        told->after = set_clock(path, 60 * 1000);
    }
}

/* How far the store's time is ahead of the clock. */
static int64_t ahead_by(int64_t store_ms)
{
    struct idem_open_options options = story_options(0, 0);
    struct idem_clock_reading reading = {0};

    story_must(options.host.clock(NULL, &reading));
    return store_ms - reading.wall_ms;
}

/* How far the end of what is kept of "done" lies ahead of the clock. */
static int64_t kept_ms(struct idem_store *store)
{
    struct idem_answer *answer;
    int64_t expires_ms;

    if (idem_get(store, idem_str(""), idem_str("done"), &answer, &story_why) !=
        0) {
        return 0;
    }
    expires_ms = idem_answer_record(answer)->expires_ms;
    idem_answer_destroy(answer);
    return ahead_by(expires_ms);
}

/* The store's time is what it was, or set back; whichever it is, what was done is
 * done and no fence is given twice. Called again it finishes. */
static const char *judge_set_clock(struct idem_store *store,
                                   const struct told *told)
{
    struct idem_sqlite_info info = IDEM_SQLITE_INFO_INIT;
    bool answered = told->end == 0 || told->after == 0;
    struct idem_attempt *attempt;
    bool is_back;
    uint64_t fence;

    if (idem_sqlite_inspect(store, &info, &story_why) != 0) {
        return "the store's time cannot be read";
    }
    is_back = ahead_by(info.known_ms) < STORY_DAY_MS;
    if (answered && !is_back) {
        return "the store's time is not set back";
    }
    if (!is_back && ahead_by(info.known_ms) < AHEAD_MS - STORY_DAY_MS) {
        return "the store's time is neither what it was nor set back";
    }
    if (answered && kept_ms(store) > 2 * STORY_DAY_MS) {
        return "a record is kept as if its time was right";
    }
    attempt = story_begun(store, "new");
    fence = attempt->fence;
    idem_attempt_destroy(attempt);
    return is_back && fence <= ahead_fence ? "a fence went back"
                                           : story_judge(store);
}

/* ---- Queues ------------------------------------------------------------ */

enum {
    QUEUED = 8,
};

static void queued_name(int i, char buf[16])
{
    (void)snprintf(buf, 16, "q%d", i);
}

static void submit(struct idem_queue *queue, int i)
{
    struct idem_request request;
    struct idem_op *op;
    char key[16];

    queued_name(i, key);
    request = story_request(key);
    if (idem_op_begin(&request, &op, &story_why) != 0) {
        return;
    }
    idem_op_set_user(op, (void *)(intptr_t)i);
    if (idem_queue_submit(queue, op, &story_why) != 0) {
        idem_op_destroy(op);
    }
}

/* Claims them all in one batch; @codes are the answers. False: some was lost. */
static bool claim_all(struct idem_store *store, int codes[QUEUED])
{
    struct idem_queue *queue;
    struct idem_op *op;
    bool all;
    int i;

    if (idem_queue_create(store, &queue, &story_why) != 0) {
        return true;
    }
    for (i = 0; i < QUEUED; i++) {
        submit(queue, i);
    }
    while ((op = idem_queue_reap(queue, 1000)) != NULL) {
        codes[(intptr_t)idem_op_user(op)] = idem_op_code(op);
        idem_op_destroy(op);
    }
    all = idem_queue_len(queue) == 0;
    idem_queue_destroy(queue);
    return all;
}

static bool is_true(struct idem_store *store, int i, int code)
{
    uint64_t fence;
    bool whole;
    char key[16];
    int status;

    queued_name(i, key);
    status = story_status(store, key, &fence, &whole);
    if (code == 0) {
        return status == IDEM_STATUS_IN_PROGRESS;
    }
    if (code == IDEM_EUNKNOWN || code == IDEM_ENOMEM) {
        return status >= 0;
    }
    return status == 0;
}

/* Eight claims in one batch: each is answered, and each truly. */
static void live_queue(const char *path, struct told *told)
{
    struct idem_store *store = story_open(path);
    int codes[QUEUED];
    int i;

    for (i = 0; i < QUEUED; i++) {
        codes[i] = STORY_NOT_ASKED;
    }
    story_arm();
    told->wrong = !claim_all(store, codes);
    story_disarm();
    for (i = 0; i < QUEUED; i++) {
        told->wrong = told->wrong || !is_true(store, i, codes[i]);
    }
    story_close(store, told);
}

const struct story stories_operator[] = {
    {"get", story_prepare, live_get, .judge = story_judge_shown},
    {"list", story_prepare, live_list, .judge = story_judge_shown},
    {"count", story_prepare, live_count, .judge = story_judge_shown},
    {"check", story_prepare, live_check, .judge = story_judge_shown},
    {"resolve", prepare_unknown, live_resolve, .judge = judge_resolve},
    {"import", story_prepare, live_import, .judge = judge_import},
    {"purge", prepare_gone, live_purge, .judge = judge_purge},
    {"set the clock", prepare_ahead, live_set_clock, .judge = judge_set_clock},
    {"a queue", story_prepare, live_queue, .judge = story_judge_shown},
    {.name = NULL},
};
