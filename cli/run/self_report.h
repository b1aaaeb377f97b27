/* self_report.h: a command may use its token to say itself how it ended. */
#ifndef IDEM_CLI_RUN_SELF_REPORT_H
#define IDEM_CLI_RUN_SELF_REPORT_H

#include <idem.h>

/* Called after @attempt was answered LOST. The status that the attempt was
 * ended with by its own token; 0: it was really lost, or nobody can say. */
enum idem_status self_report(struct idem_store *store,
                             const struct idem_attempt *attempt);

#endif
