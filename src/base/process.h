/* process.h: this process, its threads and its children. */
#ifndef IDEM_BASE_PROCESS_H
#define IDEM_BASE_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* ---- This process -------------------------------------------------------- */

/* Returns the same as getpid(), at the price of a load: only the first call in a
 * process is a system call. */
long idem__process(void);

/* Starts @run(@arg) on a thread with all signals blocked, because signals belong to the
 * threads of the program. Returns 0 or an errno. */
int idem__thread_start(pthread_t *ret_thread, void *(*run)(void *arg),
                       void *arg);

/* ---- Children: pidfd_open(2) and prctl(2) -------------------------------- */

/* Opens a descriptor that is readable once the child @pid has ended, and that exec
 * closes. It stays the descriptor of that child even if another process gets the
 * number. The caller closes it. Returns -1 if this kernel cannot (Linux before 5.3). */
int idem__child_open(pid_t pid);

/* Makes the kernel send @signo to this process when the thread that forked it ends. */
void idem__die_with_parent(int signo);

/* Makes this process the parent of each descendant whose own parent ends. Returns 0, or
 * -1 with errno. */
int idem__adopt_orphans(void);

#endif
