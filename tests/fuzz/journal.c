/* Entries of a journal. The first byte of the input says what the rest is:
 *
 * - a file that may be an entry. One that is read is within every limit, names
 *   the key that its id is of, and stands for an outcome that is written as an
 *   entry which is read as the same. The lengths in its head and its checksums
 *   are put right first where the input asks for it. One that is refused leaves
 *   nothing but names.
 * - an entry. It is read back with all of its members under the name that it was
 *   given, and no byte of it can be changed or cut off without being found out.
 */
#include "base/bytes.h"
#include "base/sha256.h"
#include "fuzz.h"
#include "journal/entry.h"

#include <stdlib.h>

enum {
    AT_RESULT_LEN = 64,
    AT_FIELDS_LEN = 72,
    AT_FIELDS = 80,
    FILE_MAX = 128 * 1024
};

static bool same_entry(const struct idem__entry *a, const struct idem__entry *b)
{
    return same_bytes(a->store_url, b->store_url) &&
           same_bytes(a->scope, b->scope) && same_bytes(a->key, b->key) &&
           memcmp(a->id, b->id, IDEM_ID_LEN) == 0 &&
           memcmp(a->nonce, b->nonce, 16) == 0 && a->fence == b->fence &&
           a->outcome.status == b->outcome.status &&
           same_bytes(a->outcome.text, b->outcome.text) &&
           same_bytes(a->outcome.result.bytes, b->outcome.result.bytes) &&
           same_bytes(a->outcome.result.content_type,
                      b->outcome.result.content_type) &&
           same_bytes(a->outcome.result.meta, b->outcome.result.meta) &&
           a->outcome.result.not_kept == b->outcome.result.not_kept;
}

/* The three pieces as one file, to be freed. */
static struct idem_slice file_of(const struct idem__entry_file *f)
{
    size_t len = f->head_len + f->result.len + sizeof(f->tail);
    uint8_t *file = malloc(len);

    must(file != NULL);
    memcpy(file, f->head, f->head_len);
    if (f->result.len > 0) {
        memcpy(file + f->head_len, f->result.base, f->result.len);
    }
    memcpy(file + f->head_len + f->result.len, f->tail, sizeof(f->tail));
    return idem_bytes(file, len);
}

static void within_limits(const struct idem__entry *e)
{
    uint8_t id[IDEM_ID_LEN];

    must(e->store_url.len > 0 && e->store_url.len <= IDEM_STORE_URL_MAX);
    must(idem_id(e->scope, e->key, id) == 0);
    must(memcmp(id, e->id, sizeof(id)) == 0);
    must(e->fence > 0 && e->fence <= INT64_MAX && e->written_ms >= 0);
    must(e->outcome.status >= IDEM_STATUS_COMPLETED &&
         e->outcome.status <= IDEM_STATUS_RELEASED);
    must(e->outcome.result.content_type.len <= 255);
    must(e->outcome.result.meta.len <= IDEM_META_MAX);
    must(e->outcome.text.len <= IDEM_TEXT_MAX);
}

static void write_and_read(const struct idem__entry *e)
{
    static struct idem__entry_file f;
    char name[IDEM__ENTRY_NAME_LEN + 1];
    struct idem__entry back;
    struct idem_slice file;

    must(idem__entry_encode(e, &f) == 0);
    must(strlen(f.name) == IDEM__ENTRY_NAME_LEN);
    file = file_of(&f);
    must(idem__entry_decode(file, &back, name, NULL) == 0);
    must(same_entry(e, &back) && back.written_ms == e->written_ms);
    must(strcmp(name, f.name) == 0);
    free((void *)(uintptr_t)file.base);
}

/* Puts right what every fuzzer would get wrong. */
static void put_right(uint8_t *file, size_t len, unsigned how)
{
    size_t body_len = len - IDEM__ENTRY_TAIL_LEN;
    struct idem_slice parts[2] = {{file, body_len}};
    uint8_t digest[IDEM__SHA256_LEN];
    uint8_t sum[IDEM__SHA256_LEN];

    if ((how & 2) != 0) {
        size_t fields_len =
            idem__get_u32(file + AT_FIELDS_LEN) % (body_len - AT_FIELDS + 1);

        memcpy(file, "IDJ1\1", 5);
        idem__put_u32(file + AT_FIELDS_LEN, (uint32_t)fields_len);
        idem__put_u64(file + AT_RESULT_LEN, body_len - AT_FIELDS - fields_len);
    }
    must(idem__sha256(parts, 1, digest) == 0);
    parts[0] = idem_bytes(digest, sizeof(digest));
    parts[1] = idem_bytes(file + body_len, 8);
    must(idem__sha256(parts, 2, sum) == 0);
    memcpy(file + body_len + 8, sum, 16);
}

/* The id of scope and key that seem to stand there. */
static void put_id(uint8_t *file, size_t len)
{
    char name[IDEM__ENTRY_NAME_LEN + 1];
    struct idem__entry e;

    if (idem__entry_decode(idem_bytes(file, len), &e, name, NULL) != 0) {
        (void)idem_id(e.scope, e.key, file + 32);
    }
}

static void read_file(struct tape *tape, unsigned how)
{
    struct idem_slice rest = take_rest(tape);
    uint8_t *file = malloc(rest.len + 1);
    char name[IDEM__ENTRY_NAME_LEN + 1];
    struct idem_error error = {0};
    struct idem__entry e;
    int rc;

    must(file != NULL);
    if (rest.len > 0) {
        memcpy(file, rest.base, rest.len);
    }
    if ((how & 1) != 0 &&
        rest.len >= IDEM__ENTRY_HEAD_MIN + IDEM__ENTRY_TAIL_LEN) {
        put_right(file, rest.len, how);
        put_id(file, rest.len);
        put_right(file, rest.len, how);
    }
    rc = idem__entry_decode(idem_bytes(file, rest.len), &e, name, &error);
    must(rc == 0 || rc == IDEM_ECORRUPT || rc == IDEM_ECONFIG);
    must(rc == error.code);
    if (rc == 0) {
        within_limits(&e);
        write_and_read(&e);
    } else {
        must(e.store_url.len == 0 && e.fence == 0 && e.outcome.text.len == 0);
        must(e.scope.len <= IDEM_SCOPE_MAX && e.key.len <= IDEM_KEY_MAX);
    }
    free(file);
}

static void make_entry(struct tape *tape)
{
    static struct idem__entry_file f;
    struct idem__entry e = {.store_url = take_bytes(tape, IDEM_STORE_URL_MAX)};
    char name[IDEM__ENTRY_NAME_LEN + 1];
    struct idem__entry back;
    struct idem_slice file;
    uint8_t *bytes;
    size_t at;

    e.scope = take_bytes(tape, IDEM_SCOPE_MAX);
    e.key = take_bytes(tape, IDEM_KEY_MAX);
    e.fence = (take_u64(tape) >> 1) | 1;
    e.written_ms = take_ms(tape);
    e.outcome.status =
        (enum idem_status)(IDEM_STATUS_COMPLETED + (int)take_up_to(tape, 3));
    e.outcome.result.content_type = take_bytes(tape, 255);
    e.outcome.result.meta = take_bytes(tape, IDEM_META_MAX);
    e.outcome.text = take_bytes(tape, IDEM_TEXT_MAX);
    e.outcome.result.not_kept = take_bool(tape);
    at = take_u64(tape);
    if (!e.outcome.result.not_kept) {
        e.outcome.result.bytes = take_rest(tape);
    }
    if (e.store_url.len == 0 || idem_id(e.scope, e.key, e.id) != 0) {
        return;
    }
    write_and_read(&e);

    must(idem__entry_encode(&e, &f) == 0);
    file = file_of(&f);
    bytes = (uint8_t *)(uintptr_t)file.base;
    at %= file.len;
    bytes[at] ^= 1;
    must(idem__entry_decode(file, &back, name, NULL) != 0);
    bytes[at] ^= 1;
    must(idem__entry_decode(idem_bytes(bytes, at), &back, name, NULL) != 0);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    unsigned how = take_u8(&tape);

    if (len > FILE_MAX) {
        return 0;
    }
    if ((how & 4) != 0) {
        make_entry(&tape);
    } else {
        read_file(&tape, how & 3);
    }
    return 0;
}
