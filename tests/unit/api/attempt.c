/* Attempts: their lease as the owner counts it, their tokens, and ops that give
 * an attempt away. */
#include "contract/store.h"
#include "claims.h"
#include "host.h"
#include "test.h"

#include <idem/queue.h>

static struct idem_store *open_on(struct host *host)
{
    struct idem_open_options options;
    struct idem_store *store;

    host_init(host);
    options = host_options(host, true);
    store = open_memory(&options);
    store->margin_ms = 700;
    return store;
}

static struct idem_request shop_request(const char *key)
{
    struct idem_request request = rerun(key);

    request.scope = idem_str("shop");
    return request;
}

/* ---- The lease, as the owner counts it ---- */

/* It counts down on the boot clock, less the store's margin, and not below 0. */
TEST(lease, countsDown)
{
    struct host host;
    struct idem_store *store = open_on(&host);
    struct idem_request request = shop_request("k");
    struct idem_attempt *attempt = begin(store, &request, IDEM_STARTED);
    int64_t margin_ms = store->margin_ms;

    assert_int_equal(idem_attempt_lease_left_ms(attempt), 60000 - margin_ms);
    host_pass(&host, 59000 - margin_ms);
    assert_int_equal(idem_attempt_lease_left_ms(attempt), 1000);
    host_pass(&host, 999);
    assert_int_equal(idem_attempt_lease_left_ms(attempt), 1);
    host_pass(&host, 1);
    assert_int_equal(idem_attempt_lease_left_ms(attempt), 0);
    host_pass(&host, 86400000);
    assert_int_equal(idem_attempt_lease_left_ms(attempt), 0);
}

/* The wall clock has no part in it; a clock that does not answer stops work. */
TEST(lease, ignoresTheWallClock)
{
    struct host host;
    struct idem_store *store = open_on(&host);
    struct idem_request request = shop_request("k");
    struct idem_attempt *attempt = begin(store, &request, IDEM_STARTED);
    int64_t left_ms = idem_attempt_lease_left_ms(attempt);

    host_set_wall(&host, 0);
    assert_int_equal(idem_attempt_lease_left_ms(attempt), left_ms);
    host_set_wall(&host, HOST_WALL_MS + 86400000);
    assert_int_equal(idem_attempt_lease_left_ms(attempt), left_ms);
    host.clock_code = -1;
    assert_int_equal(idem_attempt_lease_left_ms(attempt), 0);
    host.clock_code = 0;
    assert_int_equal(idem_attempt_lease_left_ms(attempt), left_ms);
}

static int end_by(int how, struct idem_attempt *attempt)
{
    switch (how) {
    case 0:
        return idem_complete(attempt, NULL, &why);
    case 1:
        return idem_fail(attempt, idem_str("no"), NULL, &why);
    case 2:
        return idem_release(attempt, idem_str(""), &why);
    case 3:
        return idem_unknown(attempt, idem_str(""), &why);
    default:
        return idem_expire(attempt, &why);
    }
}

/* Whoever has ended, or has lost, starts no further effect. */
TEST(lease, isOverWithTheAttempt)
{
    int how;

    for (how = 0; how < 5; how++) {
        struct host host;
        struct idem_store *store = open_on(&host);
        struct idem_request request = shop_request("k");
        struct idem_attempt *attempt = begin(store, &request, IDEM_STARTED);

        assert_true(idem_attempt_lease_left_ms(attempt) > 0);
        assert_ok(end_by(how, attempt));
        assert_int_equal(idem_attempt_lease_left_ms(attempt), 0);

        request = shop_request("lost");
        attempt = begin(store, &request, IDEM_STARTED);
        assert_ok(idem_renew(attempt, 86400000, &why));
        host_pass(&host, 86400000);
        expect(store, &request, IDEM_STARTED);
        host_pass(&host, -3600000);
        assert_true(idem_attempt_lease_left_ms(attempt) > 0);
        assert_code(IDEM_ELOST, how == 4 ? idem_renew(attempt, 0, &why)
                                         : end_by(how, attempt));
        assert_int_equal(idem_attempt_lease_left_ms(attempt), 0);
    }
}

/* The owner never counts longer than the store does: it counts from before it
 * asked. Here asking takes a second. */
TEST(lease, countsFromBeforeItWasAsked)
{
    struct host host;
    struct idem_store *store = open_on(&host);
    struct idem_request request = shop_request("k");
    struct idem_queue *queue;
    struct idem_attempt *attempt;
    struct idem_op *op;

    assert_ok(idem_queue_create(store, &queue, &why));
    assert_ok(idem_op_begin(&request, &op, &why));
    assert_ok(idem_queue_submit(queue, op, &why));
    host_pass(&host, 1000);
    op = idem_queue_reap(queue, -1);
    assert_ok(idem_op_take_attempt(op, &attempt));
    assert_int_equal(idem_attempt_lease_left_ms(attempt),
                     59000 - store->margin_ms);
    idem_attempt_destroy(attempt);
    idem_op_destroy(op);
    idem_queue_destroy(queue);
}

/* ---- Tokens ---- */

/* What is no token is refused with a reason; one of no record loses. */
TEST(token, isRefusedOrLost)
{
    struct host host;
    struct idem_store *store = open_on(&host);
    struct host other_host;
    struct idem_store *other = open_on(&other_host);
    struct idem_request request = shop_request("k");
    struct idem_attempt *attempt = begin(other, &request, IDEM_STARTED);
    struct idem_attempt *read = NULL;
    char token[IDEM_TOKEN_MAX];

    assert_code(IDEM_EINVALID,
                idem_attempt_from_token(store, "idem1.x", &read, &why));
    assert_why("not an idem token");
    assert_null(read);

    assert_ok(idem_attempt_token(attempt, token));
    read = by_token(store, token);
    assert_code(IDEM_ELOST, idem_complete(read, NULL, &why));
    assert_why("not in this store");
    assert_code(IDEM_ELOST, idem_renew(read, 0, &why));
}

/* ---- Records of attempts ---- */

/* What a mismatch is shown of the other request is neither what it was nor what
 * came of it. */
TEST(attempt, showsNothingOfAnotherRequest)
{
    struct host host;
    struct idem_store *store = open_on(&host);
    struct idem_request request = shop_request("k");
    struct idem_result result = {
        .bytes = idem_str("secret"),
        .content_type = idem_str("text/secret"),
        .meta = idem_str("secret"),
    };
    uint8_t prints[2][IDEM_FINGERPRINT_LEN] = {{1}, {1, 2}};
    struct idem_attempt *attempt;

    request.fingerprint = idem_bytes(prints[0], IDEM_FINGERPRINT_LEN);
    request.input = idem_str("secret");
    assert_ok(
        idem_complete(begin(store, &request, IDEM_STARTED), &result, &why));

    request.fingerprint = idem_bytes(prints[1], IDEM_FINGERPRINT_LEN);
    attempt = begin(store, &request, IDEM_MISMATCH);
    assert_int_equal(attempt->record->status, IDEM_STATUS_COMPLETED);
    assert_int_equal(attempt->record->result.bytes.len, 0);
    assert_int_equal(attempt->record->result.meta.len, 0);
    assert_int_equal(attempt->record->result.content_type.len, 0);
    assert_int_equal(attempt->record->input.len, 0);
    assert_int_equal(attempt->record->result_len, 0);
    assert_int_equal(attempt->record->input_len, 0);
}
