/* What is remembered of claims. */
#include "store/remote/claims.h"

#include "base/bytes.h"
#include "test.h"

enum {
    MOST = 4096,
    LARGEST = 1160,
};

static const uint8_t *id_of(unsigned n)
{
    static uint8_t id[IDEM_ID_LEN];

    idem__put_u32(id, n * 2654435761u); /* An id is a hash. */
    idem__put_u32(id + 4, n);
    return id;
}

static void put(struct idem__claims *claims, unsigned n, const char *text)
{
    struct idem_slice parts[] = {idem_str(text), idem_bytes(NULL, 0),
                                 idem_str("!")};

    idem__claims_put(claims, id_of(n), parts, COUNT(parts));
}

/* NULL: nothing is remembered. */
static const char *look(struct idem__claims *claims, unsigned n)
{
    static char text[64];
    struct idem__buffer memory = {.base = NULL};
    bool found = idem__claims_get(claims, id_of(n), &memory);

    if (found) {
        assert_true(memory.len < sizeof(text));
        memcpy(text, memory.base, memory.len);
        text[memory.len] = '\0';
    }
    idem__buffer_free(&memory);
    return found ? text : NULL;
}

/* The last that was put for an id is there, in one piece, until it is forgotten. */
TEST(claims, areRememberedUntilTheyAreForgotten)
{
    struct idem__claims *claims = idem__claims_create();

    assert_null(look(claims, 1));
    put(claims, 1, "one");
    put(claims, 2, "two");
    put(claims, 1, "once more");
    assert_string_equal(look(claims, 1), "once more!");
    assert_string_equal(look(claims, 2), "two!");
    idem__claims_forget(claims, id_of(1));
    idem__claims_forget(claims, id_of(1));
    assert_null(look(claims, 1));
    assert_string_equal(look(claims, 2), "two!");
    idem__claims_destroy(claims);
}

/* Where there are too many, the oldest goes; what is put anew is young again. */
TEST(claims, areBounded)
{
    struct idem__claims *claims = idem__claims_create();
    unsigned n;

    for (n = 0; n < MOST; n++) {
        put(claims, n, "x");
    }
    put(claims, 0, "young");
    put(claims, MOST, "new");
    assert_null(look(claims, 1));
    assert_string_equal(look(claims, 0), "young!");
    assert_string_equal(look(claims, 2), "x!");
    assert_string_equal(look(claims, MOST), "new!");
    idem__claims_destroy(claims);
}

/* One that is too large is not remembered, nor what was there before it. */
TEST(claims, areSmall)
{
    static const char bytes[LARGEST + 1];
    struct idem__claims *claims = idem__claims_create();
    struct idem__buffer memory = {.base = NULL};
    struct idem_slice part = idem_bytes(bytes, LARGEST);

    idem__claims_put(claims, id_of(1), &part, 1);
    assert_true(idem__claims_get(claims, id_of(1), &memory));
    assert_int_equal(memory.len, LARGEST);
    part.len++;
    idem__claims_put(claims, id_of(1), &part, 1);
    assert_false(idem__claims_get(claims, id_of(1), &memory));
    idem__buffer_free(&memory);
    idem__claims_destroy(claims);
}
