/* memory_file.h: files without a name, in memory. */
#ifndef IDEM_CLI_PROCESS_MEMORY_FILE_H
#define IDEM_CLI_PROCESS_MEMORY_FILE_H

#include <stddef.h>

/* An empty file that is closed on exec; /proc shows @name for it. -1 with errno. */
int memory_file_open(const char *name);

/* One that holds these bytes, to be read from its beginning: unlike a pipe it can be
 * read late, or not at all. -1 with errno. */
int memory_file_of(const char *name, const void *bytes, size_t len);

#endif
