/* audit.h: what persons decided, kept apart from the records.
 *
 * One line of JSON (see log.h) for each decision: who, why, the fence, the status
 * before and after, and what the store answered; of a record that is reopened the
 * result too, which the store then drops. It is appended with one write and
 * flushed. The file is $IDEM_AUDIT_LOG, else audit.log in the directory of idem's
 * state, with mode 0600; "off" keeps none. The record itself says who and why, too,
 * for as long as there is a record.
 */
#ifndef IDEM_CLI_DECIDE_AUDIT_H
#define IDEM_CLI_DECIDE_AUDIT_H

#include <idem.h>

/* Where lines go; fd is negative where nothing is kept. */
struct cli_audit {
    int fd;
};

/* Before anything is decided: what cannot be kept must not be done. 0, or an exit
 * status after saying why. */
int cli_audit_open(struct cli_audit *ret_audit);
void cli_audit_close(struct cli_audit *audit);

/* False: the result of a record that is reopened is kept nowhere. The file is off, or
 * it is not to have keys, which a record names. */
bool cli_audit_keeps_records(void);

/* A decision about a record, and how a person came to it. */
struct cli_decision {
    enum idem_status status;          /* COMPLETED, FAILED or RELEASED. */
    const struct idem_result *result; /* COMPLETED; else NULL. */
    const char *who;
    const char *why;
    bool force; /* Although the lease of its owner runs. */
};

/* Makes it, if @before still has @fence, and keeps the line. An enum idem_code. */
int cli_decide(struct idem_store *store, const struct cli_audit *audit,
               const struct idem_record *before, uint64_t fence,
               const struct cli_decision *decision,
               struct idem_error *ret_error);

/* Lets the work of @before be run again, likewise. The line holds the result that
 * is dropped, if cli_audit_keeps_records(). */
int cli_reopen_record(struct idem_store *store, const struct cli_audit *audit,
                      const struct idem_record *before, uint64_t fence,
                      const char *who, const char *why,
                      struct idem_error *ret_error);

#endif
