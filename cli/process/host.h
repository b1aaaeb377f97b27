/* host.h: the services of the host: the time, a timer, random bytes, and the folder of
 * this user. */
#ifndef IDEM_CLI_PROCESS_HOST_H
#define IDEM_CLI_PROCESS_HOST_H

#include <stddef.h>
#include <stdint.h>

/* ---- The time ------------------------------------------------------------ */

/* The wall clock, for times that people read. A store decides by its own clock. */
int64_t cli_now_ms(void);

/* A clock that nobody sets, for measuring how long things take. */
int64_t cli_mono_ms(void);

/* The same, counting the time in which the machine was suspended. */
int64_t io_now_ms(void);

/* A descriptor that becomes readable at a moment of io_now_ms(), also when the machine
 * was suspended then. Closed on exec. -1 with errno. */
int boot_timer_open(void);

/* Makes @fd readable from @at_ms on; 0: never. */
void boot_timer_set(int fd, int64_t at_ms);

/* Makes @fd unreadable until it is set again. */
void boot_timer_take(int fd);

/* ---- Random bytes -------------------------------------------------------- */

/* Fills @buf with random bytes of the kernel. 0, or -1 with errno. */
int cli_random(void *buf, size_t len);

/* ---- This user's files --------------------------------------------------- */

/* The path of @name in the directory of idem's state: $XDG_STATE_HOME/idem,
 * ~/.local/state/idem, or for root /var/lib/idem. The caller frees it. NULL with
 * errno: ENOENT, this user has no such directory; ENOMEM. */
char *cli_state_path(const char *name);

/* Creates the missing directories above @path, with access for this user only. 0, or
 * -1 with errno, and @path ends after the directory that could not be created. */
int cli_make_directories(char *path);

#endif
