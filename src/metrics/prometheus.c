/* Writes metrics as Prometheus text, version 0.0.4. */
#include "metrics/names.h"
#include "metrics/out.h"

#include <ctype.h>
#include <stdio.h>

const char *const idem__call_names[IDEM_CALLS] = {"begin", "end", "renew",
                                                  "other"};

const int64_t idem__bucket_us[IDEM_METRICS_BUCKETS - 1] = {
    50,    100,   250,    500,    1000,    2500,    5000,     10000,
    25000, 50000, 100000, 250000, 1000000, 2500000, 10000000,
};

static void head(struct idem__out *out, const char *name, const char *type,
                 const char *help)
{
    idem__out(out, "# HELP idem_%s %s.\n# TYPE idem_%s %s\n", name, help, name,
              type);
}

/* Writes {store="...",kind="..."}, where @more has the labels after store; "": none. */
static void labels(struct idem__out *out, const char *store, const char *more)
{
    if (store == NULL && more[0] == '\0') {
        return;
    }
    idem__out(out, "{");
    if (store != NULL) {
        idem__out(out, "store=");
        idem__out_store(out, store);
    }
    idem__out(out, "%s%s}", store != NULL && more[0] != '\0' ? "," : "", more);
}

static void number(struct idem__out *out, const struct idem_metrics *m,
                   const char *name, const char *type, const char *help,
                   uint64_t value)
{
    head(out, name, type, help);
    idem__out(out, "idem_%s", name);
    labels(out, m->store, "");
    idem__out(out, " %llu\n", (unsigned long long)value);
}

static void counters(struct idem__out *out, const struct idem_metrics *m)
{
#define IDEM__X(member, cloudwatch, help)                                      \
    number(out, m, #member "_total", "counter", help, m->counters.member);
    IDEM__COUNTED_MAP(IDEM__X)
#undef IDEM__X
}

static void errors(struct idem__out *out, const struct idem_metrics *m)
{
    int code;

    head(out, "store_errors_total", "counter", "Calls that failed");
    for (code = 1; code < IDEM_METRICS_ERRORS; code++) {
        const char *name = idem_error_name(-code);
        char kind[48];
        size_t i;

        (void)snprintf(kind, sizeof(kind), "kind=\"%s\"", name);
        for (i = 0; kind[i] != '\0'; i++) {
            kind[i] = (char)tolower((unsigned char)kind[i]);
        }
        idem__out(out, "idem_store_errors_total");
        labels(out, m->store, kind);
        idem__out(out, " %llu\n", (unsigned long long)m->errors[code]);
    }
}

static void bucket(struct idem__out *out, const struct idem_metrics *m,
                   int call, const char *le, uint64_t count)
{
    char more[64];

    (void)snprintf(more, sizeof(more), "call=\"%s\",le=\"%s\"",
                   idem__call_names[call], le);
    idem__out(out, "idem_store_call_seconds_bucket");
    labels(out, m->store, more);
    idem__out(out, " %llu\n", (unsigned long long)count);
}

/* Writes microseconds as seconds: 2500000 is 2.5, whatever the locale is, without zeros
 * at the end. */
static void seconds(char buf[32], uint64_t us)
{
    size_t len = (size_t)snprintf(buf, 32, "%llu.%06llu",
                                  (unsigned long long)(us / 1000000),
                                  (unsigned long long)(us % 1000000));

    while (buf[len - 1] == '0') {
        len--;
    }
    len -= buf[len - 1] == '.';
    buf[len] = '\0';
}

static void calls(struct idem__out *out, const struct idem_metrics *m)
{
    int call;
    size_t i;

    head(out, "store_call_seconds", "histogram",
         "How long the store took to answer");
    for (call = 0; call < IDEM_CALLS; call++) {
        uint64_t sum = 0;
        char of[32];
        char text[32];

        (void)snprintf(of, sizeof(of), "call=\"%s\"", idem__call_names[call]);
        for (i = 0; i < IDEM_METRICS_BUCKETS - 1; i++) {
            sum += m->buckets[call][i];
            seconds(text, (uint64_t)idem__bucket_us[i]);
            bucket(out, m, call, text, sum);
        }
        sum += m->buckets[call][i];
        bucket(out, m, call, "+Inf", sum);
        seconds(text, m->sum_us[call]);
        idem__out(out, "idem_store_call_seconds_sum");
        labels(out, m->store, of);
        idem__out(out, " %s\nidem_store_call_seconds_count", text);
        labels(out, m->store, of);
        idem__out(out, " %llu\n", (unsigned long long)sum);
    }
}

static void in_seconds(struct idem__out *out, const struct idem_metrics *m,
                       const char *name, const char *help, int64_t ms)
{
    char text[32];

    head(out, name, "gauge", help);
    seconds(text, ms > 0 ? (uint64_t)ms * 1000 : 0);
    idem__out(out, "idem_%s", name);
    labels(out, m->store, "");
    idem__out(out, " %s\n", text);
}

static void jobs(struct idem__out *out, const struct idem_metrics *m)
{
    char text[32];
    size_t i;

    head(out, "last_success_seconds", "gauge",
         "Unix time of the last success of such keys; 0: never");
    for (i = 0; i < m->jobs_len; i++) {
        idem__out(out, "idem_last_success_seconds{");
        if (m->store != NULL) {
            idem__out(out, "store=");
            idem__out_store(out, m->store);
            idem__out(out, ",");
        }
        idem__out(out, "key=\"");
        idem__out_quoted(out, m->jobs[i].key);
        seconds(text, (uint64_t)m->jobs[i].success_ms * 1000);
        idem__out(out, "\"} %s\n", text);
    }
}

static void gauges(struct idem__out *out, const struct idem_metrics *m)
{
#define IDEM__X(member, name, cloudwatch, help)                                \
    number(out, m, name, "gauge", help, m->member);
    IDEM__GAUGE_MAP(IDEM__X)
#undef IDEM__X
    in_seconds(out, m, "oldest_in_progress_seconds",
               "Age of the oldest attempt in progress", m->oldest_ms);
    in_seconds(out, m, "oldest_retry_seconds",
               "Age of the oldest retry that waits to run again",
               m->oldest_retry_ms);
    if (m->jobs_len > 0) {
        jobs(out, m);
    }
    if (m->has_log) {
        number(out, m, "log_bytes", "gauge",
               "Bytes in use in the log of the store's file", m->log_len);
        number(out, m, "log_held", "gauge",
               "Whether a process keeps a long log from shrinking",
               m->log_held);
    }
}

static void look(struct idem__out *out, const struct idem_metrics *m)
{
    number(out, m, "up", "gauge", "Whether the store could be read", m->up);
    in_seconds(out, m, "look_timestamp_seconds", "Unix time of this reading",
               m->now_ms);
    if (m->up) {
        gauges(out, m);
    }
}

static void journal(struct idem__out *out, const struct idem_metrics *m)
{
    number(out, m, "journal_entries", "gauge",
           "Outcomes in the journal of this host", m->journal_entries);
    number(out, m, "journal_room_bytes", "gauge", "Bytes left for the journal",
           m->journal_room);
}

int idem_metrics_prometheus(const struct idem_metrics *metrics, char *buf,
                            size_t cap, size_t *ret_len)
{
    struct idem__out out = {.base = buf, .cap = cap};

    if (metrics->size != sizeof(*metrics)) {
        return IDEM_EINVALID;
    }
    if (!metrics->unseen) {
        look(&out, metrics);
    }
    if (metrics->has_journal) {
        journal(&out, metrics);
    }
    if (metrics->has_counters) {
        counters(&out, metrics);
    }
    if (metrics->has_calls) {
        errors(&out, metrics);
        calls(&out, metrics);
    }
    return idem__out_end(&out, ret_len);
}
