/* The stored form of an entry: what was encoded is decoded, and nothing that was
 * torn, changed, or written by another version is ever taken for one. */
#include "base/bytes.h"
#include "base/hash.h"
#include "journal/journal.h"
#include "sample.h"
#include "test.h"

enum {
    FIELDS = 104,
    TAIL = 24,
    FILE_MAX = 48 << 10
};

/* A whole file, and room for more. */
struct file {
    uint8_t bytes[FILE_MAX];
    size_t len;
};

static char long_text[IDEM_META_MAX];

static struct idem_journal_info sample_entry(void)
{
    struct idem_journal_info entry = {
        .store_url = idem_str("sqlite:/var/lib/pay/idem.db"),
        .scope = idem_str("shop-7"),
        .key = idem_str("order-42"),
        .fence = 1795249440000,
        .outcome =
            {
                .status = IDEM_STATUS_COMPLETED,
                .result = sample_result(),
                .text = idem_str("at last"),
            },
        .written_ms = NOW_MS,
    };

    memset(entry.nonce, 'n', sizeof(entry.nonce));
    assert_ok(idem_id(entry.scope, entry.key, entry.id));
    return entry;
}

static struct idem_journal_info smallest(void)
{
    struct idem_journal_info entry = {
        .store_url = idem_str("x"),
        .key = idem_str("k"),
        .fence = 1,
        .outcome = {.status = IDEM_STATUS_RELEASED},
    };

    assert_ok(idem_id(entry.scope, entry.key, entry.id));
    return entry;
}

static struct idem_journal_info largest(void)
{
    struct idem_journal_info entry = sample_entry();

    memset(long_text, 'x', sizeof(long_text));
    entry.store_url = idem_bytes(long_text, IDEM_STORE_URL_MAX);
    entry.scope = idem_bytes(long_text, IDEM_SCOPE_MAX);
    entry.key = idem_bytes(long_text, IDEM_KEY_MAX);
    entry.fence = INT64_MAX;
    entry.outcome.status = IDEM_STATUS_FAILED;
    entry.outcome.failures_max = UINT32_MAX;
    entry.outcome.retry_after_ms = IDEM_DURATION_MAX_MS;
    entry.outcome.text = idem_bytes(long_text, IDEM_TEXT_MAX);
    entry.outcome.result.content_type = idem_bytes(long_text, 255);
    entry.outcome.result.meta = idem_bytes(long_text, IDEM_META_MAX);
    assert_ok(idem_id(entry.scope, entry.key, entry.id));
    return entry;
}

static struct file encode(const struct idem_journal_info *entry)
{
    struct idem__buffer buffer = {0};
    struct file file = {.len = 0};

    assert_ok(idem__entry_encode(entry, &buffer));
    assert_true(buffer.len <= sizeof(file.bytes));
    memcpy(file.bytes, buffer.base, buffer.len);
    file.len = buffer.len;
    idem__buffer_free(&buffer);
    return file;
}

static int decode(const struct file *file, struct idem_journal_info *ret_entry)
{
    return idem__entry_decode(idem_bytes(file->bytes, file->len), ret_entry,
                              &why);
}

/* Gives a file that was changed by hand its right checksum. */
static void seal(struct file *file)
{
    struct idem_slice body = {file->bytes, file->len - 16};
    uint8_t digest[IDEM__SHA256_LEN];

    assert_ok(idem__sha256(&body, 1, digest));
    memcpy(file->bytes + body.len, digest, 16);
}

/* Makes the text of an entry without a result @len bytes long, and seals. */
static void set_text(struct file *file, const char *text, uint32_t len)
{
    uint8_t *p = file->bytes + file->len - TAIL;

    memmove(p + len, p, TAIL);
    memcpy(p, text, len);
    file->len += len;
    idem__put_u32(file->bytes + 84, len);
    seal(file);
}

static void assert_round_trip(const struct idem_journal_info *entry)
{
    struct file file = encode(entry);
    struct idem_journal_info back;

    assert_ok(decode(&file, &back));
    assert_slice(back.store_url, entry->store_url);
    assert_slice(back.scope, entry->scope);
    assert_slice(back.key, entry->key);
    assert_memory_equal(back.id, entry->id, sizeof(back.id));
    assert_memory_equal(back.nonce, entry->nonce, sizeof(back.nonce));
    assert_true(back.fence == entry->fence);
    assert_true(back.written_ms == entry->written_ms);
    assert_int_equal(back.outcome.status, entry->outcome.status);
    assert_slice(back.outcome.text, entry->outcome.text);
    assert_slice(back.outcome.result.bytes, entry->outcome.result.bytes);
    assert_slice(back.outcome.result.content_type,
                 entry->outcome.result.content_type);
    assert_slice(back.outcome.result.meta, entry->outcome.result.meta);
    assert_int_equal(back.outcome.result.not_kept,
                     entry->outcome.result.not_kept);
    assert_int_equal(back.outcome.failures_max, entry->outcome.failures_max);
    assert_true(back.outcome.retry_after_ms == entry->outcome.retry_after_ms);
}

/* Entries of every status, the smallest and the largest, come back whole. */
TEST(entry, roundTrips)
{
    struct idem_journal_info entry = sample_entry();
    size_t i;

    for (i = 0; i < SAMPLE_ENDS; i++) {
        entry.outcome.status = sample_ends[i];
        assert_round_trip(&entry);
    }
    entry.outcome.status = IDEM_STATUS_RELEASED;
    entry.outcome.result.bytes = idem_bytes(NULL, 0);
    entry.outcome.result.not_kept = true;
    assert_round_trip(&entry);
    entry = smallest();
    assert_round_trip(&entry);
    entry = largest();
    assert_round_trip(&entry);
}

/* The layout and the names are what the header draws, and stay so: another
 * version of idem must read what this one wrote. */
TEST(entry, hasTheLayoutOfTheHeader)
{
    static const char wanted[] =
        "49444a31"
        "01"
        "05"
        "00"
        "00"
        "0000000000000001"
        "00000000000000000000000000000000"
        "2ce02128ebf1d5f6b1ae2a4ab1ee2ea47af4b9f0ef5d11f6ee0b2e7bd8f38bd1"
        "00000001"
        "00000000"
        "00000001"
        "00000000"
        "00000000"
        "00000000"
        "00000000"
        "00000000"
        "0000000000000000"
        "78"
        "6b"
        "0000000000000007";
    struct idem_journal_info entry = smallest();
    char name[IDEM__ENTRY_RECORD_LEN + 1];
    struct file file;
    uint8_t bytes[256];
    struct idem_slice want = from_hex(wanted, bytes);

    memcpy(bytes + 32, entry.id, sizeof(entry.id));
    entry.written_ms = 7;
    file = encode(&entry);
    assert_int_equal(file.len, want.len + 16);
    assert_memory_equal(file.bytes, bytes, want.len);
    assert_ok(idem__entry_record_name(entry.store_url, entry.id, name, &why));
    /* SHA-256 of "x", and the id. */
    assert_string_equal(name, "2d711642-06792253e9f093b5-");
}

/* What a later version may write is left to it, and not called damaged. */
TEST(entry, isNotReadWhereItIsNewer)
{
    struct idem_journal_info entry = smallest();
    struct file file = encode(&entry);
    struct idem_journal_info back;

    file.bytes[4] = 2;
    assert_code(IDEM_ECONFIG, decode(&file, &back));
    assert_why("newer");
}

/* A whole entry that says what cannot be is not believed either. */
TEST(entry, isRefusedOutOfRange)
{
    struct idem_journal_info entry = smallest();
    const struct file plain = encode(&entry);
    static char text[IDEM_TEXT_MAX + 2];
    struct idem_journal_info back;
    struct file file;
    size_t i;
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {
        {0, 'X'},     {4, 0},     {5, 0},
        {5, 1},       {5, 7},     {6, 2},
        {7, 1},       {15, 0},    {8, 0x80},
        {16 + 16, 0}, {67, 0}, /* Each length but that of the scope, and a byte too many. */
        {71, 1},      {75, 0},    {79, 1},
        {83, 1},      {87, 1},    {91, 1},
        {64, 1},      {88, 0xff}, {FIELDS + 2, 0x80}, /* The time. */
    };

    for (i = 0; i < COUNT(changes); i++) {
        file = plain;
        file.bytes[changes[i].at] = changes[i].value;
        seal(&file);
        if (decode(&file, &back) != IDEM_ECORRUPT) {
            fail_with("byte %zu", changes[i].at);
        }
    }
    file = plain;
    file.bytes[6] = 1; /* A tombstone ... */
    file.bytes[91] = 1;
    memmove(file.bytes + file.len - TAIL + 1, file.bytes + file.len - TAIL,
            TAIL);
    file.len++; /* ... with a byte. */
    seal(&file);
    assert_code(IDEM_ECORRUPT, decode(&file, &back));
    assert_why("tombstone");

    memset(text, 't', IDEM_TEXT_MAX + 1);
    file = plain;
    set_text(&file, text, IDEM_TEXT_MAX + 1);
    assert_code(IDEM_ECORRUPT, decode(&file, &back));
    assert_why("too long");
    file = plain;
    set_text(&file, text, IDEM_TEXT_MAX);
    assert_ok(decode(&file, &back));
}
