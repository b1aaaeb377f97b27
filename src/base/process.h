/* process.h: this process, its threads and its children. */
#ifndef IDEM_BASE_PROCESS_H
#define IDEM_BASE_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* ---- This process -------------------------------------------------------- */

/* getpid() at the price of a load: only the first call in a process is a system call. */
long idem__process(void);

/* Starts @run(@arg) on a thread with all signals blocked: they belong to the threads of
 * the program. 0, or an errno. */
int idem__thread_start(pthread_t *ret_thread, void *(*run)(void *arg),
                       void *arg);

/* ---- Children: pidfd_open(2) and prctl(2) -------------------------------- */

/* Opens a descriptor that is readable once the child @pid has ended, and closed by exec.
 * It keeps meaning that child when the number belongs to another process. The caller
 * closes it. -1: this kernel has none (Linux before 5.3). */
int idem__child_open(pid_t pid);

/* From now on this process gets @signo when the thread that forked it ends. */
void idem__die_with_parent(int signo);

/* From now on this process becomes the parent of each descendant whose parent ends. 0,
 * or -1 with errno. */
int idem__adopt_orphans(void);

#endif
