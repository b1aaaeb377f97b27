/* The stored form of an entry; its layout is drawn in <idem/journal.h>. */
#include "journal/entry.h"

#include "base/bytes.h"
#include "base/sha256.h"
#include "core/error.h"
#include "core/outcome.h"

#include <assert.h>
#include <stdio.h>

enum {
    AT_VERSION = 4,
    AT_STATUS = 5,
    AT_NOT_KEPT = 6,
    AT_ZERO = 7,
    AT_FENCE = 8,
    AT_NONCE = 16,
    AT_ID = 32,
    AT_LENS = 64,
    FIELDS = 7,
    AT_FIELDS = AT_LENS + 4 * FIELDS,

    VERSION = 1,
    CHECKSUM_LEN = 16,
};

static const uint8_t magic[4] = {'I', 'D', 'J', '1'};

/* The texts of @entry in the order of the layout. */
static void list_fields(struct idem__entry *entry,
                        struct idem_slice *ret_fields[FIELDS])
{
    ret_fields[0] = &entry->store_url;
    ret_fields[1] = &entry->scope;
    ret_fields[2] = &entry->key;
    ret_fields[3] = &entry->outcome.result.content_type;
    ret_fields[4] = &entry->outcome.result.meta;
    ret_fields[5] = &entry->outcome.text;
    ret_fields[6] = &entry->outcome.result.bytes;
}

int idem__entry_record_name(struct idem_slice store_url,
                            const uint8_t id[IDEM_ID_LEN],
                            char ret_name[IDEM__ENTRY_RECORD_LEN + 1])
{
    uint8_t digest[IDEM__SHA256_LEN];
    int rc = idem__sha256(&store_url, 1, digest);

    if (rc == 0) {
        (void)snprintf(ret_name, IDEM__ENTRY_RECORD_LEN + 1, "%08lx-%016llx-",
                       (unsigned long)idem__get_u32(digest),
                       (unsigned long long)idem__get_u64(id));
    }
    return rc;
}

/* The ranges that the layout and the store rely on. */
static const char *fault_of(const struct idem__entry *e)
{
    const struct idem_result *result = &e->outcome.result;

    if (!idem__is_end(e->outcome.status)) {
        return "its status does not exist";
    }
    if (e->fence == 0 || e->fence > INT64_MAX) {
        return "it does not belong to an attempt";
    }
    if (e->written_ms < 0) {
        return "its time is out of range";
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

/* Of all that is before it in a file. */
static int checksum(struct idem_slice before, uint8_t ret_sum[CHECKSUM_LEN])
{
    uint8_t digest[IDEM__SHA256_LEN];
    int rc = idem__sha256(&before, 1, digest);

    if (rc == 0) {
        memcpy(ret_sum, digest, CHECKSUM_LEN);
    }
    return rc;
}

int idem__entry_encode(const struct idem__entry *entry,
                       struct idem__buffer *file)
{
    struct idem__entry copy = *entry;
    struct idem_slice *fields[FIELDS];
    uint8_t head[AT_FIELDS] = {0};
    uint8_t tail[IDEM__ENTRY_TAIL_LEN];
    int rc;
    int i;

    assert(fault_of(entry) == NULL);
    memcpy(head, magic, sizeof(magic));
    head[AT_VERSION] = VERSION;
    head[AT_STATUS] = (uint8_t)entry->outcome.status;
    head[AT_NOT_KEPT] = entry->outcome.result.not_kept;
    idem__put_u64(head + AT_FENCE, entry->fence);
    memcpy(head + AT_NONCE, entry->nonce, sizeof(entry->nonce));
    memcpy(head + AT_ID, entry->id, sizeof(entry->id));
    list_fields(&copy, fields);
    for (i = 0; i < FIELDS; i++) {
        idem__put_u32(head + AT_LENS + 4 * i, (uint32_t)fields[i]->len);
    }
    idem__buffer_add(file, head, sizeof(head));
    for (i = 0; i < FIELDS; i++) {
        idem__buffer_add(file, fields[i]->base, fields[i]->len);
    }
    idem__put_u64(tail, (uint64_t)entry->written_ms);
    idem__buffer_add(file, tail, 8);
    if (file->failed) {
        return IDEM_ENOMEM;
    }
    rc = checksum(idem__buffer_slice(file), tail + 8);
    idem__buffer_add(file, tail + 8, CHECKSUM_LEN);
    return rc == 0 && file->failed ? IDEM_ENOMEM : rc;
}

static int damaged(struct idem_error *error, const char *what)
{
    return idem__error(error, IDEM_ECORRUPT, "the entry cannot be trusted: %s",
                       what);
}

/* True: the fields fill the file. Those before a fault are in @entry: a torn one
 * may still say what it was about. */
static bool read_fields(struct idem_slice file, struct idem__entry *entry)
{
    const uint8_t *p = file.base;
    size_t left = file.len - IDEM__ENTRY_TAIL_LEN - AT_FIELDS;
    const uint8_t *from = p + AT_FIELDS;
    struct idem_slice *fields[FIELDS];
    int i;

    list_fields(entry, fields);
    for (i = 0; i < FIELDS; i++) {
        size_t len = idem__get_u32(p + AT_LENS + 4 * i);

        if (len > left) {
            return false;
        }
        *fields[i] = idem_bytes(from, len);
        from += len;
        left -= len;
    }
    return left == 0;
}

/* A record is found by its id alone: it must be that of scope and key. */
static bool is_bound(const struct idem__entry *entry)
{
    uint8_t id[IDEM_ID_LEN];

    return idem_id(entry->scope, entry->key, id) == 0 &&
           memcmp(id, entry->id, sizeof(id)) == 0;
}

static int decode(struct idem_slice file, struct idem__entry *e,
                  struct idem_error *error)
{
    const uint8_t *p = file.base;
    uint8_t sum[CHECKSUM_LEN];
    bool whole;
    int rc;

    if (file.len < sizeof(magic) || memcmp(p, magic, sizeof(magic)) != 0) {
        return damaged(error, "it is not an entry");
    }
    if (file.len > AT_VERSION && p[AT_VERSION] > VERSION) {
        return idem__error(error, IDEM_ECONFIG,
                           "the entry was written by a newer version of idem: "
                           "use that version");
    }
    if (file.len < IDEM__ENTRY_LEN_MIN) {
        return damaged(error, "it is cut short");
    }
    e->outcome.status = (enum idem_status)p[AT_STATUS];
    e->outcome.result.not_kept = p[AT_NOT_KEPT] != 0;
    e->fence = idem__get_u64(p + AT_FENCE);
    memcpy(e->nonce, p + AT_NONCE, sizeof(e->nonce));
    memcpy(e->id, p + AT_ID, sizeof(e->id));
    e->written_ms = (int64_t)idem__get_u64(p + file.len - IDEM__ENTRY_TAIL_LEN);
    whole = read_fields(file, e);
    rc = checksum(idem_bytes(p, file.len - CHECKSUM_LEN), sum);
    if (rc != 0) {
        return idem__error_plain(error, rc);
    }
    if (memcmp(sum, p + file.len - CHECKSUM_LEN, CHECKSUM_LEN) != 0) {
        return damaged(error, "its checksum does not match");
    }
    if (!whole || p[AT_VERSION] != VERSION || p[AT_NOT_KEPT] > 1 ||
        p[AT_ZERO] != 0) {
        return damaged(error, "it breaks a rule of the layout");
    }
    if (fault_of(e) != NULL) {
        return damaged(error, fault_of(e));
    }
    return is_bound(e) ? 0 : damaged(error, "its id is not that of its key");
}

int idem__entry_decode(struct idem_slice file, struct idem__entry *ret_entry,
                       struct idem_error *ret_error)
{
    struct idem__entry names = {.fence = 0};
    int rc;

    memset(ret_entry, 0, sizeof(*ret_entry));
    rc = decode(file, ret_entry, ret_error);
    if (rc != 0) {
        if (ret_entry->scope.len <= IDEM_SCOPE_MAX &&
            ret_entry->key.len <= IDEM_KEY_MAX) {
            names.scope = ret_entry->scope;
            names.key = ret_entry->key;
        }
        *ret_entry = names;
    }
    return rc;
}
