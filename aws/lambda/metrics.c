/* The counts, as a line of the log that CloudWatch makes metrics of. */
#include "aws/lambda/metrics.h"

#include "aws/lambda/log.h"
#include "base/heap.h"
#include "core/error.h"

#include <idem/metrics.h>
#include <time.h>

#define SPACE "idem" /* That of the alarms in packaging/cloudwatch. */

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

/* Each count came with a call. */
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
        idem__lambda_log_line((struct idem_slice){m->line, len + 1});
        m->last = now;
    }
}
