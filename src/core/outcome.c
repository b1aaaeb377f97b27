/* Checks outcomes before they are recorded, and tells successes from failures
 * afterwards. */
#include "core/outcome.h"

#include "core/error.h"

#include <idem/http.h>
#include <idem/operator.h>
#include <idem/outcome.h>

enum {
    CONTENT_TYPE_MAX = 255
};

/* True if the front end's table of outcomes maps this ending to "complete". The first
 * line of the metadata then ends with that word, as in "exit 1 complete". */
static bool is_named(struct idem_slice meta)
{
    size_t len = sizeof(IDEM_META_COMPLETE) - 1;
    const char *end = meta.len > 0 ? memchr(meta.base, '\n', meta.len) : NULL;

    return end != NULL && (size_t)(end - (const char *)meta.base) > len &&
           memcmp(end - len, IDEM_META_COMPLETE, len) == 0;
}

/* True if the metadata starts with @word, as the first line does that `idem run`
 * writes. */
static bool is_line(struct idem_slice meta, const char *word)
{
    size_t len = strlen(word);

    return meta.len > len && memcmp(meta.base, word, len) == 0;
}

bool idem_outcome_failed(const struct idem_record *record)
{
    struct idem_slice meta = record->result.meta;
    struct idem_slice rest;
    int http;

    /* Only completed work can have a bad ending here: the status failed is a status of
     * its own. */
    if (record->status != IDEM_STATUS_COMPLETED || meta.len == 0 ||
        is_named(meta)) {
        return false;
    }
    if (is_line(meta, "exit ")) {
        return ((const char *)meta.base)[strlen("exit ")] != '0';
    }
    return is_line(meta, "signal ") ||
           (idem_http_head_read(meta, &http, &rest) == 0 && http >= 500);
}

bool idem_outcome_succeeded(const struct idem_record *record)
{
    struct idem_slice meta = record->result.meta;
    struct idem_slice rest;
    int http;

    if (record->status != IDEM_STATUS_COMPLETED ||
        idem_outcome_failed(record)) {
        return false;
    }
    return meta.len == 0 || is_named(meta) ||
           idem_http_head_read(meta, &http, &rest) != 0 || http < 300;
}

bool idem__is_end(enum idem_status status)
{
    return status == IDEM_STATUS_RETRY ||
           (status >= IDEM_STATUS_COMPLETED && status <= IDEM_STATUS_RELEASED);
}

int idem__outcome_check(const struct idem_outcome *outcome,
                        struct idem_error *error)
{
    const struct idem_result *result = &outcome->result;

    if (!idem__is_end(outcome->status)) {
        return idem__error(error, IDEM_EINVALID,
                           "status: completed, failed, unknown, released or "
                           "retry");
    }
    if (outcome->retry_after_ms < 0 ||
        outcome->retry_after_ms > IDEM_DURATION_MAX_MS) {
        return idem__error(error, IDEM_EINVALID, "retry after: 0 to %lld ms",
                           (long long)IDEM_DURATION_MAX_MS);
    }
    if (result->content_type.len > CONTENT_TYPE_MAX) {
        return idem__error(error, IDEM_EINVALID,
                           "content type: at most %d bytes", CONTENT_TYPE_MAX);
    }
    if (result->meta.len > IDEM_META_MAX) {
        return idem__error(error, IDEM_EINVALID, "meta: at most %d bytes",
                           IDEM_META_MAX);
    }
    return 0;
}

struct idem_outcome idem__outcome_bounded(const struct idem_outcome *outcome,
                                          size_t result_max)
{
    struct idem_outcome copy = *outcome;

    if (copy.text.len > IDEM_TEXT_MAX) {
        copy.text.len = IDEM_TEXT_MAX;
    }
    if (copy.result.not_kept || copy.result.bytes.len > result_max) {
        copy.result.not_kept = true;
        copy.result.bytes = idem_bytes(NULL, 0);
    }
    return copy;
}
