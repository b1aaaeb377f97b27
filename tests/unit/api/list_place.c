/* Places of lists: what is written is read back, and nothing else. */
#include "api/call.h"

#include "test.h"

#include <idem/operator.h>

static const struct idem_store_ops ops = {.name = "one"};
static const struct idem_store_ops other_ops = {.name = "other"};
static const struct idem_store store = {.ops = &ops};
static const struct idem_store other = {.ops = &other_ops};

/* Cursors of every length, with the smallest and the greatest words. */
TEST(list_place, goesThroughText)
{
    static const uint64_t words[] = {0, 1, 255, 256, UINT64_MAX};
    size_t n;
    size_t i;

    for (n = 0; n <= IDEM_CURSOR_LEN; n++) {
        struct idem_op op = {.verb = IDEM_OP_LIST};
        struct idem_op back = {.verb = IDEM_OP_LIST};
        char place[IDEM_PLACE_MAX];

        for (i = 0; i < n; i++) {
            op.u.list.cursor[i] = words[n == IDEM_CURSOR_LEN ? 4 : (n + i) % 5];
        }
        memset(place, 'x', sizeof(place));
        idem__list_place_write(&store, &op, place);
        assert_true(strlen(place) > 1);
        assert_int_equal(place[0], 'p');
        assert_ok(idem__list_place_read(&store, place, &back));
        assert_memory_equal(back.u.list.cursor, op.u.list.cursor,
                            sizeof(op.u.list.cursor));
        assert_code(IDEM_EINVALID, idem__list_place_read(&other, place, &back));
        back.u.list.filter.overdue = true;
        assert_code(IDEM_EINVALID, idem__list_place_read(&store, place, &back));
    }
}

/* One letter changed, taken away or added makes it a place of nothing. */
TEST(list_place, isNotGuessed)
{
    struct idem_op op = {.verb = IDEM_OP_LIST};
    struct idem_op back = {.verb = IDEM_OP_LIST};
    char place[IDEM_PLACE_MAX] = "";
    char bad[IDEM_PLACE_MAX];
    size_t i;

    assert_ok(idem__list_place_read(&store, place, &back));
    op.u.list.cursor[2] = 1234567;
    idem__list_place_write(&store, &op, place);
    for (i = 0; i < strlen(place); i++) {
        memcpy(bad, place, sizeof(bad));
        bad[i] = bad[i] == 'B' ? 'C' : 'B';
        assert_code(IDEM_EINVALID, idem__list_place_read(&store, bad, &back));
        memcpy(bad, place, sizeof(bad));
        bad[i] = '\0';
        if (i > 0) {
            assert_code(IDEM_EINVALID,
                        idem__list_place_read(&store, bad, &back));
        }
    }
    (void)snprintf(bad, sizeof(bad), "%.500sAAAA", place);
    assert_code(IDEM_EINVALID, idem__list_place_read(&store, bad, &back));
    memset(bad, 'p', sizeof(bad));
    assert_code(IDEM_EINVALID, idem__list_place_read(&store, bad, &back));
    assert_int_equal(back.u.list.cursor[2], 0);
}
