/* A descriptor that becomes readable at a moment: timerfd(2). */
#ifndef IDEM_BASE_TIMER_H
#define IDEM_BASE_TIMER_H

#include <stdint.h>

/* A timer that is not set, closed by exec. The caller closes it. -1, with errno. */
int idem__timer_open(void);

/* Readable from @due_ms of idem__mono_ms() on, and not before; IDEM_NEVER: not at
 * all. Replaces the moment that was set before. */
void idem__timer_set(int timer, int64_t due_ms);

#endif
