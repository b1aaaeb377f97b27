/* The lines that history.h draws. */
#include "write.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool writer_open(struct writer *writer, const char *path, unsigned who,
                 bool copies)
{
    memset(writer, 0, sizeof(*writer));
    writer->who = who;
    writer->copies = copies;
    writer->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return writer->fd >= 0;
}

void writer_close(struct writer *writer)
{
    (void)close(writer->fd);
}

/* ---- Lines ---- */

__attribute__((format(printf, 2, 3))) static void add(struct writer *writer,
                                                      const char *format, ...)
{
    size_t left = sizeof(writer->line) - writer->len;
    va_list args;

    va_start(args, format);
    writer->len +=
        (size_t)vsnprintf(writer->line + writer->len, left, format, args);
    va_end(args);
    if (writer->len >= sizeof(writer->line)) {
        abort();
    }
}

/* Leases run on this clock too. */
static void add_now(struct writer *writer)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    add(writer, " %lld.%03ld",
        (long long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000,
        ts.tv_nsec / 1000 % 1000);
}

static void put(struct writer *writer)
{
    if (write(writer->fd, writer->line, writer->len) != (ssize_t)writer->len) {
        abort();
    }
    writer->len = 0;
}

/* Begins the line of a call; its time is the last thing before it is made. */
static struct call_id start(struct writer *writer, const char *key,
                            const char *verb)
{
    struct call_id id = {writer->who, ++writer->calls};

    add(writer, "call %u.%u", id.who, id.number);
    add_now(writer);
    add(writer, " %s %s", key, verb);
    return id;
}

static struct call_id finish(struct writer *writer, struct call_id id)
{
    add(writer, "\n");
    put(writer);
    return id;
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

static void add_ms(struct writer *writer, const char *name, int64_t ms)
{
    if (ms == IDEM_NEVER) {
        add(writer, " %s=never", name);
    } else {
        add(writer, " %s=%" PRId64, name, ms);
    }
}

static void add_word(struct writer *writer, const char *name,
                     struct idem_slice s)
{
    if (s.len > 0) {
        add(writer, " %s=%" PRIx64, name, hash(1, s));
    }
}

static void add_content(struct writer *writer, const struct idem_result *r)
{
    uint64_t all = hash(hash(hash(1, r->bytes), r->content_type), r->meta);

    if (r->bytes.len + r->content_type.len + r->meta.len > 0 || r->not_kept) {
        add(writer, " content=%" PRIx64 "%s", all,
            r->not_kept ? "-not-kept" : "");
    }
}

static void add_attempt(struct writer *writer, struct call_id attempt,
                        uint64_t fence)
{
    add(writer, " nonce=%u.%u fence=%" PRIu64, attempt.who, attempt.number,
        fence);
}

static const char *policy_name(enum idem_on_expired_lease policy)
{
    return policy == IDEM_HOLD ? "hold" : "rerun";
}

/* ---- Calls ---- */

static void add_request(struct writer *writer,
                        const struct idem_request *request)
{
    add(writer, " policy=%s cap=%u", policy_name(request->on_expired_lease),
        request->attempts_max);
    add_ms(writer, "lease", request->lease_ms);
    add_ms(writer, "retention", request->retention_ms);
    add_ms(writer, "expect", request->expect_ms);
    add_word(writer, "print", request->fingerprint);
    if (request->wait_ms > 0) {
        add(writer, " wait=1 run=%d",
            (request->flags & IDEM_WAIT_THEN_RUN) != 0);
    }
}

struct call_id write_begin(struct writer *writer, const char *key,
                           const struct idem_request *request)
{
    struct call_id id;

    if (writer->copies) {
        add(writer, "call %u.%u+", writer->who, writer->calls + 1);
        add_now(writer);
        add(writer, " %s begin nonce=%u.%u", key, writer->who,
            writer->calls + 1);
        add_request(writer, request);
        add(writer, "\n");
    }
    id = start(writer, key, "begin");
    add_request(writer, request);
    return finish(writer, id);
}

struct call_id write_end(struct writer *writer, const char *key,
                         struct call_id attempt, uint64_t fence,
                         const struct idem_outcome *outcome)
{
    static const char *const names[] = {
        [IDEM_STATUS_COMPLETED] = "complete",
        [IDEM_STATUS_FAILED] = "fail",
        [IDEM_STATUS_UNKNOWN] = "unknown",
        [IDEM_STATUS_RELEASED] = "release",
        [IDEM_STATUS_RETRY] = "retry",
    };
    struct call_id id = start(writer, key, names[outcome->status]);

    add_attempt(writer, attempt, fence);
    add_content(writer, &outcome->result);
    add_word(writer, "text", outcome->text);
    if (outcome->failures_max != 0) {
        add(writer, " budget=%u", outcome->failures_max);
    }
    if (outcome->retry_after_ms != 0) {
        add_ms(writer, "pause", outcome->retry_after_ms);
    }
    return finish(writer, id);
}

struct call_id write_renew(struct writer *writer, const char *key,
                           struct call_id attempt, uint64_t fence,
                           int64_t lease_ms)
{
    struct call_id id = start(writer, key, "renew");

    add_attempt(writer, attempt, fence);
    add_ms(writer, "lease", lease_ms);
    return finish(writer, id);
}

struct call_id write_expire(struct writer *writer, const char *key,
                            struct call_id attempt, uint64_t fence)
{
    struct call_id id = start(writer, key, "expire");

    add_attempt(writer, attempt, fence);
    return finish(writer, id);
}

struct call_id write_get(struct writer *writer, const char *key)
{
    return finish(writer, start(writer, key, "get"));
}

struct call_id write_resolve(struct writer *writer, const char *key,
                             uint64_t fence, const char *who,
                             const struct idem_outcome *outcome, bool force)
{
    struct call_id id = start(writer, key, "resolve");

    add(writer, " fence=%" PRIu64 " as=%s who=%s", fence,
        idem_status_name(outcome->status), who);
    add_content(writer, &outcome->result);
    add_word(writer, "text", outcome->text);
    if (force) {
        add(writer, " force=1");
    }
    return finish(writer, id);
}

struct call_id write_purge(struct writer *writer)
{
    return finish(writer, start(writer, "-", "purge"));
}

/* ---- Answers ---- */

static const char *answer_name(int code, const struct idem_attempt *attempt)
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

static void show(struct writer *writer, const struct idem_record *record,
                 bool content)
{
    add(writer, " fence=%" PRIu64, record->fence);
    if (record->fence == 0) {
        return; /* A record that is none. */
    }
    add(writer, " attempts=%u status=%s policy=%s", record->attempts,
        idem_status_name(idem_record_status(record)),
        policy_name(record->on_expired_lease));
    if (content && record->status == IDEM_STATUS_COMPLETED) {
        add_content(writer, &record->result);
    } else if (content && record->status == IDEM_STATUS_FAILED) {
        add_content(writer, &record->result);
        add_word(writer, "text", record->error);
    }
}

void write_answer(struct writer *writer, struct call_id id, int code,
                  const struct idem_attempt *attempt,
                  const struct idem_record *record)
{
    add(writer, "ret %u.%u", id.who, id.number);
    add_now(writer);
    add(writer, " %s", answer_name(code, attempt));
    if (code == 0 && attempt != NULL) {
        show(writer, attempt->record,
             attempt->verdict == IDEM_REPLAY ||
                 attempt->verdict == IDEM_FAILED);
    } else if (code == 0 && record != NULL) {
        show(writer, record, /* content= */ true);
    }
    if (code == 0 && attempt != NULL && attempt->verdict == IDEM_STARTED) {
        add(writer, " takeover=%d", attempt->takeover);
    }
    if (code == 0 && attempt != NULL && attempt->verdict == IDEM_BUSY) {
        add_ms(writer, "left", attempt->lease_left_ms);
    }
    add(writer, "\n");
    put(writer);
}
