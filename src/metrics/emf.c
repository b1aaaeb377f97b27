/* Writes metrics in CloudWatch's embedded metric format, in which a log line carries
 * metrics. */
#include "metrics/names.h"
#include "metrics/out.h"

#include <idem/operator.h>

/* One pass declares the names, another writes the values. Both run the same code, so
 * both skip the same metrics. */
struct pass {
    struct idem__out *out;
    bool values;
    bool any;
};

static void put(struct pass *pass, const char *name, const char *unit,
                uint64_t value)
{
    if (pass->values) {
        idem__out(pass->out, ",\"%s\":%llu", name, (unsigned long long)value);
    } else {
        idem__out(pass->out, "%s{\"Name\":\"%s\",\"Unit\":\"%s\"}",
                  pass->any ? "," : "", name, unit);
    }
    pass->any = true;
}

/* Returns the increase since @before. The counts of another meter, or of a new store,
 * began at 0 again. */
static uint64_t since(uint64_t now, uint64_t before)
{
    return now >= before ? now - before : now;
}

static void put_counters(struct pass *pass, const struct idem_counters *now,
                         const struct idem_counters *before)
{
#define IDEM__X(member, name, help)                                            \
    put(pass, name, "Count", since(now->member, before->member));
    IDEM__COUNTED_MAP(IDEM__X)
#undef IDEM__X
}

static void put_calls(struct pass *pass, const struct idem_metrics *now,
                      const struct idem_metrics *before)
{
    uint64_t errors = 0;
    uint64_t calls = 0;
    uint64_t us = 0;
    int call;
    size_t i;

    for (i = 1; i < IDEM_METRICS_ERRORS; i++) {
        errors += since(now->errors[i], before->errors[i]);
    }
    for (call = 0; call < IDEM_CALLS; call++) {
        us += since(now->sum_us[call], before->sum_us[call]);
        for (i = 0; i < IDEM_METRICS_BUCKETS; i++) {
            calls += since(now->buckets[call][i], before->buckets[call][i]);
        }
    }
    put(pass, "storeErrors", "Count", errors);
    put(pass, "storeUnavailable", "Count",
        since(now->errors[-IDEM_EUNAVAILABLE],
              before->errors[-IDEM_EUNAVAILABLE]));
    put(pass, "storeCalls", "Count", calls);
    put(pass, "storeMicroseconds", "Microseconds", us);
}

static void put_all(struct pass *pass, const struct idem_metrics *now,
                    const struct idem_metrics *before)
{
    if (!now->unseen) {
        put(pass, "up", "Count", now->up);
    }
    if (!now->unseen && now->up) {
#define IDEM__X(member, prometheus, name, help)                                \
    put(pass, name, "Count", now->member);
        IDEM__GAUGE_MAP(IDEM__X)
#undef IDEM__X
        put(pass, "oldestInProgress", "Milliseconds",
            now->oldest_ms > 0 ? (uint64_t)now->oldest_ms : 0);
        put(pass, "oldestRetry", "Milliseconds",
            now->oldest_retry_ms > 0 ? (uint64_t)now->oldest_retry_ms : 0);
        if (now->has_log) {
            put(pass, "logLength", "Bytes", now->log_len);
            put(pass, "logHeld", "Count", now->log_held);
        }
    }
    if (now->has_journal) {
        put(pass, "journalEntries", "Count", now->journal_entries);
        put(pass, "journalRoom", "Bytes", now->journal_room);
    }
    if (now->has_counters) {
        put_counters(pass, &now->counters, &before->counters);
    }
    if (now->has_calls) {
        put_calls(pass, now, before);
    }
}

int idem_metrics_emf(const struct idem_metrics *metrics,
                     const struct idem_metrics *before, const char *space,
                     char *buf, size_t cap, size_t *ret_len)
{
    static const struct idem_metrics none = IDEM_METRICS_INIT;
    struct idem__out out = {.base = buf, .cap = cap};
    struct pass pass = {.out = &out};

    if (before == NULL) {
        before = &none;
    }
    if (metrics->size != sizeof(*metrics) || before->size != sizeof(*before)) {
        return IDEM_EINVALID;
    }
    idem__out(&out,
              "{\"_aws\":{\"Timestamp\":%lld,\"CloudWatchMetrics\":[{"
              "\"Namespace\":\"",
              (long long)metrics->now_ms);
    idem__out_quoted(&out, space);
    idem__out(&out, "\",\"Dimensions\":[[%s]],\"Metrics\":[",
              metrics->store != NULL ? "\"store\"" : "");
    put_all(&pass, metrics, before);
    idem__out(&out, "]}]}");
    if (metrics->store != NULL) {
        idem__out(&out, ",\"store\":");
        idem__out_store(&out, metrics->store);
    }
    pass.values = true;
    put_all(&pass, metrics, before);
    idem__out(&out, "}");
    return idem__out_end(&out, ret_len);
}
