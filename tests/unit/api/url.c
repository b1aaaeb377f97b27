/* Tests of src/api/open.c: no password is shown. */
#include "contract/kind.h"

#include "api/call.h"
#include "test.h"

#include <idem/operator.h>
#include <string.h>

TEST(url, hidesPasswords)
{
    static const struct {
        const char *url;
        const char *shown;
    } rows[] = {
        {"", ""},
        {"sqlite:/a/b.db", "sqlite:/a/b.db"},
        {"postgres://h/db", "postgres://h/db"},
        {"postgres://u@h:5432/db", "postgres://u@h:5432/db"},
        {"postgres://u:secret@h:5432/db", "postgres://u:***@h:5432/db"},
        {"postgres://u:@h/db", "postgres://u:***@h/db"},
        {"postgres://:secret@h/db", "postgres://:***@h/db"},
        {"postgres://u:a/b:c@d@h/db", "postgres://u:***@h/db"},
        {"postgres:///db?password=secret&user=u",
         "postgres:///db?password=***&user=u"},
        {"postgres://u:s@h/db?sslpassword=secret",
         "postgres://u:***@h/db?sslpassword=***"},
        {"x:?password=", "x:?password=***"},
        {"postgres:///db?oauth_client_secret=a&scram_client_key=b&user=u",
         "postgres:///db?oauth_client_secret=***&scram_client_key=***&user=u"},
        {"postgres:///db?options=-csecret%3Da&user=password",
         "postgres:///db?options=-csecret%3Da&user=password"},
        {"x:?a&password=secret", "x:?a&password=***"},
        {"dynamodb://t?key-attr=k&sort-key-attr=s",
         "dynamodb://t?key-attr=k&sort-key-attr=s"},
        {"dynamodb://t?endpoint=http://h:1/@",
         "dynamodb://t?endpoint=http://h:1/@"},
    };
    char buf[100];

    EACH(row, rows) {
        assert_ptr_equal(idem_url_hide(row->url, buf, sizeof(buf)), buf);
        assert_string_equal(buf, row->shown);
    }
}

/* It is cut, and ends with a zero, in the middle of anything. */
TEST(url, isCutToFit)
{
    static const char url[] = "postgres://u:secret@h/db?password=other&a=b";
    char whole[100];
    char buf[100];
    size_t cap;

    (void)idem_url_hide(url, whole, sizeof(whole));
    for (cap = 1; cap < sizeof(buf); cap++) {
        memset(buf, 'x', sizeof(buf));
        (void)idem_url_hide(url, buf, cap);
        assert_int_equal(strlen(buf),
                         strlen(whole) < cap ? strlen(whole) : cap - 1);
        assert_memory_equal(buf, whole, strlen(buf));
        assert_null(strstr(buf, "secret"));
        assert_null(strstr(buf, "other"));
    }
}

/* ---- Places of a list ---- */

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
