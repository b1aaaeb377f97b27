/* The replaceable heap. */
#include "base/heap.h"

#include "heap.h"
#include "test.h"

/* Every allocation goes through the hook, and every free. */
TEST(heap, usesTheHook)
{
    size_t live = heap_live();
    void *ptr = idem__alloc(10);

    assert_non_null(ptr);
    assert_int_equal(heap_live(), live + 1);
    ptr = idem__realloc(ptr, 1000);
    assert_non_null(ptr);
    assert_int_equal(heap_live(), live + 1);
    idem__free(ptr);
    idem__free(NULL);
    assert_int_equal(heap_live(), live);
}

/* Memory of length 0 is memory all the same. */
TEST(heap, givesAPointerForNothing)
{
    void *ptr = idem__alloc(0);
    void *zeros = idem__zalloc(0);

    assert_non_null(ptr);
    assert_non_null(zeros);
    ptr = idem__realloc(ptr, 0);
    assert_non_null(ptr);
    idem__free(ptr);
    idem__free(zeros);
}

/* Zeroed memory is zero, whatever the hook gave. */
TEST(heap, fillsWithZeros)
{
    static const char zeros[100];
    char *ptr = idem__zalloc(100);

    assert_memory_equal(ptr, zeros, 100);
    idem__free(ptr);
}

/* Where there is no memory the answer is NULL, and a block stays as it is. */
TEST(heap, saysWhenThereIsNone)
{
    char *ptr = idem__alloc(3);

    memcpy(ptr, "abc", 3);
    heap_fail(0, true);
    assert_null(idem__alloc(1));
    assert_null(idem__zalloc(1));
    assert_null(idem__realloc(ptr, 100));
    assert_true(heap_fail_never());
    assert_memory_equal(ptr, "abc", 3);
    idem__free(ptr);
}

/* NULL brings malloc and its kin back. */
TEST(heap, comesBackToTheSystems)
{
    size_t live = heap_live();
    void *ptr;

    idem_heap_set(NULL);
    ptr = idem__realloc(idem__alloc(10), 20);
    assert_non_null(ptr);
    assert_int_equal(heap_live(), live);
    idem__free(ptr);
    heap_install();
}
