/* The stored form of a record; its layout is drawn in "contract/store.h". */
#include "core/record.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "contract/store.h"
#include "core/error.h"
#include "core/identity.h"

#include <assert.h>

enum {
    AT_VERSION = 4,
    AT_STATUS = 5,
    AT_POLICY = 6,
    AT_FLAGS = 7,
    AT_FENCE = 8,
    AT_ATTEMPTS = 16,
    AT_FIELDS_LEN = 20,
    AT_CREATED = 24,
    AT_STARTED = 32,
    AT_LEASE = 40,
    AT_LEASE_END = 48,
    AT_LEASE_END_BOOT = 56,
    AT_EXPECTED = 64,
    AT_ENDED = 72,
    AT_EXPIRES = 80,
    AT_RETENTION = 88,
    AT_ZERO = 96,
    AT_NONCE = 104,
    AT_BOOT_ID = 120,
    AT_RESULT_DIGEST = 136,
    AT_INPUT_DIGEST = 152,
    AT_RESULT_LEN = 168,
    AT_INPUT_LEN = 176,
    AT_FIELDS = 184,
};

enum {
    CHECKSUM_LEN = 16,
    FIELD_HEAD_LEN = 5,
    PAST_HEAD_LEN = 28,
    RETRY_LEN = 24,
    IN_DOUBT_LEN = 8
};
enum {
    VERSION = 1,
    FLAG_NOT_KEPT = 1,
    FLAG_BY_LEASE = 2
};

enum tag {
    TAG_OWNER = 1,
    TAG_FINGERPRINT,
    TAG_CONTENT_TYPE,
    TAG_META,
    TAG_ERROR,
    TAG_NOTE,
    TAG_PAST, /* One for each past attempt. */
    TAG_RETRY,
    TAG_IN_DOUBT,
    TAG_TRACEPARENT,
    TAG_KNOWN_END,
    TAG_MUST_KNOW = 128,
};

static const uint8_t magic[4] = {'I', 'D', 'R', '1'};

int idem__record_check_body(struct idem_slice body, uint64_t len,
                            const uint8_t digest[16])
{
    uint8_t have[16];
    int rc;

    if (body.len != len) {
        return IDEM_ECORRUPT;
    }
    rc = idem__body_digest(body, have);
    if (rc != 0) {
        return rc;
    }
    return memcmp(have, digest, sizeof(have)) == 0 ? 0 : IDEM_ECORRUPT;
}

static int checksum(const uint8_t id[IDEM_ID_LEN], const uint8_t *head,
                    size_t len, uint8_t ret_sum[CHECKSUM_LEN])
{
    /* The sum covers the id, so a head that is stored under another key does not pass. */
    struct idem_slice parts[2] = {{id, IDEM_ID_LEN}, {head, len}};
    uint8_t digest[IDEM__SHA256_LEN];
    int rc = idem__sha256(parts, 2, digest);

    if (rc == 0) {
        memcpy(ret_sum, digest, CHECKSUM_LEN);
    }
    return rc;
}

/* ---- Encoding ---- */

struct writer {
    uint8_t *base;
    size_t cap;
    size_t len; /* Greater than cap if a write did not fit. */
};

static void write_bytes(struct writer *w, const void *bytes, size_t len)
{
    /* len grows even if the bytes do not fit; the caller compares it with the room at the
     * end. */
    if (len > 0 && w->len <= w->cap && len <= w->cap - w->len) {
        memcpy(w->base + w->len, bytes, len);
    }
    w->len += len;
}

static void write_field_head(struct writer *w, enum tag tag, size_t len)
{
    uint8_t head[FIELD_HEAD_LEN] = {(uint8_t)tag};

    idem__put_u32(head + 1, (uint32_t)len);
    write_bytes(w, head, sizeof(head));
}

static void write_field(struct writer *w, enum tag tag, struct idem_slice s)
{
    if (s.len > 0) {
        write_field_head(w, tag, s.len);
        write_bytes(w, s.base, s.len);
    }
}

static void write_past(struct writer *w, const struct idem_past *past)
{
    uint8_t head[PAST_HEAD_LEN] = {(uint8_t)past->end, (uint8_t)past->was};

    idem__put_u64(head + 2, past->fence);
    idem__put_u64(head + 10, (uint64_t)past->started_ms);
    idem__put_u64(head + 18, (uint64_t)past->ended_ms);
    head[26] = (uint8_t)past->owner.len;
    head[27] = (uint8_t)past->meta.len;
    write_field_head(w, TAG_PAST,
                     sizeof(head) + past->owner.len + past->meta.len +
                         past->text.len);
    write_bytes(w, head, sizeof(head));
    write_bytes(w, past->owner.base, past->owner.len);
    write_bytes(w, past->meta.base, past->meta.len);
    write_bytes(w, past->text.base, past->text.len);
}

/* The mark names its attempt by fence and lease end. A program that does not know the
 * mark may start another attempt or move the lease, and the mark must not apply to
 * that. */
static void write_retry(struct writer *w, const struct idem_record *record)
{
    uint8_t field[RETRY_LEN] = {0};

    if (!record->retry && record->retried == 0 && record->failures == 0) {
        return;
    }
    /* Without the mark both stay zero, and only the counts apply. */
    if (record->retry) {
        idem__put_u64(field, record->fence);
        idem__put_u64(field + 8, (uint64_t)record->lease_end_ms);
    }
    idem__put_u32(field + 16, record->retried);
    idem__put_u32(field + 20, record->failures);
    write_field(w, TAG_RETRY, idem_bytes(field, sizeof(field)));
}

static void write_in_doubt(struct writer *w, const struct idem_record *record)
{
    uint8_t field[IN_DOUBT_LEN];

    if (record->in_doubt != 0) {
        idem__put_u64(field, record->in_doubt);
        write_field(w, TAG_IN_DOUBT, idem_bytes(field, sizeof(field)));
    }
}

static void write_fields(struct writer *w, const struct idem_record *record)
{
    size_t i;

    /* Write the fields in the order of their tags, which read_fields() requires. */
    write_field(w, TAG_OWNER, record->owner);
    write_field(w, TAG_FINGERPRINT, record->fingerprint);
    write_field(w, TAG_CONTENT_TYPE, record->result.content_type);
    write_field(w, TAG_META, record->result.meta);
    write_field(w, TAG_ERROR, record->error);
    write_field(w, TAG_NOTE, record->note);
    for (i = 0; i < record->history_len; i++) {
        write_past(w, &record->history[i]);
    }
    write_retry(w, record);
    write_in_doubt(w, record);
    write_field(w, TAG_TRACEPARENT, record->traceparent);
    write_bytes(w, record->unknown_fields.base, record->unknown_fields.len);
}

static void write_fixed(uint8_t *p, const struct idem_record *record)
{
    memcpy(p, magic, sizeof(magic));
    p[AT_VERSION] = VERSION;
    p[AT_STATUS] = (uint8_t)record->status;
    p[AT_POLICY] = (uint8_t)record->on_expired_lease;
    p[AT_FLAGS] = (uint8_t)((record->result.not_kept ? FLAG_NOT_KEPT : 0) |
                            (record->by_lease ? FLAG_BY_LEASE : 0));
    idem__put_u64(p + AT_FENCE, record->fence);
    idem__put_u32(p + AT_ATTEMPTS, record->attempts);
    idem__put_u64(p + AT_CREATED, (uint64_t)record->created_ms);
    idem__put_u64(p + AT_STARTED, (uint64_t)record->started_ms);
    idem__put_u64(p + AT_LEASE, (uint64_t)record->lease_ms);
    idem__put_u64(p + AT_LEASE_END, (uint64_t)record->lease_end_ms);
    idem__put_u64(p + AT_LEASE_END_BOOT, (uint64_t)record->lease_end_boot_ms);
    idem__put_u64(p + AT_EXPECTED, (uint64_t)record->expected_ms);
    idem__put_u64(p + AT_ENDED, (uint64_t)record->ended_ms);
    idem__put_u64(p + AT_EXPIRES, (uint64_t)record->expires_ms);
    idem__put_u64(p + AT_RETENTION, (uint64_t)record->retention_ms);
    /* Reserved: a reader of this version takes any other value for a newer version. */
    idem__put_u64(p + AT_ZERO, 0);
    memcpy(p + AT_NONCE, record->nonce, 16);
    memcpy(p + AT_BOOT_ID, record->boot_id, 16);
    memcpy(p + AT_RESULT_DIGEST, record->result_digest, 16);
    memcpy(p + AT_INPUT_DIGEST, record->input_digest, 16);
    idem__put_u64(p + AT_RESULT_LEN, record->result_len);
    idem__put_u64(p + AT_INPUT_LEN, record->input_len);
}

int idem__record_encode(const struct idem_record *record, void *buf, size_t cap,
                        size_t *ret_len)
{
    struct writer w = {.base = buf, .cap = cap, .len = AT_FIELDS};
    int rc;

    /* The decoder refuses an invalid record as CORRUPT, and no op writes over a corrupt
     * record: the key would be lost. So find the mistake before the write. */
    assert(record->status >= IDEM_STATUS_IN_PROGRESS &&
           record->status <= IDEM_STATUS_RELEASED);
    assert(record->on_expired_lease == IDEM_RERUN ||
           record->on_expired_lease == IDEM_HOLD);
    assert(record->fence > 0 && record->attempts > 0);
    assert(record->status != IDEM_STATUS_IN_PROGRESS ||
           record->result_len == 0 || record->failures > 0);
    assert(record->history_len <= IDEM_HISTORY_MAX);
    assert(!record->retry || record->status == IDEM_STATUS_IN_PROGRESS);

    if (cap < IDEM_HEAD_MIN) {
        return IDEM_EINVALID;
    }
    write_fixed(w.base, record);
    write_fields(&w, record);
    if (w.len > cap - CHECKSUM_LEN) {
        return IDEM_EINVALID;
    }
    idem__put_u32(w.base + AT_FIELDS_LEN, (uint32_t)(w.len - AT_FIELDS));
    /* The sum comes last, because it covers all bytes before it. */
    rc = checksum(record->id, w.base, w.len, w.base + w.len);
    if (rc == 0) {
        *ret_len = w.len + CHECKSUM_LEN;
    }
    return rc;
}

/* ---- Decoding ---- */

static int corrupt(struct idem_error *error, const char *what)
{
    return idem__error(error, IDEM_ECORRUPT, "the record cannot be trusted: %s",
                       what);
}

static int newer(struct idem_error *error)
{
    return idem__error(error, IDEM_ECORRUPT,
                       "the record was written by a newer version of idem: "
                       "use that version");
}

static int64_t get_ms(const uint8_t *p)
{
    uint64_t v = idem__get_u64(p);

    /* idem__record_fault() refuses a negative time. */
    return v > INT64_MAX ? -1 : (int64_t)v;
}

static void read_fixed(const uint8_t *p, struct idem_record *record)
{
    record->status = (enum idem_status)p[AT_STATUS];
    record->on_expired_lease = (enum idem_on_expired_lease)p[AT_POLICY];
    record->result.not_kept = (p[AT_FLAGS] & FLAG_NOT_KEPT) != 0;
    record->by_lease = (p[AT_FLAGS] & FLAG_BY_LEASE) != 0;
    record->fence = idem__get_u64(p + AT_FENCE);
    record->attempts = idem__get_u32(p + AT_ATTEMPTS);
    record->created_ms = get_ms(p + AT_CREATED);
    record->started_ms = get_ms(p + AT_STARTED);
    record->lease_ms = get_ms(p + AT_LEASE);
    record->lease_end_ms = get_ms(p + AT_LEASE_END);
    record->lease_end_boot_ms = get_ms(p + AT_LEASE_END_BOOT);
    record->expected_ms = get_ms(p + AT_EXPECTED);
    record->ended_ms = get_ms(p + AT_ENDED);
    record->expires_ms = get_ms(p + AT_EXPIRES);
    record->retention_ms = get_ms(p + AT_RETENTION);
    memcpy(record->nonce, p + AT_NONCE, 16);
    memcpy(record->boot_id, p + AT_BOOT_ID, 16);
    memcpy(record->result_digest, p + AT_RESULT_DIGEST, 16);
    memcpy(record->input_digest, p + AT_INPUT_DIGEST, 16);
    record->result_len = idem__get_u64(p + AT_RESULT_LEN);
    record->input_len = idem__get_u64(p + AT_INPUT_LEN);
}

static bool is_past_fault(const struct idem_past *past)
{
    return past->owner.len > IDEM_OWNER_MAX || past->started_ms < 0 ||
           past->ended_ms < 0 || past->end < IDEM_PAST_RELEASED ||
           past->end > IDEM_PAST_REOPENED || past->was > IDEM_STATUS_RELEASED ||
           past->meta.len > IDEM_PAST_META_MAX ||
           past->text.len > IDEM_PAST_TEXT_MAX;
}

/* Checks lengths and history. The decoder has checked the history already, but an
 * imported record did not come from the decoder. */
static const char *parts_fault(const struct idem_record *r)
{
    size_t i;

    if (r->history_len > IDEM_HISTORY_MAX) {
        return "its history is too long";
    }
    for (i = 0; i < r->history_len; i++) {
        if (is_past_fault(&r->history[i])) {
            return "its history is malformed";
        }
    }
    if (r->owner.len > IDEM_OWNER_MAX ||
        (r->fingerprint.len != 0 &&
         r->fingerprint.len != IDEM_FINGERPRINT_LEN) ||
        r->result.content_type.len > 255 ||
        r->result.meta.len > IDEM_META_MAX || r->error.len > IDEM_TEXT_MAX ||
        r->note.len > IDEM_TEXT_MAX ||
        r->traceparent.len > IDEM_TRACEPARENT_LEN ||
        r->unknown_fields.len > IDEM_HEAD_MAX) {
        return "a field is too long";
    }
    return NULL;
}

/* Checks the ranges that the rest of the library relies on. */
const char *idem__record_fault(const struct idem_record *r)
{
    bool open = r->status == IDEM_STATUS_IN_PROGRESS;

    if (r->status < IDEM_STATUS_IN_PROGRESS ||
        r->status > IDEM_STATUS_RELEASED) {
        return "its status is invalid";
    }
    if (r->on_expired_lease != IDEM_RERUN && r->on_expired_lease != IDEM_HOLD) {
        return "its policy is invalid";
    }
    if (r->fence == 0 || r->fence > INT64_MAX || r->attempts == 0) {
        return "it was never claimed";
    }
    if (r->created_ms < 0 || r->started_ms < 0 || r->lease_ms < 0 ||
        r->lease_end_ms < 0 || r->lease_end_boot_ms < 0 || r->expected_ms < 0 ||
        r->ended_ms < 0 || r->expires_ms < 0 || r->retention_ms < 0) {
        return "a time is out of range";
    }
    if (r->result_len > IDEM_RESULT_MAX || r->input_len > IDEM_RESULT_MAX) {
        return "a body is too long";
    }
    /* In a record in progress, a result comes from the last attempt that ended with a
     * retry, which counts as a failure. */
    if (open && r->failures == 0 && (r->result_len > 0 || r->result.not_kept)) {
        return "it has a result but no attempt has ended";
    }
    if (r->result.not_kept && r->result_len > 0) {
        return "it is a tombstone with a result";
    }
    if (r->retry && !open) {
        return "it is marked retry but is not in progress";
    }
    if (r->retried > r->attempts) {
        return "more attempts were retried than there were";
    }
    return parts_fault(r);
}

static const char *read_past(struct idem_slice s, struct idem_record *record)
{
    const uint8_t *p = s.base;
    struct idem_past *past;
    size_t texts;

    if (s.len < PAST_HEAD_LEN ||
        s.len - PAST_HEAD_LEN < (size_t)p[26] + p[27] ||
        record->history_len == IDEM_HISTORY_MAX) {
        return "its history is malformed";
    }
    /* Owner and metadata have a byte of length each; the text is the rest. */
    texts = PAST_HEAD_LEN + (size_t)p[26] + p[27];
    past = &record->history[record->history_len++];
    past->end = (enum idem_past_end)p[0];
    past->was = (enum idem_status)p[1];
    past->fence = idem__get_u64(p + 2);
    past->started_ms = get_ms(p + 10);
    past->ended_ms = get_ms(p + 18);
    past->owner = idem_bytes(p + PAST_HEAD_LEN, p[26]);
    past->meta = idem_bytes(p + PAST_HEAD_LEN + p[26], p[27]);
    past->text = idem_bytes(p + texts, s.len - texts);
    return is_past_fault(past) ? "its history is malformed" : NULL;
}

static const char *read_retry(struct idem_slice s, struct idem_record *record)
{
    const uint8_t *p = s.base;

    if (s.len != RETRY_LEN || idem__get_u32(p + 16) > record->attempts) {
        return "its retry mark is malformed";
    }
    /* The mark holds for the attempt and the end of the lease that it names. If either
     * differs, a program that does not know the field has changed the record since. */
    record->retry = record->status == IDEM_STATUS_IN_PROGRESS &&
                    idem__get_u64(p) == record->fence &&
                    get_ms(p + 8) == record->lease_end_ms;
    record->retried = idem__get_u32(p + 16);
    record->failures = idem__get_u32(p + 20);
    return NULL;
}

static const char *read_in_doubt(struct idem_slice s,
                                 struct idem_record *record)
{
    if (s.len != IN_DOUBT_LEN || idem__get_u64(s.base) == 0) {
        return "its in_doubt field is malformed";
    }
    record->in_doubt = idem__get_u64(s.base);
    return NULL;
}

/* Returns where the field @tag goes, and how long it may be. */
static struct idem_slice *place_of(struct idem_record *record, unsigned tag,
                                   size_t *ret_max)
{
    switch (tag) {
    case TAG_OWNER:
        *ret_max = IDEM_OWNER_MAX;
        return &record->owner;
    case TAG_FINGERPRINT:
        *ret_max = IDEM_FINGERPRINT_LEN;
        return &record->fingerprint;
    case TAG_CONTENT_TYPE:
        *ret_max = 255;
        return &record->result.content_type;
    case TAG_META:
        *ret_max = IDEM_META_MAX;
        return &record->result.meta;
    case TAG_ERROR:
        *ret_max = IDEM_TEXT_MAX;
        return &record->error;
    case TAG_NOTE:
        *ret_max = IDEM_TEXT_MAX;
        return &record->note;
    case TAG_TRACEPARENT:
        *ret_max = IDEM_TRACEPARENT_LEN;
        return &record->traceparent;
    default:
        return NULL;
    }
}

static const char *read_field(unsigned tag, struct idem_slice s,
                              struct idem_record *record)
{
    struct idem_slice *place;
    size_t max;

    switch (tag) {
    case TAG_PAST:
        return read_past(s, record);
    case TAG_RETRY:
        return read_retry(s, record);
    case TAG_IN_DOUBT:
        return read_in_doubt(s, record);
    default:
        break;
    }
    place = place_of(record, tag, &max);
    if (place == NULL || s.len == 0 || s.len > max) {
        return "a field is malformed";
    }
    if (tag == TAG_FINGERPRINT && s.len != IDEM_FINGERPRINT_LEN) {
        return "its fingerprint has the wrong length";
    }
    *place = s;
    return NULL;
}

/* Reads the fields. Those with unknown tags come last, and are kept as they are. */
static int read_fields(const uint8_t *p, size_t len, struct idem_record *record,
                       struct idem_error *error)
{
    unsigned last = 0;
    size_t at = 0;

    while (at < len) {
        const char *fault = NULL;
        unsigned tag = p[at];
        size_t left = len - at;
        size_t n;

        if (left < FIELD_HEAD_LEN ||
            idem__get_u32(p + at + 1) > left - FIELD_HEAD_LEN) {
            return corrupt(error, "a field is cut short");
        }
        n = FIELD_HEAD_LEN + idem__get_u32(p + at + 1);
        /* A reader that ignored a field with such a tag would decide wrongly. */
        if (tag >= TAG_MUST_KNOW) {
            return newer(error);
        }
        /* Tags rise, so each field comes once; only past attempts repeat. */
        if (tag < last ||
            (tag == last && tag < TAG_KNOWN_END && tag != TAG_PAST)) {
            return corrupt(error, "its fields are out of order");
        }
        if (tag < TAG_KNOWN_END) {
            fault = read_field(tag,
                               idem_bytes(p + at + FIELD_HEAD_LEN,
                                          n - FIELD_HEAD_LEN),
                               record);
        } else if (record->unknown_fields.len == 0) {
            /* Only unknown fields follow the first unknown one. write_fields() writes
             * them back as they are. */
            record->unknown_fields = idem_bytes(p + at, left);
        }
        if (fault != NULL) {
            return corrupt(error, fault);
        }
        last = tag;
        at += n;
    }
    return 0;
}

int idem__record_decode(const uint8_t id[IDEM_ID_LEN], struct idem_slice head,
                        struct idem_record *ret_record,
                        struct idem_error *ret_error)
{
    struct idem_record record;
    const uint8_t *p = head.base;
    uint8_t sum[CHECKSUM_LEN];
    const char *fault;
    size_t body_len;
    int rc;

    if (head.len < IDEM_HEAD_MIN || head.len > IDEM_HEAD_MAX ||
        memcmp(p, magic, sizeof(magic)) != 0) {
        return corrupt(ret_error, "it is not a record");
    }
    body_len = head.len - CHECKSUM_LEN;
    /* Check the sum before anything else: a damaged head must not pass for one of a newer
     * version. */
    rc = checksum(id, p, body_len, sum);
    if (rc != 0) {
        return idem__error_plain(ret_error, rc);
    }
    if (memcmp(sum, p + body_len, CHECKSUM_LEN) != 0) {
        return corrupt(ret_error, "its checksum does not match");
    }
    /* The sum is right, so a newer program wrote what this one does not know. This
     * program must not decide without it. */
    if (p[AT_VERSION] != VERSION ||
        (p[AT_FLAGS] & ~(FLAG_NOT_KEPT | FLAG_BY_LEASE)) != 0 ||
        idem__get_u64(p + AT_ZERO) != 0) {
        return newer(ret_error);
    }
    if (idem__get_u32(p + AT_FIELDS_LEN) != body_len - AT_FIELDS) {
        return corrupt(ret_error, "its length does not match");
    }
    memset(&record, 0, sizeof(record));
    memcpy(record.id, id, IDEM_ID_LEN);
    read_fixed(p, &record);
    rc = read_fields(p + AT_FIELDS, body_len - AT_FIELDS, &record, ret_error);
    if (rc != 0) {
        return rc;
    }
    /* The sum only proves that the head is as it was written. The ranges protect the
     * rules from a faulty writer, and from anyone else who can write to the store. */
    fault = idem__record_fault(&record);
    if (fault != NULL) {
        return corrupt(ret_error, fault);
    }
    /* Set the output only after every check has passed. */
    *ret_record = record;
    return 0;
}
