/* Tests of MD5. */
#include "base/md5.h"

#include "test.h"

static void hex_of(struct idem_slice bytes, char hex[2 * IDEM__MD5_LEN + 1])
{
    uint8_t digest[IDEM__MD5_LEN];
    size_t i;

    assert_ok(idem__md5(bytes, digest));
    for (i = 0; i < IDEM__MD5_LEN; i++) {
        (void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    }
}

/* The digests of RFC 1321, appendix A.5. */
TEST(md5, isTheRfcs)
{
    static const char *const rows[][2] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"1234567890123456789012345678901234567890"
         "1234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };
    char hex[2 * IDEM__MD5_LEN + 1];
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        hex_of(idem_str(rows[i][0]), hex);
        assert_string_equal(rows[i][1], hex);
    }
}

/* At each length around the end of a block; the digest of all the digests was
 * made with another program. */
TEST(md5, takesEveryLength)
{
    char all[200 * (2 * IDEM__MD5_LEN)];
    char hex[2 * IDEM__MD5_LEN + 1];
    uint8_t bytes[200];
    size_t len;

    for (len = 0; len < sizeof(bytes); len++) {
        bytes[len] = (uint8_t)(len * 7);
        hex_of(idem_bytes(bytes, len), hex);
        memcpy(all + len * (2 * IDEM__MD5_LEN), hex, (2 * IDEM__MD5_LEN));
    }
    hex_of(idem_bytes(all, sizeof(all)), hex);
    assert_string_equal("1736b409b36391b34d692fdce6b0cc0b", hex);
}
