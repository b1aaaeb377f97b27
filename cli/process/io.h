/* io.h: whole writes to descriptors that may be anything. */
#ifndef IDEM_CLI_PROCESS_IO_H
#define IDEM_CLI_PROCESS_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes all @len bytes, waiting where another process made @fd non-blocking.
 * 0, or -1 with errno. */
int io_write_all(int fd, const void *bytes, size_t len);

/* True if a write of up to PIPE_BUF bytes to @fd would not block now. */
bool io_is_writable(int fd);

/* Closes *@fd unless it is negative, and makes it -1. */
/* A copy of @fd that is closed on exec, and none of the standard ones; -1 with
 * errno. */
int io_copy(int fd);

void io_close(int *fd);

/* Milliseconds on the clock that no one sets and that counts suspended time. */
int64_t io_now_ms(void);

#endif
