/* Writes log lines as JSON, and the counts as a line from which CloudWatch makes
 * metrics. */
#include "aws/lambda/lambda.h"

#include "base/heap.h"
#include "core/error.h"

#include <errno.h>
#include <idem/metrics.h>
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
    idem__json_pair(line, "timestamp", idem_str(text));
}

static void add_delivery(struct idem__buffer *line,
                         const struct idem_lambda_invocation *now)
{
    idem__json_pair(line, "requestId", idem_str(now->request_id));
    if (now->trace_id != NULL && now->trace_id[0] != '\0') {
        idem__json_pair(line, "traceId", idem_str(now->trace_id));
    }
}

static void add_fields(struct idem__buffer *line,
                       const struct idem__lambda_field *fields)
{
    char number[24];

    for (; fields != NULL && fields->name != NULL; fields++) {
        if (fields->text.base != NULL) {
            idem__json_pair(line, fields->name, fields->text);
            continue;
        }
        (void)snprintf(number, sizeof(number), "%llu",
                       (unsigned long long)fields->number);
        idem__json_name(line, fields->name);
        idem__buffer_str(line, number);
    }
}

/* @line ends with a newline. */
static void write_line(struct idem_slice line)
{
    const char *p = line.base;
    size_t len = line.len;

    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, p, len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return; /* There is nowhere else to report it. */
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
    idem__json_pair(&line, "level", idem_str(level));
    if (now != NULL) {
        add_delivery(&line, now);
    }
    idem__json_pair(&line, "message", idem_str(message));
    add_fields(&line, fields);
    idem__buffer_str(&line, "}\n");
    if (!line.failed) {
        write_line(idem__buffer_slice(&line));
    }
    idem__buffer_free(&line);
}

/* ---- Metrics ------------------------------------------------------------ */

#define SPACE "idem" /* As in the alarms of packaging/cloudwatch. */

struct idem__lambda_metrics {
    struct idem_meter *meter;
    struct idem_metrics last;
    char line[IDEM_METRICS_TEXT_MAX + 1];
};

int idem__lambda_metrics_init(struct idem_lambda *lambda,
                              struct idem_error *ret_error)
{
    static const struct idem_metrics none = IDEM_METRICS_INIT;

    if (!lambda->options->metrics) {
        return 0;
    }
    lambda->metrics = idem__zalloc(sizeof(*lambda->metrics));
    if (lambda->metrics == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    lambda->metrics->last = none;
    return idem_meter_open(/* path= */ NULL, /* flags= */ 0,
                           &lambda->metrics->meter, ret_error);
}

void idem__lambda_metrics_finish(struct idem_lambda *lambda)
{
    if (lambda->metrics != NULL) {
        idem_meter_close(lambda->metrics->meter);
        idem__free(lambda->metrics);
        lambda->metrics = NULL;
    }
}

void idem__lambda_metrics_observe(const struct idem_lambda *lambda,
                                  struct idem_open_options *options)
{
    if (lambda->metrics != NULL) {
        options->observe = idem_meter_observe;
        options->observe_ctx = lambda->metrics->meter;
    }
}

/* True if nothing was counted in between. Each count comes with a call, which is counted
 * in a bucket. */
static bool same(const struct idem_metrics *a, const struct idem_metrics *b)
{
    return memcmp(a->buckets, b->buckets, sizeof(a->buckets)) == 0;
}

void idem__lambda_metrics_log(struct idem_lambda *lambda)
{
    struct idem__lambda_metrics *m = lambda->metrics;
    struct idem_metrics now = IDEM_METRICS_INIT;
    struct timespec clock = {0, 0};
    size_t len;

    if (m == NULL) {
        return;
    }
    idem_meter_read(m->meter, &now);
    if (same(&now, &m->last)) {
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &clock);
    now.now_ms = (int64_t)clock.tv_sec * 1000 + clock.tv_nsec / 1000000;
    now.store = idem_store_url(lambda->store);
    now.unseen = true;
    if (idem_metrics_emf(&now, &m->last, SPACE, m->line, IDEM_METRICS_TEXT_MAX,
                         &len) == 0) {
        m->line[len] = '\n';
        write_line((struct idem_slice){m->line, len + 1});
        m->last = now;
    }
}
