/* The stored form of an entry; its layout is drawn in <idem/journal.h>. */
#include "journal/journal.h"

#include "base/hash.h"
#include "core/error.h"
#include "core/identity.h"
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
    AT_FAILURES_MAX = AT_LENS + 4 * FIELDS,
    AT_RETRY_AFTER = AT_FAILURES_MAX + 4,
    AT_FIELDS = AT_RETRY_AFTER + 8,

    VERSION = 1,
    CHECKSUM_LEN = 16,
};

static const uint8_t magic[4] = {'I', 'D', 'J', '1'};

struct field {
    struct idem_slice *text;
    size_t min;
    size_t max;
};

/* The texts of @entry in the order of the layout, with the lengths that a store
 * relies on. */
static void list_fields(struct idem_journal_info *entry,
                        struct field ret_fields[FIELDS])
{
    struct idem_result *result = &entry->outcome.result;
    const struct field fields[FIELDS] = {
        {&entry->store_url, 1, IDEM_STORE_URL_MAX},
        {&entry->scope, 0, IDEM_SCOPE_MAX},
        {&entry->key, 1, IDEM_KEY_MAX},
        {&result->content_type, 0, 255},
        {&result->meta, 0, IDEM_META_MAX},
        {&entry->outcome.text, 0, IDEM_TEXT_MAX},
        {&result->bytes, 0, IDEM_RESULT_MAX},
    };

    memcpy(ret_fields, fields, sizeof(fields));
}

int idem__entry_record_name(struct idem_slice store_url,
                            const uint8_t id[IDEM_ID_LEN],
                            char ret_name[IDEM__ENTRY_RECORD_LEN + 1],
                            struct idem_error *error)
{
    uint8_t digest[IDEM__SHA256_LEN];

    if (idem__sha256(&store_url, 1, digest) != 0) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    (void)snprintf(ret_name, IDEM__ENTRY_RECORD_LEN + 1, "%08lx-%016llx-",
                   (unsigned long)idem__get_u32(digest),
                   (unsigned long long)idem__get_u64(id));
    return 0;
}

/* The other ranges that the layout and the store rely on. */
static const char *fault_of(const struct idem_journal_info *e)
{
    if (!idem__is_end(e->outcome.status)) {
        return "its status is invalid";
    }
    if (e->fence == 0 || e->fence > INT64_MAX) {
        return "it does not belong to an attempt";
    }
    if (e->written_ms < 0 || e->outcome.retry_after_ms < 0 ||
        e->outcome.retry_after_ms > IDEM_DURATION_MAX_MS) {
        return "a time is out of range";
    }
    return e->outcome.result.not_kept && e->outcome.result.bytes.len > 0
               ? "it is a tombstone with a result"
               : NULL;
}

int idem__entry_encode(const struct idem_journal_info *entry,
                       struct idem__buffer *file)
{
    struct idem_journal_info copy = *entry;
    struct field fields[FIELDS];
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
        idem__put_u32(head + AT_LENS + 4 * i, (uint32_t)fields[i].text->len);
    }
    idem__put_u32(head + AT_FAILURES_MAX, entry->outcome.failures_max);
    idem__put_u64(head + AT_RETRY_AFTER,
                  (uint64_t)entry->outcome.retry_after_ms);
    idem__buffer_add(file, head, sizeof(head));
    for (i = 0; i < FIELDS; i++) {
        idem__buffer_add(file, fields[i].text->base, fields[i].text->len);
    }
    idem__put_u64(tail, (uint64_t)entry->written_ms);
    idem__buffer_add(file, tail, 8);
    if (file->failed) {
        return IDEM_ENOMEM;
    }
    rc = idem__body_digest(idem__buffer_slice(file), tail + 8);
    idem__buffer_add(file, tail + 8, CHECKSUM_LEN);
    return rc == 0 && file->failed ? IDEM_ENOMEM : rc;
}

static int damaged(struct idem_error *error, const char *what)
{
    return idem__error(error, IDEM_ECORRUPT, "the entry cannot be trusted: %s",
                       what);
}

/* The fault of the fields, which must fill the file, or NULL. Those before a
 * fault are in @entry: a torn one may still say what it was about. */
static const char *read_fields(struct idem_slice file,
                               struct idem_journal_info *entry)
{
    const uint8_t *lens = (const uint8_t *)file.base + AT_LENS;
    const uint8_t *from = (const uint8_t *)file.base + AT_FIELDS;
    size_t left = file.len - IDEM__ENTRY_TAIL_LEN - AT_FIELDS;
    struct field fields[FIELDS];
    int i;

    list_fields(entry, fields);
    for (i = 0; i < FIELDS; i++) {
        size_t len = idem__get_u32(lens + 4 * i);

        if (len > left) {
            return "it breaks a rule of the layout";
        }
        if (len < fields[i].min || len > fields[i].max) {
            return "a field is missing or too long";
        }
        *fields[i].text = idem_bytes(from, len);
        from += len;
        left -= len;
    }
    return left == 0 ? NULL : "it breaks a rule of the layout";
}

/* A record is found by its id alone: it must be that of scope and key. */
static bool is_bound(const struct idem_journal_info *entry)
{
    uint8_t id[IDEM_ID_LEN];

    return idem_id(entry->scope, entry->key, id) == 0 &&
           memcmp(id, entry->id, sizeof(id)) == 0;
}

static int decode(struct idem_slice file, struct idem_journal_info *e,
                  struct idem_error *error)
{
    const uint8_t *p = file.base;
    uint8_t sum[CHECKSUM_LEN];
    const char *fault;
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
    e->outcome.failures_max = idem__get_u32(p + AT_FAILURES_MAX);
    e->outcome.retry_after_ms = (int64_t)idem__get_u64(p + AT_RETRY_AFTER);
    e->written_ms = (int64_t)idem__get_u64(p + file.len - IDEM__ENTRY_TAIL_LEN);
    fault = read_fields(file, e);
    rc = idem__body_digest(idem_bytes(p, file.len - CHECKSUM_LEN), sum);
    if (rc != 0) {
        return idem__error_plain(error, rc);
    }
    if (memcmp(sum, p + file.len - CHECKSUM_LEN, CHECKSUM_LEN) != 0) {
        fault = "its checksum does not match";
    } else if (p[AT_VERSION] != VERSION || p[AT_NOT_KEPT] > 1 ||
               p[AT_ZERO] != 0) {
        fault = "it breaks a rule of the layout";
    } else if (fault == NULL) {
        fault = fault_of(e);
    }
    if (fault == NULL && !is_bound(e)) {
        fault = "its id is not that of its key";
    }
    return fault == NULL ? 0 : damaged(error, fault);
}

int idem__entry_decode(struct idem_slice file,
                       struct idem_journal_info *ret_entry,
                       struct idem_error *ret_error)
{
    struct idem_journal_info read = {.name = ret_entry->name,
                                     .state = ret_entry->state,
                                     .len = file.len};
    int rc;

    *ret_entry = read;
    rc = decode(file, &read, ret_error);
    if (rc == 0) {
        *ret_entry = read;
    } else {
        ret_entry->scope = read.scope;
        ret_entry->key = read.key;
    }
    return rc;
}
