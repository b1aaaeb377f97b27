/* A small disk of our own, which a test can fill. */
#ifndef TEST_DISK_H
#define TEST_DISK_H

#include <stdbool.h>
#include <stddef.h>

/* Mounts a file system of @len bytes in memory on a new directory, which only this process
 * and its children see. NULL: that is not allowed here. Call it before any thread starts. */
const char *disk_make(size_t len);

/* Takes the rest of the disk, to the last byte; disk_free() gives that back. */
void disk_fill(const char *disk);
void disk_free(const char *disk);

/* Unmounts the disk, on which no file may be open. */
void disk_end(const char *disk);

/* Returns how many bytes can still be written. */
long disk_room(const char *disk);

#endif
