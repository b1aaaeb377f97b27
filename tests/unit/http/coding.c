/* Tests of src/http/coding.c. */
#include <idem/http.h>

#include "test.h"

/* Each row: Accept-Encoding, Content-Encoding, whether that is taken. */
TEST(http_coding, isTakenAsRfc9110Says)
{
    static const struct {
        const char *accept;
        const char *codings;
        bool taken;
    } rows[] = {
        {"gzip", "gzip", true},
        {"GZip", "gzIP", true},
        {"br, gzip", "gzip", true},
        {" br ,\tgzip ; q=0.5 ", "gzip", true},
        {",, ,gzip,", "gzip", true},
        {"x-gzip", "gzip", true},
        {"gzip", "x-gzip", true},
        {"compress", "x-compress", true},
        {"gzip, br", "gzip, br", true},
        {"*", "zstd", true},
        {"*;q=0, gzip", "gzip", true},
        {"gzip;q=1.000", "gzip", true},
        {"gzip;q=0.001", "gzip", true},
        {"gzip;q=00", "gzip", true},
        {"gzip;level=0", "gzip", true},
        {"br", "", true},
        {"br", " , ", true},
        {"", "identity", true},
        {"br", "Identity", true},
        {"", "gzip", false},
        {" ", "gzip", false},
        {"identity", "gzip", false},
        {"br", "gzip", false},
        {"gzip2", "gzip", false},
        {"gzi", "gzip", false},
        {"x-br", "br", false},
        {"gzip;q=0", "gzip", false},
        {"gzip ; Q=0.000", "gzip", false},
        {"gzip;q=0.", "gzip", false},
        {"gzip;q=0, *", "gzip", false},
        {"*, gzip;q=0", "gzip", false},
        {"*;q=0", "gzip", false},
        {"br, *;q=0", "gzip", false},
        {"gzip", "gzip, br", false},
        {"gzip", "br, gzip", false},
        {"gzip", "gzip;q=1.0,br", false},
        {";q=1, gzip;q=0", "gzip", false},
    };

    EACH(row, rows) {
        bool taken =
            idem_http_accepts(idem_str(row->accept), idem_str(row->codings));

        if (taken != row->taken) {
            fail_msg("Accept-Encoding: %s, Content-Encoding: %s: %d",
                     row->accept, row->codings, taken);
        }
    }
}

/* Who sends no Accept-Encoding takes any. */
TEST(http_coding, isTakenByWhoAsksForNone)
{
    assert_true(idem_http_accepts(idem_bytes(NULL, 0), idem_str("gzip, br")));
    assert_true(idem_http_accepts(idem_bytes(NULL, 0), idem_str("")));
    assert_true(idem_http_accepts(idem_str("gzip"), idem_bytes(NULL, 0)));
}
