/* SQLite files: opening stores in them, and reading and changing them without the store. */
#ifndef TEST_DB_H
#define TEST_DB_H

#include <idem.h>
#include <sqlite3.h>

/* Opens a store in the file @path, with @timeout_ms for its operations. */
struct idem_store *db_store(const char *path, int64_t timeout_ms);

/* Opens a connection that waits a minute for the locks of others. */
sqlite3 *db_open(const char *path);

/* Runs statements; or one statement, and returns the number that it gives. */
void db_run(sqlite3 *db, const char *sql);
int64_t db_number(sqlite3 *db, const char *sql);

/* Do the same on a connection of their own. */
void db_run_at(const char *path, const char *sql);
int64_t db_number_at(const char *path, const char *sql);

/* Reads or writes @len bytes at @at in the file "@path@suffix". */
void file_read(const char *path, const char *suffix, long at, void *bytes,
               size_t len);
void file_write(const char *path, const char *suffix, long at,
                const void *bytes, size_t len);

#endif
