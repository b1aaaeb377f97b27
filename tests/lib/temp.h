/* A directory for the files of one test program. */
#ifndef TEST_TEMP_H
#define TEST_TEMP_H

/* A path in it that nothing has had yet, ending in @name; valid for good. */
const char *temp_path(const char *name);

/* Removes the directory and all that is in it. */
void temp_remove(void);

#endif
