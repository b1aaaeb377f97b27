/* decided.h: a decision by a person, its audit log, and the record it is about. */
#ifndef IDEM_CLI_DECIDE_DECIDED_H
#define IDEM_CLI_DECIDE_DECIDED_H

#include <idem.h>

/* The decisions of persons, kept apart from the records.
 *
 * Each decision is one line of JSON: who, why, the fence, the status before and after,
 * the store's answer, and, once the store has accepted the decision, the whole record
 * that it replaced. The line is appended with one write and flushed. The file is
 * $IDEM_AUDIT_LOG, else audit.log in the directory of idem's state, with mode 0600; "off"
 * keeps none. The record itself says who and why, too, for as long as there is a
 * record. */

/* An open log; fd is negative if the log is off. */
struct cli_audit {
    int fd;
};

/* To be called before the decision: a decision that cannot be logged must not be made.
 * 0, or an exit status after an error message. */
int cli_audit_open(struct cli_audit *ret_audit);
void cli_audit_close(struct cli_audit *audit);

/* False: nothing keeps the record that a decision replaces. The log is off, or it must
 * not contain keys, which a record names. */
bool cli_audit_keeps_records(void);

/* A decision about a record, and how a person came to it. */
struct cli_decision {
    enum idem_status status; /* COMPLETED, FAILED or RELEASED; RETRY: reopen. */
    const struct idem_result *result; /* COMPLETED; else NULL. */
    const char *who;
    const char *why;
    bool force; /* Decide although the lease of the owner runs. */
};

/* Makes the decision if @before still has @fence, and appends the line, also if the store
 * refuses. An enum idem_code. */
int cli_decide(struct idem_store *store, const struct cli_audit *audit,
               const struct idem_record *before, uint64_t fence,
               const struct cli_decision *decision,
               struct idem_error *ret_error);

/* cli_decide() with the audit log opened for it. Also IDEM_ECONFIG if the log cannot be
 * opened; stderr has the reason. */
int cli_decide_audited(struct idem_store *store,
                       const struct idem_record *before, uint64_t fence,
                       const struct cli_decision *decision,
                       struct idem_error *ret_error);

/* The same for a command. 0, or an exit status after an error message. */
int cli_decide_one(struct idem_store *store, const struct idem_record *r,
                   uint64_t fence, const struct cli_decision *decision);

/* Reports that the owner of @r is at work, and @what a person can do. */
#define CLI_LIVE_FORCE "wait until it ends, or override its lease with --force"
void cli_say_live(const struct idem_record *r, const char *what);

/* ---- Decided ---- */

/* Reports that the store refused a decision. Returns the exit status: if the state of the
 * record forbids the decision, that is not an error of the command line. */
int cli_decide_refused(const struct idem_error *error);

enum cli_decided {
    CLI_DECIDED,      /* It is on record. */
    CLI_WOULD_DECIDE, /* Of a dry run. */
    CLI_NOT_DECIDED,  /* The store refused it. */
};

/* "it did not happen": what @status, given by a person, means for the work. RETRY is
 * that of idem reopen. Static. */
const char *cli_decided_text(enum idem_status status);

/* "the next caller runs it": what follows from it. Static. */
const char *cli_decided_next(enum idem_status status);

/* Prints "order-42: unknown -> released (fence 17): it did not happen; the next
 * caller runs it", where @status is what @r becomes. */
void cli_print_decided(const struct idem_record *r, enum idem_status status,
                       enum cli_decided how);

/* The same as a line of JSON. For a reopened record the line contains the record as it
 * was, because the store drops its result. 0 or an exit status. */
int cli_print_decided_json(const struct idem_record *r, enum idem_status status,
                           bool changed);

/* ---- One decision for all records that are alike ------------------------ */

struct cli_selection {
    bool overdue;
    unsigned statuses;              /* FAILED, UNKNOWN: 1u << status, or-ed. */
    const struct idem_slice *scope; /* NULL: all. */
    bool json;                      /* Lines of JSON. */
    uint64_t count; /* Decide only if there are so many; 0: any number. */
};

/* Prints what would be decided or, with @yes, decides it and prints that. It leaves a
 * record alone that has changed since it was listed. 0 or an exit status. */
int cli_resolve_selected(struct idem_store *store,
                         const struct cli_audit *audit,
                         const struct cli_selection *selection,
                         const struct cli_decision *decision, bool yes);

/* ---- The record that a person decides about ---- */

struct cli_command;

struct cli_decided_key {
    const char *key_file;
    const char *scope;
    const char *store;
    uint64_t fence; /* If @fence_given; else that of the record. */
    bool fence_given;
    bool checks_fence; /* Check it before the store does. */
    bool dry_run;
};

typedef int cli_decide_fn(void *ctx, struct idem_store *store,
                          const struct idem_record *r, uint64_t fence);

/* Reads the record of the key that the command line names and calls @decide. Unless it is
 * a dry run, it first records what this host's journal knows of the key. An exit status,
 * after an error message. */
int cli_decide_key(const struct cli_command *command, int argc, char **argv,
                   const struct cli_decided_key *of, cli_decide_fn *decide,
                   void *ctx);

#endif
