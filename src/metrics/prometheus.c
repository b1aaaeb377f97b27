/* Metrics as Prometheus text, version 0.0.4. */
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

/* {store="...",kind="..."}; @name may be NULL. */
static void labels(struct idem__out *out, const char *store, const char *name,
                   const char *value)
{
    if (store == NULL && name == NULL) {
        return;
    }
    idem__out(out, "{");
    if (store != NULL) {
        idem__out(out, "store=");
        idem__out_store(out, store);
        idem__out(out, "%s", name != NULL ? "," : "");
    }
    if (name != NULL) {
        idem__out(out, "%s=\"%s\"", name, value);
    }
    idem__out(out, "}");
}

static void number(struct idem__out *out, const char *store, const char *name,
                   uint64_t value)
{
    idem__out(out, "idem_%s", name);
    labels(out, store, NULL, NULL);
    idem__out(out, " %llu\n", (unsigned long long)value);
}

static void counters(struct idem__out *out, const struct idem_metrics *m)
{
#define IDEM__X(member, cloudwatch, help)                                      \
    head(out, #member "_total", "counter", help);                              \
    number(out, m->store, #member "_total", m->counters.member);
    IDEM__COUNTED_MAP(IDEM__X)
#undef IDEM__X
}

static void errors(struct idem__out *out, const struct idem_metrics *m)
{
    int code;

    head(out, "store_errors_total", "counter",
         "Calls that were answered with an error");
    for (code = 1; code < IDEM_METRICS_ERRORS; code++) {
        const char *name = idem_error_name(-code);
        char kind[32] = "";
        size_t i;

        for (i = 0; name[i] != '\0' && i < sizeof(kind) - 1; i++) {
            kind[i] = (char)tolower((unsigned char)name[i]);
        }
        idem__out(out, "idem_store_errors_total");
        labels(out, m->store, "kind", kind);
        idem__out(out, " %llu\n", (unsigned long long)m->errors[code]);
    }
}

static void bucket(struct idem__out *out, const struct idem_metrics *m,
                   int call, const char *le, uint64_t count)
{
    idem__out(out, "idem_store_call_seconds_bucket{");
    if (m->store != NULL) {
        idem__out(out, "store=");
        idem__out_store(out, m->store);
        idem__out(out, ",");
    }
    idem__out(out, "call=\"%s\",le=\"%s\"} %llu\n", idem__call_names[call], le,
              (unsigned long long)count);
}

/* 2500000 is 2.5: without locales, and without zeros at the end. */
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
        char text[32];

        for (i = 0; i < IDEM_METRICS_BUCKETS - 1; i++) {
            sum += m->buckets[call][i];
            seconds(text, (uint64_t)idem__bucket_us[i]);
            bucket(out, m, call, text, sum);
        }
        sum += m->buckets[call][i];
        bucket(out, m, call, "+Inf", sum);
        seconds(text, m->sum_us[call]);
        idem__out(out, "idem_store_call_seconds_sum");
        labels(out, m->store, "call", idem__call_names[call]);
        idem__out(out, " %s\nidem_store_call_seconds_count", text);
        labels(out, m->store, "call", idem__call_names[call]);
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
    labels(out, m->store, NULL, NULL);
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
    head(out, name, "gauge", help);                                            \
    number(out, m->store, name, m->member);
    IDEM__GAUGE_MAP(IDEM__X)
#undef IDEM__X
    in_seconds(out, m, "oldest_in_progress_seconds",
               "How long the oldest attempt in progress has gone on",
               m->oldest_ms);
    in_seconds(out, m, "oldest_retry_seconds",
               "How long the oldest retry has waited to be run again",
               m->oldest_retry_ms);
    if (m->jobs_len > 0) {
        jobs(out, m);
    }
    if (m->has_log) {
        head(out, "log_bytes", "gauge",
             "How much of the log of the store's file is in use");
        number(out, m->store, "log_bytes", m->log_len);
        head(out, "log_held", "gauge",
             "Whether a process keeps a long log from shrinking");
        number(out, m->store, "log_held", m->log_held);
    }
}

static void look(struct idem__out *out, const struct idem_metrics *m)
{
    head(out, "up", "gauge", "Whether the store could be read");
    number(out, m->store, "up", m->up);
    in_seconds(out, m, "look_timestamp_seconds", "Unix time of this reading",
               m->now_ms);
    if (m->up) {
        gauges(out, m);
    }
}

static void journal(struct idem__out *out, const struct idem_metrics *m)
{
    head(out, "journal_entries", "gauge",
         "Outcomes in the journal of this host");
    number(out, m->store, "journal_entries", m->journal_entries);
    head(out, "journal_room_bytes", "gauge", "Bytes left for the journal");
    number(out, m->store, "journal_room_bytes", m->journal_room);
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
