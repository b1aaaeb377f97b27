/* Tests of methods, routes and whether a key is needed. */
#include "aws/lambda/route.h"

#include "test.h"

static struct idem_lambda_options options(const char *methods,
                                          const char *routes,
                                          const char *required)
{
    struct idem_lambda_options o = IDEM_LAMBDA_OPTIONS_INIT;

    o.methods = methods;
    o.routes = routes;
    o.required = required;
    return o;
}

static bool has(const char *methods, const char *routes, const char *method,
                const char *path)
{
    struct idem_lambda_options o = options(methods, routes, NULL);

    return idem__lambda_route_has_key(&o, idem_str(method), idem_str(path));
}

static bool needs(const char *required, const char *method, const char *path)
{
    struct idem_lambda_options o = options(NULL, NULL, required);

    return idem__lambda_route_needs_key(&o, idem_str(method), idem_str(path));
}

/* POST and PATCH have keys, whatever their case, unless the list says else. */
TEST(methods, haveKeysAsTheGatewayHasThem)
{
    assert_true(has(NULL, NULL, "POST", "/a"));
    assert_true(has(NULL, NULL, "patch", "/a"));
    assert_false(has(NULL, NULL, "PUT", "/a"));
    assert_false(has(NULL, NULL, "GET", "/a"));
    assert_false(has(NULL, NULL, "", "/a"));
    assert_true(has("PUT, DELETE", NULL, "DELETE", "/a"));
    assert_false(has("PUT,DELETE", NULL, "POST", "/a"));
}

/* A route is the beginning of a path, however the path is spelled. */
TEST(routes, areComparedWithThePathThatIsMeant)
{
    static const char *const in[] = {
        "/pay",        "/pay/1",    "/payments",       "//pay",
        "/./pay",      "/a/../pay", "/%70ay",          "/a/b/../../pay/x",
        "/../pay",     "/orders/",  "/orders/7",       "/orders//7",
        "/orders/x/.", "/%2Fpay",   "/x/%2e%2e/pay/1", "/pay%",
        "/pay/..a",    "/pay/%zz",  "/pay/%2",         "/.././../pay",
    };
    static const char *const out[] = {
        "/",       "",       "/pa",       "/orders",      "/PAY",
        "/pay/..", "/x/pay", "/pay/../x", "/orders/../x", "/orders/%2e%2e/x",
        "/%",      "/%2",    "/..",       "/.",           "/...",
    };
    size_t i;

    for (i = 0; i < COUNT(in); i++) {
        print_message("# %s\n", in[i]);
        assert_true(has(NULL, "/pay,/orders/", "POST", in[i]));
    }
    for (i = 0; i < COUNT(out); i++) {
        print_message("# %s\n", out[i]);
        assert_false(has(NULL, "/pay,/orders/", "POST", out[i]));
    }
    assert_false(has(NULL, "/pay", "GET", "/pay"));
    assert_true(has(NULL, "/", "POST", ""));
}

/* A path that is longer than what is compared still begins with its route. */
TEST(routes, takeLongPaths)
{
    static char path[20000];

    (void)memset(path, 'x', sizeof(path) - 1);
    memcpy(path, "/pay/", 5);
    assert_true(has(NULL, "/pay", "POST", path));
    assert_false(has(NULL, "/pey", "POST", path));
    (void)memset(path, '/', sizeof(path) - 1);
    assert_false(has(NULL, "/pay", "POST", path));
}

/* A key is needed everywhere, nowhere, or where an entry names method and route. */
TEST(required, isSaidByMethodAndRoute)
{
    assert_true(needs(NULL, "POST", "/a"));
    assert_true(needs("yes", "POST", "/a"));
    assert_false(needs("no", "POST", "/a"));
    assert_true(needs("POST /pay, /orders,DELETE", "POST", "/pay/1"));
    assert_false(needs("POST /pay,/orders,DELETE", "PATCH", "/pay/1"));
    assert_true(needs("POST /pay,/orders,DELETE", "PATCH", "/orders"));
    assert_true(needs("POST /pay,/orders,DELETE", "delete", "/else"));
    assert_false(needs("POST /pay,/orders,DELETE", "POST", "/else"));
}

/* A list that would protect something else than is meant is refused by name. */
TEST(check, refusesWhatIsNotAList)
{
    static const struct {
        const char *methods;
        const char *routes;
        const char *required;
        const char *said;
    } rows[] = {
        {"GET", NULL, NULL, "IDEM_LAMBDA_METHODS: \"GET\""},
        {"POST,HEAD", NULL, NULL, "IDEM_LAMBDA_METHODS: \"HEAD\""},
        {"POST,,PUT", NULL, NULL, "IDEM_LAMBDA_METHODS: \"\""},
        {NULL, "pay", NULL, "IDEM_LAMBDA_ROUTES: \"pay\""},
        {NULL, "/pay,", NULL, NULL},
        {NULL, "/pay,,", NULL, "IDEM_LAMBDA_ROUTES: \"\""},
        {NULL, "/a b", NULL, "IDEM_LAMBDA_ROUTES: \"/a b\""},
        {NULL, "^/a", NULL, "IDEM_LAMBDA_ROUTES: \"^/a\""},
        {NULL, NULL, "maybe", "IDEM_LAMBDA_REQUIRED: \"maybe\""},
        {NULL, NULL, "GET /pay", "IDEM_LAMBDA_REQUIRED: \"GET /pay\""},
        {NULL, NULL, "POST pay", "IDEM_LAMBDA_REQUIRED: \"POST pay\""},
        {NULL, NULL, "yes,no", "IDEM_LAMBDA_REQUIRED: \"yes\""},
        {NULL, NULL, "POST /pay,/orders,DELETE", NULL},
        {"PUT, DELETE", "/a/%7e,/b", "no", NULL},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem_lambda_options o =
            options(rows[i].methods, rows[i].routes, rows[i].required);
        struct idem_error error = {0};
        int rc = idem__lambda_routes_check(&o, &error);

        assert_int_equal(rc, rows[i].said == NULL ? 0 : IDEM_EINVALID);
        if (rows[i].said != NULL) {
            assert_non_null(strstr(error.text, rows[i].said));
        }
    }
}
