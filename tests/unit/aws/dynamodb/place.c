/* What stands behind "dynamodb:" in a URL. */
#include "aws/dynamodb/layout/layout.h"
#include "aws/dynamodb/place.h"

#include "test.h"

/* Each setting, alone and together, and what stands for other characters. */
TEST(place, isRead)
{
    struct idem__place_conf conf;

    assert_ok(idem__place_read("//orders", &conf, &why));
    assert_string_equal(conf.table.name, "orders");
    assert_string_equal(conf.region, "");
    assert_string_equal(conf.endpoint, "");
    assert_true(conf.table.index);
    assert_true(!conf.host_clock && !conf.insecure);
    assert_int_equal(conf.cache_ms, 0);

    assert_ok(idem__place_read("//a-b_c.D9?region=eu-west-1&index=off"
                               "&clock=host&insecure=yes&writer=eu-west-2"
                               "&cache=30s"
                               "&endpoint=http://127.0.0.1:8000/x",
                               &conf, &why));
    assert_string_equal(conf.table.name, "a-b_c.D9");
    assert_string_equal(conf.region, "eu-west-1");
    assert_string_equal(conf.writer, "eu-west-2");
    assert_string_equal(conf.endpoint, "http://127.0.0.1:8000/x");
    assert_true(!conf.table.index);
    assert_true(conf.host_clock && conf.insecure);
    assert_int_equal(conf.cache_ms, 30000);

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

    assert_ok(
        idem__place_read("//orders?layout=lock-token&index=on", &conf, &why));
    assert_string_equal(conf.table.layout->name, "lock-token");
    assert_true(!conf.table.index);
    assert_ok(idem__place_write(&conf, &endpoint, url, &why));
    assert_string_equal(
        url, "dynamodb://orders?region=&endpoint=&layout=lock-token");
}

/* The names of a layout's attributes are part of where the table is, in whatever
 * order they are given; usual ones are not said again. */
TEST(place, namesAttributes)
{
    struct idem__aws_endpoint endpoint = {.tls = true};
    struct idem__place_conf conf;
    char url[IDEM_STORE_URL_MAX + 1];
    char again[IDEM_STORE_URL_MAX + 1];

    assert_ok(idem__place_read("//orders?sort-key-attr=sk&key-attr=pk&"
                               "static-pk-value=a%26%23b&layout="
                               "powertools-python&data-attr=data",
                               &conf, &why));
    assert_string_equal(conf.table.attrs[IDEM__ATTR_KEY], "pk");
    assert_string_equal(conf.table.attrs[IDEM__ATTR_SORT], "sk");
    assert_string_equal(conf.table.attrs[IDEM__ATTR_LOCK],
                        "in_progress_expiration");
    assert_string_equal(conf.table.partition, "a&#b");
    assert_ok(idem__place_write(&conf, &endpoint, url, &why));
    assert_string_equal(url, "dynamodb://orders?region=&endpoint=&layout="
                             "powertools-python&key-attr=pk&sort-key-attr=sk"
                             "&static-pk-value=a%26#b");
    assert_ok(idem__place_read("//orders?layout=powertools-python&key-attr=pk"
                               "&sort-key-attr=sk&static-pk-value=a%26#b",
                               &conf, &why));
    assert_ok(idem__place_write(&conf, &endpoint, again, &why));
    assert_string_equal(again, url);
}

/* Leases are judged by one clock, whoever opens the table by the URL on record. */
TEST(place, saysWhoseClockCounts)
{
    struct idem__aws_endpoint endpoint = {.tls = true};
    struct idem__place_conf conf;
    char url[IDEM_STORE_URL_MAX + 1];

    assert_ok(idem__place_read("//orders?clock=host&cache=5m", &conf, &why));
    assert_ok(idem__place_write(&conf, &endpoint, url, &why));
    assert_string_equal(url, "dynamodb://orders?region=&endpoint=&clock=host");
}

/* A URL that would be cut leads elsewhere: it is refused. */
TEST(place, refusesWhatIsTooLongForARecord)
{
    struct idem__aws_endpoint endpoint = {.tls = true};
    struct idem__place_conf conf;
    char url[IDEM_STORE_URL_MAX + 1];

    assert_ok(idem__place_read("//orders", &conf, &why));
    memset(endpoint.url, '&', sizeof(endpoint.url) - 1);
    memset(conf.table.name, 'a', sizeof(conf.table.name) - 1);
    assert_code(IDEM_EINVALID, idem__place_write(&conf, &endpoint, url, &why));
    assert_why("can be recorded");
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
        {"//", "table name"},
        {"//ab", "table name"},
        {"//or ders", "table name"},
        {"//orders/x", "table name"},
        {"//a:b", "table name"},
        {"//orders?region", "NAME=VALUE"},
        {"//orders?region=", "NAME=VALUE"},
        {"//orders?=x", "NAME=VALUE"},
        {"//orders?&", "NAME=VALUE"},
        {"//orders?region=%4", "NAME=VALUE"},
        {"//orders?region=%", "NAME=VALUE"},
        {"//orders?region=%zz", "NAME=VALUE"},
        {"//orders?region=%00", "NAME=VALUE"},
        {"//orders?a-name-with-more-bytes-than-any-has=1", "NAME=VALUE"},
        {"//orders?colour=red", "colour"},
        {"//orders?index=maybe", "index"},
        {"//orders?pack=off", "pack"},
        {"//orders?clock=mine", "clock"},
        {"//orders?cache=0s", "cache: \"0s\" is not a time from 1ms to 1h"},
        {"//orders?cache=61m", "1h"},
        {"//orders?cache=30", "30s"},
        {"//orders?layout=powertools", "powertools-python"},
        {"//orders?key-attr=pk", "add layout=NAME"},
        {"//orders?static-pk-value=x", "go together"},
        {"//orders?layout=lock-token&in-progress-expiry-attr=x",
         "has no attribute"},
        {"//orders?layout=lock-token&sort-key-attr=sk&static-pk-value=x",
         "has no attribute"},
        {"//orders?layout=powertools-python&sort-key-attr=sk", "go together"},
        {"//orders?layout=powertools-python&static-pk-value=x", "go together"},
        {"//orders?layout=powertools-python&key-attr=status", "two attributes"},
        {"//orders?layout=powertools-python&data-attr=x&expiry-attr=x",
         "two attributes"},
        {"//orders?layout=lock-token&data-attr=lockedBy", "two attributes"},
        {"//orders?layout=lock-token&status-attr=created", "two attributes"},
        {"//orders?layout=idempotency-store&data-attr=eventData",
         "two attributes"},
        {"//orders?layout=lock-token&key-attr=idem", "of its own"},
        {"//orders?layout=lock-token&key-attr=a%20b", "valid attribute name"},
        {"//orders?layout=lock-token&key-attr=%22", "valid attribute name"},
        {"//orders?layout=lock-token&key-attr=a23456789a123456789b123456789"
         "c123456789d123456789e123456789f1234567",
         "valid attribute name"},
        {"//orders?layout=powertools-python&sort-key-attr=s&static-pk-value=%ff",
         "must be UTF-8"},
        {"//orders?insecure=1", "insecure"},
        {"//orders?writer="
         "a-region-with-a-name-that-is-longer-than-any-region-will-ever-be",
         "region"},
    };
    struct idem__place_conf conf;
    char text[2000];

    EACH(row, rows) {
        if (idem__place_read(row->text, &conf, &why) != IDEM_EINVALID) {
            fail_with("\"%s\" was taken", row->text);
        }
        assert_why(row->word);
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
