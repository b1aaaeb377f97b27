/* state_path.h: where this user's files are. */
#ifndef IDEM_CLI_PROCESS_STATE_PATH_H
#define IDEM_CLI_PROCESS_STATE_PATH_H

/* The path of @name in the directory of idem's state: $XDG_STATE_HOME/idem,
 * ~/.local/state/idem, or for root /var/lib/idem. The caller frees it. NULL with
 * errno: ENOENT, the place does not exist; ENOMEM. */
char *cli_state_path(const char *name);

/* Makes what is missing above @path, for this user only. 0, or -1 with errno:
 * @path is cut after the directory that could not be made. */
int cli_make_directories(char *path);

#endif
