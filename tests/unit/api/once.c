/* The whole pattern in one call: whatever the work says is what is recorded, and
 * it runs for nobody but who was started. */
#include "claims.h"
#include "script.h"
#include "test.h"

struct work {
    unsigned runs;
    struct idem_outcome outcome; /* What it answers. */
    int64_t renew_ms;            /* Renews by as much, unless 0. */
    int renewed;
    uint64_t fence;
    bool takeover;
};

static void do_work(void *ctx, struct idem_attempt *attempt,
                    struct idem_outcome *ret_outcome)
{
    struct work *work = ctx;

    work->runs++;
    work->fence = attempt->fence;
    work->takeover = attempt->takeover;
    if (work->renew_ms != 0) {
        work->renewed = idem_renew(attempt, work->renew_ms, NULL);
    }
    /* What is not said is zero. */
    if (ret_outcome->status == 0 && ret_outcome->result.bytes.len == 0 &&
        ret_outcome->text.len == 0 && !ret_outcome->result.not_kept) {
        *ret_outcome = work->outcome;
    }
}

static struct idem_result sample_result(void)
{
    return (struct idem_result){
        .bytes = idem_bytes("a\0b", 3),
        .content_type = idem_str("text/plain"),
        .meta = idem_str("exit=0"),
    };
}

static void assert_sample_result(const struct idem_record *record)
{
    assert_int_equal(record->status, IDEM_STATUS_COMPLETED);
    assert_slice(record->result.bytes, idem_bytes("a\0b", 3));
    assert_text(record->result.content_type, "text/plain");
    assert_text(record->result.meta, "exit=0");
}

static struct idem_attempt *once(struct idem_store *store,
                                 const struct idem_request *request,
                                 struct work *work)
{
    struct idem_attempt *attempt;

    assert_ok(idem_once(store, request, do_work, work, &attempt, &why));
    return freed_later(attempt);
}

/* Each way in which work can end is recorded as it was said, and the next caller
 * is answered by it. */
TEST(once, recordsHowTheWorkEnded)
{
    static const struct {
        enum idem_status says;
        enum idem_status recorded;
        const char *text;
        enum idem_verdict next;
        unsigned runs; /* After the next caller. */
    } rows[] = {
        {IDEM_STATUS_COMPLETED, IDEM_STATUS_COMPLETED, "", IDEM_REPLAY, 1},
        {IDEM_STATUS_FAILED, IDEM_STATUS_FAILED, "t", IDEM_FAILED, 1},
        {IDEM_STATUS_RELEASED, IDEM_STATUS_RELEASED, "t", IDEM_STARTED, 2},
        {IDEM_STATUS_UNKNOWN, IDEM_STATUS_UNKNOWN, "t", IDEM_UNKNOWN, 1},
        {(enum idem_status)0, IDEM_STATUS_UNKNOWN, "reported no outcome",
         IDEM_UNKNOWN, 1},
        {IDEM_STATUS_IN_PROGRESS, IDEM_STATUS_UNKNOWN, "reported no outcome",
         IDEM_UNKNOWN, 1},
        {(enum idem_status)99, IDEM_STATUS_UNKNOWN, "reported no outcome",
         IDEM_UNKNOWN, 1},
    };
    struct idem_store *store = open_memory(NULL);
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem_request request;
        struct work work = {.outcome = {.status = rows[i].says,
                                        .text = idem_str("t"),
                                        .result = sample_result()}};
        struct idem_attempt *attempt;
        const struct idem_record *record;
        char said[64];

        request = claim(numbered("k", i));
        attempt = once(store, &request, &work);
        record = attempt->record;
        assert_int_equal(attempt->verdict, IDEM_STARTED);
        assert_true(attempt->fence == work.fence);
        assert_int_equal(record->status, rows[i].recorded);
        (void)snprintf(said, sizeof(said), "%.*s%.*s", (int)record->note.len,
                       (const char *)record->note.base, (int)record->error.len,
                       (const char *)record->error.base);
        if (strstr(said, rows[i].text) == NULL) {
            fail_with("row %zu: \"%s\"", i, said);
        }

        attempt = once(store, &request, &work);
        assert_int_equal(attempt->verdict, rows[i].next);
        assert_int_equal(work.runs, rows[i].runs);
        if (rows[i].next == IDEM_REPLAY) {
            assert_sample_result(attempt->record);
        }
    }
}

/* An outcome that cannot be recorded comes back with the attempt, so that it can
 * be ended in another way. */
TEST(once, givesTheAttemptWhenRecordingFails)
{
    static char meta[IDEM_META_MAX + 1];
    struct idem_store *store = open_memory(NULL);
    struct idem_request request = claim("k");
    struct work work = {.outcome = {.status = IDEM_STATUS_FAILED,
                                    .result.meta = {meta, sizeof(meta)}}};
    struct idem_attempt *attempt = NULL;

    assert_code(IDEM_EINVALID,
                idem_once(store, &request, do_work, &work, &attempt, &why));
    assert_int_equal(work.runs, 1);
    assert_non_null(freed_later(attempt));
    assert_int_equal(attempt->verdict, IDEM_STARTED);
    assert_ok(idem_fail(attempt, idem_str("too much to tell"), NULL, &why));
}
