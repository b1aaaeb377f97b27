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

/* A secret that is longer than a block of the hash. */
static const char much[100] = "secret";

static int fingerprint_of(struct idem_slice last, struct idem_slice secret)
{
    struct idem_slice parts[] = {idem_str("a"), last};
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];

    return idem_fingerprint(parts, COUNT(parts), secret, fingerprint);
}

static int plain(void)
{
    return fingerprint_of(idem_str("b"), idem_str(""));
}

static int keyed(void)
{
    return fingerprint_of(idem_str("b"), idem_str("secret"));
}

static int keyed_with_much(void)
{
    return fingerprint_of(idem_str("b"), idem_bytes(much, sizeof(much)));
}

/* More than is gathered before libcrypto is told. */
static int long_part(void)
{
    static const char text[1000];

    return fingerprint_of(idem_bytes(text, sizeof(text)), idem_str(""));
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
    return key_of(idem_bytes(much, sizeof(much)));
}

/* What was made while hashes could be had. */
static struct {
    struct idem__hmac_key key;
    struct idem_record record;
    uint8_t head[1024]; /* Of the record. */
    size_t head_len;
    struct idem__token token;
    char token_text[IDEM_TOKEN_MAX];
    struct idem_record found;
    struct idem_op begin;
    struct idem_op end;
    struct idem_op resolve;
} made;

static void make(void)
{
    assert_ok(idem__hmac_key_init(&made.key, idem_str("secret")));
    made.record = sample_ended(IDEM_STATUS_COMPLETED, IDEM_NEVER / 2);
    assert_ok(idem__record_encode(&made.record, made.head, sizeof(made.head),
                                  &made.head_len));
    made.token = (struct idem__token){.scope = idem_str("shop"),
                                      .key = idem_str("order-42"),
                                      .fence = 7};
    assert_ok(idem__token_write(&made.token, made.token_text));
    made.found = sample_ended(IDEM_STATUS_IN_PROGRESS, IDEM_NEVER / 2);
    made.begin = sample_begin();
    made.begin.u.begin.input = idem_str("input");
    made.end = sample_end();
    made.resolve = sample_resolve();
    made.resolve.u.resolve.outcome.result.bytes = idem_str("by hand");
}

static int sign(void)
{
    uint8_t digest[IDEM__SHA256_LEN];

    return idem__hmac(&made.key, idem_str("message"), digest);
}

static int sign_nothing(void)
{
    uint8_t digest[IDEM__SHA256_LEN];

    return idem__hmac(&made.key, idem_str(""), digest);
}

static int check_body(void)
{
    return idem__record_check_body(made.record.result.bytes,
                                   made.record.result_len,
                                   made.record.result_digest);
}

static int encode(void)
{
    uint8_t head[1024];
    size_t len;

    return idem__record_encode(&made.record, head, sizeof(head), &len);
}

static int decode(void)
{
    struct idem_record record;

    return idem__record_decode(made.record.id,
                               idem_bytes(made.head, made.head_len), &record,
                               &why);
}

static int write_token(void)
{
    char text[IDEM_TOKEN_MAX];

    return idem__token_write(&made.token, text);
}

static int read_token(void)
{
    char text[IDEM_TOKEN_MAX];
    struct idem__token token;

    strcpy(text, made.token_text);
    return idem__token_read(text, &token, &why);
}

/* What @op decides of @found: nothing is changed without a hash. */
static int decide(const struct idem_record *found, const struct idem_op *op)
{
    struct idem_decision decision = sample_decide(found, op, NULL);

    assert_true(decision.code == 0 || decision.change == IDEM_CHANGE_NONE);
    return decision.code;
}

static int begin(void)
{
    return decide(NULL, &made.begin);
}

static int take_over(void)
{
    struct idem_record found = made.found;
    struct idem_op op = made.begin;

    found.on_expired_lease = op.u.begin.on_expired_lease = IDEM_RERUN;
    sample_lease(&found, 0);
    return decide(&found, &op);
}

static int end(void)
{
    return decide(&made.found, &made.end);
}

static int resolve(void)
{
    struct idem_record found = made.found;

    found.status = IDEM_STATUS_UNKNOWN;
    return decide(&found, &made.resolve);
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

    make();
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
    struct idem_decision again;

    op.u.resolve.outcome.result.bytes = idem_str("by hand");
    found = sample_decide(&found, &op, NULL).next;
    op.nonce[0] ^= 1;
    left = 0;
    again = sample_decide(&found, &op, NULL);
    left = -1;
    assert_ok(again.code);
    assert_int_equal(again.change, IDEM_CHANGE_REPLACE);
    assert_int_equal(again.next.status, IDEM_STATUS_FAILED);
}
