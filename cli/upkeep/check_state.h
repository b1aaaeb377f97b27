/* check_state.h: the file of --state, which says where a check stopped. */
#ifndef IDEM_CLI_UPKEEP_CHECK_STATE_H
#define IDEM_CLI_UPKEEP_CHECK_STATE_H

#include <idem.h>

/* Reads the file @path into a block that the caller frees; NULL and 0 bytes where
 * there is none. An exit status, after saying why. */
int cli_check_state_read(const char *path, void **ret_state, size_t *ret_len);

/* Puts @state in the place of what is there. False, after saying why. */
bool cli_check_state_write(const char *path, const void *state, size_t len);

/* The check came to its end: there is nothing to go on with. */
void cli_check_state_delete(const char *path);

#endif
