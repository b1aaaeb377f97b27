/* spool.h: bytes to keep, in memory first and in an unlinked file once they are
 * many, so that a command that prints a lot does not make the runner grow. */
#ifndef IDEM_CLI_RUN_SPOOL_H
#define IDEM_CLI_RUN_SPOOL_H

#include <idem.h>

#define SPOOL_MEMORY                                                           \
    ((size_t)1 << 20) /* The bytes that stay in memory at
                                          most. */

struct spool {
    char *memory; /* SPOOL_MEMORY bytes; NULL before the first append. */
    size_t memory_len;
    int fd;       /* The file; -1: all bytes are in memory. */
    size_t filed; /* Bytes in the file; those in memory come after them. */
    void *map;    /* The file as spool_bytes() showed it; NULL: not yet. */
};

void spool_init(struct spool *spool);

/* Adds @len bytes, at most SPOOL_MEMORY. 0, or -1 with errno: space ran out,
 * and the spool is of no further use. */
int spool_append(struct spool *spool, const void *bytes, size_t len);

/* Writes over @len bytes at @at, which one append brought. 0 or -1 likewise. */
int spool_patch(struct spool *spool, size_t at, const void *bytes, size_t len);

size_t spool_len(const struct spool *spool);

/* All bytes in one piece, which is valid until spool_finish(); nothing may be
 * appended after it. 0 or -1 likewise. */
int spool_bytes(struct spool *spool, struct idem_slice *ret_bytes);

void spool_finish(struct spool *spool);

#endif
