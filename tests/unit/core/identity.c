/* Who a record belongs to, and what it was asked for: golden vectors, and that
 * no two identities or requests share one. */
#include "test.h"

static struct idem_slice repeat(char c, size_t n)
{
    static char buf[4][300];
    static size_t next;
    char *to = buf[next++ % 4];

    memset(to, c, n);
    return idem_bytes(to, n);
}

/* The identity is the same in every version and front end. */
TEST(id, givesTheGoldenVectors)
{
    struct {
        struct idem_slice scope;
        struct idem_slice key;
        const char *id;
    } rows[] = {
        {idem_str(""), idem_str("k"),
         "06792253e9f093b59079a0d29cd0ba92cd2954d6378a382238c26f03d49babf3"},
        {idem_str("shop"), idem_str("order-42"),
         "f6020c4965a8b9bc7f0596762d3b7426a51dd7487a2e75e9a7d9d6d250e59090"},
        {idem_str("a"), idem_str("bc"),
         "256d3fb3e5f17c67eff219330eb5dc2b92214d31a7942e31064e7412bbf1bac0"},
        {idem_str("ab"), idem_str("c"),
         "ae16038896d49d53f1452c160738101ff6afc81a50998577afab7f7705451a4a"},
        {idem_bytes("\0", 1), idem_bytes("\0\0", 2),
         "12b54b1494f3b741074560e36ec1109d26864522756f7e3e2399ec44389c335a"},
        {repeat('S', 255), repeat('K', 255),
         "eef429c9a918f1fd3107fd224bfbb3e98a84c97a0fa410046e2e09c4ad5f277a"},
        {idem_str("m\xc3\xbc"), idem_str("\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87"),
         "d8b13528f093e5ee27c5b4cfa53ab04f5a3ced44fc91d25180f300552273ab0e"},
        {idem_bytes(NULL, 0), idem_bytes("\xff\xfe\x00\x80", 4),
         "1ba645b4b1a5f58b3fba5a177d6b467614ca49e9f27d62e8740b06717a4c6928"},
    };

    EACH(row, rows) {
        uint8_t id[IDEM_ID_LEN];
        uint8_t want[IDEM_ID_LEN];

        assert_ok(idem_id(row->scope, row->key, id));
        assert_slice(idem_bytes(id, sizeof(id)), from_hex(row->id, want));
    }
}

/* A key of 1 to 255 bytes and a scope of 0 to 255, and nothing else. */
TEST(id, checksLengths)
{
    uint8_t id[IDEM_ID_LEN];
    uint8_t before[IDEM_ID_LEN];

    memset(id, 7, sizeof(id));
    memcpy(before, id, sizeof(id));
    assert_code(IDEM_EINVALID, idem_id(idem_str("s"), idem_str(""), id));
    assert_code(IDEM_EINVALID, idem_id(idem_str("s"), repeat('k', 256), id));
    assert_code(IDEM_EINVALID, idem_id(repeat('s', 256), idem_str("k"), id));
    assert_memory_equal(id, before, sizeof(id));
    assert_ok(idem_id(repeat('s', 255), repeat('k', 255), id));
    assert_ok(idem_id(idem_bytes(NULL, 0), idem_str("k"), id));
}

/* ---- Fingerprints ---- */

/* The fingerprint is the same in every version and front end. */
TEST(fingerprint, givesTheGoldenVectors)
{
    static char secret[65536];
    struct idem_slice charge[3] = {idem_str("POST"), idem_str("/charge"),
                                   idem_str("amount=5")};
    struct idem_slice empty = idem_str("");
    struct idem_slice letters = repeat('a', 100);
    struct {
        const struct idem_slice *parts;
        size_t len;
        struct idem_slice secret;
        const char *fingerprint;
    } rows[] = {
        {NULL, 0, idem_str(""),
         "01af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc"},
        {&empty, 1, idem_str(""),
         "01783825822a6f9e62da2190e828e4c9d2576e5977e3a0b3620b092dfb9e9996fa"},
        {charge, 3, idem_str(""),
         "01d3e32c64b3c0400a5365708f0c8b70d1c854e001e561f8f0f7169c2c2e18b98f"},
        {charge, 3, idem_str("secret"),
         "02d78540260735105a9ae4b7ae949fc8fb88e3c199e0602ed3d0277e63672d8bd0"},
        {charge, 3, idem_bytes(secret, sizeof(secret)),
         "023eb1de7b49ecac7f20441ad8dd04bb7441534306c6ae1a6acfc03a66b6cf42f1"},
        {&letters, 1, repeat('y', 64),
         "02d9fa338314c201c1b08033483712b8591026b4e64acfc1ad2fa22d9e231803a7"},
        {&letters, 1, repeat('y', 65),
         "023b62c4ad68ec9e013808ac2277f758be7205bc958f493fa160bac8693d1dba11"},
    };

    memset(secret, 'x', sizeof(secret));
    EACH(row, rows) {
        uint8_t got[IDEM_FINGERPRINT_LEN];
        uint8_t want[IDEM_FINGERPRINT_LEN];

        assert_ok(idem_fingerprint(row->parts, row->len, row->secret, got));
        assert_slice(idem_bytes(got, sizeof(got)),
                     from_hex(row->fingerprint, want));
    }
}

/* 65,535 parts and a secret of 64 KiB are the most. */
TEST(fingerprint, checksLengths)
{
    static struct idem_slice parts[65536];
    static char secret[65537];
    uint8_t got[IDEM_FINGERPRINT_LEN];
    uint8_t before[IDEM_FINGERPRINT_LEN];

    memset(got, 7, sizeof(got));
    memcpy(before, got, sizeof(got));
    assert_code(IDEM_EINVALID,
                idem_fingerprint(parts, 65536, idem_str(""), got));
    assert_code(IDEM_EINVALID,
                idem_fingerprint(parts, 1, idem_bytes(secret, 65537), got));
    assert_memory_equal(got, before, sizeof(got));
    assert_ok(idem_fingerprint(parts, 65535, idem_str(""), got));
    assert_ok(idem_fingerprint(parts, 1, idem_bytes(secret, 65536), got));
}
