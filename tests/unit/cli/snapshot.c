/* A snapshot counts all that is open, and keeps a bounded part of it. */
#include "record/open_records.h"

#include "test.h"

#include <idem/memory.h>

static const int64_t HOUR_MS = 3600000;

static void end(struct idem_store *store, const char *key, bool fails)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;

    request.key = idem_str(key);
    request.on_expired_lease = IDEM_HOLD;
    assert_ok(idem_begin(store, &request, &attempt, &why));
    if (fails) {
        assert_ok(idem_fail(attempt, idem_str("no"), NULL, &why));
    }
    idem_attempt_destroy(attempt);
}

static struct idem_store *filled(int failed, int in_progress)
{
    struct idem_store *store;
    char key[32];
    int i;

    assert_ok(idem_memory_open(NULL, &store, &why));
    for (i = 0; i < failed + in_progress; i++) {
        (void)snprintf(key, sizeof(key), "key-%d", i);
        end(store, key, i < failed);
    }
    return store;
}

/* Failed work is one class, what is in progress another; a third is not kept. */
static int class_of(void *ctx, struct cli_open *open)
{
    int *seen = ctx;

    (*seen)++;
    open->told = true;
    return open->record.status == IDEM_STATUS_FAILED ? 4
           : open->record.key.len % 2 == 0           ? 0
                                                     : -1;
}

/* The greatest number first. */
static int by_number(const void *a, const void *b)
{
    struct idem_slice x = ((const struct cli_open *)a)->record.key;
    struct idem_slice y = ((const struct cli_open *)b)->record.key;

    return x.len != y.len ? (x.len < y.len) - (x.len > y.len)
                          : memcmp(y.base, x.base, x.len);
}

/* However much is open, so much is kept: the first in order. */
TEST(snapshot, keepsThoseThatComeFirst)
{
    enum {
        FAILED = 1500,
        OPEN = 700,
        MAX = 9
    };
    struct idem_store *store = filled(FAILED, OPEN);
    int seen = 0;
    const struct cli_snapshot_keep keep = {.max = MAX,
                                           .compare = by_number,
                                           .class_of = class_of,
                                           .ctx = &seen};
    struct cli_snapshot snapshot;
    const struct cli_snapshot_class *failed = &snapshot.classes[4];
    size_t i;

    assert_ok(
        cli_snapshot_outcomes(store, NULL, HOUR_MS, &keep, &snapshot, &why));
    assert_int_equal(seen, FAILED + OPEN);
    assert_int_equal(snapshot.failed_len, FAILED);
    assert_int_equal(snapshot.in_progress, OPEN);
    assert_int_equal(cli_snapshot_open(&snapshot), FAILED + OPEN);
    assert_int_equal(failed->found, FAILED);
    assert_int_equal(failed->len, MAX);
    assert_true(failed->room <= 64);
    for (i = 0; i < MAX; i++) {
        char key[32];

        (void)snprintf(key, sizeof(key), "key-%zu", FAILED - 1 - i);
        assert_int_equal(failed->open[i].record.key.len, strlen(key));
        assert_memory_equal(failed->open[i].record.key.base, key, strlen(key));
        assert_true(failed->open[i].told);
    }
    assert_int_equal(snapshot.classes[0].found, OPEN);
    assert_int_equal(snapshot.classes[0].len, MAX);
    assert_int_equal(snapshot.classes[1].found, 0);
    cli_snapshot_finish(&snapshot);
    idem_close(store);
}

/* Without anything to keep it counts alone. */
TEST(snapshot, countsAlone)
{
    struct idem_store *store = filled(20, 30);
    struct cli_snapshot snapshot;

    assert_ok(
        cli_snapshot_take(store, NULL, /* keep= */ NULL, &snapshot, &why));
    assert_int_equal(snapshot.failed_len, 20);
    assert_int_equal(snapshot.in_progress, 30);
    assert_true(snapshot.now_ms > 0);
    assert_null(snapshot.classes[0].open);
    cli_snapshot_finish(&snapshot);
    idem_close(store);
}
