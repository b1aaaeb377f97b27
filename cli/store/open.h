/* open.h: opens the store of a command, and knows how long to wait for it. */
#ifndef IDEM_CLI_STORE_OPEN_H
#define IDEM_CLI_STORE_OPEN_H

#include "options/command.h"

#include <idem.h>
#include <idem/metrics.h>
#include <idem/operator.h>

/* True: a missing store is not created, whatever its URL says. */
extern bool cli_store_must_exist;

/* Opens the store of --store, else $IDEM_STORE, else the default path
 * ($XDG_STATE_HOME/idem/idem.db, ~/.local/state/idem/idem.db, root:
 * /var/lib/idem/idem.db), whose directory it creates (0700) unless @flags forbid it.
 * @flags as in idem_open_options. Returns 0 or an exit status, after an error message. */
int cli_open_store(const char *store_url, unsigned flags,
                   struct idem_store **ret_store);

/* One of @flags, for commands of operators that write: they wait about three seconds for
 * a remote store, as commands that only read do. */
#define CLI_OPEN_FOR_PERSON (1U << 30)

/* One of @flags, for a process that answers many callers: it keeps replays in memory. */
#define CLI_OPEN_TO_SERVE (1U << 29)

/* The same for a caller that has its own @host (may be NULL). */
int cli_open_store_as(const char *store_url, unsigned flags,
                      const struct idem_host *host,
                      struct idem_store **ret_store);

/* The same for a caller that waits up to *@wait_ms for another's attempt. If others keep
 * a SQLite store busy, it waits as long for the store too, unless the usual time is
 * longer. Sets *@wait_ms to the time that is left, at least 1; 0 stays 0. */
int cli_open_store_to_wait(const char *store_url, unsigned flags,
                           const struct idem_host *host, int64_t *wait_ms,
                           struct idem_store **ret_store);

/* Reports @error of a store that could not be used. Returns its exit status, and
 * CLI_CONFIG for a store that is missing. */
int cli_store_failed(const struct idem_error *error);

/* Reads the time of @store, and whether it has any record. An enum idem_code. */
int cli_store_look(struct idem_store *store, int64_t *ret_now_ms, bool *ret_any,
                   struct idem_error *ret_error);

/* Asks whether a remote @store answers, before it is written in bulk. It waits only as
 * long as a person would; each record may later take its time. 0 or an exit status,
 * after an error message. */
int cli_store_ask(struct idem_store *store);

/* The URL that cli_open_store() opens; the caller frees it. Creates the directory of the
 * default store only if @make. 0 or an exit status, after an error message. */
int cli_store_url(const char *store_url, bool make, char **ret_url);

#define CLI_OPTION_STORE(to)                                                   \
    CLI_VALUE("store", "URL", CLI_TEXT, to,                                    \
              "where the records are (default: $IDEM_STORE)")

/* ---- How long an outcome waits for its store ---- */

struct cli_command;

/* How long a command waits for a store to record an end, before it relies on the
 * journal. */
struct cli_patience {
    int64_t chosen_ms; /* $IDEM_STORE_TIMEOUT; 0: by the kind of the store. */
};

/* Reads the variable. 0, or a usage error. */
int cli_patience_choose(const struct cli_command *command,
                        struct cli_patience *ret_patience);

/* The time for an end with @bytes of result, which grows with the result that has to be
 * sent. */
int64_t cli_patience_ms(const struct cli_patience *patience,
                        const struct idem_store *store, size_t bytes);

/* Each operation of @store gets at most @ms from now on, and at least one. */
void cli_patience_set(struct idem_store *store, int64_t ms);

/* ---- Which lists an index of the store serves ---- */

/* True if the index, in a store that has one, finds the records of @filter. It has an
 * order of its own. */
bool cli_index_serves(const struct idem_filter *filter);

/* ---- The meter of this host ---- */

/* The meter of $IDEM_METER; NULL if the variable is not set, or if the meter cannot be
 * used, which is reported once and does not stop the work. It stays open until the
 * process ends. */
struct idem_meter *cli_meter(void);

/* Makes the meter observe the store that is about to be opened with @options. */
void cli_metered(struct idem_open_options *options);

#endif
