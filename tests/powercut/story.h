/* What was done to a store, and what was answered when. */
#ifndef POWERCUT_STORY_H
#define POWERCUT_STORY_H

#include <idem.h>

enum {
    STORY_KEYS = 120,
    STORY_STEPS = 8, /* States of a key at most, after "absent". */
};

/* A state that a key was brought to. */
struct story_state {
    enum idem_status status;
    uint64_t fence;
    size_t result_len;
    uint8_t result_byte; /* The result is this byte, again and again. */
    size_t asked;        /* Moment of the disk when it was asked for, */
    size_t flushed;      /* when the last flush before the answer began, */
    size_t answered;     /* and when it was answered. */
};

struct story_key {
    struct story_state states[STORY_STEPS];
    size_t len;
};

struct story {
    struct story_key keys[STORY_KEYS];
};

/* Lives through @story on the store at @url: claims, ends and claims again, one
 * after the other and in batches, while the log is carried over more than once.
 * Each answer is noted with the moment of the disk. */
void story_live(struct story *story, const char *url, uint64_t *seed);

/* What is wrong with the store at @url after a cut at @moment; NULL: nothing.
 * What was answered before must be there; what was asked for may be. With
 * @early an answer counts from the moment its flush began. */
const char *story_check(const struct story *story, const char *url,
                        size_t moment, bool early);

#endif
