/* Tests of finding a service. */
#include "aws/client/endpoint.h"

#include "test.h"

#include <stdio.h>

/* An environment: NAME, VALUE, NAME, VALUE ..., NULL. */
static const char *env_get(void *ctx, const char *name)
{
    const char *const *pairs = ctx;

    for (; *pairs != NULL; pairs += 2) {
        if (strcmp(pairs[0], name) == 0) {
            return pairs[1];
        }
    }
    return NULL;
}

static int resolve(const char *const *pairs, const char *region,
                   const char *url, bool insecure,
                   struct idem__aws_endpoint *ret)
{
    struct idem__aws_env env = {.ctx = (void *)(uintptr_t)pairs,
                                .get = env_get};
    struct idem__aws_endpoint_options options = {
        .service = "dynamodb",
        .service_env = "DYNAMODB",
        .region = idem_str(region),
        .url = idem_str(url),
        .insecure = insecure,
    };

    return idem__aws_endpoint_resolve(&options, &env, ret, &why);
}

static const char *const nothing[] = {NULL};

/* FIPS and dual stack choose among AWS's own names, and nothing else's. */
TEST(endpoint, mayBeForFipsOrDualStack)
{
    static const struct {
        const char *region, *fips, *dual_stack, *url;
    } rows[] = {
        {"us-east-1", "true", "",
         "https://dynamodb-fips.us-east-1.amazonaws.com/"},
        {"us-east-1", "false", "True", "https://dynamodb.us-east-1.api.aws/"},
        {"us-east-1", "true", "true",
         "https://dynamodb-fips.us-east-1.api.aws/"},
        {"us-gov-west-1", "true", "",
         "https://dynamodb.us-gov-west-1.amazonaws.com/"},
        {"cn-north-1", "", "true",
         "https://dynamodb.cn-north-1.api.amazonwebservices.com.cn/"},
        {"us-east-1", "yes", "1", "https://dynamodb.us-east-1.amazonaws.com/"},
    };
    struct idem__aws_endpoint endpoint;
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        const char *const pairs[] = {"AWS_USE_FIPS_ENDPOINT", rows[i].fips,
                                     "AWS_USE_DUALSTACK_ENDPOINT",
                                     rows[i].dual_stack, NULL};

        assert_ok(resolve(pairs, rows[i].region, NULL, false, &endpoint));
        assert_string_equal(endpoint.url, rows[i].url);
        if (i < 3) {
            assert_code(IDEM_ECONFIG,
                        resolve(pairs, rows[i].region, "http://localhost:8000",
                                false, &endpoint));
            assert_why(i == 1 ? "dual stack needs" : "FIPS needs");
        }
    }
}

/* The region and the address come from the options, else from the variables that
 * every AWS user sets, else from AWS's own naming. */
TEST(endpoint, comesFromOptionsVariablesOrAws)
{
    static const struct {
        const char *region, *url;
        const char *want_region, *want_url;
        const char *env[10];
    } rows[] = {
#define ROW(region, url, want_region, want_url, ...)                           \
    {                                                                          \
        region, url, want_region, want_url,                                    \
        {                                                                      \
            __VA_ARGS__                                                        \
        }                                                                      \
    }
        ROW("eu-central-1", NULL, "eu-central-1",
            "https://dynamodb.eu-central-1.amazonaws.com/", NULL),
        ROW(NULL, NULL, "eu-west-1",
            "https://dynamodb.eu-west-1.amazonaws.com/", "AWS_REGION",
            "eu-west-1", "AWS_DEFAULT_REGION", "x"),
        ROW(NULL, NULL, "us-gov-west-1",
            "https://dynamodb.us-gov-west-1.amazonaws.com/", "AWS_REGION", "",
            "AWS_DEFAULT_REGION", "us-gov-west-1"),
        ROW("ap-south-1", NULL, "ap-south-1",
            "https://dynamodb.ap-south-1.amazonaws.com/", "AWS_REGION",
            "eu-west-1"),
        ROW("cn-north-1", NULL, "cn-north-1",
            "https://dynamodb.cn-north-1.amazonaws.com.cn/", NULL),
        ROW("us-iso-east-1", NULL, "us-iso-east-1",
            "https://dynamodb.us-iso-east-1.c2s.ic.gov/", NULL),
        ROW("us-isob-east-1", NULL, "us-isob-east-1",
            "https://dynamodb.us-isob-east-1.sc2s.sgov.gov/", NULL),
        ROW("eusc-de-east-1", NULL, "eusc-de-east-1",
            "https://dynamodb.eusc-de-east-1.amazonaws.eu/", NULL),
        ROW(NULL, NULL, "a-1", "https://all.example/", "AWS_ENDPOINT_URL",
            "https://all.example", "AWS_REGION", "a-1"),
        ROW(NULL, NULL, "a-1", "https://own.example/p",
            "AWS_ENDPOINT_URL_DYNAMODB", "https://own.example/p",
            "AWS_ENDPOINT_URL", "https://all.example", "AWS_REGION", "a-1"),
        ROW(NULL, NULL, "eu-west-1",
            "https://dynamodb.eu-west-1.amazonaws.com/",
            "AWS_ENDPOINT_URL_DYNAMODB", "https://own.example", "AWS_REGION",
            "eu-west-1", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "TRUE"),
        ROW("a-1", "https://told.example:8443", "a-1",
            "https://told.example:8443/", "AWS_ENDPOINT_URL_DYNAMODB",
            "https://own.example"),
        ROW(NULL, "http://localhost:8000", "us-east-1",
            "http://localhost:8000/", NULL),
        ROW("eu-x-1", "http://127.0.0.1:8000/", "eu-x-1",
            "http://127.0.0.1:8000/", NULL),
#undef ROW
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem__aws_endpoint endpoint;

        if (resolve(rows[i].env, rows[i].region, rows[i].url,
                    /* insecure= */ false, &endpoint) != 0 ||
            strcmp(endpoint.region, rows[i].want_region) != 0 ||
            strcmp(endpoint.url, rows[i].want_url) != 0 ||
            strcmp(endpoint.service, "dynamodb") != 0) {
            fail_with("row %zu: %s %s %s", i, endpoint.region, endpoint.url,
                      why.text);
        }
    }
}

/* Host, path, scheme and nearness are taken from the URL; the port is named only
 * where it is not the scheme's own. */
TEST(endpoint, takesTheUrlApart)
{
    static const struct {
        const char *url;
        const char *host, *path, *want_url;
        bool tls, local;
    } rows[] = {
        {"https://a.example", "a.example", "/", "https://a.example/", true,
         false},
        {"HTTPS://A.Example:443/", "a.example", "/", "https://a.example/", true,
         false},
        {"http://localhost:80/x/Y_z~1-2.3", "localhost", "/x/Y_z~1-2.3",
         "http://localhost/x/Y_z~1-2.3", false, true},
        {"http://localhost:443", "localhost:443", "/", "http://localhost:443/",
         false, true},
        {"https://a.example:80", "a.example:80", "/", "https://a.example:80/",
         true, false},
        {"http://127.1.2.3:65535", "127.1.2.3:65535", "/",
         "http://127.1.2.3:65535/", false, true},
        {"http://[::1]:8000", "[::1]:8000", "/", "http://[::1]:8000/", false,
         true},
        {"http://[0:0::1]", "[0:0::1]", "/", "http://[0:0::1]/", false, true},
        {"https://[fe80::1]", "[fe80::1]", "/", "https://[fe80::1]/", true,
         true},
        {"https://169.254.170.2", "169.254.170.2", "/",
         "https://169.254.170.2/", true, true},
        {"https://169.253.170.2", "169.253.170.2", "/",
         "https://169.253.170.2/", true, false},
        {"https://localhost.example", "localhost.example", "/",
         "https://localhost.example/", true, false},
        {"https://under_score.example", "under_score.example", "/",
         "https://under_score.example/", true, false},
    };

    EACH(row, rows) {
        struct idem__aws_endpoint e;

        if (resolve(nothing, "a-1", row->url, false, &e) != 0 ||
            strcmp(e.host, row->host) != 0 || strcmp(e.path, row->path) != 0 ||
            strcmp(e.url, row->want_url) != 0 || e.tls != row->tls ||
            e.local != row->local) {
            fail_with("%s: %s %s %s %d %d %s", row->url, e.host, e.path, e.url,
                      e.tls, e.local, why.text);
        }
    }
}

/* What is no plain URL of a host is refused, and not repeated in the error: it
 * may hold a password. */
TEST(endpoint, refusesOtherUrls)
{
    static const char *const urls[] = {
        "a.example",
        "ftp://a.example",
        "https://",
        "https:///path",
        "https://:8000",
        "https://user:secret@a.example",
        "https://a.example?secret=1",
        "https://a.example/?secret=1",
        "https://a.example/#secret",
        "https://a.example:",
        "https://a.example:0",
        "https://a.example:65536",
        "https://a.example:99999999999999999999",
        "https://a.example:8x",
        "https://a.example:-1",
        "https://a b.example",
        "https://a\nb.example",
        "https://a.example/a b",
        "https://a.example/a\r\nX: secret",
        "https://a.example//",
        "https://a.example/./x",
        "https://a.example/../x",
        "https://a.example/%41",
        "https://[::1",
        "https://::1",
        "https://[::1]x",
        "https://[secret]",
        "https://[]",
        "https://.example",
        "https://a..example",
        "https://-a.example",
        "https://\xc3\xa4.example",
        "https:/a.example",
        "https://a.example\\@b.example",
    };
    char longest[1200] = "https://";
    struct idem__aws_endpoint endpoint;

    EACH(url, urls) {
        if (resolve(nothing, "a-1", *url, true, &endpoint) != IDEM_ECONFIG) {
            fail_with("\"%s\" was taken", *url);
        }
        assert_null(strstr(why.text, "secret"));
    }
    memset(longest + 8, 'a', 300);
    assert_code(IDEM_ECONFIG,
                resolve(nothing, "a-1", longest, true, &endpoint));
    longest[8 + 290] = '\0';
    assert_ok(resolve(nothing, "a-1", longest, true, &endpoint));
    longest[8 + 290] = '/';
    memset(longest + 8 + 291, 'b', 600);
    assert_code(IDEM_ECONFIG,
                resolve(nothing, "a-1", longest, true, &endpoint));
}

/* A NUL inside is not the end of it. */
TEST(endpoint, refusesANulInTheUrl)
{
    static const char url[] = "https://a.example\0.evil.example";
    struct idem__aws_env env = {.ctx = (void *)(uintptr_t)nothing,
                                .get = env_get};
    struct idem__aws_endpoint_options options = {
        .service = "dynamodb",
        .service_env = "DYNAMODB",
        .region = idem_str("a-1"),
        .url = idem_bytes(url, sizeof(url) - 1),
    };
    struct idem__aws_endpoint endpoint;

    assert_code(IDEM_ECONFIG,
                idem__aws_endpoint_resolve(&options, &env, &endpoint, &why));
}

/* Plain HTTP goes to this machine, and elsewhere only on demand. */
TEST(endpoint, sendsNothingInClearUnlessTold)
{
    static const char *const elsewhere[] = {
        "http://a.example",      "http://128.0.0.1",
        "http://[::2]",          "http://169.254.170.2",
        "http://localhos",       "http://127.1",
        "http://0.0.0.0",        "http://[::ffff:127.0.0.1]",
        "http://localhost.evil", "http://127.0.0.1.evil",
    };
    struct idem__aws_endpoint endpoint;

    EACH(one, elsewhere) {
        if (resolve(nothing, "a-1", *one, false, &endpoint) != IDEM_ECONFIG) {
            fail_with("\"%s\" was taken", *one);
        }
        assert_why("https:");
        assert_ok(resolve(nothing, "a-1", *one, true, &endpoint));
        assert_false(endpoint.tls);
    }
}

/* Without a region nothing can be signed; what is none is named. */
TEST(endpoint, needsARegion)
{
    static const char *const bad[] = {
        "EU-WEST-1",
        "eu west",
        "eu-west-1.evil.example",
        "-eu",
        "eu/../..",
        "e\xc3\xbc",
        "a123456789012345678901234567890123456789012345678901234567890123",
    };
    struct idem__aws_endpoint endpoint;

    assert_code(IDEM_ECONFIG, resolve(nothing, NULL, NULL, false, &endpoint));
    assert_why("AWS_REGION");
    assert_code(IDEM_ECONFIG,
                resolve(nothing, NULL, "https://a.example", false, &endpoint));
    assert_why("AWS_REGION");
    EACH(one, bad) {
        assert_code(IDEM_ECONFIG,
                    resolve(nothing, *one, NULL, false, &endpoint));
        assert_why("region");
    }
}
