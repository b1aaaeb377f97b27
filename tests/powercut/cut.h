/* Power cuts: what a disk may hold after one. */
#ifndef POWERCUT_CUT_H
#define POWERCUT_CUT_H

#include "disk.h"

/* What a flush is worth on this disk. */
enum cut_trust {
    CUT_HONEST,  /* A flush that ended is kept. */
    CUT_NO_SYNC, /* Control: flushes do nothing. */
    CUT_WHOLE,   /* Honest, and no write is torn: what a rollback journal, which
                    is not simulated, makes of a database that is not in WAL
                    mode yet. */
};

/* Walks along a log; the moments must not go back. */
struct cut {
    const struct disk_log *log;
    enum cut_trust trust;
    struct disk_image kept;   /* What is on the disk for certain. */
    size_t done[DISK_FILES];  /* Events of each file that are in kept. */
    size_t begun[DISK_FILES]; /* Where the last flush of each began. */
    size_t at;
};

/* @start is what the disk held when the log began. */
void cut_init(struct cut *cut, const struct disk_log *log,
              const struct disk_image *start, enum cut_trust trust);
void cut_finish(struct cut *cut);

/* An image of the disk after a cut at @moment: what is certain, and of what was
 * under way each sector of 512 bytes, each growth and each truncation, or not,
 * as *@seed says. Sometimes all of it, sometimes nothing. */
void cut_take(struct cut *cut, size_t moment, uint64_t *seed,
              struct disk_image *ret_image);

uint64_t cut_random(uint64_t *seed);

#endif
