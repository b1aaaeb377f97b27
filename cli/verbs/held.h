/* held.h: attempts that another process began. */
#ifndef IDEM_CLI_VERBS_HELD_H
#define IDEM_CLI_VERBS_HELD_H

#include "options/command.h"
#include "store/journal.h"
#include "store/open.h"

/* How the attempt is named. */
struct cli_token_choice {
    const char *token;
    bool self;
};

#define CLI_TOKEN_OPTIONS(c)                                                   \
    CLI_VALUE("token", "TOKEN", CLI_TEXT, &(c)->token,                         \
              "the attempt: the token of idem begin; -: from stdin"),          \
        CLI_SWITCH("self", &(c)->self,                                         \
                   "the attempt that this is part of ($IDEM_TOKEN)")

/* For commands whose attempt is named by its token. */
#define CLI_HELD_HINT                                                           \
    "an attempt is named by the token that idem begin printed: --token TOKEN; " \
    "inside idem run: --self; a person decides about a key with: idem resolve KEY"

/* An attempt that another process began. */
struct cli_held {
    struct idem_store *store;
    struct idem_attempt *attempt;
    const char *store_url; /* As given, for people. */
    bool json;             /* The record is printed when all is well. */
    struct cli_patience patience;
};

/* Opens the store and the attempt. 0 or an exit status, after an error message. */
int cli_hold(const struct cli_command *command,
             const struct cli_token_choice *choice, const char *store_url,
             bool json, struct cli_held *ret_held);

/* Ends the attempt, and closes. The exit status, after saying what is wrong. */
int cli_held_end(struct cli_held *held, const struct idem_outcome *outcome,
                 const struct cli_journal_choice *journal);

/* Prints the statement that completes the attempt with @result, and closes; likewise. */
int cli_held_print_statement(struct cli_held *held,
                             const struct idem_result *result);

/* Says what became of the attempt if @error has a code, else prints the record
 * where JSON is wanted; closes, and returns the exit status. */
int cli_held_finish(struct cli_held *held, const struct idem_error *error);

#endif
