/* Calls that must answer as a test says. */
#include "claims.h"

#include "test.h"

#include <idem/queue.h>

static void close_store(void *store)
{
    idem_close(store);
}

static void free_attempt(void *attempt)
{
    idem_attempt_destroy(attempt);
}

static void free_answer(void *answer)
{
    idem_answer_destroy(answer);
}

struct idem_store *open_memory(const struct idem_open_options *options)
{
    struct idem_store *store;

    assert_ok(idem_open("memory:", options, &store, &why));
    test_after(close_store, store);
    return store;
}

struct idem_request claim(const char *key)
{
    struct idem_request request = IDEM_REQUEST_INIT;

    request.key = idem_str(key);
    request.on_expired_lease = IDEM_HOLD;
    return request;
}

struct idem_request rerun(const char *key)
{
    struct idem_request request = claim(key);

    request.on_expired_lease = IDEM_RERUN;
    return request;
}

const char *numbered(const char *stem, size_t n)
{
    static _Thread_local char texts[64][32];
    static _Thread_local unsigned at;
    char *text = texts[at++ % 64];

    (void)snprintf(text, sizeof(texts[0]), "%s%zu", stem, n);
    return text;
}

struct idem_attempt *freed_later(struct idem_attempt *attempt)
{
    test_after(free_attempt, attempt);
    return attempt;
}

struct idem_attempt *begin(struct idem_store *store,
                           const struct idem_request *request,
                           enum idem_verdict verdict)
{
    struct idem_attempt *attempt;

    assert_ok(idem_begin(store, request, &attempt, &why));
    if (attempt->verdict != verdict) {
        fail_with("%.*s: %s, not %s", (int)request->key.len,
                  (const char *)request->key.base,
                  idem_verdict_name(attempt->verdict),
                  idem_verdict_name(verdict));
    }
    return freed_later(attempt);
}

void expect(struct idem_store *store, const struct idem_request *request,
            enum idem_verdict verdict)
{
    (void)begin(store, request, verdict);
}

void start_many(struct idem_store *store, size_t from, size_t to,
                struct idem_request request)
{
    struct idem_queue *queue;
    struct idem_op *op;

    assert_ok(idem_queue_create(store, &queue, &why));
    for (; from < to; from++) {
        request.key = idem_str(numbered("k", from));
        assert_ok(idem_op_begin(&request, &op, &why));
        assert_ok(idem_queue_submit(queue, op, &why));
    }
    while ((op = idem_queue_reap(queue, -1)) != NULL) {
        assert_ok(idem_op_code(op));
        assert_int_equal(idem_op_verdict(op), IDEM_STARTED);
        idem_op_destroy(op);
    }
    idem_queue_destroy(queue);
}

struct idem_attempt *by_token(struct idem_store *store, const char *token)
{
    struct idem_attempt *attempt;

    assert_ok(idem_attempt_from_token(store, token, &attempt, &why));
    return freed_later(attempt);
}

int complete(struct idem_attempt *attempt, const char *text)
{
    struct idem_result result = {.bytes = idem_str(text)};

    return idem_complete(attempt, &result, &why);
}

void run(struct idem_store *store, const struct idem_request *request,
         const char *text)
{
    assert_ok(complete(begin(store, request, IDEM_STARTED), text));
}

const struct idem_record *get(struct idem_store *store, const char *key)
{
    struct idem_answer *answer;

    assert_ok(idem_get(store, idem_str(""), idem_str(key), &answer, &why));
    test_after(free_answer, answer);
    return idem_answer_record(answer);
}
