/* The system's clocks, randomness and sleep. */
#include "base/host.h"

#include "test.h"
#include "threads.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ROW(40) A moment without descriptors, when the clock is first asked, does not
 * leave a process without a clock. Before all the others, which ask. */
TEST(host, asksForItsBootAgain)
{
    struct idem_host host = {0};
    struct idem_clock_reading reading;
    struct rlimit before;
    struct rlimit none;

    idem__host_default(&host);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_not_equal(host.clock(host.ctx, &reading), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(host.clock(host.ctx, &reading), 0);
}

/* A sum of times never wraps: it stays at "never". */
TEST(time, addsUpToNever)
{
    assert_int_equal(idem__time_add(1, 2), 3);
    assert_int_equal(idem__time_add(0, 0), 0);
    assert_int_equal(idem__time_add(IDEM_NEVER, 0), IDEM_NEVER);
    assert_int_equal(idem__time_add(0, IDEM_NEVER), IDEM_NEVER);
    assert_int_equal(idem__time_add(IDEM_NEVER, IDEM_NEVER), IDEM_NEVER);
    assert_int_equal(idem__time_add(1, IDEM_NEVER), IDEM_NEVER);
    assert_int_equal(idem__time_add(IDEM_NEVER - 5, 4), IDEM_NEVER - 1);
    assert_int_equal(idem__time_add(IDEM_NEVER - 5, 5), IDEM_NEVER);
}

static int broken_clock(void *ctx, struct idem_clock_reading *ret_reading)
{
    (void)ctx;
    (void)ret_reading;
    return 1;
}

/* Only the hooks that are NULL are filled in. */
TEST(host, keepsWhatTheCallerBrings)
{
    struct idem_host host = {.clock = broken_clock};

    idem__host_default(&host);
    assert_true(host.clock == broken_clock);
    assert_true(host.random != NULL);
    assert_true(host.sleep != NULL);
}

/* The clocks run, agree with the system's, and name one boot. */
TEST(host, readsTheSystemsClocks)
{
    static const uint8_t none[16];
    struct idem_host host = {0};
    struct idem_clock_reading a;
    struct idem_clock_reading b;
    int64_t wall_ms = (int64_t)time(NULL) * 1000;

    idem__host_default(&host);
    assert_int_equal(host.clock(host.ctx, &a), 0);
    sleep_ms(15);
    assert_int_equal(host.clock(host.ctx, &b), 0);
    assert_true(b.boot_ms - a.boot_ms >= 10);
    assert_true(a.wall_ms >= wall_ms - 2000 && a.wall_ms <= wall_ms + 10000);
    assert_memory_equal(a.boot_id, b.boot_id, 16);
    assert_memory_not_equal(a.boot_id, none, 16);
}

/* A boot is known by the same id in every process of the host. */
TEST(host, readsTheKernelsBootId)
{
    struct idem_host host = {0};
    struct idem_clock_reading reading;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    char text[64] = "";
    char got[64] = "";
    size_t i;

    assert_non_null(f);
    assert_non_null(fgets(text, 37, f));
    (void)fclose(f);
    idem__host_default(&host);
    assert_int_equal(host.clock(host.ctx, &reading), 0);
    for (i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;

        (void)sprintf(got + strlen(got), dash ? "-%02x" : "%02x",
                      reading.boot_id[i]);
    }
    assert_string_equal(got, text);
}

/* Nonces are not to repeat: two draws differ. */
TEST(host, drawsRandomNumbers)
{
    struct idem_host host = {0};
    uint8_t a[16] = {0};
    uint8_t b[16] = {0};

    idem__host_default(&host);
    assert_int_equal(host.random(host.ctx, a, sizeof(a)), 0);
    assert_int_equal(host.random(host.ctx, b, sizeof(b)), 0);
    assert_memory_not_equal(a, b, sizeof(a));
    assert_int_equal(host.random(host.ctx, a, 0), 0);
}

/* A sleep lasts at least as long as it was asked to. */
TEST(host, sleeps)
{
    struct idem_host host = {0};
    long long before_ms = now_ms();

    idem__host_default(&host);
    host.sleep(host.ctx, 30);
    assert_true(now_ms() - before_ms >= 30);
}

/* What is asked for is taken, there or not: a missing one must not be replaced. */
TEST(ca, isTheOneThatIsGiven)
{
    assert_string_equal(idem__ca_file("/no/such", "/etc/passwd"), "/no/such");
}

TEST(ca, isLeftToLibcurlWhereItsOwnIsThere)
{
    assert_null(idem__ca_file(NULL, "/etc/passwd"));
}

/* A libcurl from another system looks where there is nothing. */
TEST(ca, isThatOfThisSystemElse)
{
    const char *found = idem__ca_file(NULL, "/no/such");

    if (access("/etc/ssl/certs/ca-certificates.crt", R_OK) == 0) {
        assert_string_equal(found, "/etc/ssl/certs/ca-certificates.crt");
    }
    assert_true(found == NULL || access(found, R_OK) == 0);
    assert_ptr_equal(idem__ca_file(NULL, NULL), found);
}
