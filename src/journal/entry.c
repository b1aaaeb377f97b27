/* The stored form of an entry; its layout is drawn in <idem/journal.h>. */
#include "journal/entry.h"

#include "base/bytes.h"
#include "base/sha256.h"
#include "core/error.h"
#include "core/outcome.h"

#include <assert.h>

enum {
    AT_VERSION = 4,
    AT_STATUS = 5,
    AT_FLAGS = 6,
    AT_ZERO = 7,
    AT_FENCE = 8,
    AT_NONCE = 16,
    AT_ID = 32,
    AT_RESULT_LEN = 64,
    AT_FIELDS_LEN = 72,
    AT_ZERO_TOO = 76,
    AT_FIELDS = 80,
};

enum {
    VERSION = 1,
    FLAG_NOT_KEPT = 1,
    FLAG_RETRY = 2, /* Of that status, which an older program does not know. By
                       the flag it takes the entry for a newer one, not for a
                       damaged one. */
    FIELD_HEAD_LEN = 5,
    CHECKSUM_LEN = 16,
};

enum tag {
    TAG_STORE_URL = 1,
    TAG_SCOPE,
    TAG_KEY,
    TAG_CONTENT_TYPE,
    TAG_META,
    TAG_TEXT,
    TAG_KNOWN_END,
    TAG_MUST_KNOW = 128,
};

static const uint8_t magic[4] = {'I', 'D', 'J', '1'};

/* ---- Names ---- */

static void put_hex(char *p, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    size_t i;

    for (i = 0; i < len; i++) {
        *p++ = digits[bytes[i] >> 4];
        *p++ = digits[bytes[i] & 15];
    }
    *p = '\0';
}

int idem__entry_store_name(struct idem_slice store_url,
                           char ret_name[IDEM__ENTRY_STORE_LEN + 1])
{
    uint8_t digest[IDEM__SHA256_LEN];
    int rc = idem__sha256(&store_url, 1, digest);

    if (rc == 0) {
        put_hex(ret_name, digest, IDEM__ENTRY_STORE_LEN / 2);
    }
    return rc;
}

void idem__entry_id_name(const uint8_t id[IDEM_ID_LEN],
                         char ret_name[IDEM__ENTRY_ID_LEN + 1])
{
    put_hex(ret_name, id, IDEM__ENTRY_ID_LEN / 2);
}

/* A program that does not know of retries finds files by the statuses that it
 * knows, and then says that this one is newer. */
static enum idem_status named_status(enum idem_status status)
{
    return status == IDEM_STATUS_RETRY ? IDEM_STATUS_UNKNOWN : status;
}

/* @digest: D of the layout. */
static int make_name(const struct idem__entry *entry,
                     const uint8_t digest[IDEM__SHA256_LEN],
                     char name[IDEM__ENTRY_NAME_LEN + 1])
{
    int rc = idem__entry_store_name(entry->store_url, name);
    char *p = name + IDEM__ENTRY_STORE_LEN;

    if (rc != 0) {
        return rc;
    }
    *p++ = '-';
    idem__entry_id_name(entry->id, p);
    p += IDEM__ENTRY_ID_LEN;
    *p++ = '-';
    *p++ = (char)('0' + (int)named_status(entry->outcome.status));
    *p++ = '-';
    put_hex(p, digest, 8);
    assert(strlen(name) == IDEM__ENTRY_NAME_LEN);
    return 0;
}

/* The tail, but for the time in it. */
static int checksum(const uint8_t digest[IDEM__SHA256_LEN], const uint8_t *time,
                    uint8_t ret_sum[CHECKSUM_LEN])
{
    struct idem_slice parts[2] = {{digest, IDEM__SHA256_LEN}, {time, 8}};
    uint8_t sum[IDEM__SHA256_LEN];
    int rc = idem__sha256(parts, 2, sum);

    if (rc == 0) {
        memcpy(ret_sum, sum, CHECKSUM_LEN);
    }
    return rc;
}

/* ---- Encoding ---- */

static uint8_t *put_field(uint8_t *p, enum tag tag, struct idem_slice s)
{
    if (s.len == 0) {
        return p;
    }
    p[0] = (uint8_t)tag;
    idem__put_u32(p + 1, (uint32_t)s.len);
    memcpy(p + FIELD_HEAD_LEN, s.base, s.len);
    return p + FIELD_HEAD_LEN + s.len;
}

static uint8_t flags_of(const struct idem_outcome *outcome)
{
    return (uint8_t)((outcome->result.not_kept ? FLAG_NOT_KEPT : 0) |
                     (outcome->status == IDEM_STATUS_RETRY ? FLAG_RETRY : 0));
}

static size_t put_head(const struct idem__entry *entry, uint8_t *head)
{
    const struct idem_result *result = &entry->outcome.result;
    uint8_t *p = head + AT_FIELDS;

    memset(head, 0, AT_FIELDS);
    memcpy(head, magic, sizeof(magic));
    head[AT_VERSION] = VERSION;
    head[AT_STATUS] = (uint8_t)entry->outcome.status;
    head[AT_FLAGS] = flags_of(&entry->outcome);
    idem__put_u64(head + AT_FENCE, entry->fence);
    memcpy(head + AT_NONCE, entry->nonce, sizeof(entry->nonce));
    memcpy(head + AT_ID, entry->id, sizeof(entry->id));
    idem__put_u64(head + AT_RESULT_LEN, result->bytes.len);
    p = put_field(p, TAG_STORE_URL, entry->store_url);
    p = put_field(p, TAG_SCOPE, entry->scope);
    p = put_field(p, TAG_KEY, entry->key);
    p = put_field(p, TAG_CONTENT_TYPE, result->content_type);
    p = put_field(p, TAG_META, result->meta);
    p = put_field(p, TAG_TEXT, entry->outcome.text);
    idem__put_u32(head + AT_FIELDS_LEN, (uint32_t)(p - head - AT_FIELDS));
    return (size_t)(p - head);
}

/* The ranges that the layout and the store rely on. */
static const char *fault_of(const struct idem__entry *e)
{
    const struct idem_result *result = &e->outcome.result;

    if (!idem__is_end(e->outcome.status)) {
        return "its status is none that exists";
    }
    if (e->fence == 0 || e->fence > INT64_MAX) {
        return "it is of no attempt";
    }
    if (e->store_url.len == 0 || e->store_url.len > IDEM_STORE_URL_MAX ||
        e->key.len == 0 || e->key.len > IDEM_KEY_MAX ||
        e->scope.len > IDEM_SCOPE_MAX) {
        return "its store or key is missing or too long";
    }
    if (result->content_type.len > 255 || result->meta.len > IDEM_META_MAX ||
        e->outcome.text.len > IDEM_TEXT_MAX ||
        result->bytes.len > IDEM_RESULT_MAX) {
        return "a field is too long";
    }
    if (result->not_kept && result->bytes.len > 0) {
        return "it is a tombstone with a result";
    }
    return NULL;
}

int idem__entry_encode(const struct idem__entry *entry,
                       struct idem__entry_file *ret_file)
{
    struct idem__entry_file *f = ret_file;
    uint8_t digest[IDEM__SHA256_LEN];
    struct idem_slice parts[2];
    int rc;

    assert(fault_of(entry) == NULL);
    f->head_len = put_head(entry, f->head);
    f->result = entry->outcome.result.bytes;
    parts[0] = idem_bytes(f->head, f->head_len);
    parts[1] = f->result;
    rc = idem__sha256(parts, 2, digest);
    if (rc == 0) {
        idem__put_u64(f->tail, (uint64_t)entry->written_ms);
        rc = checksum(digest, f->tail, f->tail + 8);
    }
    return rc == 0 ? make_name(entry, digest, f->name) : rc;
}

/* ---- Decoding ---- */

static int damaged(struct idem_error *error, const char *what)
{
    return idem__error(error, IDEM_ECORRUPT, "the entry cannot be trusted: %s",
                       what);
}

static int newer(struct idem_error *error)
{
    return idem__error(error, IDEM_ECONFIG,
                       "the entry was written by a newer version of idem: use "
                       "that version");
}

static struct idem_slice *place_of(struct idem__entry *entry, unsigned tag)
{
    switch (tag) {
    case TAG_STORE_URL:
        return &entry->store_url;
    case TAG_SCOPE:
        return &entry->scope;
    case TAG_KEY:
        return &entry->key;
    case TAG_CONTENT_TYPE:
        return &entry->outcome.result.content_type;
    case TAG_META:
        return &entry->outcome.result.meta;
    case TAG_TEXT:
        return &entry->outcome.text;
    default:
        return NULL;
    }
}

/* 0, IDEM_ECORRUPT, or IDEM_ECONFIG for a tag that must be known. The part
 * before a fault is in @entry. */
static int read_fields(const uint8_t *p, size_t len, struct idem__entry *entry)
{
    unsigned last = 0;

    while (len > 0) {
        struct idem_slice *place;
        size_t n;

        if (len < FIELD_HEAD_LEN ||
            idem__get_u32(p + 1) > len - FIELD_HEAD_LEN || p[0] <= last) {
            return IDEM_ECORRUPT;
        }
        if (p[0] >= TAG_MUST_KNOW) {
            return IDEM_ECONFIG;
        }
        n = idem__get_u32(p + 1);
        place = place_of(entry, p[0]);
        if (place != NULL) {
            *place = idem_bytes(p + FIELD_HEAD_LEN, n);
        }
        last = p[0];
        p += FIELD_HEAD_LEN + n;
        len -= FIELD_HEAD_LEN + n;
    }
    return 0;
}

static int read_head(struct idem_slice file, struct idem__entry *entry)
{
    const uint8_t *p = file.base;
    size_t body_len = file.len - IDEM__ENTRY_TAIL_LEN;
    size_t fields_len = idem__get_u32(p + AT_FIELDS_LEN);
    uint64_t result_len = idem__get_u64(p + AT_RESULT_LEN);
    uint64_t written = idem__get_u64(p + body_len);
    size_t rest;

    entry->outcome.status = (enum idem_status)p[AT_STATUS];
    entry->outcome.result.not_kept = (p[AT_FLAGS] & FLAG_NOT_KEPT) != 0;
    entry->fence = idem__get_u64(p + AT_FENCE);
    memcpy(entry->nonce, p + AT_NONCE, sizeof(entry->nonce));
    memcpy(entry->id, p + AT_ID, sizeof(entry->id));
    entry->written_ms = written > INT64_MAX ? 0 : (int64_t)written;
    if (fields_len > body_len - AT_FIELDS) {
        /* The rest of a torn one may still say what it was about. */
        (void)read_fields(p + AT_FIELDS, body_len - AT_FIELDS, entry);
        return IDEM_ECORRUPT;
    }
    rest = body_len - AT_FIELDS - fields_len;
    entry->outcome.result.bytes = idem_bytes(p + body_len - rest, rest);
    if (rest != result_len) {
        (void)read_fields(p + AT_FIELDS, fields_len, entry);
        return IDEM_ECORRUPT;
    }
    return read_fields(p + AT_FIELDS, fields_len, entry);
}

/* Everything before the tail under its digest, and that under the tail. 0,
 * IDEM_ECORRUPT or IDEM_ENOMEM. */
static int check_sum(struct idem_slice file,
                     uint8_t ret_digest[IDEM__SHA256_LEN])
{
    size_t body_len = file.len - IDEM__ENTRY_TAIL_LEN;
    const uint8_t *tail = (const uint8_t *)file.base + body_len;
    struct idem_slice body = {file.base, body_len};
    uint8_t sum[CHECKSUM_LEN];
    int rc = idem__sha256(&body, 1, ret_digest);

    if (rc == 0) {
        rc = checksum(ret_digest, tail, sum);
    }
    if (rc == 0 && memcmp(sum, tail + 8, CHECKSUM_LEN) != 0) {
        rc = IDEM_ECORRUPT;
    }
    return rc;
}

/* A record is found by its id alone: it must be that of scope and key. */
static bool is_bound(const struct idem__entry *entry)
{
    uint8_t id[IDEM_ID_LEN];

    return idem_id(entry->scope, entry->key, id) == 0 &&
           memcmp(id, entry->id, sizeof(id)) == 0;
}

/* The rest of @e when it is not to be trusted. */
static void only_names(struct idem__entry *e)
{
    struct idem_slice scope = e->scope;
    struct idem_slice key = e->key;

    memset(e, 0, sizeof(*e));
    if (scope.len <= IDEM_SCOPE_MAX && key.len <= IDEM_KEY_MAX) {
        e->scope = scope;
        e->key = key;
    }
}

static int decode(struct idem_slice file, struct idem__entry *e,
                  char name[IDEM__ENTRY_NAME_LEN + 1], struct idem_error *error)
{
    const uint8_t *p = file.base;
    uint8_t digest[IDEM__SHA256_LEN];
    int fields;
    int rc;

    if (file.len < sizeof(magic) || memcmp(p, magic, sizeof(magic)) != 0) {
        return damaged(error, "it is none");
    }
    if (file.len > AT_VERSION && p[AT_VERSION] > VERSION) {
        return newer(error);
    }
    if (file.len < IDEM__ENTRY_HEAD_MIN + IDEM__ENTRY_TAIL_LEN) {
        return damaged(error, "it is cut short");
    }
    fields = read_head(file, e);
    rc = check_sum(file, digest);
    if (rc == IDEM_ECORRUPT) {
        return damaged(error, "its checksum does not match");
    }
    if (rc != 0) {
        return idem__error_plain(error, rc);
    }
    if (fields == IDEM_ECONFIG ||
        (p[AT_FLAGS] & ~(FLAG_NOT_KEPT | FLAG_RETRY)) != 0 || p[AT_ZERO] != 0 ||
        idem__get_u32(p + AT_ZERO_TOO) != 0) {
        return newer(error);
    }
    if (fields != 0 || p[AT_VERSION] != VERSION ||
        p[AT_FLAGS] != flags_of(&e->outcome)) {
        return damaged(error, "it breaks a rule of the layout");
    }
    if (fault_of(e) != NULL) {
        return damaged(error, fault_of(e));
    }
    if (!is_bound(e)) {
        return damaged(error, "its id is not that of its key");
    }
    rc = make_name(e, digest, name);
    return rc == 0 ? 0 : idem__error_plain(error, rc);
}

int idem__entry_decode(struct idem_slice file, struct idem__entry *ret_entry,
                       char ret_name[IDEM__ENTRY_NAME_LEN + 1],
                       struct idem_error *ret_error)
{
    int rc;

    memset(ret_entry, 0, sizeof(*ret_entry));
    rc = decode(file, ret_entry, ret_name, ret_error);
    if (rc != 0) {
        only_names(ret_entry);
    }
    return rc;
}
