/* journal.h: outcomes that wait on this host for their store, as the commands use
 * them; see <idem/journal.h>. */
#ifndef IDEM_CLI_STORE_JOURNAL_H
#define IDEM_CLI_STORE_JOURNAL_H

#include "options/command.h"

#include <idem.h>
#include <idem/journal.h>
#include <sys/types.h>
#include <time.h>

struct cli_command;
struct idem_journal;
struct idem_journal_entry;
struct idem_journal_usage;

/* --journal: which outcomes are kept. */
enum cli_journal_rule {
    CLI_JOURNAL_AUTO,       /* ALWAYS where the store is remote. */
    CLI_JOURNAL_ALWAYS,     /* Before the store is told. */
    CLI_JOURNAL_ON_FAILURE, /* Once the store has failed to record it. */
    CLI_JOURNAL_OFF,
};

extern const char *const cli_journal_rules[]; /* "auto" ..., NULL. */

#define CLI_OPTION_JOURNAL(to)                                                 \
    CLI_VALUE("journal", "RULE", CLI_CHOICE, to,                               \
              "when to keep the outcome on this host (auto)",                  \
              .choices = cli_journal_rules)

/* Opens the journal in $IDEM_JOURNAL_DIR, else in the directory of idem's state, and
 * creates it if @make. *@ret_directory is its path, also if it cannot be opened; the
 * caller frees it. An enum idem_code; IDEM_ENOTFOUND: there is none. */
int cli_journal_open(bool make, struct idem_journal **ret_journal,
                     char **ret_directory, struct idem_error *ret_error);

/* ---- Outcomes that wait ------------------------------------------------ */

enum cli_journal_settled {
    CLI_JOURNAL_CLEAR,  /* Nothing waits any more. */
    CLI_JOURNAL_IN_USE, /* Another process is recording it. */
    CLI_JOURNAL_WAITS,  /* An outcome is known that cannot be recorded. */
};

/* Records the outcomes that wait for the record of @scope and @key, before the command
 * does anything else about it. Reports those that were lost or damaged, and with @remarks
 * those that were recorded. On CLI_JOURNAL_WAITS @ret_error says why. */
enum cli_journal_settled cli_journal_settle(struct idem_store *store,
                                            struct idem_slice scope,
                                            struct idem_slice key, bool remarks,
                                            struct idem_error *ret_error);

/* Reports why nothing is begun while an outcome WAITS, and returns the exit status. */
int cli_journal_refuse(const struct idem_error *error);

/* Records some of the other outcomes that wait for @store, which has just answered. It
 * takes about as long however many there are; the next command goes on. */
void cli_journal_catch_up(struct idem_store *store, bool remarks);

/* The status of an outcome that waits for the record of @scope and @key; 0 if
 * there is none. */
enum idem_status cli_journal_peek(struct idem_store *store,
                                  struct idem_slice scope,
                                  struct idem_slice key);

/* Tells the user if outcomes wait for @store, which the command has only read. */
void cli_journal_note(struct idem_store *store);

/* How much is in the journal of this host. False: there is none, or it cannot be
 * read. */
bool cli_journal_read_usage(struct idem_journal_usage *ret_usage);

/* The journal as a long-lived process last saw it. Zeroed: it has not looked yet. */
struct cli_journal_view {
    dev_t device;
    ino_t inode;
    struct timespec changed;
    bool empty;
};

/* True if no outcome waits, for any store. Costs one lstat() for as long as the directory
 * does not change. False: an outcome may wait. */
bool cli_journal_is_empty(struct cli_journal_view *view);

/* ---- An outcome on its way to the store -------------------------------- */

/* Catches an outcome that its store may not record. */
struct cli_net {
    struct idem_store *store;
    struct idem_attempt *attempt;
    const struct idem_outcome *outcome;
    enum cli_journal_rule rule;
    struct idem_journal *journal;     /* NULL: nothing had to be kept. */
    struct idem_journal_entry *entry; /* NULL: it is not kept. */
    char *path;                       /* Of the entry, once it is kept. */
    struct idem_error error;          /* Why it could not be kept. */
};

/* Keeps @outcome if @rule keeps it before the store is told. The store, the attempt and
 * the outcome must outlive @net. */
void cli_net_init(struct cli_net *net, enum cli_journal_rule rule,
                  struct idem_store *store, struct idem_attempt *attempt,
                  const struct idem_outcome *outcome);

/* To be called when the store has answered @code: keeps the outcome if the rule says so
 * and it is not kept yet. */
void cli_net_answered(struct cli_net *net, int code);

/* To be called with the last answer. True: the outcome waits, in net->path. False: it
 * does not have to, and its entry is removed. */
bool cli_net_settle(struct cli_net *net, int code);

/* Adds to @error, of a store that failed, why the journal does not keep the outcome
 * either. */
void cli_net_explain(const struct cli_net *net, struct idem_error *error);

void cli_net_finish(struct cli_net *net);

#endif
