/* The store in memory: what only it has to show. */
#include "claims.h"
#include "heap.h"
#include "test.h"

#include <idem/memory.h>

enum {
    KEYS = 3000
};

static enum idem_verdict verdict_for(struct idem_store *store, unsigned n)
{
    struct idem_request request = claim(numbered("key-", n));
    struct idem_attempt *attempt;

    assert_ok(idem_begin(store, &request, &attempt, &why));
    return freed_later(attempt)->verdict;
}

/* It grows with its records and finds each of them. */
TEST(memory, grows)
{
    struct idem_store *store;
    unsigned n;

    assert_ok(idem_memory_open(NULL, &store, &why));
    for (n = 0; n < KEYS; n++) {
        assert_int_equal(verdict_for(store, n), IDEM_STARTED);
    }
    for (n = 0; n < KEYS; n++) {
        assert_int_equal(verdict_for(store, n), IDEM_BUSY);
    }
    idem_close(store);
}

/* Growth that finds no memory fails the one claim and loses no record. */
TEST(memory, survivesGrowthWithoutMemory)
{
    struct idem_store *store;
    unsigned failures = 0;
    unsigned n;

    assert_ok(idem_memory_open(NULL, &store, &why));
    for (n = 0; n < 600; n++) {
        struct idem_request request = claim(numbered("key-", n));
        struct idem_attempt *attempt = NULL;
        int rc;

        heap_fail((long)(n % 9), true);
        rc = idem_begin(store, &request, &attempt, &why);
        failures += heap_fail_never();
        assert_true(rc == 0 || rc == IDEM_ENOMEM);
        idem_attempt_destroy(attempt);
    }
    assert_true(failures > 100);
    for (n = 0; n < 600; n++) {
        enum idem_verdict verdict = verdict_for(store, n);

        assert_true(verdict == IDEM_STARTED || verdict == IDEM_BUSY);
        assert_int_equal(verdict_for(store, n), IDEM_BUSY);
    }
    idem_close(store);
}

/* Two stores know nothing of each other. */
TEST(memory, isOneStoreForEachOpen)
{
    struct idem_store *one;
    struct idem_store *two;

    assert_ok(idem_memory_open(NULL, &one, &why));
    assert_ok(idem_open("memory:", NULL, &two, &why));
    assert_int_equal(verdict_for(one, 1), IDEM_STARTED);
    assert_int_equal(verdict_for(two, 1), IDEM_STARTED);
    idem_close(one);
    assert_int_equal(verdict_for(two, 1), IDEM_BUSY);
    idem_close(two);
}

/* There is never one that exists already: flags that ask for it are refused. */
TEST(memory, cannotBeThereBefore)
{
    static const unsigned flags[] = {IDEM_OPEN_READONLY, IDEM_OPEN_NO_CREATE};

    EACH(flag, flags) {
        struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
        struct idem_store *store = NULL;

        options.flags = *flag;
        assert_code(IDEM_ENOTFOUND, idem_memory_open(&options, &store, &why));
        assert_null(store);
    }
}
