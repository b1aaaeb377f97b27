/* What stands behind "dynamodb:" in a URL. */
#include "store/dynamodb/place.h"

#include "test.h"

/* Each setting, alone and together, and what stands for other characters. */
TEST(place, isRead)
{
    struct idem__place_conf conf;

    assert_ok(idem__place_read("//orders", &conf, &why));
    assert_string_equal(conf.table.name, "orders");
    assert_string_equal(conf.region, "");
    assert_string_equal(conf.endpoint, "");
    assert_true(conf.table.index && conf.table.pack);
    assert_true(!conf.host_clock && !conf.insecure);

    assert_ok(idem__place_read("//a-b_c.D9?region=eu-west-1&index=off&pack=off"
                               "&clock=host&insecure=yes&writer=eu-west-2"
                               "&endpoint=http://127.0.0.1:8000/x",
                               &conf, &why));
    assert_string_equal(conf.table.name, "a-b_c.D9");
    assert_string_equal(conf.region, "eu-west-1");
    assert_string_equal(conf.writer, "eu-west-2");
    assert_string_equal(conf.endpoint, "http://127.0.0.1:8000/x");
    assert_true(!conf.table.index && !conf.table.pack);
    assert_true(conf.host_clock && conf.insecure);

    assert_ok(idem__place_read("//orders?index=on&clock=service&insecure=no"
                               "&endpoint=http%3A%2f%2Fh%26",
                               &conf, &why));
    assert_string_equal(conf.endpoint, "http://h&");
    assert_true(conf.table.index && !conf.host_clock && !conf.insecure);
    assert_ok(idem__place_read("//orders?", &conf, &why));
}

/* A layout has no index and packs nothing, and is part of where the table is. */
TEST(place, hasALayout)
{
    struct idem__aws_endpoint endpoint = {.tls = true};
    struct idem__place_conf conf;
    char url[IDEM_STORE_URL_MAX + 1];

    assert_ok(idem__place_read("//orders?layout=locker&index=on", &conf, &why));
    assert_int_equal(conf.table.layout, IDEM__LAYOUT_LOCKER);
    assert_true(!conf.table.index && !conf.table.pack);
    idem__place_write(&conf, &endpoint, url);
    assert_string_equal(url,
                        "dynamodb://orders?region=&endpoint=&layout=locker");
}

/* What is not of the form is refused, and the sentence says what. */
TEST(place, isRefused)
{
    static const struct {
        const char *text;
        const char *word;
    } rows[] = {
        {"", "dynamodb://TABLE"},
        {"orders", "dynamodb://TABLE"},
        {"/orders", "dynamodb://TABLE"},
        {"//", "name of a table"},
        {"//ab", "name of a table"},
        {"//or ders", "name of a table"},
        {"//orders/x", "name of a table"},
        {"//a:b", "name of a table"},
        {"//orders?region", "NAME=VALUE"},
        {"//orders?region=", "NAME=VALUE"},
        {"//orders?=x", "NAME=VALUE"},
        {"//orders?&", "NAME=VALUE"},
        {"//orders?region=%4", "NAME=VALUE"},
        {"//orders?region=%", "NAME=VALUE"},
        {"//orders?region=%zz", "NAME=VALUE"},
        {"//orders?region=%00", "NAME=VALUE"},
        {"//orders?averyveryverylongname=1", "NAME=VALUE"},
        {"//orders?colour=red", "colour"},
        {"//orders?index=maybe", "index"},
        {"//orders?pack=yes", "pack"},
        {"//orders?clock=mine", "clock"},
        {"//orders?layout=powertools", "powertools-python"},
        {"//orders?insecure=1", "insecure"},
        {"//orders?writer="
         "a-region-with-a-name-that-is-longer-than-any-region-will-ever-be",
         "region"},
    };
    struct idem__place_conf conf;
    char text[2000];
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        if (idem__place_read(rows[i].text, &conf, &why) != IDEM_EINVALID) {
            fail_with("\"%s\" was taken", rows[i].text);
        }
        assert_why(rows[i].word);
    }
    memset(text, 'a', sizeof(text));
    memcpy(text, "//", 2);
    text[2 + 255] = '\0';
    assert_ok(idem__place_read(text, &conf, &why));
    text[2 + 255] = 'a';
    text[2 + 256] = '\0';
    assert_code(IDEM_EINVALID, idem__place_read(text, &conf, &why));
    memcpy(text, "//orders?region=", 16);
    text[16 + 63] = '\0';
    assert_ok(idem__place_read(text, &conf, &why));
    text[16 + 63] = 'a';
    text[16 + 64] = '\0';
    assert_code(IDEM_EINVALID, idem__place_read(text, &conf, &why));
    memset(text, 'a', sizeof(text));
    memcpy(text, "//orders?endpoint=", 18);
    text[18 + 1024] = '\0';
    assert_code(IDEM_EINVALID, idem__place_read(text, &conf, &why));
}
