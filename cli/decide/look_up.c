/* Read a record, before a person decides about it. */
#include "decide/look_up.h"

#include "record/record.h"
#include "store/journal.h"
#include "store/open.h"

int cli_decide_look_up(const char *url, bool dry_run, struct idem_slice scope,
                       struct idem_slice key, struct idem_store **ret_store,
                       struct idem_answer **ret_answer)
{
    unsigned flags = dry_run ? IDEM_OPEN_READONLY
                             : IDEM_OPEN_NO_CREATE | CLI_OPEN_FOR_PERSON;
    struct idem_error error = {0};
    struct idem_store *store;
    int status = cli_open_store(url, flags, &store);

    if (status != 0) {
        return status;
    }
    if (!dry_run) {
        (void)cli_journal_settle(store, scope, key, /* remarks= */ true,
                                 &error);
    }
    status = cli_get(store, url, scope, key, ret_answer);
    if (status != 0) {
        idem_close(store);
        return status;
    }
    *ret_store = store;
    return 0;
}
