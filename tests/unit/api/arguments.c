/* What callers give: each member that is missing or out of range is refused, by
 * name, before any store is asked; the ends of each range are taken. */
#include "claims.h"
#include "test.h"

#include <idem/operator.h>
#include <idem/queue.h>

static uint8_t zeros[IDEM_META_MAX + 1];

/* ---- Requests ---- */

static void check_request(const struct idem_request *request, const char *name)
{
    struct idem_op *op = NULL;
    int rc = idem_op_begin(request, &op, &why);

    if (name == NULL) {
        assert_ok(rc);
        idem_op_destroy(op);
        return;
    }
    if (rc != IDEM_EINVALID) {
        fail_with("%s: %s", name, idem_error_name(rc));
    }
    assert_null(op);
    assert_int_equal(why.code, IDEM_EINVALID);
    if (strncmp(why.text, name, strlen(name)) != 0) {
        fail_with("\"%s\" does not begin with \"%s\"", why.text, name);
    }
}

/* Every number of a request. */
TEST(request, hasNumbersInRange)
{
    static const struct {
        const char *name; /* NULL: it is taken. */
        size_t at;
        int64_t value;
    } rows[] = {
        {"lease", offsetof(struct idem_request, lease_ms), 0},
        {"lease", offsetof(struct idem_request, lease_ms), -1},
        {"lease", offsetof(struct idem_request, lease_ms), 1999},
        {NULL, offsetof(struct idem_request, lease_ms), 2000},
        {"lease", offsetof(struct idem_request, lease_ms),
         IDEM_DURATION_MAX_MS + 1},
        {"lease", offsetof(struct idem_request, lease_ms), IDEM_NEVER - 1},
        {NULL, offsetof(struct idem_request, lease_ms), IDEM_NEVER},
        {"retention", offsetof(struct idem_request, retention_ms), 0},
        {"retention", offsetof(struct idem_request, retention_ms), -1},
        {"retention", offsetof(struct idem_request, retention_ms),
         IDEM_DURATION_MAX_MS + 1},
        {NULL, offsetof(struct idem_request, retention_ms),
         IDEM_DURATION_MAX_MS},
        {NULL, offsetof(struct idem_request, retention_ms), IDEM_NEVER},
        {"expect", offsetof(struct idem_request, expect_ms), -1},
        {NULL, offsetof(struct idem_request, expect_ms), 1},
        {NULL, offsetof(struct idem_request, expect_ms), IDEM_DURATION_MAX_MS},
        {"expect", offsetof(struct idem_request, expect_ms), IDEM_NEVER},
        {"wait", offsetof(struct idem_request, wait_ms), -1},
        {"wait", offsetof(struct idem_request, wait_ms),
         IDEM_DURATION_MAX_MS + 1},
        {"wait", offsetof(struct idem_request, wait_ms), IDEM_NEVER},
    };

    EACH(row, rows) {
        struct idem_request request = claim("k");

        memcpy((char *)&request + row->at, &row->value, sizeof(row->value));
        check_request(&request, row->name);
    }
}

/* Every text of a request, by its length. */
TEST(request, hasTextsInRange)
{
    static const struct {
        const char *name;
        size_t at;
        size_t len;
    } rows[] = {
        {"key", offsetof(struct idem_request, key), 0},
        {"key", offsetof(struct idem_request, key), IDEM_KEY_MAX + 1},
        {"key", offsetof(struct idem_request, key), SIZE_MAX},
        {NULL, offsetof(struct idem_request, key), IDEM_KEY_MAX},
        {"scope", offsetof(struct idem_request, scope), IDEM_SCOPE_MAX + 1},
        {NULL, offsetof(struct idem_request, scope), IDEM_SCOPE_MAX},
        {"owner", offsetof(struct idem_request, owner), IDEM_OWNER_MAX + 1},
        {NULL, offsetof(struct idem_request, owner), IDEM_OWNER_MAX},
        {"fingerprint", offsetof(struct idem_request, fingerprint), 1},
        {"fingerprint", offsetof(struct idem_request, fingerprint), 32},
        {"fingerprint", offsetof(struct idem_request, fingerprint), 34},
        {NULL, offsetof(struct idem_request, fingerprint), 33},
        {"input", offsetof(struct idem_request, input), IDEM_RESULT_MAX + 1},
        {NULL, offsetof(struct idem_request, input), sizeof(zeros)},
    };

    EACH(row, rows) {
        struct idem_request request = claim("k");
        struct idem_slice text = {zeros, row->len};

        memcpy((char *)&request + row->at, &text, sizeof(text));
        check_request(&request, row->name);
    }
}

/* A policy must be said, and flags must be flags. */
TEST(request, hasAPolicyAndKnownFlags)
{
    static const struct {
        int policy;
        unsigned flags;
        const char *name;
    } rows[] = {
        {IDEM_ON_EXPIRED_UNSET, 0, "on_expired_lease"},
        {3, 0, "on_expired_lease"},
        {-1, 0, "on_expired_lease"},
        {IDEM_RERUN, 0, NULL},
        {IDEM_HOLD, IDEM_WAIT_THEN_RUN, NULL},
        {IDEM_HOLD, IDEM_LIKELY_REPLAY, NULL},
        {IDEM_HOLD, 4, "flags"},
        {IDEM_HOLD, 0x80000000, "flags"},
    };

    EACH(row, rows) {
        struct idem_request request = claim("k");

        request.on_expired_lease = (enum idem_on_expired_lease)row->policy;
        request.flags = row->flags;
        check_request(&request, row->name);
    }
}

/* A traceparent of another form is left out, and the request is as good as without. */
TEST(request, mayHaveATraceparent)
{
    static const struct {
        const char *text;
        bool is_kept;
    } rows[] = {
        {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", true},
        {"00-00000000000000000000000000000001-0000000000000001-ff", true},
        {"", false},
        {"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", false},
        {"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", false},
        {"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", false},
        {"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01", false},
        {"00-00000000000000000000000000000000-00f067aa0ba902b7-01", false},
        {"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", false},
        {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01", false},
        {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0", false},
        {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-", false},
    };

    EACH(row, rows) {
        struct idem_request request = claim("k");
        struct idem_store *store = open_memory(NULL);

        request.traceparent = idem_str(row->text);
        assert_text(begin(store, &request, IDEM_STARTED)->record->traceparent,
                    row->is_kept ? row->text : "");
    }
}

/* A request that was not begun with IDEM_REQUEST_INIT is refused. */
TEST(request, knowsItsSize)
{
    struct idem_request request = claim("k");

    request.size = 0;
    check_request(&request, "request");
    request.size = sizeof(request) - 1;
    check_request(&request, "request");
    check_request(NULL, "request");
}

/* What is forgotten before its lease is over would be started twice. */
TEST(request, remembersAtLeastForALease)
{
    struct idem_request request = claim("k");

    request.lease_ms = 5000;
    request.retention_ms = 4999;
    check_request(&request, "retention");
    request.retention_ms = 5000;
    check_request(&request, NULL);
    request.lease_ms = IDEM_NEVER;
    request.retention_ms = 1;
    check_request(&request, NULL);
}

/* An op does not wait; a blocking call does. */
TEST(request, waitsOnlyWhenBlocking)
{
    struct idem_store *store = open_memory(NULL);
    struct idem_request request = claim("k");

    request.wait_ms = 5;
    check_request(&request, "wait");
    expect(store, &request, IDEM_STARTED);
}

/* Every input is copied before the call returns. */
TEST(request, isCopied)
{
    struct idem_request request = claim("k");
    char text[] = "key\0scope\0owner\0input";
    struct idem_store *store = open_memory(NULL);
    struct idem_attempt *attempt;

    request.key = idem_str(text);
    request.scope = idem_str(text + 4);
    request.owner = idem_str(text + 10);
    request.input = idem_str(text + 16);
    attempt = begin(store, &request, IDEM_STARTED);
    memset(text, 'x', sizeof(text) - 1);
    assert_text(attempt->record->key, "key");
    assert_text(attempt->record->scope, "scope");
    assert_text(attempt->record->owner, "owner");
    assert_text(attempt->record->input, "input");

    request.key = idem_str("key");
    request.scope = idem_str("scope");
    expect(store, &request, IDEM_BUSY);
}

/* ---- Outcomes ---- */

static struct idem_attempt *start(struct idem_store *store)
{
    struct idem_request request = claim("k");

    return begin(store, &request, IDEM_STARTED);
}

static void check_outcome(const struct idem_attempt *attempt,
                          const struct idem_outcome *outcome, const char *name)
{
    struct idem_op *op = NULL;
    int rc = idem_op_end(attempt, outcome, &op, &why);

    if (name == NULL) {
        assert_ok(rc);
        idem_op_destroy(op);
        return;
    }
    if (rc != IDEM_EINVALID || strncmp(why.text, name, strlen(name)) != 0) {
        fail_with("%s: %s, \"%s\"", name, idem_error_name(rc), why.text);
    }
    assert_null(op);
}

/* Every member of an outcome. */
TEST(outcome, isInRange)
{
    struct idem_store *store = open_memory(NULL);
    struct idem_attempt *attempt = start(store);
    static const struct {
        const char *name;
        int status;
        size_t text;
        size_t type;
        size_t meta;
    } rows[] = {
        {"status", 0, 0, 0, 0},
        {"status", IDEM_STATUS_IN_PROGRESS, 0, 0, 0},
        {"status", 6, 0, 0, 0},
        {"status", -1, 0, 0, 0},
        {NULL, IDEM_STATUS_COMPLETED, IDEM_TEXT_MAX, 255, IDEM_META_MAX},
        {NULL, IDEM_STATUS_RELEASED, 0, 0, 0},
        {NULL, IDEM_STATUS_FAILED, IDEM_TEXT_MAX + 1, 0, 0}, /* Cut. */
        {"content type", IDEM_STATUS_COMPLETED, 0, 256, 0},
        {"meta", IDEM_STATUS_COMPLETED, 0, 0, IDEM_META_MAX + 1},
    };

    EACH(row, rows) {
        struct idem_outcome outcome = {
            .status = (enum idem_status)row->status,
            .text = idem_bytes(zeros, row->text),
            .result = {.content_type = idem_bytes(zeros, row->type),
                       .meta = idem_bytes(zeros, row->meta)},
        };

        check_outcome(attempt, &outcome, row->name);
    }
}

/* ---- The operator ---- */

/* get, resolve and list check what they are given. */
TEST(operate, checksItsArguments)
{
    struct idem_store *store = open_memory(NULL);
    struct idem_slice long_name = {zeros, 256};
    struct idem_slice k = idem_str("k");
    struct idem_slice none = {NULL, 0};
    struct idem_outcome outcome = {.status = IDEM_STATUS_FAILED};
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_answer *answer = NULL;
    struct idem_op *op = NULL;

    assert_code(IDEM_EINVALID, idem_get(store, none, none, &answer, &why));
    assert_code(IDEM_EINVALID, idem_get(store, long_name, k, &answer, &why));
    assert_code(IDEM_EINVALID, idem_get(store, none, long_name, &answer, &why));
    assert_code(IDEM_EINVALID, idem_op_get(none, none, &op, &why));
    assert_null(answer);
    assert_null(op);

    assert_code(IDEM_EINVALID, idem_resolve(store, none, none, 1, none,
                                            &outcome, /* flags= */ 0, &why));
    assert_code(IDEM_EINVALID, idem_resolve(store, none, k, 1, long_name,
                                            &outcome, /* flags= */ 0, &why));
    assert_why("who");
    outcome.status = IDEM_STATUS_UNKNOWN;
    assert_code(IDEM_EINVALID, idem_resolve(store, none, k, 1, none, &outcome,
                                            /* flags= */ 0, &why));
    assert_why("status");
    outcome.status = IDEM_STATUS_IN_PROGRESS;
    assert_code(IDEM_EINVALID, idem_resolve(store, none, k, 1, none, &outcome,
                                            /* flags= */ 0, &why));
    assert_why("status");

    filter.size = 1;
    assert_code(IDEM_EINVALID,
                idem_list(store, &filter, NULL, NULL, NULL, &why));
    assert_why("filter");
    filter.size = sizeof(filter);
    filter.scope = long_name;
    assert_code(IDEM_EINVALID,
                idem_list(store, &filter, NULL, NULL, NULL, &why));
    assert_why("scope");
}

/* ---- Opening ---- */

/* The one option that can be changed while it is open. */
TEST(options, changeTheTimeout)
{
    struct idem_store *store = open_memory(NULL);

    assert_code(IDEM_EINVALID, idem_store_set_timeout(store, 0, &why));
    assert_why("timeout_ms");
    assert_code(IDEM_EINVALID, idem_store_set_timeout(store, 3600001, NULL));
    assert_ok(idem_store_set_timeout(store, 1, NULL));
    assert_ok(idem_store_set_timeout(store, 3600000, &why));
}

/* Every option of a store. */
TEST(options, areInRange)
{
    static const struct {
        const char *name;
        size_t at;
        int64_t value;
    } rows[] = {
        {"timeout_ms", offsetof(struct idem_open_options, timeout_ms), 0},
        {"timeout_ms", offsetof(struct idem_open_options, timeout_ms), -1},
        {"timeout_ms", offsetof(struct idem_open_options, timeout_ms), 3600001},
        {NULL, offsetof(struct idem_open_options, timeout_ms), 3600000},
        {NULL, offsetof(struct idem_open_options, timeout_ms), 1},
        {"queue_max", offsetof(struct idem_open_options, queue_max), 0},
        {"queue_max", offsetof(struct idem_open_options, queue_max), 1048577},
        {NULL, offsetof(struct idem_open_options, queue_max), 1},
        {"result_max", offsetof(struct idem_open_options, result_max),
         IDEM_RESULT_MAX + 1},
        {NULL, offsetof(struct idem_open_options, result_max), IDEM_RESULT_MAX},
        {NULL, offsetof(struct idem_open_options, result_max), 0},
        {"options", offsetof(struct idem_open_options, size), 0},
        {"options", offsetof(struct idem_open_options, size), 8},
    };

    EACH(row, rows) {
        struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
        struct idem_store *store = NULL;
        int rc;

        memcpy((char *)&options + row->at, &row->value, sizeof(row->value));
        rc = idem_open("memory:", &options, &store, &why);
        if (row->name == NULL) {
            assert_ok(rc);
        } else {
            assert_code(IDEM_EINVALID, rc);
            assert_why(row->name);
            assert_null(store);
        }
        idem_close(store);
    }
}

/* A flag that does not exist is refused rather than ignored. */
TEST(options, haveKnownFlags)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_store *store = NULL;

    options.flags = 16;
    assert_code(IDEM_EINVALID, idem_open("memory:", &options, &store, &why));
    assert_why("flag");
    assert_null(store);
}

/* A store is named by its kind and what that kind needs. */
TEST(open, refusesWhatNamesNoStore)
{
    static const char *const urls[] = {
        NULL,       "",        "memory",         "memory:x",
        "redis://", "sqlite",  "MEMORY:",        " memory:",
        "/tmp/x",   "file:/x", "dynamodb:table", "dynamodb://t"};
    struct idem_store *store = NULL;

    EACH(url, urls) {
        if (idem_open(*url, NULL, &store, &why) != IDEM_EINVALID) {
            fail_with("\"%s\" was taken for a store", *url);
        }
        assert_true(why.text[0] != '\0');
    }
    assert_null(store);
    idem_close(NULL);
}
