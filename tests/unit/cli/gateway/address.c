/* Where a service is reached, and where the gateway listens: from text. */
#include "gateway/config.h"

#include "test.h"

#include <string.h>

/* What nginx is told of each form of URL. */
TEST(upstream, hasItsForms)
{
    static const struct {
        const char *url;
        bool tls;
        const char *server;
        const char *name;
    } rows[] = {
        {"http://127.0.0.1:3000", false, "127.0.0.1:3000", "127.0.0.1"},
        {"http://127.0.0.1:3000/", false, "127.0.0.1:3000", "127.0.0.1"},
        {"http://app", false, "app:80", "app"},
        {"HTTP://app_1.internal:080", false, "app_1.internal:80",
         "app_1.internal"},
        {"https://api.example.com", true, "api.example.com:443",
         "api.example.com"},
        {"https://api.example.com:8443/", true, "api.example.com:8443",
         "api.example.com"},
        {"http://[::1]:3000", false, "[::1]:3000", "[::1]"},
        {"http://[::ffff:1.2.3.4]", false, "[::ffff:1.2.3.4]:80",
         "[::ffff:1.2.3.4]"},
        {"http://unix:/run/app.sock", false, "unix:/run/app.sock", "localhost"},
    };

    EACH(row, rows) {
        struct gateway_upstream got = {0};
        const char *why_not = gateway_upstream_parse(row->url, &got);

        if (why_not != NULL) {
            fail_with("%s: %s", row->url, why_not);
        }
        assert_int_equal(got.tls, row->tls);
        assert_string_equal(got.server, row->server);
        assert_string_equal(got.name, row->name);
    }
}

/* What is wrong with a URL is said, and nothing of it is taken. */
TEST(upstream, saysWhatIsWrong)
{
    static const struct {
        const char *url;
        const char *why;
    } rows[] = {
        {"", "begin with http://"},
        {"127.0.0.1:3000", "begin with http://"},
        {"ftp://app", "begin with http://"},
        {"http:/app", "begin with http://"},
        {"http://", "names no host"},
        {"http:///path", "names no host"},
        {"http://:3000", "names no host"},
        {"http://*:3000", "names no host"},
        {"http://[]:3000", "names no host"},
        {"http://[::1", "not closed"},
        {"http://[::g]", "an invalid character"},
        {"http://user:secret@app", "user or password"},
        {"http://user@app", "user or password"},
        {"http://app:0", "1 to 65535"},
        {"http://app:65536", "1 to 65535"},
        {"http://app:123456789012345678901", "1 to 65535"},
        {"http://app:", "1 to 65535"},
        {"http://app:-1", "1 to 65535"},
        {"http://app:80x", "must end after"},
        {"http://app/api", "must end after"},
        {"http://app?a=1", "must end after"},
        {"http://app#top", "must end after"},
        {"http://a;b", "an invalid character"},
        {"http://a b", "an invalid character"},
        {"http://a}b", "an invalid character"},
        {"http://$host", "an invalid character"},
        {"http://a\nb", "an invalid character"},
        {"http://\xc3\xa4pp", "an invalid character"},
        {"http://unix:run/app.sock", "begins with a slash"},
        {"http://unix:", "begins with a slash"},
        {"http://unix:/run/a:b", "cannot take"},
        {"http://unix:/run/a b", "cannot take"},
        {"http://unix:/run/a;b", "cannot take"},
        {"https://unix:/run/app.sock", "reached by http://"},
    };
    struct gateway_upstream got = {.server = "untouched"};

    EACH(row, rows) {
        const char *why_not = gateway_upstream_parse(row->url, &got);

        if (why_not == NULL || strstr(why_not, row->why) == NULL) {
            fail_with("%s: %s", row->url, why_not != NULL ? why_not : "taken");
        }
        assert_string_equal(got.server, "untouched");
    }
}

/* The longest names fit, and one byte more is refused. */
TEST(upstream, isBounded)
{
    char url[600] = "http://";
    struct gateway_upstream got;

    memset(url + 7, 'a', NET_NAME_MAX);
    (void)strcpy(url + 7 + NET_NAME_MAX, ":65535");
    assert_null(gateway_upstream_parse(url, &got));
    assert_int_equal(strlen(got.server), NET_NAME_MAX + 6);
    memset(url + 7, 'a', NET_NAME_MAX + 1);
    (void)strcpy(url + 7 + NET_NAME_MAX + 1, ":65535");
    assert_non_null(gateway_upstream_parse(url, &got));

    (void)strcpy(url, "http://unix:/");
    memset(url + 13, 'a', NET_PATH_MAX - 1);
    url[13 + NET_PATH_MAX - 1] = '\0';
    assert_null(gateway_upstream_parse(url, &got));
    assert_int_equal(strlen(got.server), 5 + NET_PATH_MAX);
    (void)strcat(url, "a");
    assert_non_null(gateway_upstream_parse(url, &got));
}

/* Every form of an address to listen on. */
TEST(address, hasItsForms)
{
    static const struct {
        const char *text;
        const char *host;
        const char *port;
        const char *path;
    } rows[] = {
        {"8080", "127.0.0.1", "8080", ""},
        {"0", "127.0.0.1", "0", ""},
        {"localhost:8080", "localhost", "8080", ""},
        {"0.0.0.0:65535", "0.0.0.0", "65535", ""},
        {"*:8080", "*", "8080", ""},
        {"[::]:8080", "::", "8080", ""},
        {"unix:/run/idem.sock", "", "", "/run/idem.sock"},
    };

    EACH(row, rows) {
        struct net_address got = {.path = "x"};
        const char *why_not = net_address_parse(row->text, &got);

        if (why_not != NULL) {
            fail_with("%s: %s", row->text, why_not);
        }
        assert_string_equal(got.host, row->host);
        assert_string_equal(got.port, row->port);
        assert_string_equal(got.path, row->path);
    }
}

/* What is wrong with an address is said. */
TEST(address, saysWhatIsWrong)
{
    static const struct {
        const char *text;
        const char *why;
    } rows[] = {
        {"", "0 to 65535"},
        {"65536", "0 to 65535"},
        {"123456", "0 to 65535"},
        {"localhost", "names no port"},
        {"localhost:", "0 to 65535"},
        {"localhost:http", "0 to 65535"},
        {"localhost:80/", "follows its port"},
        {"http://localhost:80", "0 to 65535"},
        {":8080", "names no host"},
        {"[::1]8080", "names no port"},
        {"::1:8080", "names no host"},
        {"*x:80", "an invalid character"},
        {"unix:idem.sock", "begins with a slash"},
        {"unix:/run/{}", "cannot take"},
    };
    struct net_address got = {.port = "1"};

    EACH(row, rows) {
        const char *why_not = net_address_parse(row->text, &got);

        if (why_not == NULL || strstr(why_not, row->why) == NULL) {
            fail_with("%s: %s", row->text, why_not != NULL ? why_not : "taken");
        }
        assert_string_equal(got.port, "1");
    }
}
