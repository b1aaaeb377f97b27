/* Log lines as JSON. */
#include "aws/lambda/log.h"

#include "aws/lambda/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void add_time(struct idem__buffer *line)
{
    struct timespec now = {0, 0};
    char text[40];
    struct tm tm;
    size_t len;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &tm);
    len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(text + len, sizeof(text) - len, ".%03ldZ",
                   now.tv_nsec / 1000000);
    idem__lambda_member(line, "timestamp", idem_str(text));
}

static void add_delivery(struct idem__buffer *line,
                         const struct idem_lambda_invocation *now)
{
    idem__lambda_member(line, "requestId", idem_str(now->request_id));
    if (now->trace_id != NULL && now->trace_id[0] != '\0') {
        idem__lambda_member(line, "traceId", idem_str(now->trace_id));
    }
}

static void add_fields(struct idem__buffer *line,
                       const struct idem__lambda_field *fields)
{
    char number[24];

    for (; fields != NULL && fields->name != NULL; fields++) {
        if (fields->text.base != NULL) {
            idem__lambda_member(line, fields->name, fields->text);
            continue;
        }
        (void)snprintf(number, sizeof(number), "%llu",
                       (unsigned long long)fields->number);
        idem__lambda_member_name(line, fields->name);
        idem__buffer_str(line, number);
    }
}

void idem__lambda_log_line(struct idem_slice line)
{
    const char *p = line.base;
    size_t len = line.len;

    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, p, len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return; /* There is nowhere else to say it. */
        }
        p += n;
        len -= (size_t)n;
    }
}

void idem__lambda_log(const struct idem_lambda_invocation *now,
                      const char *level,
                      const struct idem__lambda_field *fields,
                      const char *format, ...)
{
    struct idem__buffer line = {0};
    char message[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);

    idem__buffer_str(&line, "{");
    add_time(&line);
    idem__lambda_member(&line, "level", idem_str(level));
    if (now != NULL) {
        add_delivery(&line, now);
    }
    idem__lambda_member(&line, "message", idem_str(message));
    add_fields(&line, fields);
    idem__buffer_str(&line, "}\n");
    if (!line.failed) {
        idem__lambda_log_line(idem__buffer_slice(&line));
    }
    idem__buffer_free(&line);
}
