/* patience.h: how long an outcome waits for its store. */
#ifndef IDEM_CLI_STORE_PATIENCE_H
#define IDEM_CLI_STORE_PATIENCE_H

#include <idem.h>

struct cli_command;

/* How long an end is told to a store that does not answer, before the journal has
 * to do. */
struct cli_patience {
    int64_t chosen_ms; /* $IDEM_STORE_TIMEOUT; 0: by the kind of the store. */
};

/* Reads the variable. 0, or a usage error. */
int cli_patience_choose(const struct cli_command *command,
                        struct cli_patience *ret_patience);

/* The time for an end with @bytes of result: what has to travel may take longer
 * than what is only awaited. */
int64_t cli_patience_ms(const struct cli_patience *patience,
                        const struct idem_store *store, size_t bytes);

/* Each operation of @store gets at most @ms from now on, and at least one. */
void cli_patience_set(struct idem_store *store, int64_t ms);

#endif
