/* Writes a history of calls of the blocking API while they are made. */
#ifndef HISTORY_WRITE_H
#define HISTORY_WRITE_H

#include "../lib/history_line.h"

#include <stdio.h>

/* One writer's part. Each line is in the file before the call is made, so that the calls of
 * a process that is killed are known. */
struct writer {
    int fd;
    unsigned who; /* The number of this writer of the history. */
    unsigned calls;
    bool copies; /* The library may send a request more than once. */
    struct line line;
};

/* The name of a call: "who.number". */
struct call_id {
    unsigned who;
    unsigned number; /* 0: none. */
};

/* Creates the file at @path. False: that failed. */
bool writer_open(struct writer *writer, const char *path, unsigned who,
                 bool copies);
void writer_close(struct writer *writer);

/* Each begins a line about @key and returns the name of the call. */
struct call_id write_begin(struct writer *writer, const char *key,
                           const struct idem_request *request);
struct call_id write_end(struct writer *writer, const char *key,
                         struct call_id attempt, uint64_t fence,
                         const struct idem_outcome *outcome);
struct call_id write_renew(struct writer *writer, const char *key,
                           struct call_id attempt, uint64_t fence,
                           int64_t lease_ms);
struct call_id write_expire(struct writer *writer, const char *key,
                            struct call_id attempt, uint64_t fence);
struct call_id write_get(struct writer *writer, const char *key);
struct call_id write_resolve(struct writer *writer, const char *key,
                             uint64_t fence, const char *who,
                             const struct idem_outcome *outcome, bool force);
struct call_id write_purge(struct writer *writer);

/* Writes that the call was answered with @code; if that is 0, @attempt is what a begin
 * returned, and @record what a get returned. Either may be NULL. */
void write_answer(struct writer *writer, struct call_id id, int code,
                  const struct idem_attempt *attempt,
                  const struct idem_record *record);

#endif
