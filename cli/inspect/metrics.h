/* metrics.h: what the commands count, and how an operator's tools get it. */
#ifndef IDEM_CLI_INSPECT_METRICS_H
#define IDEM_CLI_INSPECT_METRICS_H

#include "inspect/jobs.h"
#include "record/open_records.h"

#include <idem.h>
#include <idem/metrics.h>

/* The known facts of @store, and when @jobs, which are looked for, last succeeded.
 * @snapshot may be NULL, and both where the store cannot be read. An enum idem_code. */
int cli_metrics(struct idem_store *store, const struct cli_snapshot *snapshot,
                struct cli_jobs *jobs, struct idem_metrics *ret_metrics,
                struct idem_error *ret_error);

/* Writes them to the file @path as Prometheus text, all of it or nothing; "-" is
 * stdout. 0 or an exit status, after saying why. */
int cli_metrics_write(const struct idem_metrics *metrics, const char *path);

/* Writes what is on record now to stdout, as a line in CloudWatch's embedded metric
 * format, and nothing that is counted. Likewise. */
int cli_metrics_emf(const struct idem_metrics *metrics);

#endif
