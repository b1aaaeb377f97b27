/* kin.h: all descendants of this process, also those that left their group,
 * their session and their parents.
 *
 * Who calls kin_adopt() becomes the parent of every descendant whose own parent
 * dies, so none can leave the family. What finds them is /proc: without it, or
 * with that of another PID namespace, only a process group can be signalled. */
#ifndef IDEM_CLI_RUN_KIN_H
#define IDEM_CLI_RUN_KIN_H

#include <stdbool.h>
#include <sys/types.h>

void kin_adopt(void);

/* Sends @signo to each descendant once; @group (0: none) is for hosts where
 * they cannot be found. */
void kin_signal(int signo, pid_t group);

/* Reaps every child that has ended, but not @spared (0: none). True if no child
 * is left; @spared counts as one as long as it is not reaped. */
bool kin_reap(pid_t spared);

/* Kills until none is left, for at most @ms. False: some cannot be killed. */
bool kin_end(pid_t group, int ms);

#endif
