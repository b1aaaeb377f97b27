/* A directory for the files of one test program. */
#ifndef TEST_TEMP_H
#define TEST_TEMP_H

/* Returns a path in it that was never used, ending in @name; the text stays valid. */
const char *temp_path(const char *name);

/* Removes the directory and all that is in it. */
void temp_remove(void);

#endif
