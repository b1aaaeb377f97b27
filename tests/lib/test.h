/* Tests in C: cmocka, with tests that register themselves.
 *
 *     / * A lease that ended is taken over by the next caller. * /
 *     TEST(begin, takesOverWhenTheLeaseEnded)
 *     {
 *         assert_code(IDEM_OK, idem_begin(store, &request, &attempt, &why));
 *     }
 *
 * Each file of tests has one sentence above each TEST; suite = the function that it calls,
 * condition = what holds. A test that covers a row of tests/rows.txt has ROW(4) in that
 * sentence. Tests run in the order of the file, each under a heap that must be empty again
 * at its end; main() is here too.
 */
#ifndef TEST_H
#define TEST_H

#include <idem.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define TEST(suite, condition)                                                 \
    static void suite##_##condition(void);                                     \
    __attribute__((constructor)) static void suite##_##condition##_add(void)   \
    {                                                                          \
        test_add(#suite "/" #condition, suite##_##condition);                  \
    }                                                                          \
    static void suite##_##condition(void)

/* A TEST that gets a pointer @name to a @type, which is set up before it and torn down
 * after it. Files define their own macros with this one. */
#define TEST_WITH(suite, condition, type, name, set_up, tear_down)             \
    static void suite##_##condition##_with(type *name);                        \
    TEST(suite, condition)                                                     \
    {                                                                          \
        type name;                                                             \
                                                                               \
        set_up(&name);                                                         \
        suite##_##condition##_with(&name);                                     \
        tear_down(&name);                                                      \
    }                                                                          \
    static void suite##_##condition##_with(type *name)

/* A TEST between two statements. */
#define TEST_BETWEEN(suite, condition, set_up, tear_down)                      \
    static void suite##_##condition##_between(void);                           \
    TEST(suite, condition)                                                     \
    {                                                                          \
        set_up;                                                                \
        suite##_##condition##_between();                                       \
        tear_down;                                                             \
    }                                                                          \
    static void suite##_##condition##_between(void)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A loop in which @row is a pointer to each element of @array. */
#define EACH(row, array)                                                       \
    for (__typeof__(&(array)[0]) row = (array); row < (array) + COUNT(array);  \
         row++)

void test_add(const char *name, void (*run)(void));

/* Calls @done for @what when this test has ended; the last call of this goes first. */
void test_after(void (*done)(void *what), void *what);

/* The first argument of the program that is not an option; NULL if there is none. */
extern const char *test_argument;

/* For ret_error, so that a failed assert_code() can show the sentence. Cleared
 * before each test. */
extern struct idem_error why;

/* Decodes the hex digits of @text into @buf, and returns the bytes. */
struct idem_slice from_hex(const char *text, uint8_t *buf);

/* Whether this runs under @light: "address", "thread" or "valgrind" (tools/sanitize), or
 * "qemu" (tools/cross). */
bool test_under(const char *light);

/* Ends this test as skipped; its line says @reason. */
void test_skip(const char *reason) __attribute__((noreturn));

#define assert_code(want, got) test_code(want, got, #got, __FILE__, __LINE__)
#define assert_ok(got) assert_code(IDEM_OK, got)

#define assert_text(slice, text)                                               \
    test_bytes(slice, idem_str(text), __FILE__, __LINE__)
#define assert_slice(got, want) test_bytes(got, want, __FILE__, __LINE__)

/* @least <= @value <= @most. cmocka 2 has names for this that cmocka 1 lacks, and warns of
 * the only name that both have. */
#define assert_between(value, least, most)                                     \
    test_between((int64_t)(value), (int64_t)(least), (int64_t)(most), #value,  \
                 __FILE__, __LINE__)

/* @took_ms < @most_ms. A program whose cases failed by this alone exits with LATE_STATUS,
 * and tools/test runs it once more, alone: see tests/lib/patience.py. */
#define assert_in_time(took_ms, most_ms)                                       \
    test_in_time(took_ms, most_ms, __FILE__, __LINE__)

/* Fails unless the error that a failed call left in @why contains @word. */
#define assert_why(word) test_why(word, __FILE__, __LINE__)

/* Fails with a sentence made as by printf; use it to name the row of a table that failed. */
#define fail_with(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)

void test_code(int want, int got, const char *call, const char *file, int line);
void test_bytes(struct idem_slice got, struct idem_slice want, const char *file,
                int line);
void test_between(int64_t value, int64_t least, int64_t most, const char *text,
                  const char *file, int line);
void test_in_time(long long took_ms, long long most_ms, const char *file,
                  int line);
void test_why(const char *word, const char *file, int line);
void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#endif
