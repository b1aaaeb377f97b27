/* open.h: which store a command uses, and opening it. */
#ifndef IDEM_CLI_STORE_OPEN_H
#define IDEM_CLI_STORE_OPEN_H

#include "options/command.h"

#include <idem.h>

/* --no-create was given. */
extern bool cli_no_create;

/* Opens the store of --store, else $IDEM_STORE, else the default path
 * ($XDG_STATE_HOME/idem/idem.db, ~/.local/state/idem/idem.db, root:
 * /var/lib/idem/idem.db), whose directory it makes (0700). @flags as in
 * idem_open_options. Returns 0 or an exit status, after saying why. */
int cli_open_store(const char *store_url, unsigned flags,
                   struct idem_store **ret_store);

/* Of @flags, for verbs of operators that write: they wait for a store far away for
 * three seconds, as those do that only read. */
#define CLI_OPEN_FOR_PERSON (1U << 30)

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

/* Whether @store, which is to be written in bulk, is there: asked for as long as a
 * person waits, where each record may then take its time. 0 or an exit status,
 * after saying why. */
int cli_store_ask(struct idem_store *store);

/* The URL that cli_open_store() opens; the caller frees it. The directory of
 * the default store is made only if @make. 0 or an exit status, after saying
 * why. */
int cli_store_url(const char *store_url, bool make, char **ret_url);

/* Two options: the second is that of cli_open_store(), whoever calls it. */
#define CLI_OPTION_STORE(to)                                                   \
    CLI_VALUE("store", "URL", CLI_TEXT, to,                                    \
              "where the records are (default: $IDEM_STORE)"),                 \
        CLI_SWITCH("no-create", &cli_no_create,                                \
                   "fail if the store does not exist, and make none")

#endif
