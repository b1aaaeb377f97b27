/* boot_timer.h: a descriptor that becomes readable at a moment of io_now_ms(), also
 * when the machine slept past it. */
#ifndef IDEM_CLI_PROCESS_BOOT_TIMER_H
#define IDEM_CLI_PROCESS_BOOT_TIMER_H

#include <stdint.h>

/* Closed on exec. -1 with errno. */
int boot_timer_open(void);

/* From now on @fd is readable at @at_ms, and not before; 0: never. */
void boot_timer_set(int fd, int64_t at_ms);

/* Takes what made @fd readable, if anything did. */
void boot_timer_take(int fd);

#endif
