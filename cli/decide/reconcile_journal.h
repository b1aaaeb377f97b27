/* reconcile_journal.h: what waits in a journal is told to its stores. */
#ifndef IDEM_CLI_DECIDE_RECONCILE_JOURNAL_H
#define IDEM_CLI_DECIDE_RECONCILE_JOURNAL_H

#include "decide/waiting.h"

struct cli_reconcile_how {
    struct cli_waiting_style style;
    const char *store; /* Only that one; NULL: for each outcome its own. */
    const char *from;  /* The store that the entries were meant for; NULL: for
                          this one. */
};

/* Tells the stores what waits in @journal and shows what became of each outcome;
 * in a dry run, what would. An exit status: the worst of all. */
int cli_reconcile_journal(struct idem_journal *journal,
                          const struct cli_reconcile_how *how);

/* The worse of two exit statuses. */
int cli_reconcile_worse(int a, int b);

#endif
