/* A disk that remembers what was written to it, and when it was flushed. */
#ifndef POWERCUT_DISK_H
#define POWERCUT_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The files of a store that survive a power cut; its shared memory does not. */
enum disk_file {
    DISK_DB,
    DISK_WAL,
    DISK_LOCK,
    DISK_FILES,
};

enum disk_event_kind {
    DISK_WRITE,
    DISK_TRUNCATE,
    DISK_SYNC_BEGIN, /* What was written to the file before this ... */
    DISK_SYNC_END,   /* ... is on the disk after this. */
};

struct disk_event {
    enum disk_event_kind kind;
    enum disk_file file;
    int64_t at; /* Of a write: offset; of a truncation: the new size. */
    size_t len;
    uint8_t *data;
};

/* Everything that happened since disk_start(), in order. */
struct disk_log {
    struct disk_event *events;
    size_t len;
    size_t cap;
};

/* What one file holds. */
struct disk_bytes {
    uint8_t *data;
    size_t len;
    size_t cap;
};

struct disk_image {
    struct disk_bytes files[DISK_FILES];
};

/* Puts the disk under every SQLite connection that is opened from now on, and
 * under what the library writes to lock files; what it does to the words that
 * are mapped from them needs not survive. */
void disk_install(void);

/* Starts a new log; it goes to @log until disk_stop(). */
void disk_start(struct disk_log *log);
void disk_stop(void);

/* How many events there were: the moment now. */
size_t disk_moment(void);

/* The moment at which the last flush had just begun. */
size_t disk_flush_moment(void);

void disk_log_free(struct disk_log *log);

/* Applies what a write or a truncation did. */
void disk_apply(struct disk_bytes *bytes, const struct disk_event *event,
                size_t from, size_t len);

/* Reads the files of the store at @path, or writes them; what is empty is not
 * there. */
void disk_load(struct disk_image *image, const char *path);
void disk_save(const struct disk_image *image, const char *path);
void disk_copy(struct disk_image *to, const struct disk_image *from);
void disk_image_free(struct disk_image *image);

#endif
