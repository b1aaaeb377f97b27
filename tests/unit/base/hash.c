/* SHA-256, HMAC and MD5 against published vectors, and CRC-32. */
#include "base/hash.h"

#include "host.h"
#include "test.h"

static void assert_digest(const uint8_t *got, const char *want)
{
    uint8_t bytes[IDEM__SHA256_LEN];

    assert_memory_equal(got, from_hex(want, bytes).base, sizeof(bytes));
}

/* FIPS 180-4's examples, and the empty string. */
TEST(sha256, givesThePublishedDigests)
{
    static const struct {
        const char *text;
        const char *digest;
    } rows[] = {
        {"",
         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc",
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem_slice part = idem_str(rows[i].text);
        uint8_t digest[IDEM__SHA256_LEN];

        assert_ok(idem__sha256(&part, 1, digest));
        assert_digest(digest, rows[i].digest);
    }
}

/* A million times "a", in slices of a length that divides no block. */
TEST(sha256, takesLongInputInSlices)
{
    struct idem__hash hash;
    uint8_t digest[IDEM__SHA256_LEN];
    char chunk[1000];
    size_t i;

    memset(chunk, 'a', sizeof(chunk));
    idem__hash_init(&hash, idem_str(""));
    for (i = 0; i < 1000; i++) {
        idem__hash_add(&hash, idem_bytes(chunk, 333));
        idem__hash_add(&hash, idem_bytes(NULL, 0));
        idem__hash_add(&hash, idem_bytes(chunk, 667));
    }
    assert_ok(idem__hash_end(&hash, digest));
    assert_digest(
        digest,
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Where the input is cut does not change the digest. */
TEST(sha256, isTheSameHoweverItsInputIsCut)
{
    char text[200];
    struct idem_slice whole = {text, sizeof(text)};
    uint8_t want[IDEM__SHA256_LEN];
    size_t cut;

    memset(text, 'x', sizeof(text));
    assert_ok(idem__sha256(&whole, 1, want));
    for (cut = 0; cut <= sizeof(text); cut++) {
        struct idem_slice halves[2] = {{text, cut},
                                       {text + cut, sizeof(text) - cut}};
        uint8_t digest[IDEM__SHA256_LEN];

        assert_ok(idem__sha256(halves, 2, digest));
        assert_memory_equal(digest, want, sizeof(want));
    }
}

/* RFC 4231, test cases 1 to 7: keys shorter and longer than a block. */
TEST(hmac, givesTheDigestsOfRfc4231)
{
    static const struct {
        const char *key;
        size_t key_repeat;
        const char *data;
        size_t data_repeat;
        const char *digest;
        size_t digest_len;
    } rows[] = {
        {"0b", 20, "4869205468657265", 1,
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
         32},
        {"4a656665", 1,
         "7768617420646f2079612077616e7420666f72206e6f7468696e673f", 1,
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
         32},
        {"aa", 20, "dd", 50,
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
         32},
        {"0102030405060708090a0b0c0d0e0f10111213141516171819", 1, "cd", 50,
         "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
         32},
        {"0c", 20, "546573742057697468205472756e636174696f6e", 1,
         "a3b6167473100ee06e0c796c2955552b", 16},
        {"aa", 131,
         "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65"
         "204b6579202d2048617368204b6579204669727374",
         1, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
         32},
        {"aa", 131,
         "5468697320697320612074657374207573696e672061206c6172676572207468"
         "616e20626c6f636b2d73697a65206b657920616e642061206c61726765722074"
         "68616e20626c6f636b2d73697a6520646174612e20546865206b6579206e6565"
         "647320746f20626520686173686564206265666f7265206265696e6720757365"
         "642062792074686520484d414320616c676f726974686d2e",
         1, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
         32},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        uint8_t key[512];
        uint8_t data[512];
        uint8_t want[IDEM__SHA256_LEN];
        uint8_t digest[IDEM__SHA256_LEN];
        struct idem_slice one = from_hex(rows[i].key, key);
        struct idem__hmac_key ready;
        struct idem__hash hash;
        size_t len = 0;
        size_t n;

        for (n = 1; n < rows[i].key_repeat; n++) {
            memcpy(key + n * one.len, key, one.len);
        }
        idem__hash_init(&hash, idem_bytes(key, n * one.len));
        assert_ok(idem__hmac_key_init(&ready, idem_bytes(key, n * one.len)));
        for (n = 0; n < rows[i].data_repeat; n++) {
            struct idem_slice part = from_hex(rows[i].data, data + len);

            idem__hash_add(&hash, part);
            len += part.len;
        }
        assert_ok(idem__hash_end(&hash, digest));
        (void)from_hex(rows[i].digest, want);
        assert_memory_equal(digest, want, rows[i].digest_len);

        /* Made ready, the secret serves more than once. */
        for (n = 0; n < 2; n++) {
            memset(digest, 0, sizeof(digest));
            assert_ok(idem__hmac(&ready, idem_bytes(data, len), digest));
            assert_memory_equal(digest, want, rows[i].digest_len);
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
