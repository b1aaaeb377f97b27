/* Entries of a journal. The first byte of the input says what the rest is:
 *
 * - a file that may be an entry. One that is read is within every limit, names
 *   the key that its id is of, and stands for an outcome that is written as an
 *   entry which is read as the same. The lengths in its head and its checksum
 *   are put right first where the input asks for it. One that is refused leaves
 *   nothing but names.
 * - an entry. It is read back with all of its members, and no byte of it can be changed or cut off without being found out.
 */
#include "base/bytes.h"
#include "base/hash.h"
#include "fuzz.h"
#include "journal/journal.h"

#include <stdlib.h>

enum {
    AT_LENS = 44,
    FIELDS = 7,
    AT_FIELDS = AT_LENS + 4 * FIELDS,
    ENTRY_LEN_MIN = AT_FIELDS + IDEM__ENTRY_TAIL_LEN,
    FILE_MAX = 128 * 1024
};

static bool same_entry(const struct idem_journal_info *a,
                       const struct idem_journal_info *b)
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
           a->outcome.result.not_kept == b->outcome.result.not_kept &&
           a->outcome.failures_max == b->outcome.failures_max &&
           a->outcome.retry_after_ms == b->outcome.retry_after_ms;
}

static void within_limits(const struct idem_journal_info *e)
{
    uint8_t id[IDEM_ID_LEN];

    must(e->store_url.len > 0 && e->store_url.len <= IDEM_STORE_URL_MAX);
    must(idem_id(e->scope, e->key, id) == 0);
    must(memcmp(id, e->id, sizeof(id)) == 0);
    must(e->fence > 0 && e->fence <= INT64_MAX && e->written_ms >= 0);
    must(e->outcome.status >= IDEM_STATUS_COMPLETED &&
         (e->outcome.status <= IDEM_STATUS_RELEASED ||
          e->outcome.status == IDEM_STATUS_RETRY));
    must(e->outcome.result.content_type.len <= 255);
    must(e->outcome.result.meta.len <= IDEM_META_MAX);
    must(e->outcome.text.len <= IDEM_TEXT_MAX);
    must(e->outcome.retry_after_ms >= 0 &&
         e->outcome.retry_after_ms <= IDEM_DURATION_MAX_MS);
}

/* The file, to be freed. */
static struct idem__buffer write_and_read(const struct idem_journal_info *e)
{
    struct idem__buffer file = {0};
    struct idem_journal_info back = {.name = NULL};

    must(idem__entry_encode(e, &file) == 0);
    must(idem__entry_decode(idem__buffer_slice(&file), &back, NULL) == 0);
    must(same_entry(e, &back) && back.written_ms == e->written_ms);
    return file;
}

/* Puts right what every fuzzer would get wrong. */
static void put_right(uint8_t *file, size_t len, unsigned how)
{
    size_t left = len - IDEM__ENTRY_TAIL_LEN - AT_FIELDS;
    struct idem_slice body = {file, len - 16};
    uint8_t sum[IDEM__SHA256_LEN];
    int i;

    if ((how & 2) != 0) {
        memcpy(file, "IDJ1\1", 5);
        for (i = 0; i < FIELDS; i++) {
            uint8_t *at = file + AT_LENS + (ptrdiff_t)4 * i;
            size_t n = i < FIELDS - 1 ? idem__get_u32(at) % (left + 1) : left;

            idem__put_u32(at, (uint32_t)n);
            left -= n;
        }
    }
    must(idem__sha256(&body, 1, sum) == 0);
    memcpy(file + body.len, sum, 16);
}

static void read_file(struct tape *tape, unsigned how)
{
    struct idem_slice rest = take_rest(tape);
    uint8_t *file = malloc(rest.len + 1);
    struct idem_error error = {0};
    struct idem_journal_info e = {.name = NULL};
    int rc;

    must(file != NULL);
    if (rest.len > 0) {
        memcpy(file, rest.base, rest.len);
    }
    if ((how & 1) != 0 && rest.len >= ENTRY_LEN_MIN) {
        put_right(file, rest.len, how);
    }
    rc = idem__entry_decode(idem_bytes(file, rest.len), &e, &error);
    must(rc == 0 || rc == IDEM_ECORRUPT || rc == IDEM_ECONFIG);
    must(rc == error.code);
    if (rc == 0) {
        within_limits(&e);
        struct idem__buffer again = write_and_read(&e);

        must(again.len == rest.len && memcmp(again.base, file, again.len) == 0);
        idem__buffer_free(&again);
    } else {
        must(e.store_url.len == 0 && e.fence == 0 && e.outcome.text.len == 0);
        must(e.scope.len <= IDEM_SCOPE_MAX && e.key.len <= IDEM_KEY_MAX);
    }
    free(file);
}

static void make_entry(struct tape *tape)
{
    struct idem_journal_info e = {.store_url =
                                      take_bytes(tape, IDEM_STORE_URL_MAX)};
    struct idem_journal_info back = {.name = NULL};
    struct idem__buffer file;
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
    e.outcome.failures_max = (uint32_t)take_u64(tape);
    e.outcome.retry_after_ms =
        (int64_t)(take_u64(tape) % (IDEM_DURATION_MAX_MS + 1));
    e.outcome.result.not_kept = take_bool(tape);
    at = take_u64(tape);
    if (!e.outcome.result.not_kept) {
        e.outcome.result.bytes = take_rest(tape);
    }
    if (e.store_url.len == 0 || idem_id(e.scope, e.key, e.id) != 0) {
        return;
    }
    file = write_and_read(&e);
    at %= file.len;
    file.base[at] ^= 1;
    must(idem__entry_decode(idem__buffer_slice(&file), &back, NULL) != 0);
    file.base[at] ^= 1;
    must(idem__entry_decode(idem_bytes(file.base, at), &back, NULL) != 0);
    idem__buffer_free(&file);
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
