/* decided.h: what a person decided about a record, as a line and in words. */
#ifndef IDEM_CLI_DECIDE_DECIDED_H
#define IDEM_CLI_DECIDE_DECIDED_H

#include "decide/audit.h"

#include <idem.h>

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

#endif
