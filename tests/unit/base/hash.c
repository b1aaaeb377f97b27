/* HMAC with SHA-256 and MD5 against published vectors, and CRC-32. */
#include "base/hash.h"

#include "host.h"
#include "test.h"

static void assert_digest(const uint8_t *got, const char *want)
{
    uint8_t bytes[IDEM__SHA256_LEN];

    assert_memory_equal(got, from_hex(want, bytes).base, sizeof(bytes));
}

/* RFC 4231, cases 2 and 6: a key shorter than a block and a longer one; made ready, it
 * serves more than once, and nothing of it is left. */
TEST(hmac, givesTheDigestsOfRfc4231)
{
    static uint8_t aa[131];
    const struct {
        struct idem_slice key;
        const char *data;
        const char *digest;
    } rows[] = {
        {idem_str("Jefe"), "what do ya want for nothing?",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {idem_bytes(aa, sizeof(aa)),
         "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    };
    int n;

    memset(aa, 0xaa, sizeof(aa));
    EACH(row, rows) {
        struct idem_slice data = idem_str(row->data);
        uint8_t digest[IDEM__SHA256_LEN];
        struct idem__hmac_key ready;
        struct idem__hash hash;

        idem__hash_init(&hash, row->key);
        idem__hash_add(&hash, data);
        assert_ok(idem__hash_end(&hash, digest));
        assert_digest(digest, row->digest);
        assert_ok(idem__hmac_key_init(&ready, row->key));
        for (n = 0; n < 2; n++) {
            assert_ok(idem__hmac(&ready, data, digest));
            assert_digest(digest, row->digest);
        }
        idem__hmac_key_finish(&ready);
        assert_true(
            memcmp(&ready, &(struct idem__hmac_key){0}, sizeof(ready)) == 0);
    }
}

/* Without a secret it is the plain hash; with the shortest it is another. */
TEST(hmac, isPlainWithoutASecret)
{
    struct idem_slice text = idem_str("text");
    struct idem__hash hash;
    uint8_t plain[IDEM__SHA256_LEN];
    uint8_t digest[IDEM__SHA256_LEN];

    assert_ok(idem__sha256(&text, 1, plain));
    idem__hash_init(&hash, idem_bytes(NULL, 0));
    idem__hash_add(&hash, text);
    assert_ok(idem__hash_end(&hash, digest));
    assert_memory_equal(digest, plain, sizeof(plain));

    idem__hash_init(&hash, idem_bytes("", 1));
    idem__hash_add(&hash, text);
    assert_ok(idem__hash_end(&hash, digest));
    assert_memory_not_equal(digest, plain, sizeof(plain));
}

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

    EACH(row, rows) {
        hex_of(idem_str((*row)[0]), hex);
        assert_string_equal((*row)[1], hex);
    }
}

/* It gives the check value of its definition and some that are well known. */
TEST(crc32, givesKnownValues)
{
    static const char fox[] = "The quick brown fox jumps over the lazy dog";

    assert_int_equal(idem__crc32(0, idem_str("")), 0);
    assert_int_equal(idem__crc32(0, idem_str("123456789")), 0xcbf43926);
    assert_int_equal(idem__crc32(0, idem_str("a")), 0xe8b7be43);
    assert_int_equal(idem__crc32(0, idem_str(fox)), 0x414fa339);
}

/* One bit at a time, as the definition says it. */
static uint32_t by_bits(const uint8_t *p, size_t len)
{
    uint32_t r = 0xffffffff;
    size_t i;
    unsigned k;

    for (i = 0; i < len; i++) {
        r ^= p[i];
        for (k = 0; k < 8; k++) {
            r = r >> 1 ^ (r & 1 ? 0xedb88320 : 0);
        }
    }
    return ~r;
}

/* It is the same at every length and alignment, in one piece or in two. */
TEST(crc32, isTheSameHoweverItsInputIsCut)
{
    uint8_t bytes[300];
    uint64_t seed = 7;
    size_t start, len, cut;

    random_fill(&seed, bytes, sizeof(bytes));
    for (start = 0; start < 9; start++) {
        for (len = 0; len < 280; len++) {
            uint32_t want = by_bits(bytes + start, len);

            assert_int_equal(idem__crc32(0, idem_bytes(bytes + start, len)),
                             want);
            cut = len / 3;
            assert_int_equal(
                idem__crc32(idem__crc32(0, idem_bytes(bytes + start, cut)),
                            idem_bytes(bytes + start + cut, len - cut)),
                want);
        }
    }
}
