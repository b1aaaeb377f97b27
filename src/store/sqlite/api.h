/* The functions of SQLite: of the library that we are linked with or, in the
 * loadable extension, of the program that has loaded it. */
#ifndef IDEM_STORE_SQLITE_API_H
#define IDEM_STORE_SQLITE_API_H

/* A second SQLite in a process would take handles of the first one for its own, and
 * would drop the locks that the first one has on a file. So the extension calls
 * through a table that its host gives it: <sqlite3ext.h> makes each name a call of
 * that kind, and src/extension/entry.c keeps the table. */
#ifdef IDEM__SQLITE_EXTENSION
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3
#else
#include <sqlite3.h>
#endif

#endif
