/* descriptors.h: writing to descriptors, copying them, files in memory, and which
 * descriptors a command inherits. */
#ifndef IDEM_CLI_PROCESS_DESCRIPTORS_H
#define IDEM_CLI_PROCESS_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* ---- Whole writes to descriptors of any kind ----------------------------- */

/* Writes all @len bytes, and waits if another process made @fd non-blocking. 0, or -1
 * with errno. */
int io_write_all(int fd, const void *bytes, size_t len);

/* True if a write of up to PIPE_BUF bytes to @fd would not block now. */
bool io_is_writable(int fd);

/* Returns a copy of @fd above the standard descriptors, closed on exec; -1 with errno. */
int io_copy(int fd);

/* Closes *@fd unless it is negative, and sets it to -1. */
void io_close(int *fd);

/* ---- Files without a name, in memory ------------------------------------- */

/* An empty file, closed on exec; /proc shows it as @name. -1 with errno. */
int memory_file_open(const char *name);

/* A file that holds these bytes and is read from its beginning. Unlike a pipe, it can
 * be read late, or not at all. -1 with errno. */
int memory_file_of(const char *name, const void *bytes, size_t len);

/* ---- Descriptors that a command must not inherit ------------------------- */

enum {
    CLI_DESCRIPTORS = 256 /* Higher ones are ignored. */
};

/* Which descriptors are open. */
struct cli_descriptors {
    bool open[CLI_DESCRIPTORS];
};

void cli_descriptors_note(struct cli_descriptors *ret_noted);

/* Marks every descriptor opened since then as close-on-exec. */
void cli_descriptors_keep(const struct cli_descriptors *noted);

/* Opens those of descriptors 0 to 2 that are closed, so that no file of ours gets such
 * a number. Using one still fails, as it did when it was closed. */
void cli_open_std_fds(void);

#endif
