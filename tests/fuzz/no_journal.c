/* In the place of what a target would ask: the journal of this host is not ours. */
#include "store/journal.h"

enum cli_journal_settled __wrap_cli_journal_settle(struct idem_store *store,
                                                   struct idem_slice scope,
                                                   struct idem_slice key,
                                                   bool remarks,
                                                   struct idem_error *error);

enum cli_journal_settled __wrap_cli_journal_settle(struct idem_store *store,
                                                   struct idem_slice scope,
                                                   struct idem_slice key,
                                                   bool remarks,
                                                   struct idem_error *error)
{
    (void)store;
    (void)scope;
    (void)key;
    (void)remarks;
    (void)error;
    return CLI_JOURNAL_CLEAR;
}

bool __wrap_cli_journal_is_empty(struct cli_journal_view *view);

bool __wrap_cli_journal_is_empty(struct cli_journal_view *view)
{
    (void)view;
    return true;
}
