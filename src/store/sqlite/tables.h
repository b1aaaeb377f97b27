/* The tables of records and of the clock, in a store and in the database of an
 * application. */
#ifndef IDEM_STORE_SQLITE_TABLES_H
#define IDEM_STORE_SQLITE_TABLES_H

/* Their version. */
#define IDEM__TABLES_VERSION 1
#define IDEM__TABLES_VERSION_TEXT "1"

/* The statements that make them, unless they are there; NULL after the last. */
extern const char *const idem__tables[];

#endif
