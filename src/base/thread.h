/* Threads of the library's own. */
#ifndef IDEM_BASE_THREAD_H
#define IDEM_BASE_THREAD_H

#include <pthread.h>

/* Starts @run(@arg) on a thread that takes no signals: they belong to the threads
 * of the program. 0, or an errno. */
int idem__thread_start(pthread_t *ret_thread, void *(*run)(void *arg),
                       void *arg);

#endif
