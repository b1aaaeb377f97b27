/* <pthread.h> with pthread_mutex_clocklock() if the C library lacks it. */
#pragma GCC system_header
#include_next <pthread.h>

#if defined(IDEM_NO_CLOCKLOCK) && !defined(IDEM_GAPS_CLOCKLOCK)
#define IDEM_GAPS_CLOCKLOCK

/* Like pthread_mutex_timedlock(), until @until on @clock. */
int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                            const struct timespec *until);

#endif
