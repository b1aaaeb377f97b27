/* decided.h: a decision by a person, its audit log, and the record it is about. */
#ifndef IDEM_CLI_DECIDE_DECIDED_H
#define IDEM_CLI_DECIDE_DECIDED_H

#include <idem.h>

/* The decisions of persons, kept apart from the records.
 *
 * One line of JSON (see log.h) for each decision: who, why, the fence, the status
 * before and after, and what the store answered; of a record that is reopened the
 * result too, which the store then drops. It is appended with one write and
 * flushed. The file is $IDEM_AUDIT_LOG, else audit.log in the directory of idem's
 * state, with mode 0600; "off" keeps none. The record itself says who and why, too,
 * for as long as there is a record. */

/* Where lines go; fd is negative where nothing is kept. */
struct cli_audit {
    int fd;
};

/* Before anything is decided: what cannot be kept must not be done. 0, or an exit
 * status after an error message. */
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

/* ---- Decided ---- */

/* Says that the store refused a decision. An exit status: a state that forbids it is
 * not a wrong command line. */
int cli_decide_refused(const struct idem_error *error);

enum cli_decided {
    CLI_DECIDED,      /* It is on record. */
    CLI_WOULD_DECIDE, /* Of a dry run. */
    CLI_NOT_DECIDED,  /* The store refused it. */
};

/* "it did not happen": what @status, given by a person, says of the work. RETRY is
 * that of idem reopen. Static. */
const char *cli_decided_text(enum idem_status status);

/* "the next caller runs it": what follows from it. Static. */
const char *cli_decided_next(enum idem_status status);

/* Prints "order-42: unknown -> released (fence 17): it did not happen; the next
 * caller runs it", where @status is what @r becomes. */
void cli_print_decided(const struct idem_record *r, enum idem_status status,
                       enum cli_decided how);

/* The same as a line of JSON. 0 or an exit status. */
int cli_print_decided_json(const struct idem_record *r, enum idem_status status,
                           bool changed);

/* ---- One decision for all records that are alike ------------------------ */

struct cli_selection {
    bool overdue;
    unsigned statuses;              /* FAILED, UNKNOWN: 1u << status, or-ed. */
    const struct idem_slice *scope; /* NULL: all. */
    int64_t older_ms; /* Only what was started at least so long ago; 0: all. */
    bool json;        /* Lines of JSON. */
    uint64_t count;   /* Decide only if it is about so many; 0: however many. */
};

/* Prints what would be decided or, with @yes, decides it and prints that. A record
 * that was changed since it was looked at is left alone. 0 or an exit status. */
int cli_resolve_selected(struct idem_store *store,
                         const struct cli_audit *audit,
                         const struct cli_selection *selection,
                         const struct cli_decision *decision, bool yes);

/* ---- The record that a person decides about ---- */

/* Opens @url and reads the record of @key. Unless @dry_run, what this host's journal
 * knows of the key is recorded first: somebody may know how it ended, and recorded
 * later it would be refused. 0, or an exit status after an error message, with nothing
 * open. */
int cli_decide_look_up(const char *url, bool dry_run, struct idem_slice scope,
                       struct idem_slice key, struct idem_store **ret_store,
                       struct idem_answer **ret_answer);

#endif
