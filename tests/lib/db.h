/* SQLite files: stores in them, and what they hold beside the store's back. */
#ifndef TEST_DB_H
#define TEST_DB_H

#include <idem.h>
#include <sqlite3.h>

/* A store in the file @path, whose operations have @timeout_ms. */
struct idem_store *db_store(const char *path, int64_t timeout_ms);

/* A connection that waits a minute for the locks of others. */
sqlite3 *db_open(const char *path);

/* Runs statements, or one that gives a number. */
void db_run(sqlite3 *db, const char *sql);
int64_t db_number(sqlite3 *db, const char *sql);

/* The same by a connection of its own. */
void db_run_at(const char *path, const char *sql);
int64_t db_number_at(const char *path, const char *sql);

/* Reads or writes @len bytes at @at in the file "@path@suffix". */
void file_read(const char *path, const char *suffix, long at, void *bytes,
               size_t len);
void file_write(const char *path, const char *suffix, long at,
                const void *bytes, size_t len);

#endif
