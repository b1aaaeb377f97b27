/* The first lines of a list in its order. */
#include "claims.h"
#include "inspect/list.h"

#include "record/open_records.h"
#include "test.h"

#include <idem/memory.h>
#include <stdlib.h>

/* Adds the numbers 0 to @len - 1, shuffled, and compares what is printed. */
static void check_numbers(struct cli_rows rows, size_t len, const char *want)
{
    char *text = NULL;
    size_t text_len;
    FILE *f = open_memstream(&text, &text_len);
    char line[32];
    size_t i;

    assert_non_null(f);
    for (i = 0; i < len; i++) {
        size_t number = i * 7 % len; /* 7 and @len have no common factor. */

        (void)snprintf(line, sizeof(line), "%zu ", number);
        if (cli_rows_wants(&rows, (int64_t)number, i)) {
            assert_int_equal(cli_rows_add(&rows, strdup(line), (int64_t)number,
                                          i),
                             0);
        }
    }
    assert_int_equal(rows.added, len);
    cli_rows_print(&rows, f);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, want);
    free(text);
    cli_rows_finish(&rows);
}

TEST(rows, areSortedAndCut)
{
    check_numbers((struct cli_rows){0}, 5, "4 3 2 1 0 ");
    check_numbers((struct cli_rows){.limit = 3}, 1000, "999 998 997 ");
    check_numbers((struct cli_rows){.limit = 7}, 5, "4 3 2 1 0 ");
    check_numbers((struct cli_rows){.limit = 3}, 0, "");
}

/* However many are added, a limit bounds what is held; and what comes after the
 * limit is not even made. */
TEST(rows, areFewWithALimit)
{
    struct cli_rows rows = {.limit = 10};
    int made = 0;
    int i;

    for (i = 10000; i > 0; i--) {
        if (cli_rows_wants(&rows, i, 0)) {
            assert_int_equal(cli_rows_add(&rows, strdup("x"), i, 0), 0);
            made++;
        }
        assert_true(rows.len <= 64);
    }
    assert_true(made <= 64);
    cli_rows_finish(&rows);
}

/* Emptied, they begin anew. */
TEST(rows, areEmptied)
{
    struct cli_rows rows = {.limit = 1};

    assert_true(cli_rows_wants(&rows, 2, 0));
    assert_int_equal(cli_rows_add(&rows, strdup("x"), 2, 0), 0);
    cli_rows_print(&rows, stderr);
    assert_false(cli_rows_wants(&rows, 1, 0));
    cli_rows_empty(&rows);
    assert_int_equal(rows.added, 0);
    assert_true(cli_rows_wants(&rows, 1, 0));
    cli_rows_finish(&rows);
}

/* ---- Snapshots ---- */

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
    int i;

    assert_ok(idem_memory_open(NULL, &store, &why));
    for (i = 0; i < failed + in_progress; i++) {
        end(store, numbered("key-", i), i < failed);
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
        const char *key = numbered("key-", FAILED - 1 - i);

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
