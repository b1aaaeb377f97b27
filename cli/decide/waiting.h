/* waiting.h: one line for each outcome that waits in a journal. */
#ifndef IDEM_CLI_DECIDE_WAITING_H
#define IDEM_CLI_DECIDE_WAITING_H

#include <idem/journal.h>

struct cli_waiting_style {
    bool json;
    bool dry_run; /* Shows its next state. */
};

/* True of an entry that could be read. */
bool cli_waiting_known(const struct idem_journal_info *info);

/* Prints @info. @state: what it is now or, in a dry run, would be; @error: what is
 * wrong with it, if its code is not 0. An exit status. */
int cli_waiting_print(const struct cli_waiting_style *style,
                      const struct idem_journal_info *info,
                      enum idem_journal_state state,
                      const struct idem_error *error);

#endif
