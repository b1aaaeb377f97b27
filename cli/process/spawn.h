/* spawn.h: programs beside a command, which can be killed with all they start. */
#ifndef IDEM_CLI_PROCESS_SPAWN_H
#define IDEM_CLI_PROCESS_SPAWN_H

#include <sys/types.h>

/* Starts @path in a process group of its own, with the signals of a new program. It
 * reads @input (negative: nothing), and its output goes to our standard error. 0, or
 * an errno. */
int cli_spawn(const char *path, char **argv, char **env, int input,
              pid_t *ret_pid);

#endif
