/* decided.h: what a person decided about a record, as a line and in words. */
#ifndef IDEM_CLI_DECIDE_DECIDED_H
#define IDEM_CLI_DECIDE_DECIDED_H

#include <idem.h>

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

#endif
