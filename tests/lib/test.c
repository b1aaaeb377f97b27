/* Runs the tests of one program, each under a heap that must end empty. */
#include "test.h"

#include "heap.h"
#include "temp.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TESTS_MAX = 512,
    LATE_STATUS = 98 /* As in tests/lib/patience.py. */
};

static struct CMUnitTest tests[TESTS_MAX];
static size_t tests_len;

const char *test_argument;
struct idem_error why;

struct test {
    void (*run)(void);
};

static struct test bodies[TESTS_MAX];

/* Calls that this test leaves to its end. */
static struct after {
    void (*done)(void *what);
    void *what;
} * afters;
static size_t afters_len;

static int lates; /* Cases that failed by being late. */
static const char *skipped;
static jmp_buf at_skip;

/* Meson expects "ok ... # SKIP why" of a skipped case, but cmocka 1.1.5 prints "not ok".
 * So the case passes for cmocka, under a name that has the rest of that line. */
static void name_skipped(struct CMUnitTest *test)
{
    char *name = NULL;

    if (asprintf(&name, "%s # SKIP %s", test->name, skipped) < 0) {
        abort();
    }
    test->name = name; /* Until the program ends. */
}

void test_after(void (*done)(void *what), void *what)
{
    afters = realloc(afters, (afters_len + 1) * sizeof(*afters));
    if (afters == NULL) {
        abort();
    }
    afters[afters_len++] = (struct after){done, what};
}

static void finish_all(void)
{
    while (afters_len > 0) {
        afters_len--;
        afters[afters_len].done(afters[afters_len].what);
    }
    free(afters);
    afters = NULL;
}

void test_skip(const char *reason)
{
    skipped = reason;
    longjmp(at_skip, 1);
}

static void run_one(void **state)
{
    const struct test *test = *state;

    memset(&why, 0, sizeof(why));
    heap_fail_never();
    heap_forget();
    afters_len = 0; /* A failed test may have left some. */
    if (setjmp(at_skip) != 0) {
        finish_all();
        name_skipped(&tests[test - bodies]);
        return;
    }
    test->run();
    finish_all();
    if (heap_live() != 0) {
        fail_with("%zu blocks of the library's heap were never freed",
                  heap_live());
    }
}

void test_add(const char *name, void (*run)(void))
{
    if (tests_len == TESTS_MAX) {
        abort();
    }
    bodies[tests_len].run = run;
    tests[tests_len] = (struct CMUnitTest){
        .name = name,
        .test_func = run_one,
        .initial_state = &bodies[tests_len],
    };
    tests_len++;
}

int main(int argc, char **argv)
{
    int failed;
    int i;

    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            cmocka_set_test_filter(argv[++i]);
        } else {
            test_argument = argv[i];
        }
    }
    heap_install();
    failed = _cmocka_run_group_tests(program_invocation_short_name, tests,
                                     tests_len, NULL, NULL);
    temp_remove();
    if (failed == 0) {
        return 0;
    }
    return failed == lates ? LATE_STATUS : 1;
}

bool test_under(const char *light)
{
    const char *built = getenv("IDEM_TEST_SANITIZER");
    const char *preloaded = getenv("LD_PRELOAD");

    if (strcmp(light, "qemu") == 0) {
        return getenv("IDEM_TEST_QEMU") != NULL;
    }
    if (strcmp(light, "valgrind") == 0) {
        return preloaded != NULL && strstr(preloaded, "/vgpreload_") != NULL;
    }
    return built != NULL && strstr(built, light) != NULL;
}

struct idem_slice from_hex(const char *text, uint8_t *buf)
{
    size_t len = strlen(text) / 2;
    size_t i;

    for (i = 0; i < len; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};

        buf[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return idem_bytes(buf, len);
}

void test_code(int want, int got, const char *call, const char *file, int line)
{
    if (got != want) {
        test_fail(file, line, "%s\n#   answered %s, not %s: \"%s\"", call,
                  idem_error_name(got), idem_error_name(want), why.text);
    }
}

static void show(char *to, size_t cap, struct idem_slice s)
{
    const unsigned char *p = s.base;
    size_t n = 0;
    size_t i;

    for (i = 0; i < s.len && i < 40 && n + 5 < cap; i++) {
        n +=
            (size_t)snprintf(to + n, cap - n,
                             p[i] >= 32 && p[i] < 127 ? "%c" : "\\x%02x", p[i]);
    }
    to[n] = '\0';
}

void test_bytes(struct idem_slice got, struct idem_slice want, const char *file,
                int line)
{
    char a[240];
    char b[240];

    if (got.len == want.len &&
        (got.len == 0 || memcmp(got.base, want.base, got.len) == 0)) {
        return;
    }
    show(a, sizeof(a), got);
    show(b, sizeof(b), want);
    test_fail(file, line, "%zu bytes \"%s\", not %zu bytes \"%s\"", got.len, a,
              want.len, b);
}

void test_between(int64_t value, int64_t least, int64_t most, const char *text,
                  const char *file, int line)
{
    if (value < least || value > most) {
        test_fail(file, line, "%s is %lld, not %lld to %lld", text,
                  (long long)value, (long long)least, (long long)most);
    }
}

void test_in_time(long long took_ms, long long most_ms, const char *file,
                  int line)
{
    if (took_ms >= most_ms) {
        lates++;
        test_fail(file, line, "late: it took %lld ms; less than %lld is wanted",
                  took_ms, most_ms);
    }
}

void test_why(const char *word, const char *file, int line)
{
    if (strstr(why.text, word) == NULL) {
        test_fail(file, line, "the error \"%s\" does not say \"%s\"", why.text,
                  word);
    }
}

void test_fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    print_error("# %s\n", text);
    _fail(file, line);
    abort(); /* Not reached: cmocka jumps out of the test. */
}
