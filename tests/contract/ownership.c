/* Owners of records: only the owner can change its record. */
#include "contract.h"

#include <idem/operator.h>

/* How an owner loses its record. */
enum succession {
    TAKEN_OVER,
    RELEASED_AND_BEGUN,
    RESOLVED,
    FORGOTTEN, /* Past its retention, and begun anew. */
    PURGED,    /* And not begun anew. */
    SUCCESSIONS,
};

static const char *const successions[] = {"taken over",
                                          "released and begun again",
                                          "resolved",
                                          "forgotten and begun again",
                                          "purged"};

/* Begins "k" and has it succeeded; gives both attempts. */
static void succeed(struct fixture *f, enum succession how,
                    struct idem_attempt **ret_old,
                    struct idem_attempt **ret_new)
{
    struct idem_request request = rerun("k");
    struct idem_outcome outcome = {.status = IDEM_STATUS_FAILED,
                                   .text = idem_str("by a person")};
    struct idem_attempt *old;
    uint64_t purged;

    request.owner = idem_str("the same owner");
    old = begin(f->store, &request, IDEM_STARTED);
    *ret_new = NULL;
    switch (how) {
    case TAKEN_OVER:
        host_pass(&f->host, 60000);
        *ret_new = begin(f->store, &request, IDEM_STARTED);
        assert_true((*ret_new)->takeover);
        break;
    case RELEASED_AND_BEGUN:
        assert_ok(idem_release(old, idem_str(""), &why));
        *ret_new = begin(f->store, &request, IDEM_STARTED);
        break;
    case RESOLVED:
        host_pass(&f->host, 60000);
        assert_ok(idem_resolve(f->store, idem_str(""), idem_str("k"),
                               old->fence, idem_str("ann"), &outcome,
                               /* flags= */ 0, &why));
        break;
    case FORGOTTEN:
        assert_ok(complete(old, "verb"));
        host_pass(&f->host, 86400000);
        *ret_new = begin(f->store, &request, IDEM_STARTED);
        break;
    default:
        host_pass(&f->host, 2 * 86400000);
        assert_ok(idem_purge(f->store, 0, &purged, &why));
        assert_int_equal(purged, 1);
        break;
    }
    *ret_old = old;
}

/* A stale owner loses on every verb, and the record stays as it is, to the byte;
 * its owner's name, which is the same, does not help it. */
TEST(owner, losesOnEveryVerb)
{
    int how;
    int verb;

    for (how = 0; how < SUCCESSIONS; how++) {
        for (verb = 0; verb < VERBS; verb++) {
            struct fixture f;
            struct idem_attempt *old;
            struct idem_attempt *next;
            uint8_t before[4096];
            uint8_t after[4096];
            size_t len = 0;
            int rc;

            open_virtual(&f);
            succeed(&f, (enum succession)how, &old, &next);
            if (how != PURGED) {
                len = stored_read(&f, "k", HEAD, before, sizeof(before));
            }
            rc = call_verb(verb, old);
            if (rc != IDEM_ELOST) {
                fail_with("%s, verb %d: %s", successions[how], verb,
                          idem_error_name(rc));
            }
            assert_true(why.text[0] != '\0');
            if (how != PURGED) {
                assert_int_equal(stored_read(&f, "k", HEAD, after,
                                             sizeof(after)),
                                 len);
                assert_memory_equal(after, before, len);
            } else {
                assert_int_equal(count(f.store, NULL), 0);
            }
            if (next != NULL) {
                assert_ok(complete(next, "the successor's"));
                assert_int_equal(status_of(f.store, "k"),
                                 IDEM_STATUS_COMPLETED);
            }
            assert_code(IDEM_ELOST, call_verb(verb, old));
            finish(&f);
        }
    }
}

/* If no other attempt followed a slow owner, its late end counts. */
TEST(owner, mayBeLateWhenNobodyFollowed)
{
    int verb;

    for (verb = 0; verb < VERBS; verb++) {
        struct fixture f;
        struct idem_request request = claim("k");
        struct idem_attempt *attempt;

        open_virtual(&f);
        attempt = begin(f.store, &request, IDEM_STARTED);
        host_pass(&f.host, 3600000);
        assert_int_equal(idem_attempt_lease_left_ms(attempt), 0);
        assert_ok(call_verb(verb, attempt));
        finish(&f);
    }
}

/* An attempt that renews in time is never followed. */
TEST_VIRTUAL(owner, keepsWhatItRenews)
{
    struct idem_request request = rerun("k");
    struct idem_attempt *attempt;
    int i;

    request.lease_ms = 5000;
    attempt = begin(f->store, &request, IDEM_STARTED);
    for (i = 0; i < 50; i++) {
        host_pass(&f->host, 4999);
        expect(f->store, &request, IDEM_BUSY);
        assert_ok(idem_renew(attempt, 0, &why));
    }
    host_pass(&f->host, 5000);
    expect(f->store, &request, IDEM_STARTED);
    assert_code(IDEM_ELOST, idem_renew(attempt, 0, &why));
}

/* A renewal never brings the end of the lease nearer. */
TEST_VIRTUAL(owner, renewsOnlyForward)
{
    struct idem_request request = rerun("k");
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);

    assert_ok(idem_renew(attempt, 2000, &why));
    host_pass(&f->host, 59999);
    expect(f->store, &request, IDEM_BUSY);
    host_pass(&f->host, 1);
    attempt = begin(f->store, &request, IDEM_STARTED);
    assert_true(attempt->takeover);
    assert_ok(idem_renew(attempt, IDEM_NEVER, &why));
    host_pass(&f->host, 100LL * 365 * 86400000);
    expect(f->store, &request, IDEM_BUSY);
    assert_ok(complete(attempt, "after a hundred years"));
}

/* A token is as good as the attempt, through any handle of the store. */
TEST_VIRTUAL(owner, maySpeakByToken)
{
    struct idem_request request = claim("k");
    struct idem_attempt *other;
    char token[IDEM_TOKEN_MAX];
    struct idem_store *handle = handle_open(f, &f->options);
    struct idem_attempt *attempt;

    request.lease_ms = 30000;
    attempt = begin(f->store, &request, IDEM_STARTED);
    assert_ok(idem_attempt_token(attempt, token));
    host_pass(&f->host, 20000);
    other = by_token(handle, token);
    assert_ok(idem_renew(other, 0, &why));
    assert_int_equal(begin(f->store, &request, IDEM_BUSY)->lease_left_ms,
                     30000);
    assert_ok(complete(other, "by token"));
    assert_ok(complete(attempt, "by token"));
    assert_code(IDEM_ELOST, complete(attempt, "by hand"));
    handle_close(f, handle);
}
