/* A small disk of our own, which a test can fill. */
#ifndef TEST_DISK_H
#define TEST_DISK_H

#include <stdbool.h>
#include <stddef.h>

/* Mounts a file system of @len bytes in memory on a new directory, which only
 * this process and its children see. NULL: that is not allowed here. Before there
 * are threads. */
const char *disk_make(size_t len);

/* Takes the rest of it, to the last byte; disk_free() gives that back. */
void disk_fill(const char *disk);
void disk_free(const char *disk);

/* Unmounts it; nothing on it is open. */
void disk_end(const char *disk);

/* How many bytes can still be written. */
long disk_room(const char *disk);

#endif
