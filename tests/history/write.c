/* The lines that history.h draws. */
#include "write.h"

#include <fcntl.h>
#include <inttypes.h>
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

/* Leases run on this clock too. */
static void add_now(struct writer *writer)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    line_add(&writer->line, " %lld.%03ld",
             (long long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000,
             ts.tv_nsec / 1000 % 1000);
}

static void put(struct writer *writer)
{
    const struct line *line = &writer->line;

    line_add(&writer->line, "\n");
    if (write(writer->fd, line->text, line->len) != (ssize_t)line->len) {
        abort();
    }
    writer->line.len = 0;
}

/* Begins the line of a call. Its time is read as late as possible before the call. */
static struct call_id start(struct writer *writer, const char *key,
                            const char *verb)
{
    struct call_id id = {writer->who, ++writer->calls};

    line_add(&writer->line, "call %u.%u", id.who, id.number);
    add_now(writer);
    line_add(&writer->line, " %s %s", key, verb);
    return id;
}

static struct call_id finish(struct writer *writer, struct call_id id)
{
    put(writer);
    return id;
}

static void add_attempt(struct writer *writer, struct call_id attempt,
                        uint64_t fence)
{
    line_add(&writer->line, " nonce=%u.%u fence=%" PRIu64, attempt.who,
             attempt.number, fence);
}

/* ---- Calls ---- */

static void add_request(struct writer *writer,
                        const struct idem_request *request)
{
    line_request(&writer->line, request);
    if (request->wait_ms > 0) {
        line_add(&writer->line, " wait=1 run=%d",
                 (request->flags & IDEM_WAIT_THEN_RUN) != 0);
    }
}

struct call_id write_begin(struct writer *writer, const char *key,
                           const struct idem_request *request)
{
    struct call_id id;

    if (writer->copies) {
        line_add(&writer->line, "call %u.%u+", writer->who, writer->calls + 1);
        add_now(writer);
        line_add(&writer->line, " %s begin nonce=%u.%u", key, writer->who,
                 writer->calls + 1);
        add_request(writer, request);
        put(writer);
    }
    id = start(writer, key, "begin");
    add_request(writer, request);
    return finish(writer, id);
}

struct call_id write_end(struct writer *writer, const char *key,
                         struct call_id attempt, uint64_t fence,
                         const struct idem_outcome *outcome)
{
    struct call_id id = start(writer, key, line_verb(outcome));

    add_attempt(writer, attempt, fence);
    line_outcome(&writer->line, outcome);
    return finish(writer, id);
}

struct call_id write_renew(struct writer *writer, const char *key,
                           struct call_id attempt, uint64_t fence,
                           int64_t lease_ms)
{
    struct call_id id = start(writer, key, "renew");

    add_attempt(writer, attempt, fence);
    line_ms(&writer->line, "lease", lease_ms);
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

    line_add(&writer->line, " fence=%" PRIu64 " as=%s who=%s", fence,
             idem_status_name(outcome->status), who);
    line_content(&writer->line, &outcome->result);
    line_word(&writer->line, "text", outcome->text);
    if (force) {
        line_add(&writer->line, " force=1");
    }
    return finish(writer, id);
}

struct call_id write_purge(struct writer *writer)
{
    return finish(writer, start(writer, "-", "purge"));
}

void write_answer(struct writer *writer, struct call_id id, int code,
                  const struct idem_attempt *attempt,
                  const struct idem_record *record)
{
    line_add(&writer->line, "ret %u.%u", id.who, id.number);
    add_now(writer);
    line_add(&writer->line, " %s", line_answer(code, attempt));
    if (code == 0) {
        line_shown(&writer->line, attempt, record);
    }
    put(writer);
}
