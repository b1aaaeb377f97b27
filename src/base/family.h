/* Children of this process: their end as a descriptor, pidfd_open(2), and what
 * becomes of them and of theirs when a parent ends, prctl(2). */
#ifndef IDEM_BASE_FAMILY_H
#define IDEM_BASE_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

/* A descriptor of the child @pid, readable once it has ended, closed by exec. It
 * means that child also when its number belongs to another. The caller closes it.
 * -1: this kernel has none (Linux before 5.3). */
int idem__child_open(pid_t pid);

/* False: this kernel cannot signal a child by its descriptor. */
bool idem__child_signal(int child, int signo);

/* waitid() with WEXITED and @flags for the child @pid, by its descriptor unless that
 * is -1, so that no other process of its number is meant. 1: it has ended, or is not
 * ours any more; 0: it has not. */
int idem__child_wait(int child, pid_t pid, int flags);

/* From now on this process, a child, gets @signo when the thread that made it ends. */
void idem__die_with_parent(int signo);

/* From now on this process is the parent of each descendant whose own one ends.
 * 0, or -1 with errno. */
int idem__adopt_orphans(void);

#endif
