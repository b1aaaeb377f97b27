/* The stored form: what was encoded is decoded, and whatever else is found
 * under an id is refused and never taken for a record. */
#include "base/bytes.h"
#include "base/hash.h"
#include "core/record.h"
#include "sample.h"
#include "test.h"

enum {
    FIELDS = 184,
    SUM = 16
};

/* A stored head and the id that it lies under. */
struct head {
    uint8_t id[IDEM_ID_LEN];
    uint8_t bytes[IDEM_HEAD_MAX + 8];
    size_t len;
};

static struct head encode(const struct idem_record *record)
{
    struct head head;

    memcpy(head.id, record->id, sizeof(head.id));
    assert_ok(
        idem__record_encode(record, head.bytes, IDEM_HEAD_MAX, &head.len));
    return head;
}

static int decode(const struct head *head, struct idem_record *ret_record)
{
    return idem__record_decode(head->id, idem_bytes(head->bytes, head->len),
                               ret_record, &why);
}

/* Gives a head that was changed by hand its right checksum. */
static void seal(struct head *head)
{
    struct idem_slice parts[2] = {{head->id, sizeof(head->id)},
                                  {head->bytes, head->len - SUM}};
    uint8_t digest[IDEM__SHA256_LEN];

    assert_ok(idem__sha256(parts, 2, digest));
    memcpy(head->bytes + head->len - SUM, digest, SUM);
}

/* Puts a field behind the others, and seals. */
static void append(struct head *head, uint8_t tag, const void *bytes,
                   uint32_t len)
{
    uint8_t *p = head->bytes + head->len - SUM;

    p[0] = tag;
    idem__put_u32(p + 1, len);
    memcpy(p + 5, bytes, len);
    head->len += 5 + len;
    idem__put_u32(head->bytes + 20, (uint32_t)(head->len - SUM - FIELDS));
    seal(head);
}

static void assert_round_trip(struct idem_record record)
{
    struct head head = encode(&record);
    struct idem_record back;

    assert_true(head.len < IDEM_HEAD_MAX);
    assert_ok(decode(&head, &back));
    assert_int_equal(back.scope.len, 0);
    assert_int_equal(back.key.len, 0);
    back.scope = record.scope;
    back.key = record.key;
    assert_same_record(&back, &record);
}

/* The smallest record and the largest come back whole. The one is as long as the layout
 * says, and no record within the limits is longer than IDEM_HEAD_MAX. */
TEST(record, roundTrips)
{
    struct idem_record smallest = sample_smallest();

    assert_round_trip(smallest);
    assert_round_trip(sample_largest());
    assert_int_equal(encode(&smallest).len, IDEM_HEAD_MIN);
}

/* Each number lies where the drawing in store.h has it. */
TEST(record, isLaidOutAsDrawn)
{
    struct idem_record record = sample_record();
    struct head head;
    const uint8_t *p = head.bytes;

    record.fence = 0x0102030405060708;
    record.attempts = 0x0a0b0c0d;
    record.created_ms = 11;
    record.started_ms = 12;
    record.lease_ms = 13;
    record.lease_end_ms = 14;
    record.lease_end_boot_ms = 15;
    record.expected_ms = 16;
    record.ended_ms = 17;
    record.expires_ms = 18;
    record.retention_ms = 19;
    record.input_len = 21;
    memset(record.input_digest, 'i', 16);
    head = encode(&record);

    assert_memory_equal(p, "IDR1\1\1\2\0", 8);
    assert_memory_equal(p + 8, "\1\2\3\4\5\6\7\10", 8);
    assert_memory_equal(p + 16, "\12\13\14\15", 4);
    assert_int_equal(idem__get_u32(p + 20), head.len - FIELDS - SUM);
    assert_int_equal(idem__get_u64(p + 24), 11);
    assert_int_equal(idem__get_u64(p + 32), 12);
    assert_int_equal(idem__get_u64(p + 40), 13);
    assert_int_equal(idem__get_u64(p + 48), 14);
    assert_int_equal(idem__get_u64(p + 56), 15);
    assert_int_equal(idem__get_u64(p + 64), 16);
    assert_int_equal(idem__get_u64(p + 72), 17);
    assert_int_equal(idem__get_u64(p + 80), 18);
    assert_int_equal(idem__get_u64(p + 88), 19);
    assert_int_equal(idem__get_u64(p + 96), 0);
    assert_memory_equal(p + 104, "nnnnnnnnnnnnnnnn", 16);
    assert_memory_equal(p + 120, "AAAAAAAAAAAAAAAA", 16);
    assert_memory_equal(p + 152, "iiiiiiiiiiiiiiii", 16);
    assert_int_equal(idem__get_u64(p + 168), 0);
    assert_int_equal(idem__get_u64(p + 176), 21);
    assert_memory_equal(p + FIELDS, "\1\0\0\0\6host/1", 11);
}

/* ---- Damage ---- */

/* A head with every kind of field, for the tests that damage it. */
static struct head sample_head(void)
{
    struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 3600000);

    record.fingerprint = idem_bytes("\1abcdefghijklmnopqrstuvwxyz012345", 33);
    record.note = idem_str("a note");
    record.history_len = 2;
    record.history[0] = (struct idem_past){.owner = idem_str("host/0"),
                                           .fence = 40,
                                           .started_ms = NOW_MS - 90000,
                                           .ended_ms = NOW_MS - 50000,
                                           .end = IDEM_PAST_RESOLVED,
                                           .was = IDEM_STATUS_FAILED,
                                           .meta = idem_str("exit 3"),
                                           .text = idem_str("no answer")};
    record.history[1] = (struct idem_past){.fence = 39,
                                           .started_ms = NOW_MS - 99000,
                                           .ended_ms = NOW_MS - 95000,
                                           .end = IDEM_PAST_RELEASED};
    return encode(&record);
}

/* The head of one record, byte for byte: any version must read and write it. */
TEST(record, givesTheGoldenVector)
{
    static const char golden[] =
        "4944523101020200000000000000002900000001000000ad0000018bcfe540f0"
        "0000018bcfe540f0000000000000ea600000018bcfe62b5000000000004d0e90"
        "00000000000000000000018bcfe554780000018bd01c42f8000000000036ee80"
        "00000000000000006e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e4141414141414141"
        "4141414141414141a4c3ed04a95a3da14a9d235c83d868be0000000000000000"
        "0000000000000000000000000000000400000000000000000100000006686f73"
        "742f310200000021016162636465666768696a6b6c6d6e6f7071727374757677"
        "78797a303132333435030000000a746578742f706c61696e0400000006657869"
        "743d30060000000661206e6f7465070000003103030000000000000028000001"
        "8bcfe408700000018bcfe4a4b00606686f73742f306578697420336e6f20616e"
        "73776572070000001c010000000000000000270000018bcfe3e5480000018bcf"
        "e3f4e8000039731e963c1713ea816d38a420136b5e";
    struct head head = sample_head();
    uint8_t want[sizeof(golden) / 2];

    assert_slice(idem_bytes(head.bytes, head.len), from_hex(golden, want));
}

static void assert_corrupt(const struct head *head, const char *what)
{
    struct idem_record record;
    struct idem_record before;

    memset(&record, 0x5a, sizeof(record));
    memcpy(&before, &record, sizeof(record));
    if (decode(head, &record) != IDEM_ECORRUPT) {
        fail_with("it was not found corrupt: %s", what);
    }
    assert_memory_equal(&record, &before, sizeof(record));
}

/* A record with @change is not one that can be stored. */
#define assert_faulty(change)                                                  \
    do {                                                                       \
        struct idem_record r = sample_ended(IDEM_STATUS_COMPLETED, 1);         \
                                                                               \
        r.history_len = 1;                                                     \
        r.history[0].end = IDEM_PAST_RELEASED;                                 \
        change;                                                                \
        if (idem__record_fault(&r) == NULL) {                                  \
            fail_with("not seen: " #change);                                   \
        }                                                                      \
    } while (0)

/* What a caller may have put together, and no decoder would have let pass. */
TEST(record, isFaultyBeyondItsLimits)
{
    static const char big[IDEM_HEAD_MAX + 1];

    assert_null(idem__record_fault(&(struct idem_record){
        .status = IDEM_STATUS_IN_PROGRESS,
        .on_expired_lease = IDEM_HOLD,
        .fence = 1,
        .attempts = 1,
        .fingerprint = idem_bytes(big, IDEM_FINGERPRINT_LEN),
        .history_len = 1,
        .history = {{.end = IDEM_PAST_RESOLVED}},
    }));
    assert_faulty(r.owner = idem_bytes(big, IDEM_OWNER_MAX + 1));
    assert_faulty(r.fingerprint = idem_bytes(big, 32));
    assert_faulty(r.result.content_type = idem_bytes(big, 256));
    assert_faulty(r.result.meta = idem_bytes(big, IDEM_META_MAX + 1));
    assert_faulty(r.error = idem_bytes(big, IDEM_TEXT_MAX + 1));
    assert_faulty(r.note = idem_bytes(big, IDEM_TEXT_MAX + 1));
    assert_faulty(r.traceparent = idem_bytes(big, IDEM_TRACEPARENT_LEN + 1));
    assert_faulty(r.unknown_fields = idem_bytes(big, IDEM_HEAD_MAX + 1));
    assert_faulty(r.history_len = IDEM_HISTORY_MAX + 1);
    assert_faulty(r.history[0].owner = idem_bytes(big, IDEM_OWNER_MAX + 1));
    assert_faulty(r.history[0].started_ms = -1);
    assert_faulty(r.history[0].ended_ms = -1);
    assert_faulty(r.history[0].end = (enum idem_past_end)0);
    assert_faulty(r.history[0].end = (enum idem_past_end)6);
    assert_faulty(r.history[0].was = (enum idem_status)6);
    assert_faulty(r.history[0].meta = idem_bytes(big, IDEM_PAST_META_MAX + 1));
    assert_faulty(r.history[0].text = idem_bytes(big, IDEM_PAST_TEXT_MAX + 1));
    assert_faulty(r.status = IDEM_STATUS_IN_PROGRESS; r.result_len = 0;
                  r.result.not_kept = true);
    assert_faulty(r.retry = true);
    assert_faulty(r.retried = r.attempts + 1);
}

/* Heads whose checksum is right and whose content is none that we write. */
TEST(record, isCorruptWhenARuleIsBroken)
{
    static const struct {
        const char *what;
        size_t at;
        size_t len;
        const char *bytes;
    } rows[] = {
        {"status 0", 5, 1, "\0"},
        {"status 6", 5, 1, "\6"},
        {"policy 0", 6, 1, "\0"},
        {"policy 3", 6, 1, "\3"},
        {"fence 0", 8, 8, "\0\0\0\0\0\0\0\0"},
        {"a fence above INT64_MAX", 8, 1, "\x80"},
        {"attempts 0", 16, 4, "\0\0\0\0"},
        {"negative created", 24, 1, "\x80"},
        {"negative started", 32, 1, "\xff"},
        {"negative lease", 40, 1, "\x80"},
        {"negative lease end", 48, 1, "\x80"},
        {"negative lease end by boot clock", 56, 1, "\x80"},
        {"negative expected", 64, 1, "\x80"},
        {"negative ended", 72, 1, "\x80"},
        {"negative expires", 80, 1, "\x80"},
        {"negative retention", 88, 1, "\x80"},
        {"a result longer than any", 168, 8, "\0\0\0\0\4\0\0\1"},
        {"an input longer than any", 176, 8, "\0\0\0\0\4\0\0\1"},
        {"a result while in progress", 5, 1, "\1"},
        {"a tombstone with a result", 7, 1, "\1"},
        {"fields longer than there is room", 20, 4, "\0\0\xff\xff"},
        {"fields shorter than they are", 20, 4, "\0\0\0\0"},
    };

    EACH(row, rows) {
        struct head head = sample_head();

        memcpy(head.bytes + row->at, row->bytes, row->len);
        seal(&head);
        assert_corrupt(&head, row->what);
    }
}

/* Fields that no version of ours writes so, under a right checksum. */
TEST(record, isCorruptWhenAFieldIsMalformed)
{
    static const uint8_t zeros[IDEM_META_MAX + 1];
    static const struct {
        const char *what;
        uint8_t tag;
        uint32_t len;
    } rows[] = {
        {"tag 0", 0, 3},
        {"an empty owner", 1, 0},
        {"an owner that is too long", 1, IDEM_OWNER_MAX + 1},
        {"an empty fingerprint", 2, 0},
        {"a short fingerprint", 2, 32},
        {"a long fingerprint", 2, 34},
        {"a long content type", 3, 256},
        {"a long meta", 4, IDEM_META_MAX + 1},
        {"a long error", 5, IDEM_TEXT_MAX + 1},
        {"a long note", 6, IDEM_TEXT_MAX + 1},
        {"a short past", 7, 27},
        {"a past that ended in no way", 7, 28},
        {"a short mark", 8, 19},
        {"a long mark", 8, 21},
        {"no doubt", 9, 0},
        {"a short doubt", 9, 7},
        {"a doubt about no attempt", 9, 8},
    };
    struct idem_record smallest = sample_smallest();

    EACH(row, rows) {
        struct head head = encode(&smallest);

        append(&head, row->tag, zeros, row->len);
        assert_corrupt(&head, row->what);
    }
}

static void append_past(struct head *head, uint8_t end, uint8_t started)
{
    uint8_t past[28] = {end, 0, 0, 0, 0, 0, 0, 0, 0, 9, started};

    append(head, 7, past, sizeof(past));
}

/* What a decision replaced is within its limits and the bytes of its field. */
TEST(record, isCorruptWhenAPastIsTooLong)
{
    static uint8_t past[28 + IDEM_PAST_TEXT_MAX + 1];
    static const struct {
        const char *what;
        uint8_t was;
        uint8_t owner;
        uint8_t meta;
        size_t len; /* Of all three. */
        bool good;
    } rows[] = {
        {"as long as may be", 5, 0, IDEM_PAST_META_MAX, IDEM_PAST_META_MAX + 9,
         true},
        {"a long text", 5, 0, 0, IDEM_PAST_TEXT_MAX, true},
        {"a text that is too long", 5, 0, 0, IDEM_PAST_TEXT_MAX + 1, false},
        {"metadata that is too long", 5, 0, IDEM_PAST_META_MAX + 1,
         IDEM_PAST_META_MAX + 1, false},
        {"an owner past the end", 5, 2, 0, 1, false},
        {"metadata past the end", 5, 1, 1, 1, false},
        {"a status of no kind", 6, 0, 0, 0, false},
    };
    struct idem_record smallest = sample_smallest();

    past[0] = IDEM_PAST_RESOLVED;
    EACH(row, rows) {
        struct head head = encode(&smallest);
        struct idem_record record;

        past[1] = row->was;
        past[26] = row->owner;
        past[27] = row->meta;
        append(&head, 7, past, 28 + row->len);
        if (row->good) {
            assert_ok(decode(&head, &record));
        } else {
            assert_corrupt(&head, row->what);
        }
    }
}

/* Tags rise, a known one comes once, and a past is one of at most eight. */
TEST(record, isCorruptWhenFieldsAreOutOfOrder)
{
    struct idem_record smallest = sample_smallest();
    struct idem_record record;
    struct head head = encode(&smallest);
    int i;

    append(&head, 5, "no", 2);
    append(&head, 1, "me", 2);
    assert_corrupt(&head, "the owner after the error");

    head = encode(&smallest);
    append(&head, 1, "me", 2);
    append(&head, 1, "me", 2);
    assert_corrupt(&head, "two owners");

    head = encode(&smallest);
    append(&head, 99, "new", 3);
    append_past(&head, 1, 0);
    assert_corrupt(&head, "a past after what is unknown");

    head = encode(&smallest);
    append_past(&head, 6, 0);
    assert_corrupt(&head, "a past that ended in no way");

    head = encode(&smallest);
    append_past(&head, 1, 0x80);
    assert_corrupt(&head, "a past that began before time");

    head = encode(&smallest);
    for (i = 0; i < IDEM_HISTORY_MAX; i++) {
        append_past(&head, 1, 0);
        assert_ok(decode(&head, &record));
    }
    append_past(&head, 1, 0);
    assert_corrupt(&head, "nine past attempts");
}

/* Lengths of fields that reach past the end, by one byte and by all of them. */
TEST(record, isCorruptWhenAFieldIsCutShort)
{
    static const uint32_t lengths[] = {4, 5, 255, 0x7fffffff, 0xffffffff};
    struct idem_record smallest = sample_smallest();
    size_t i;

    for (i = 0; i < COUNT(lengths); i++) {
        struct head head = encode(&smallest);

        append(&head, 1, "abc", 3);
        idem__put_u32(head.bytes + FIELDS + 1, lengths[i]);
        seal(&head);
        assert_corrupt(&head, "a field longer than the rest");
    }
    for (i = 1; i < 5; i++) {
        struct head head = encode(&smallest);

        head.len += i;
        memset(head.bytes + FIELDS, 0, i);
        idem__put_u32(head.bytes + 20, (uint32_t)i);
        seal(&head);
        assert_corrupt(&head, "a field head cut short");
    }
}

/* ---- Other versions ---- */

static void assert_newer(const struct head *head, const char *what)
{
    assert_corrupt(head, what);
    if (strstr(why.text, "newer version") == NULL) {
        fail_with("%s: \"%s\" does not say so", what, why.text);
    }
}

/* ROW(68) A record of a newer version is refused and says so: another version
 * byte, a flag, a number or a must-know field that this version has not got. */
TEST(record, isRefusedWhenNewer)
{
    struct head head = sample_head();
    unsigned tag;

    head.bytes[4] = 2;
    seal(&head);
    assert_newer(&head, "version 2");

    head = sample_head();
    head.bytes[7] |= 4;
    seal(&head);
    assert_newer(&head, "an unknown flag");

    head = sample_head();
    head.bytes[103] = 1;
    seal(&head);
    assert_newer(&head, "a number where there is none");

    for (tag = 128; tag < 256; tag++) {
        head = sample_head();
        append(&head, (uint8_t)tag, "must", 4);
        assert_newer(&head, "a must-know field");
    }
}

/* What a program makes of the head that does not know the tags after 7: it keeps
 * them as they are and changes the rest. Here its fence and lease_end. */
static struct idem_record changed_by_older(const struct idem_record *record,
                                           uint64_t fence, int64_t lease_end_ms)
{
    static struct head head;
    struct idem_record changed;

    head = encode(record);
    idem__put_u64(head.bytes + 8, fence);
    idem__put_u64(head.bytes + 48, (uint64_t)lease_end_ms);
    seal(&head);
    assert_ok(decode(&head, &changed));
    return changed;
}

/* The mark for another run is about one attempt and the end of its lease: where an
 * older program gave the key to another, or renewed, it no longer counts. How many
 * attempts were retried stays. */
TEST(record, isMarkedForOneAttempt)
{
    struct idem_record record = sample_record();
    struct idem_record changed;

    record.retry = true;
    record.attempts = 3;
    record.retried = 2;
    changed = changed_by_older(&record, 41, record.lease_end_ms);
    assert_true(changed.retry);
    assert_int_equal(changed.retried, 2);
    changed = changed_by_older(&record, 42, record.lease_end_ms);
    assert_false(changed.retry);
    assert_int_equal(changed.retried, 2);
    changed = changed_by_older(&record, 41, record.lease_end_ms + 1);
    assert_false(changed.retry);
}

/* Fields of a later minor version are kept as they are, through decoding and
 * encoding, and while the rest of the record changes. */
TEST(record, keepsFieldsThatItDoesNotKnow)
{
    struct head head = sample_head();
    struct head again;
    struct idem_record record;

    append(&head, 99, "first", 5);
    append(&head, 99, "again", 5);
    append(&head, 100, "", 0);
    append(&head, 127, "last", 4);
    assert_ok(decode(&head, &record));
    assert_int_equal(record.unknown_fields.len, 4 * 5 + 5 + 5 + 4);
    again = encode(&record);
    assert_slice(idem_bytes(again.bytes, again.len),
                 idem_bytes(head.bytes, head.len));

    record.note = idem_str("another and longer note");
    record.history_len = 0;
    again = encode(&record);
    assert_ok(decode(&again, &record));
    assert_text(record.note, "another and longer note");
    assert_int_equal(record.unknown_fields.len, 4 * 5 + 5 + 5 + 4);
    assert_slice(record.unknown_fields,
                 idem_bytes(again.bytes + again.len - SUM - 34, 34));
}

/* ---- Bodies ---- */

/* No body has a digest of zeros, and only that. */
TEST(body, isNoneWithZeros)
{
    uint8_t digest[16] = {0};

    assert_ok(idem__record_check_body(idem_bytes(NULL, 0), 0, digest));
    digest[15] = 1;
    assert_code(IDEM_ECORRUPT,
                idem__record_check_body(idem_bytes(NULL, 0), 0, digest));
}
