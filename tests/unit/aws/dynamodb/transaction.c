/* A record together with its caller's own writes: what is checked before a store is
 * asked, what it is handed, and what the caller is told. */
#include "claims.h"
#include "sample.h"
#include "script.h"
#include "test.h"

#include <idem/dynamodb.h>
#include <stdlib.h>

/* What the store says of the writes. */
struct plan {
    size_t refused;
    int code;
    struct idem_commit seen; /* Its slices are gone. */
    char writes[256];
    unsigned commits;
};

static enum script_does follow_plan(struct script *script, struct idem_op *op)
{
    struct plan *plan = script->ctx;
    struct idem_commit *commit = op->commit;

    if (commit != NULL) {
        plan->seen = *commit;
        (void)snprintf(plan->writes, sizeof(plan->writes), "%.*s",
                       (int)commit->writes.len,
                       (const char *)commit->writes.base);
        plan->commits++;
        commit->committed = plan->refused == 0;
        commit->refused = plan->refused;
        (void)strcpy(commit->text, "said");
    }
    if (plan->code != 0) {
        (void)idem__op_fail(op, plan->code, "as planned");
    } else {
        script_relay(script, op);
    }
    return SCRIPT_ANSWERS;
}

static struct idem_store *open_plan(struct script *script, struct plan *plan)
{
    struct idem_store *store = script_open(script, follow_plan, NULL);

    store->commits = true;
    script->ctx = plan;
    return store;
}

static struct idem_attempt *begin_k(struct idem_store *store)
{
    struct idem_request request = claim("k");

    return begin(store, &request, IDEM_STARTED);
}

/* The store gets all writes in one text, in their order, and copies of everything;
 * after a commit the attempt's lease is over, after a refusal it goes on. */
TEST(commit, handsOverTheWrites)
{
    static const struct idem_result result = {.bytes = {"done", 4}};
    struct idem_dynamodb_committed commit = IDEM_DYNAMODB_COMMITTED_INIT;
    struct idem_slice writes[] = {idem_str("{\"Put\":{}}"),
                                  idem_str("{\"Delete\":{}}")};
    struct plan plan = {.refused = 2};
    struct script script;
    struct idem_store *store = open_plan(&script, &plan);
    struct idem_attempt *attempt = begin_k(store);
    uint8_t digest[16];

    plan.code = 0;
    plan.refused = 1;
    assert_ok(idem_dynamodb_complete_with(attempt, &result, writes, 1, &commit,
                                          &why));
    assert_false(commit.committed);
    assert_int_equal(commit.refused, 1);
    assert_string_equal(commit.text, "said");
    assert_true(idem_attempt_lease_left_ms(attempt) > 0);
    assert_int_equal(attempt->record->status, IDEM_STATUS_IN_PROGRESS);
    memcpy(digest, plan.seen.digest, sizeof(digest));
    idem_close(store);

    memset(&plan, 0, sizeof(plan));
    store = open_plan(&script, &plan);
    attempt = begin_k(store);
    assert_ok(idem_dynamodb_complete_with(attempt, &result, writes, 2, &commit,
                                          &why));
    assert_true(commit.committed);
    assert_int_equal(commit.refused, 0);
    assert_string_equal(plan.writes, "{\"Put\":{}},{\"Delete\":{}}");
    assert_int_equal(plan.seen.writes_len, 2);
    assert_memory_not_equal(plan.seen.digest, digest, sizeof(digest));
    assert_int_equal(idem_attempt_lease_left_ms(attempt), 0);
    assert_int_equal(attempt->record->status, IDEM_STATUS_COMPLETED);
    assert_slice(attempt->record->result.bytes, result.bytes);
    idem_close(store);
}

/* A claim that is ended at once brings its outcome along; one that lost its owner
 * has no lease left. */
TEST(commit, endsAClaim)
{
    struct idem_result result = {.bytes = idem_str("done"),
                                 .content_type = idem_str("text/plain")};
    struct idem_dynamodb_committed commit = IDEM_DYNAMODB_COMMITTED_INIT;
    struct idem_request request = claim("k");
    struct idem_slice write = idem_str("{\"Put\":{}}");
    struct plan plan = {.code = 0};
    struct script script;
    struct idem_store *store = open_plan(&script, &plan);
    struct idem_attempt *attempt;

    assert_ok(idem_dynamodb_commit(store, &request, &result, &write, 1,
                                   &attempt, &commit, &why));
    assert_true(commit.committed);
    assert_int_equal(attempt->verdict, IDEM_STARTED);
    assert_int_equal(idem_attempt_lease_left_ms(attempt), 0);
    assert_int_equal(plan.seen.outcome.status, IDEM_STATUS_COMPLETED);
    assert_int_equal(plan.seen.outcome.result.bytes.len, 4);
    assert_int_equal(plan.seen.outcome.result.content_type.len, 10);
    plan.code = IDEM_ELOST;
    assert_code(IDEM_ELOST,
                idem_dynamodb_complete_with(attempt, &result, &write, 1,
                                            &commit, &why));
    idem_attempt_destroy(attempt);
    plan.code = 0;

    /* Too long to be kept: a tombstone, as elsewhere. */
    request = claim("l");
    result.bytes.base = calloc(1, store->options.result_max + 1);
    result.bytes.len = store->options.result_max + 1;
    assert_ok(idem_dynamodb_commit(store, &request, &result, &write, 1,
                                   &attempt, &commit, &why));
    assert_true(plan.seen.outcome.result.not_kept);
    assert_int_equal(plan.seen.outcome.result.bytes.len, 0);
    idem_attempt_destroy(attempt);
    free((void *)(uintptr_t)result.bytes.base);
    idem_close(store);
}

/* What cannot be is refused before the store is asked. */
TEST(commit, isBounded)
{
    enum {
        MAX = IDEM_DYNAMODB_WRITES_MAX
    };
    static const struct idem_dynamodb_committed no_size;
    struct idem_dynamodb_committed commit = IDEM_DYNAMODB_COMMITTED_INIT;
    struct idem_request request = claim("k");
    struct idem_slice writes[MAX + 1];
    char *long_text = calloc(1, IDEM_DYNAMODB_WRITES_BYTES_MAX + 1);
    struct plan plan = {.code = 0};
    struct script script;
    struct idem_store *store = open_plan(&script, &plan);
    struct idem_attempt *attempt = begin_k(store);

    assert_non_null(long_text);
    EACH(write, writes) {
        *write = idem_str("{\"Put\":{}}");
    }
    assert_code(IDEM_EINVALID,
                idem_dynamodb_complete_with(attempt, NULL, writes, 0, &commit,
                                            &why));
    assert_code(IDEM_EINVALID,
                idem_dynamodb_complete_with(attempt, NULL, writes, MAX + 1,
                                            &commit, &why));
    commit = no_size;
    assert_code(IDEM_EINVALID,
                idem_dynamodb_complete_with(attempt, NULL, writes, 1, &commit,
                                            &why));
    commit.size = sizeof(commit);
    writes[1] = idem_bytes(long_text, IDEM_DYNAMODB_WRITES_BYTES_MAX);
    assert_code(IDEM_EINVALID,
                idem_dynamodb_complete_with(attempt, NULL, writes, 2, &commit,
                                            &why));
    request.wait_ms = 1;
    assert_code(IDEM_EINVALID,
                idem_dynamodb_commit(store, &request, NULL, writes, 1, &attempt,
                                     &commit, &why));
    store->commits = false;
    assert_code(IDEM_EINVALID,
                idem_dynamodb_complete_with(attempt, NULL, writes, 1, &commit,
                                            &why));
    assert_non_null(strstr(why.text, "DynamoDB"));
    assert_int_equal(plan.commits, 0);
    store->commits = true;
    writes[1] = writes[0];
    assert_ok(
        idem_dynamodb_complete_with(attempt, NULL, writes, MAX, &commit, &why));
    assert_int_equal(plan.seen.writes_len, MAX);
    idem_close(store);
    free(long_text);
}
