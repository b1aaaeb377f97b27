/* open.h: opens the store of a command, and knows how long to wait for it. */
#ifndef IDEM_CLI_STORE_OPEN_H
#define IDEM_CLI_STORE_OPEN_H

#include "options/command.h"

#include <idem.h>
#include <idem/metrics.h>
#include <idem/operator.h>

/* A store that is missing is not made, whatever its URL says. */
extern bool cli_store_must_exist;

/* Opens the store of --store, else $IDEM_STORE, else the default path
 * ($XDG_STATE_HOME/idem/idem.db, ~/.local/state/idem/idem.db, root:
 * /var/lib/idem/idem.db), whose directory it makes (0700). @flags as in
 * idem_open_options. Returns 0 or an exit status, after an error message. */
int cli_open_store(const char *store_url, unsigned flags,
                   struct idem_store **ret_store);

/* Of @flags, for verbs of operators that write: they wait for a store far away for
 * three seconds, as those do that only read. */
#define CLI_OPEN_FOR_PERSON (1U << 30)

/* Of @flags, for a process that answers many callers: it keeps replays in memory. */
#define CLI_OPEN_TO_SERVE (1U << 29)

/* The same for a caller that has its own @host (may be NULL). */
int cli_open_store_as(const char *store_url, unsigned flags,
                      const struct idem_host *host,
                      struct idem_store **ret_store);

/* The same for a caller that waits up to *@wait_ms for another's attempt: it waits as
 * long where others keep the store busy, in place of the usual time, if that is
 * shorter. *@wait_ms is what is left of it then; 0 stays 0. */
int cli_open_store_to_wait(const char *store_url, unsigned flags,
                           const struct idem_host *host, int64_t *wait_ms,
                           struct idem_store **ret_store);

/* Says what @error, of a store that could not be used, is about. The exit status; of a
 * store that is missing CLI_CONFIG. */
int cli_store_failed(const struct idem_error *error);

/* Reads the time of @store, and whether it has any record. An enum idem_code. */
int cli_store_look(struct idem_store *store, int64_t *ret_now_ms, bool *ret_any,
                   struct idem_error *ret_error);

/* Whether @store, which is to be written in bulk, is there: asked for as long as a
 * person waits, where each record may then take its time. 0 or an exit status,
 * after an error message. */
int cli_store_ask(struct idem_store *store);

/* The URL that cli_open_store() opens; the caller frees it. The directory of
 * the default store is made only if @make. 0 or an exit status, after an
 * error message. */
int cli_store_url(const char *store_url, bool make, char **ret_url);

#define CLI_OPTION_STORE(to)                                                   \
    CLI_VALUE("store", "URL", CLI_TEXT, to,                                    \
              "where the records are (default: $IDEM_STORE)")

/* ---- How long an outcome waits for its store ---- */

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

/* ---- Which lists an index of the store serves ---- */

/* An index finds the records of @filter, in an order of its own, where a store has one. */
bool cli_index_serves(const struct idem_filter *filter);

/* ---- The meter of this host ---- */

/* The meter of $IDEM_METER; NULL where none is asked for, or it cannot be used,
 * which is reported once and does not stop the work. The process keeps it. */
struct idem_meter *cli_meter(void);

/* Has a store that is about to be opened observed by it. */
void cli_metered(struct idem_open_options *options);

#endif
