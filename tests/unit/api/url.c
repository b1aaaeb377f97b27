/* Tests of src/api/open.c: no password is shown. */
#include "contract/kind.h"
#include "test.h"

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
