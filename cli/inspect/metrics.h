/* metrics.h: the metrics of a store, and jobs that must succeed regularly. */
#ifndef IDEM_CLI_INSPECT_METRICS_H
#define IDEM_CLI_INSPECT_METRICS_H

#include "options/command.h"
#include "record/open_records.h"

#include <idem.h>
#include <idem/metrics.h>

struct cli_job {
    const char *pattern; /* Of its keys, for fnmatch(). */
    int64_t success_ms;  /* End of the last success; 0: none is on record. */
    int64_t kept_ms;     /* The shortest retention that was seen; 0: none. */
    bool told;           /* idem watch reported it when it looked last. */
};

struct cli_jobs {
    struct cli_job list[IDEM_METRICS_JOBS];
    size_t len;
    char text[IDEM_METRICS_JOBS * (IDEM_KEY_MAX + 1)]; /* The patterns. */
};

#define CLI_OPTION_MISSING(to, says)                                           \
    CLI_VALUE("missing", "KEYS", CLI_TEXT, to, (says),                         \
              .max = sizeof(((struct cli_jobs *)0)->text) - 1)

/* True if the key matches @pattern, a pattern of fnmatch(). */
bool cli_matches(const struct idem_record *record, const char *pattern);

/* Reads "backup@*,report@*"; NULL: none. 0 or a usage error. */
int cli_jobs_read(const struct cli_command *command, const char *text,
                  struct cli_jobs *ret_jobs);

/* Finds when each job last succeeded, in @scope (NULL: any). Reads the records, the
 * newest first if the store has an order, until each job is known to have succeeded
 * since @enough_ms (IDEM_NEVER: to the end). An enum idem_code. */
int cli_jobs_look(struct cli_jobs *jobs, struct idem_store *store,
                  const struct idem_slice *scope, int64_t enough_ms,
                  struct idem_error *ret_error);

/* ---- What the commands count, and how an operator's tools get it ---- */

/* Gathers the metrics of @store, and finds when @jobs last succeeded. @snapshot may be
 * NULL; if the store cannot be read, both are. An enum idem_code. */
int cli_metrics(struct idem_store *store, const struct cli_snapshot *snapshot,
                struct cli_jobs *jobs, struct idem_metrics *ret_metrics,
                struct idem_error *ret_error);

/* Writes them to the file @path (NULL, "-": stdout), all of it or nothing: as Prometheus
 * text, or as a line in CloudWatch's embedded metric format, which has what is on record
 * now, and no counters. 0 or an exit status, after an error message. */
int cli_metrics_write(const struct idem_metrics *metrics, bool is_emf,
                      const char *path);

#endif
