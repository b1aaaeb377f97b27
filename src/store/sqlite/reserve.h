/* Room on the disk that is kept for ending what was begun.
 *
 * PATH-reserve is a file of blocks that nobody uses. A claim is made only while
 * it is whole. Where an end finds the disk full, it gives a slice of it back to
 * the file system, until the end is written; by then the log has been carried
 * over too, whose blocks are used again. When there is room once more, the next
 * claim fills it up first.
 */
#ifndef IDEM_STORE_SQLITE_RESERVE_H
#define IDEM_STORE_SQLITE_RESERVE_H

#include "store/sqlite/place.h"

#include <stdint.h>

enum {
    IDEM__RESERVE_LEN = 4 << 20,
    IDEM__RESERVE_SLICES = 8,
    IDEM__RESERVE_PART = 16, /* Of a small file system no more than 1/16. */
};

/* Zeroed, but for fd: -1, before its first use. All under the store's lock. */
struct idem__reserve {
    int fd;       /* -1: not opened yet. */
    int64_t len;  /* When it is whole. 0: there can be none here. */
    bool lacking; /* It was not whole when it was last filled. */
};

/* Makes the reserve of the store in @path whole. False: the disk is too full. */
bool idem__reserve_fill(struct idem__reserve *reserve, const char *path,
                        const struct idem__share *share);

/* Gives a slice back to the file system. False: there is none left. */
bool idem__reserve_give(struct idem__reserve *reserve, const char *path,
                        const struct idem__share *share);

void idem__reserve_close(struct idem__reserve *reserve);

#endif
