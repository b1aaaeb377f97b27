/* Tests of the signature. */
#include "aws/client/sigv4.h"

#include "test.h"

#include <stdlib.h>

#define TOKEN                                                                  \
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKW" \
    "HGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4" \
    "IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE" \
    "8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yj" \
    "c8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
#define UNRESERVED                                                             \
    "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* A published example: headers as "name:value", in signed order, with its last
 * one marked by NULL. */
struct vector {
    const char *name;
    const char *method, *path, *query;
    const char *headers[6];
    const char *body;
    const char *signature;
};

#define VECTOR(name, method, path, query, body, signature, ...)                \
    {                                                                          \
        name, method, path, query, {__VA_ARGS__}, body, signature              \
    }

/* Who signs, for whom, when. */
struct setting {
    const char *access_key, *secret_key, *region, *service, *stamp;
};

static const struct setting suite = {"AKIDEXAMPLE",
                                     "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                                     "us-east-1", "service",
                                     "20150830T123600Z"};
static const struct setting iam = {"AKIDEXAMPLE",
                                   "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                                   "us-east-1", "iam", "20150830T123600Z"};
static const struct setting s3 = {"AKIAIOSFODNN7EXAMPLE",
                                  "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                  "us-east-1", "s3", "20130524T000000Z"};

#define HOST "host:example.amazonaws.com"
#define DATE "x-amz-date:20150830T123600Z"

/* AWS's Signature Version 4 test suite, as far as it is about signing: what
 * normalises paths and sorts queries is given in its normal form. */
static const struct vector suite_vectors[] = {
    VECTOR("get-vanilla", "GET", "/", "", "",
           "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
           HOST, DATE),
    VECTOR("get-vanilla-query-order-key-case", "GET", "/",
           "Param1=value1&Param2=value2", "",
           "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
           HOST, DATE),
    VECTOR("get-vanilla-empty-query-key", "GET", "/", "Param1=value1", "",
           "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
           HOST, DATE),
    VECTOR("get-vanilla-utf8-query", "GET", "/", "%E1%88%B4=bar", "",
           "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
           HOST, DATE),
    VECTOR("get-vanilla-query-unreserved", "GET", "/",
           UNRESERVED "=" UNRESERVED, "",
           "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
           HOST, DATE),
    VECTOR("get-unreserved", "GET", "/" UNRESERVED, "", "",
           "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
           HOST, DATE),
    VECTOR("get-utf8", "GET", "/%E1%88%B4", "", "",
           "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
           HOST, DATE),
    VECTOR("get-header-key-duplicate", "GET", "/", "", "",
           "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
           HOST, "my-header1:value2,value2,value1", DATE),
    VECTOR("get-header-value-multiline", "GET", "/", "", "",
           "ba17b383a53190154eb5fa66a1b836cc297cc0a3d70a5d00705980573d8ff790",
           HOST, "my-header1:value1,value2,value3", DATE),
    VECTOR("get-header-value-order", "GET", "/", "", "",
           "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
           HOST, "my-header1:value4,value1,value3,value2", DATE),
    VECTOR("get-header-value-trim", "GET", "/", "", "",
           "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
           HOST, "my-header1:value1", "my-header2:\"a b c\"", DATE),
    VECTOR("post-vanilla", "POST", "/", "", "",
           "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
           HOST, DATE),
    VECTOR("post-vanilla-query", "POST", "/", "Param1=value1", "",
           "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
           HOST, DATE),
    VECTOR("post-header-key-sort", "POST", "/", "", "",
           "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
           HOST, "my-header1:value1", DATE),
    VECTOR("post-header-value-case", "POST", "/", "", "",
           "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
           HOST, "my-header1:VALUE1", DATE),
    VECTOR("post-x-www-form-urlencoded", "POST", "/", "", "Param1=value1",
           "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
           "content-type:application/x-www-form-urlencoded", HOST, DATE),
    VECTOR("post-x-www-form-urlencoded-parameters", "POST", "/", "",
           "Param1=value1",
           "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe",
           "content-type:application/x-www-form-urlencoded; charset=utf8", HOST,
           DATE),
    VECTOR("post-sts-header-before", "POST", "/", "", "",
           "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
           HOST, DATE, "x-amz-security-token:" TOKEN),
};

/* The examples of the documentation: IAM's ListUsers, S3's GetObject. */
static const struct vector iam_vector =
    VECTOR("iam-list-users", "GET", "/", "Action=ListUsers&Version=2010-05-08",
           "",
           "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
           "content-type:application/x-www-form-urlencoded; charset=utf-8",
           "host:iam.amazonaws.com", DATE);
static const struct vector s3_vector =
    VECTOR("s3-get-object", "GET", "/test.txt", "", "",
           "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
           "host:examplebucket.s3.amazonaws.com", "range:bytes=0-9",
           "x-amz-content-sha256:" EMPTY, "x-amz-date:20130524T000000Z");

static struct idem__aws_credentials credentials_of(const struct setting *set)
{
    struct idem__aws_credentials credentials = {.token = ""};

    strcpy(credentials.access_key, set->access_key);
    strcpy(credentials.secret_key, set->secret_key);
    return credentials;
}

static int sign(struct idem__sigv4 *signer, const struct setting *set,
                const struct vector *vector, char *buf, size_t cap)
{
    struct idem__aws_credentials credentials = credentials_of(set);
    struct idem__sigv4_header headers[6];
    struct idem__sigv4_request request = {
        .method = idem_str(vector->method),
        .path = idem_str(vector->path),
        .query = idem_str(vector->query),
        .headers = headers,
        .body = idem_str(vector->body),
    };
    size_t len = 0;
    int rc;

    while (vector->headers[request.headers_len] != NULL) {
        const char *text = vector->headers[request.headers_len];
        size_t name_len = strcspn(text, ":");

        headers[request.headers_len].name = idem_bytes(text, name_len);
        headers[request.headers_len].value = idem_str(text + name_len + 1);
        request.headers_len++;
    }
    rc = idem__sigv4_sign(signer, &credentials, set->region, set->service,
                          set->stamp, &request, buf, cap, &len);
    if (rc == 0) {
        assert_int_equal(len, strlen(buf));
    }
    return rc;
}

static void assert_signs(struct idem__sigv4 *signer, const struct setting *set,
                         const struct vector *vector)
{
    char want[IDEM__SIGV4_LEN_MAX];
    char got[IDEM__SIGV4_LEN_MAX];
    char names[100] = "";
    size_t i;

    for (i = 0; vector->headers[i] != NULL; i++) {
        strcat(names, i == 0 ? "" : ";");
        strncat(names, vector->headers[i], strcspn(vector->headers[i], ":"));
    }
    snprintf(want, sizeof(want),
             "AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/%s/aws4_request, "
             "SignedHeaders=%s, Signature=%s",
             set->access_key, set->stamp, set->region, set->service, names,
             vector->signature);
    assert_ok(sign(signer, set, vector, got, sizeof(got)));
    if (strcmp(got, want) != 0) {
        fail_with("%s:\n got    %s\n wanted %s", vector->name, got, want);
    }
}

/* It gives the signatures that AWS published. */
TEST(sigv4, givesThePublishedSignatures)
{
    struct idem__sigv4 signer = {.cached = false};

    EACH(suite_vector, suite_vectors) {
        assert_signs(&signer, &suite, suite_vector);
    }
    assert_int_equal(signer.derived, 1);
    assert_signs(&signer, &iam, &iam_vector);
    assert_signs(&signer, &s3, &s3_vector);
    assert_int_equal(signer.derived, 3);
    idem__sigv4_finish(&signer);
}

/* The key is derived anew when day, region, service or secret change, and only
 * then; going back and forth gives the right signature each time. */
TEST(sigv4, keepsTheKeyForOneDayRegionServiceAndSecret)
{
    static const struct setting changed[] = {
        {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1",
         "service", "20150831T123600Z"},
        {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-2",
         "service", "20150830T123600Z"},
        {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1",
         "servicf", "20150830T123600Z"},
        {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEZ", "us-east-1",
         "service", "20150830T123600Z"},
    };
    struct idem__sigv4 signer = {.cached = false};
    char other[IDEM__SIGV4_LEN_MAX];
    size_t i;

    for (i = 0; i < COUNT(changed); i++) {
        assert_signs(&signer, &suite, &suite_vectors[0]);
        assert_int_equal(signer.derived, 2 * i + 1);
        assert_ok(sign(&signer, &changed[i], &suite_vectors[0], other,
                       sizeof(other)));
        assert_null(strstr(other, suite_vectors[0].signature));
        assert_int_equal(signer.derived, 2 * i + 2);
        assert_ok(sign(&signer, &changed[i], &suite_vectors[0], other,
                       sizeof(other)));
        assert_int_equal(signer.derived, 2 * i + 2);
    }
    idem__sigv4_finish(&signer);
}

/* What does not fit is refused and not cut, at every length. */
TEST(sigv4, refusesWhatDoesNotFit)
{
    struct idem__sigv4 signer = {.cached = false};
    char buf[IDEM__SIGV4_LEN_MAX];
    struct setting too_long = suite;
    size_t len, cap;

    assert_ok(sign(&signer, &suite, &suite_vectors[0], buf, sizeof(buf)));
    len = strlen(buf);
    for (cap = 0; cap <= len; cap++) {
        memset(buf, 'x', sizeof(buf));
        assert_code(IDEM_EINVALID,
                    sign(&signer, &suite, &suite_vectors[0], buf, cap));
        assert_int_equal(buf[cap], 'x');
    }
    assert_ok(sign(&signer, &suite, &suite_vectors[0], buf, cap));

    too_long.region = UNRESERVED;
    assert_code(IDEM_EINVALID,
                sign(&signer, &too_long, &suite_vectors[0], buf, sizeof(buf)));
    too_long = suite;
    too_long.service = UNRESERVED;
    assert_code(IDEM_EINVALID,
                sign(&signer, &too_long, &suite_vectors[0], buf, sizeof(buf)));
    idem__sigv4_finish(&signer);
}

/* The longest secret there may be is used whole. */
TEST(sigv4, takesTheLongestSecret)
{
    struct idem__sigv4 signer = {.cached = false};
    char secret[IDEM__AWS_KEY_MAX + 1];
    char buf[2][IDEM__SIGV4_LEN_MAX];
    struct setting longest = suite;

    memset(secret, 's', sizeof(secret));
    secret[sizeof(secret) - 1] = '\0';
    longest.secret_key = secret;
    assert_ok(sign(&signer, &longest, &suite_vectors[0], buf[0], 1000));
    secret[sizeof(secret) - 2] = 't';
    assert_ok(sign(&signer, &longest, &suite_vectors[0], buf[1], 1000));
    assert_string_not_equal(buf[0], buf[1]);
    idem__sigv4_finish(&signer);
}

/* Nothing of the secret is left when it is finished. */
TEST(sigv4, forgetsTheKey)
{
    struct idem__sigv4 signer = {.cached = false};
    struct idem__sigv4 zero;
    char buf[IDEM__SIGV4_LEN_MAX];

    memset(&zero, 0, sizeof(zero));
    assert_ok(sign(&signer, &suite, &suite_vectors[0], buf, sizeof(buf)));
    assert_memory_not_equal(&signer, &zero, sizeof(zero));
    idem__sigv4_finish(&signer);
    assert_memory_equal(&signer, &zero, sizeof(zero));
}
