/* cores.h: no crash of ours writes keys, results and tokens into a file. */
#ifndef IDEM_CLI_PROCESS_CORES_H
#define IDEM_CLI_PROCESS_CORES_H

/* This process, and what it forks, leave no core file. */
void cli_cores_off(void);

/* Between fork and exec: the command that is started may, if we were allowed to. */
void cli_cores_back(void);

#endif
