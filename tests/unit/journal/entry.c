/* The stored form of an entry: what was encoded is decoded, and nothing that was
 * torn, changed, or written by another version is ever taken for one. */
#include "base/bytes.h"
#include "base/hash.h"
#include "journal/journal.h"
#include "sample.h"
#include "test.h"

enum {
    LENS = 44,
    FIELDS = 72,
    FILE_MAX = 48 << 10
};

/* A whole file. */
struct file {
    uint8_t bytes[FILE_MAX];
    size_t len;
};

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
        .outcome = {.status = IDEM_STATUS_RELEASED, .text = idem_str("t")},
        .written_ms = 7,
    };

    assert_ok(idem_id(entry.scope, entry.key, entry.id));
    return entry;
}

/* All but the result. */
static struct idem_journal_info largest(void)
{
    static char text[IDEM_META_MAX];
    struct idem_journal_info entry = sample_entry();

    memset(text, 'x', sizeof(text));
    entry.store_url = idem_bytes(text, IDEM_STORE_URL_MAX);
    entry.scope = idem_bytes(text, IDEM_SCOPE_MAX);
    entry.key = idem_bytes(text, IDEM_KEY_MAX);
    entry.fence = INT64_MAX;
    entry.outcome.status = IDEM_STATUS_FAILED;
    entry.outcome.failures_max = UINT32_MAX;
    entry.outcome.retry_after_ms = IDEM_DURATION_MAX_MS;
    entry.outcome.text = idem_bytes(text, IDEM_TEXT_MAX);
    entry.outcome.result.content_type = idem_bytes(text, 255);
    entry.outcome.result.meta = idem_bytes(text, IDEM_META_MAX);
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
    ret_entry->name = NULL;
    return idem__entry_decode(idem_bytes(file->bytes, file->len), ret_entry,
                              &why);
}

/* What comes of a file that was changed by hand and has its right checksum. */
static int decode_sealed(struct file *file)
{
    struct idem_slice body = {file->bytes, file->len - 16};
    uint8_t digest[IDEM__SHA256_LEN];
    struct idem_journal_info back;

    assert_ok(idem__sha256(&body, 1, digest));
    memcpy(file->bytes + body.len, digest, 16);
    return decode(file, &back);
}

/* The layout and the names are what the header draws, and stay so: another
 * version of idem must read what this one wrote. */
TEST(entry, hasTheLayoutOfTheHeader)
{
    static const char wanted[] =
        "49444a31" /* Magic, version, status, whether it is not kept. */
        "01080000"
        "0000000000000102" /* Fence, nonce, pause, budget. */
        "6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e"
        "0000000000000304"
        "00000506"
        "00000001000000020000000300000004000000050000000600000007"
        "75" /* The fields. */
        "7373"
        "6b6b6b"
        "63636363"
        "6d6d6d6d6d"
        "747474747474"
        "72727272727272"
        "0000000000000708"; /* The time. */
    struct idem_journal_info entry = sample_entry();
    char name[IDEM__ENTRY_NAME_MAX + 1];
    struct file file;
    uint8_t bytes[256];
    struct idem_slice want = from_hex(wanted, bytes);

    entry.store_url = idem_str("u");
    entry.scope = idem_str("ss");
    entry.key = idem_str("kkk");
    entry.fence = 0x102;
    entry.written_ms = 0x708;
    entry.outcome = (struct idem_outcome){
        .status = IDEM_STATUS_RETRY,
        .result = {.content_type = idem_str("cccc"),
                   .meta = idem_str("mmmmm"),
                   .bytes = idem_str("rrrrrrr")},
        .text = idem_str("tttttt"),
        .failures_max = 0x506,
        .retry_after_ms = 0x304,
    };
    file = encode(&entry);
    assert_int_equal(file.len, want.len + 16);
    assert_memory_equal(file.bytes, bytes, want.len);

    entry = smallest();
    assert_ok(idem__entry_prefix(entry.store_url, entry.id, name, &why));
    idem__entry_number(name, 10);
    /* SHA-256 of "x", the id, and the number. */
    assert_string_equal(name, "2d711642-06792253e9f093b5-10.idj");
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
    static const struct {
        struct {
            uint8_t at;
            uint8_t value;
        } change[3]; /* Where @at is 0 from the second on: none. */
        const char *why;
    } rows[] = {
        {{{0, 'X'}}, "not an entry"},
        {{{4, 0}}, "layout"},
        {{{5, 0}}, "out of range"}, /* The status. */
        {{{5, 1}}, "out of range"},
        {{{5, 7}}, "out of range"},
        {{{6, 2}}, "layout"},
        {{{7, 1}}, "layout"},
        {{{15, 0}}, "out of range"}, /* The fence. */
        {{{8, 0x80}}, "out of range"},
        {{{32, 0x80}}, "out of range"}, /* The pause. */
        {{{LENS + 3, 0}, {LENS + 11, 2}}, "out of range"},
        {{{LENS + 11, 0}, {LENS + 3, 2}}, "layout"}, /* No key. */
        {{{LENS, 1}}, "layout"},
        {{{LENS + 7, 1}}, "layout"}, /* A byte too many, in each field ... */
        {{{LENS + 15, 1}}, "layout"},
        {{{LENS + 19, 1}}, "layout"},
        {{{LENS + 27, 1}}, "layout"},
        {{{LENS + 24, 0xff}}, "layout"},
        {{{LENS + 23, 0}}, "layout"},           /* ... and one too few. */
        {{{FIELDS + 3, 0x80}}, "out of range"}, /* The time. */
        {{{6, 1}, {LENS + 23, 0}, {LENS + 27, 1}}, "out of range"},
    };
    struct idem_journal_info entry = smallest();
    const struct file plain = encode(&entry);
    size_t i;
    size_t c;

    for (i = 0; i < COUNT(rows); i++) {
        struct file file = plain;

        for (c = 0; c < COUNT(rows[i].change); c++) {
            if (c == 0 || rows[i].change[c].at != 0) {
                file.bytes[rows[i].change[c].at] = rows[i].change[c].value;
            }
        }
        if (decode_sealed(&file) != IDEM_ECORRUPT ||
            strstr(why.text, rows[i].why) == NULL) {
            fail_with("row %zu: %s", i, why.text);
        }
    }
}

/* Each text has its limit, which a byte of the result may not break. */
TEST(entry, isRefusedWhereATextIsTooLong)
{
    struct idem_journal_info entry = largest();
    const struct file plain = encode(&entry);
    int i;

    for (i = 0; i < 6; i++) {
        struct file file = plain;
        uint8_t *len = file.bytes + LENS + (ptrdiff_t)4 * i;

        idem__put_u32(len, idem__get_u32(len) + 1);
        idem__put_u32(file.bytes + LENS + 24,
                      (uint32_t)entry.outcome.result.bytes.len - 1);
        assert_code(IDEM_ECORRUPT, decode_sealed(&file));
    }
}
