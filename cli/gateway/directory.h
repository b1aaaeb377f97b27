/* directory.h: the directory that one nginx has for itself. */
#ifndef IDEM_CLI_GATEWAY_DIRECTORY_H
#define IDEM_CLI_GATEWAY_DIRECTORY_H

#include "gateway/config.h"

/* Makes it, for this user only, with the configuration in it. The caller frees
 * *@ret_path. 0 or an exit status, after saying why. */
int gateway_directory_make(const struct gateway_config *config,
                           char **ret_path);

/* Lets a process of its own remove it when this one and nginx are gone, however
 * they end: both hold the pipe of which this is the end, until it is closed. -1:
 * the process is gone. */
int gateway_directory_watch(const char *path);

/* Removes it with all that is in it. */
void gateway_directory_remove(const char *path);

#endif
