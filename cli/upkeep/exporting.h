/* exporting.h: the records of a store, as lines to a file. */
#ifndef IDEM_CLI_UPKEEP_EXPORTING_H
#define IDEM_CLI_UPKEEP_EXPORTING_H

#include "record/names.h"

#include "contract/move.h"

struct cli_exporting {
    struct idem_store *store;
    const char *url; /* As it was given. */
    FILE *out;
    unsigned statuses; /* Of these only; 0: all. */
    const char *scope; /* Of it only; NULL: all. */

    /* To be moved: nothing begins in the store any more. */
    bool moves;
    const char *place; /* Where to, for the sentence; or NULL. */
    int64_t wait_ms;   /* For what is in progress. */

    /* The answer. */
    uint64_t exported;
    uint64_t corrupt; /* Left out. */
    uint64_t unknown; /* Of a move: were still in progress. */

    /* Its own. */
    struct idem_move move;
    struct cli_names open; /* In progress when they were read. */
};

/* Writes header, records and, of a move, the last line. 0, or an exit status after
 * saying why not. The stream is whole where that is 0; but for records that cannot
 * be trusted where it is CLI_CORRUPT. */
int cli_exporting(struct cli_exporting *e);

#endif
