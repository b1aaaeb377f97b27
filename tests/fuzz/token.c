/* Tokens. The first byte of the input says what the rest is:
 *
 * - a text. One that is read is written back letter by letter, so that an attempt
 *   has one token; and it names a key that exists.
 * - bytes of a token, to which prefix and checksum are added.
 * - an attempt, whose token is read back with all of its members, and is none any
 *   more when a letter of it is changed, or it is cut.
 *
 * What libidem gives out and takes in says the same.
 */
#include "base/base64.h"
#include "base/hash.h"
#include "core/token.h"
#include "fuzz.h"

#include <openssl/evp.h>
#include <stdlib.h>

enum {
    SUM_LEN = 4
};

static bool same_token(const struct idem__token *a, const struct idem__token *b)
{
    return same_bytes(a->scope, b->scope) && same_bytes(a->key, b->key) &&
           memcmp(a->nonce, b->nonce, sizeof(a->nonce)) == 0 &&
           a->fence == b->fence;
}

/* The attempt of a token that was read, through the front door. */
static void take_to_library(const char *text, const struct idem__token *token)
{
    struct idem_attempt *attempt;
    char again[IDEM_TOKEN_MAX];
    uint8_t id[IDEM_ID_LEN];

    must(idem_attempt_from_token(NULL, text, &attempt, NULL) == 0);
    must(attempt->verdict == IDEM_STARTED && attempt->fence == token->fence);
    must(same_bytes(attempt->record->scope, token->scope));
    must(same_bytes(attempt->record->key, token->key));
    must(idem_id(token->scope, token->key, id) == 0);
    must(memcmp(id, attempt->record->id, sizeof(id)) == 0);
    must(idem_attempt_lease_left_ms(attempt) == 0);
    must(idem_attempt_token(attempt, again) == 0);
    must(strcmp(again, text) == 0);
    idem_attempt_destroy(attempt);
}

static void read_text(struct idem_slice bytes)
{
    char *text = text_of(bytes);
    struct idem_error error = {0};
    struct idem__token token;
    char again[IDEM_TOKEN_MAX];
    int rc = idem__token_read(text, &token, &error);

    if (rc == 0) {
        must(token.key.len > 0 && token.key.len <= IDEM_KEY_MAX);
        must(token.scope.len <= IDEM_SCOPE_MAX && token.fence > 0);
        must(idem__token_write(&token, again) == 0);
        must(strcmp(again, text) == 0);
        take_to_library(text, &token);
    } else {
        must(rc == IDEM_EINVALID && error.text[0] != '\0');
    }
    free(text);
}

static void read_bytes(struct tape *tape)
{
    struct idem_slice body = take_bytes(tape, 600);
    uint8_t bytes[600 + SUM_LEN];
    uint8_t digest[IDEM__SHA256_LEN];
    char text[IDEM_TOKEN_MAX + 100] = "idem1.";

    if (body.len > 0) {
        memcpy(bytes, body.base, body.len);
    }
    must(idem__sha256(&body, 1, digest) == 0);
    memcpy(bytes + body.len, digest, SUM_LEN);
    idem__base64_write(IDEM__BASE64_URL, idem_bytes(bytes, body.len + SUM_LEN),
                       text + 6);
    read_text(idem_str(text));
}

/* Four bytes of checksum are met by chance once in a while: then by more than
 * the reader's word. */
static bool sum_holds(const char *text)
{
    uint8_t bytes[IDEM_TOKEN_MAX];
    uint8_t digest[IDEM__SHA256_LEN];
    struct idem_slice body = {bytes, 0};

    if (idem__base64_read(IDEM__BASE64_URL, idem_str(text + 6), bytes,
                          &body.len) != 0 ||
        body.len < SUM_LEN) {
        return false;
    }
    body.len -= SUM_LEN;
    must(EVP_Digest(bytes, body.len, digest, NULL, EVP_sha256(), NULL) == 1);
    return memcmp(digest, bytes + body.len, SUM_LEN) == 0;
}

static void must_be_refused(const char *text)
{
    struct idem__token read;

    must(idem__token_read(text, &read, NULL) == IDEM_EINVALID ||
         sum_holds(text));
}

static void write_token(struct tape *tape)
{
    struct idem__token token = {.scope = take_bytes(tape, IDEM_SCOPE_MAX)};
    struct idem__token read;
    char text[IDEM_TOKEN_MAX];
    size_t at;
    size_t i;

    token.key = take_bytes(tape, IDEM_KEY_MAX);
    token.fence = take_u64(tape);
    for (i = 0; i < sizeof(token.nonce); i++) {
        token.nonce[i] = take_u8(tape);
    }
    if (token.key.len == 0 || token.fence == 0) {
        return;
    }
    must(idem__token_write(&token, text) == 0);
    must(idem__token_read(text, &read, NULL) == 0);
    must(same_token(&token, &read));
    take_to_library(text, &token);

    at = take_u64(tape) % strlen(text);
    text[at] = text[at] == 'A' ? 'B' : 'A';
    must_be_refused(text);
    text[at] = '\0';
    must_be_refused(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);

    switch (take_up_to(&tape, 2)) {
    case 0:
        read_text(take_rest(&tape));
        break;
    case 1:
        read_bytes(&tape);
        break;
    default:
        write_token(&tape);
        break;
    }
    return 0;
}
