/* copying.h: every record of one store into another. */
#ifndef IDEM_CLI_UPKEEP_COPYING_H
#define IDEM_CLI_UPKEEP_COPYING_H

#include <idem.h>

/* The treatment of an attempt that is in progress at the source. */
enum cli_copy_open {
    CLI_COPY_OPEN_LEAVE,   /* It is left out, and the copy does not count as a
                              success. */
    CLI_COPY_OPEN_UNKNOWN, /* It is unknown at the target. */
};

/* How a copy is made. */
struct cli_copy_options {
    enum cli_copy_open open;
    struct idem_slice scope; /* At the target, of records that have none; empty:
                                none there either. */
};

/* How many records ... */
struct cli_copied {
    uint64_t copied;
    uint64_t unknown;     /* ... of these were in progress ... */
    uint64_t same;        /* ... were at the target already ... */
    uint64_t newer;       /* ... or a newer one of theirs ... */
    uint64_t differ;      /* ... or another, which is not newer ... */
    uint64_t in_progress; /* ... were left out as such ... */
    uint64_t gone;        /* ... as past their retention, or deleted ... */
    uint64_t corrupt;     /* ... as not to be trusted ... */
    uint64_t refused;     /* ... as none that the target takes. */
};

/* Copies what is in @from and not in @to, and writes over nothing there that
 * counts. It can be killed at any point and run again. Names on stderr what is
 * left out or differs, and shows progress. 0, or an exit status after saying why
 * it went no further. */
int cli_copying(struct idem_store *from, struct idem_store *to,
                const struct cli_copy_options *options,
                struct cli_copied *ret_copied);

/* ---- Idem store copy --dry-run ------------------------------------------ */

/* Prints how many records a copy of @from to @to_url would take over, about, and the
 * units that it would use of tables. Changes nothing; the target need not be there. An
 * exit status. */
int cli_copy_dry_run(struct idem_store *from, const char *to_url,
                     const struct cli_copy_options *options, bool json);

#endif
