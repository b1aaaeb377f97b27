/* Encodes and decodes the file of a journal entry; <idem/journal.h> draws its
 * layout. */
#include "journal/journal.h"

#include "base/hash.h"
#include "base/host.h"
#include "core/error.h"
#include "core/identity.h"
#include "core/outcome.h"

#include <assert.h>
#include <stdio.h>

enum {
    AT_VERSION = 4,
    AT_NOT_KEPT = 6,
    AT_ZERO = 7,
    AT_FENCE = 8,
    AT_NONCE = 16,
    AT_RETRY_AFTER = 32,
    AT_FAILURES_MAX = 40,
    AT_LENS = 44,
    FIELDS = 7,
    AT_FIELDS = AT_LENS + 4 * FIELDS,

    VERSION = 1,
    CHECKSUM_LEN = 16,
};

static const uint8_t magic[4] = {'I', 'D', 'J', '1'};

/* The fields of @e in the order of the layout. */
#define FIELDS_OF(e)                                                           \
    {                                                                          \
        &(e)->store_url, &(e)->scope, &(e)->key,                               \
            &(e)->outcome.result.content_type, &(e)->outcome.result.meta,      \
            &(e)->outcome.text, &(e)->outcome.result.bytes                     \
    }

int idem__entry_damaged(struct idem_error *error, const char *what)
{
    return idem__error(error, IDEM_ECORRUPT, "the entry cannot be trusted: %s",
                       what);
}

int idem__entry_prefix(struct idem_slice store_url, const uint8_t *id,
                       char ret_prefix[IDEM__ENTRY_PREFIX_LEN + 1],
                       struct idem_error *error)
{
    uint8_t digest[IDEM__SHA256_LEN];
    int len;

    if (idem__sha256(&store_url, 1, digest) != 0) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    len = snprintf(ret_prefix, IDEM__ENTRY_PREFIX_LEN + 1, "%08lx-",
                   (unsigned long)idem__get_u32(digest));
    if (id != NULL) {
        (void)snprintf(ret_prefix + len, IDEM__ENTRY_PREFIX_LEN + 1 - len,
                       "%016llx-", (unsigned long long)idem__get_u64(id));
    }
    return 0;
}

void idem__entry_number(char name[IDEM__ENTRY_NAME_MAX + 1], int number)
{
    (void)snprintf(name + IDEM__ENTRY_PREFIX_LEN,
                   IDEM__ENTRY_NAME_MAX + 1 - IDEM__ENTRY_PREFIX_LEN, "%d.idj",
                   number);
}

/* Returns when the work of @outcome ended, by the wall clock: now, less the time since
 * then on the boot clock, which nobody can set. Returns 0 if the clocks cannot be
 * read. */
static int64_t known_ms(const struct idem_outcome *outcome)
{
    int64_t ended_ms = outcome->ended_boot_ms;
    struct idem_clock_reading now;
    int64_t ago_ms = 0;

    if (idem__host_clock(/* ctx= */ NULL, &now) != 0 || now.wall_ms < 0) {
        return 0;
    }
    if (ended_ms != 0 && ended_ms > -IDEM_DURATION_MAX_MS) {
        ago_ms = now.boot_ms - ended_ms;
    }
    return ago_ms > 0 && ago_ms < now.wall_ms ? now.wall_ms - ago_ms
                                              : now.wall_ms;
}

void idem__entry_fill(const char *store_url, const struct idem_attempt *attempt,
                      const struct idem_outcome *outcome, size_t result_max,
                      struct idem_journal_info *ret_entry)
{
    const struct idem_record *record = attempt->record;

    *ret_entry = (struct idem_journal_info){
        .store_url = idem_str(store_url),
        .scope = record->scope,
        .key = record->key,
        .fence = attempt->fence,
        .outcome = idem__outcome_bounded(outcome, result_max),
        .written_ms = known_ms(outcome),
    };
    memcpy(ret_entry->id, record->id, sizeof(ret_entry->id));
    memcpy(ret_entry->nonce, record->nonce, sizeof(ret_entry->nonce));
}

/* True if @e is in the ranges that the rest of the library relies on. */
static bool is_in_range(const struct idem_journal_info *e)
{
    const struct idem_result *result = &e->outcome.result;

    return e->store_url.len > 0 && e->store_url.len <= IDEM_STORE_URL_MAX &&
           e->fence > 0 && e->fence <= INT64_MAX && e->written_ms >= 0 &&
           idem__outcome_check(&e->outcome, NULL) == 0 &&
           (!result->not_kept || result->bytes.len == 0) &&
           result->bytes.len <= IDEM_RESULT_MAX &&
           e->outcome.text.len <= IDEM_TEXT_MAX;
}

int idem__entry_encode(const struct idem_journal_info *entry,
                       struct idem__buffer *file)
{
    const struct idem_slice *const fields[FIELDS] = FIELDS_OF(entry);
    uint8_t head[AT_FIELDS] = {0};
    uint8_t tail[IDEM__ENTRY_TAIL_LEN];
    int rc;
    int i;

    assert(is_in_range(entry));
    memcpy(head, magic, sizeof(magic));
    head[AT_VERSION] = VERSION;
    head[IDEM__ENTRY_AT_STATUS] = (uint8_t)entry->outcome.status;
    head[AT_NOT_KEPT] = entry->outcome.result.not_kept;
    idem__put_u64(head + AT_FENCE, entry->fence);
    memcpy(head + AT_NONCE, entry->nonce, sizeof(entry->nonce));
    idem__put_u64(head + AT_RETRY_AFTER,
                  (uint64_t)entry->outcome.retry_after_ms);
    idem__put_u32(head + AT_FAILURES_MAX, entry->outcome.failures_max);
    for (i = 0; i < FIELDS; i++) {
        idem__put_u32(head + AT_LENS + 4 * i, (uint32_t)fields[i]->len);
    }
    idem__buffer_add(file, head, sizeof(head));
    for (i = 0; i < FIELDS; i++) {
        idem__buffer_add(file, fields[i]->base, fields[i]->len);
    }
    idem__put_u64(tail, (uint64_t)entry->written_ms);
    idem__buffer_add(file, tail, 8);
    rc = idem__body_digest(idem__buffer_slice(file), tail + 8);
    idem__buffer_add(file, tail + 8, CHECKSUM_LEN);
    return file->failed ? IDEM_ENOMEM : rc;
}

/* Reads all fields of a file that is long enough for head and tail. Returns false if
 * the lengths do not add up; @e then has the fields before the one that does not
 * fit. */
static bool read_all(struct idem_slice file, struct idem_journal_info *e)
{
    struct idem_slice *const fields[FIELDS] = FIELDS_OF(e);
    const uint8_t *p = file.base;
    const uint8_t *from = p + AT_FIELDS;
    size_t left = file.len - AT_FIELDS - IDEM__ENTRY_TAIL_LEN;
    int i;

    e->outcome.status = (enum idem_status)p[IDEM__ENTRY_AT_STATUS];
    e->outcome.result.not_kept = p[AT_NOT_KEPT] != 0;
    e->fence = idem__get_u64(p + AT_FENCE);
    memcpy(e->nonce, p + AT_NONCE, sizeof(e->nonce));
    e->written_ms = (int64_t)idem__get_u64(p + file.len - IDEM__ENTRY_TAIL_LEN);
    e->outcome.retry_after_ms = (int64_t)idem__get_u64(p + AT_RETRY_AFTER);
    e->outcome.failures_max = idem__get_u32(p + AT_FAILURES_MAX);
    for (i = 0; i < FIELDS; i++) {
        size_t len = idem__get_u32(p + AT_LENS + 4 * i);

        if (len > left) {
            return false;
        }
        *fields[i] = idem_bytes(from, len);
        from += len;
        left -= len;
    }
    return left == 0 && p[AT_NOT_KEPT] <= 1 && p[AT_ZERO] == 0;
}

int idem__entry_decode(struct idem_slice file,
                       struct idem_journal_info *ret_entry,
                       struct idem_error *ret_error)
{
    struct idem_journal_info e = {.name = ret_entry->name,
                                  .state = ret_entry->state,
                                  .len = file.len};
    const uint8_t *p = file.base;
    char prefix[IDEM__ENTRY_PREFIX_LEN + 1];
    uint8_t sum[CHECKSUM_LEN];
    const char *fault;
    bool is_whole;
    int rc;

    *ret_entry = e;
    if (file.len <= AT_VERSION || memcmp(p, magic, sizeof(magic)) != 0) {
        return idem__entry_damaged(ret_error, "it is not an entry");
    }
    if (p[AT_VERSION] > VERSION) {
        return idem__error(ret_error, IDEM_ECONFIG,
                           "the entry was written by a newer version of idem: "
                           "use that version");
    }
    if (file.len < AT_FIELDS + IDEM__ENTRY_TAIL_LEN) {
        return idem__entry_damaged(ret_error, "it is cut short");
    }
    rc = idem__body_digest(idem_bytes(p, file.len - CHECKSUM_LEN), sum);
    if (rc != 0) {
        return idem__error_plain(ret_error, rc);
    }
    is_whole = read_all(file, &e) && p[AT_VERSION] == VERSION;
    /* Report scope and key even of a torn entry, so that a person learns which
     * operation it is about. */
    if (idem_id(e.scope, e.key, e.id) == 0) {
        ret_entry->scope = e.scope;
        ret_entry->key = e.key;
    }
    rc = idem__entry_prefix(e.store_url, e.id, prefix, ret_error);
    if (rc != 0) {
        return rc;
    }
    fault = memcmp(sum, p + file.len - CHECKSUM_LEN, sizeof(sum)) != 0
                ? "its checksum does not match"
            : !is_whole || ret_entry->key.len == 0
                ? "it breaks a rule of the layout"
            : !is_in_range(&e) ? "it is out of range"
            : e.name != NULL && strncmp(e.name, prefix, strlen(prefix)) != 0
                ? "its name does not match its content"
                : NULL;
    if (fault != NULL) {
        return idem__entry_damaged(ret_error, fault);
    }
    *ret_entry = e;
    return 0;
}
