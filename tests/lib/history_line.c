/* Fields of a history's lines. */
#include "history_line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void line_add(struct line *line, const char *format, ...)
{
    size_t left = sizeof(line->text) - line->len;
    va_list args;

    va_start(args, format);
    line->len += (size_t)vsnprintf(line->text + line->len, left, format, args);
    va_end(args);
    if (line->len >= sizeof(line->text)) {
        abort();
    }
}

void line_ms(struct line *line, const char *name, int64_t ms)
{
    if (ms == IDEM_NEVER) {
        line_add(line, " %s=never", name);
    } else {
        line_add(line, " %s=%" PRId64, name, ms);
    }
}

static uint64_t hash(uint64_t hash, struct idem_slice s)
{
    const uint8_t *p = s.base;
    size_t i;

    hash = (hash ^ s.len) * 0x100000001b3ULL;
    for (i = 0; i < s.len; i++) {
        hash = (hash ^ p[i]) * 0x100000001b3ULL;
    }
    return hash;
}

void line_word(struct line *line, const char *name, struct idem_slice s)
{
    if (s.len > 0) {
        line_add(line, " %s=%" PRIx64, name, hash(1, s));
    }
}

void line_content(struct line *line, const struct idem_result *result)
{
    const struct idem_result *r = result;
    uint64_t all = hash(hash(hash(1, r->bytes), r->content_type), r->meta);

    if (r->bytes.len + r->content_type.len + r->meta.len > 0 || r->not_kept) {
        line_add(line, " content=%" PRIx64 "%s", all,
                 r->not_kept ? "-not-kept" : "");
    }
}

const char *line_policy(enum idem_on_expired_lease policy)
{
    return policy == IDEM_HOLD ? "hold" : "rerun";
}

void line_request(struct line *line, const struct idem_request *request)
{
    line_add(line, " policy=%s cap=%u", line_policy(request->on_expired_lease),
             request->attempts_max);
    line_ms(line, "lease", request->lease_ms);
    line_ms(line, "retention", request->retention_ms);
    line_ms(line, "expect", request->expect_ms);
    line_word(line, "print", request->fingerprint);
}

const char *line_verb(const struct idem_outcome *outcome)
{
    static const char *const names[] = {
        [IDEM_STATUS_COMPLETED] = "complete",
        [IDEM_STATUS_FAILED] = "fail",
        [IDEM_STATUS_UNKNOWN] = "unknown",
        [IDEM_STATUS_RELEASED] = "release",
        [IDEM_STATUS_RETRY] = "retry",
    };

    return names[outcome->status];
}

void line_outcome(struct line *line, const struct idem_outcome *outcome)
{
    line_content(line, &outcome->result);
    line_word(line, "text", outcome->text);
    if (outcome->failures_max != 0) {
        line_add(line, " budget=%u", outcome->failures_max);
    }
    if (outcome->retry_after_ms != 0) {
        line_ms(line, "pause", outcome->retry_after_ms);
    }
}

const char *line_answer(int code, const struct idem_attempt *attempt)
{
    switch (code) {
    case 0:
        return attempt != NULL ? idem_verdict_name(attempt->verdict) : "OK";
    case IDEM_ELOST:
        return "LOST";
    case IDEM_ENOTFOUND:
        return "NOTFOUND";
    case IDEM_EINVALID:
        return "INVALID"; /* Of a resolve; nothing else here is invalid. */
    case IDEM_EUNAVAILABLE:
    case IDEM_EFULL:
        return "NOTHING";
    default:
        return "?";
    }
}

static void show(struct line *line, const struct idem_record *record,
                 bool content)
{
    bool failed = record->status == IDEM_STATUS_FAILED;

    line_add(line, " fence=%" PRIu64, record->fence);
    if (record->fence == 0) {
        return; /* There is no record. */
    }
    line_add(line, " attempts=%u status=%s policy=%s", record->attempts,
             idem_status_name(idem_record_status(record)),
             line_policy(record->on_expired_lease));
    if (content && (failed || record->status == IDEM_STATUS_COMPLETED)) {
        line_content(line, &record->result);
        line_word(line, "text", failed ? record->error : idem_str(""));
    }
}

void line_shown(struct line *line, const struct idem_attempt *attempt,
                const struct idem_record *record)
{
    if (attempt == NULL) {
        if (record != NULL) {
            show(line, record, /* content= */ true);
        }
        return;
    }
    show(line, attempt->record,
         attempt->verdict == IDEM_REPLAY || attempt->verdict == IDEM_FAILED);
    if (attempt->verdict == IDEM_STARTED) {
        line_add(line, " takeover=%d", attempt->takeover);
    } else if (attempt->verdict == IDEM_BUSY) {
        line_ms(line, "left", attempt->lease_left_ms);
    }
}
