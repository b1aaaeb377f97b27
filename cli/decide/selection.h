/* selection.h: one decision for all records that are alike. */
#ifndef IDEM_CLI_DECIDE_SELECTION_H
#define IDEM_CLI_DECIDE_SELECTION_H

#include "decide/audit.h"

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
