/* look_up.h: the record that a person decides about. */
#ifndef IDEM_CLI_DECIDE_LOOK_UP_H
#define IDEM_CLI_DECIDE_LOOK_UP_H

#include <idem.h>

/* Opens @url and reads the record of @key. Unless @dry_run, what this host's journal
 * knows of the key is recorded first: somebody may know how it ended, and recorded
 * later it would be refused. 0, or an exit status after saying why, with nothing
 * open. */
int cli_decide_look_up(const char *url, bool dry_run, struct idem_slice scope,
                       struct idem_slice key, struct idem_store **ret_store,
                       struct idem_answer **ret_answer);

#endif
