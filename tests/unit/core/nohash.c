/* libcrypto cannot hash: whoever needs a hash says that there is no memory for it,
 * and nothing is decided or written without. The linker puts these functions in
 * the place of libcrypto's. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/base64.h"
#include "base/hash.h"
#include "core/record.h"
#include "core/token.h"
#include "sample.h"
#include "test.h"

#include <openssl/sha.h>

int __real_SHA256_Init(SHA256_CTX *ctx);
int __real_SHA256_Update(SHA256_CTX *ctx, const void *bytes, size_t len);
int __real_SHA256_Final(unsigned char *digest, SHA256_CTX *ctx);
int __wrap_SHA256_Init(SHA256_CTX *ctx);
int __wrap_SHA256_Update(SHA256_CTX *ctx, const void *bytes, size_t len);
int __wrap_SHA256_Final(unsigned char *digest, SHA256_CTX *ctx);

static int left = -1; /* So many calls succeed; negative: all. */

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

int __wrap_SHA256_Init(SHA256_CTX *ctx)
{
    return fails() ? 0 : __real_SHA256_Init(ctx);
}

int __wrap_SHA256_Update(SHA256_CTX *ctx, const void *bytes, size_t len)
{
    return fails() ? 0 : __real_SHA256_Update(ctx, bytes, len);
}

int __wrap_SHA256_Final(unsigned char *digest, SHA256_CTX *ctx)
{
    return fails() ? 0 : __real_SHA256_Final(digest, ctx);
}

/* What needs a hash: 0 or the code that it answers. */
typedef int need(void);

static int identity(void)
{
    uint8_t id[IDEM_ID_LEN];

    return idem_id(idem_str("shop"), idem_str("order-42"), id);
}

static int fingerprint_of(struct idem_slice secret)
{
    struct idem_slice parts[] = {idem_str("a"), idem_str("b")};
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];

    return idem_fingerprint(parts, COUNT(parts), secret, fingerprint);
}

static int plain(void)
{
    return fingerprint_of(idem_str(""));
}

static int keyed(void)
{
    return fingerprint_of(idem_str("secret"));
}

static int keyed_with_much(void)
{
    static const char secret[100] = "secret";

    return fingerprint_of(idem_bytes(secret, sizeof(secret)));
}

/* More than is gathered before libcrypto is told. */
static int long_part(void)
{
    static const char text[1000];
    struct idem_slice parts[] = {idem_str("a"), {text, sizeof(text)}};
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];

    return idem_fingerprint(parts, COUNT(parts), idem_str(""), fingerprint);
}

static int key_of(struct idem_slice secret)
{
    struct idem__hmac_key key;
    int rc = idem__hmac_key_init(&key, secret);

    idem__hmac_key_finish(&key);
    return rc;
}

static int ready_key(void)
{
    return key_of(idem_str("secret"));
}

static int ready_key_of_much(void)
{
    static const char secret[100] = "secret";

    return key_of(idem_bytes(secret, sizeof(secret)));
}

/* With a key that was made ready before. */
static int signed_with_key(struct idem_slice message)
{
    struct idem__hmac_key key;
    uint8_t digest[IDEM__SHA256_LEN];
    int was = left;

    left = -1;
    assert_ok(idem__hmac_key_init(&key, idem_str("secret")));
    left = was;
    return idem__hmac(&key, message, digest);
}

static int sign(void)
{
    return signed_with_key(idem_str("message"));
}

static int sign_nothing(void)
{
    return signed_with_key(idem_str(""));
}

static int check_body(void)
{
    static const struct idem_record *record;
    static struct idem_record sample;

    if (record == NULL) {
        int was = left;

        left = -1;
        sample = sample_ended(IDEM_STATUS_COMPLETED, 1);
        record = &sample;
        left = was;
    }
    return idem__record_check_body(record->result.bytes, record->result_len,
                                   record->result_digest);
}

/* A record that was made while hashes could be had. */
static struct idem_record made(enum idem_status status)
{
    struct idem_record record;
    int was = left;

    left = -1;
    record = sample_ended(status, IDEM_NEVER / 2);
    left = was;
    return record;
}

static int encode(void)
{
    struct idem_record record = made(IDEM_STATUS_COMPLETED);
    uint8_t head[1024];
    size_t len;

    return idem__record_encode(&record, head, sizeof(head), &len);
}

static int decode(void)
{
    struct idem_record record = made(IDEM_STATUS_COMPLETED);
    static uint8_t head[1024];
    static size_t len;
    int was = left;

    left = -1;
    assert_ok(idem__record_encode(&record, head, sizeof(head), &len));
    left = was;
    return idem__record_decode(record.id, idem_bytes(head, len), &record, &why);
}

static struct idem__token sample_token(void)
{
    struct idem__token token = {.scope = idem_str("shop"),
                                .key = idem_str("order-42"),
                                .fence = 7};

    return token;
}

static int write_token(void)
{
    struct idem__token token = sample_token();
    char text[IDEM_TOKEN_MAX];

    return idem__token_write(&token, text);
}

static int read_token(void)
{
    struct idem__token token = sample_token();
    char text[IDEM_TOKEN_MAX];
    int was = left;

    left = -1;
    assert_ok(idem__token_write(&token, text));
    left = was;
    return idem__token_read(text, &token, &why);
}

static struct idem_decision decision;

/* Nothing is changed without a hash. */
static int decided(void)
{
    assert_true(decision.code == 0 || decision.change == IDEM_CHANGE_NONE);
    return decision.code;
}

static struct idem_op made_op(struct idem_op (*make)(void))
{
    struct idem_op op;
    int was = left;

    left = -1;
    op = make();
    left = was;
    return op;
}

static int begin(void)
{
    struct idem_op op = made_op(sample_begin);
    struct idem_now now = sample_now();

    op.u.begin.input = idem_str("input");
    idem__decide_begin(NULL, &op, &now, &decision);
    return decided();
}

static int take_over(void)
{
    struct idem_record found = made(IDEM_STATUS_IN_PROGRESS);
    struct idem_op op = made_op(sample_begin);
    struct idem_now now = sample_now();

    found.on_expired_lease = op.u.begin.on_expired_lease = IDEM_RERUN;
    found.lease_end_ms = found.lease_end_boot_ms = 1;
    found.expires_ms = IDEM_NEVER;
    op.u.begin.input = idem_str("input");
    idem__decide_begin(&found, &op, &now, &decision);
    return decided();
}

static int end(void)
{
    struct idem_record found = made(IDEM_STATUS_IN_PROGRESS);
    struct idem_op op = made_op(sample_end);
    struct idem_now now = sample_now();

    idem__decide_end(&found, &op, &now, &decision);
    return decided();
}

static int resolve(void)
{
    struct idem_record found = made(IDEM_STATUS_UNKNOWN);
    struct idem_op op = made_op(sample_resolve);
    struct idem_now now = sample_now();

    op.u.resolve.outcome.result.bytes = idem_str("by hand");
    idem__decide_resolve(&found, &op, &now, &decision);
    return decided();
}

/* The first hash that fails ends the call, whichever it is. */
TEST(hash, failsWhoeverNeedsIt)
{
    static const struct {
        const char *name;
        need *call;
    } needs[] = {
        {"an identity", identity},
        {"a fingerprint", plain},
        {"a keyed fingerprint", keyed},
        {"one with a long key", keyed_with_much},
        {"one of much", long_part},
        {"a key made ready", ready_key},
        {"a long key made ready", ready_key_of_much},
        {"a signature", sign},
        {"a signature of nothing", sign_nothing},
        {"a check of a body", check_body},
        {"an encoding", encode},
        {"a decoding", decode},
        {"a token", write_token},
        {"the reading of a token", read_token},
        {"a claim", begin},
        {"a takeover", take_over},
        {"an end", end},
        {"a decision", resolve},
    };

    EACH(row, needs) {
        int rc = IDEM_ENOMEM;
        int n;

        for (n = 0; rc != 0; n++) {
            left = n;
            rc = row->call();
            left = -1;
            if ((rc != 0 && rc != IDEM_ENOMEM) || n > 100) {
                fail_with("%s: %s", row->name, idem_error_name(rc));
            }
        }
        if (n < 3) {
            fail_with("%s needed no hash", row->name);
        }
    }
}

/* A person who repeats a decision is not refused for a hash that failed while it
 * was compared: it is made again, or not at all. */
TEST(hash, failsWhileADecisionIsCompared)
{
    struct idem_record found = sample_ended(IDEM_STATUS_UNKNOWN, 0);
    struct idem_op op = sample_resolve();
    struct idem_now now = sample_now();
    struct idem_decision again;

    op.u.resolve.outcome.result.bytes = idem_str("by hand");
    idem__decide_resolve(&found, &op, &now, &decision);
    assert_ok(decision.code);
    op.nonce[0] ^= 1;
    left = 0;
    idem__decide_resolve(&decision.next, &op, &now, &again);
    left = -1;
    assert_ok(again.code);
    assert_int_equal(again.change, IDEM_CHANGE_REPLACE);
    assert_int_equal(again.next.status, IDEM_STATUS_FAILED);
}
