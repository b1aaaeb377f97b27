/* Shared by the files of mod_idem, the loadable extension of SQLite.
 *
 *     entry.c       the function that SQLite calls when it loads the extension
 *     begin.c       idem_begin(), a function that returns a row
 *     end.c         idem_complete() and the other endings, functions with a value
 *     argument.c    converts values of SQL to values of <idem.h>
 *
 * Each call works in the transaction that the caller has opened on its own connection,
 * with the functions of src/store/sqlite/in.c, and keeps no state.
 */
#ifndef IDEM_EXTENSION_EXTENSION_H
#define IDEM_EXTENSION_EXTENSION_H

#include "store/sqlite/api.h"

#include <idem.h>

/* ---- begin.c, end.c ---- */

/* Add the functions to a connection. They return an SQLite result code. */
int idem__extension_add_begin(sqlite3 *db);
int idem__extension_add_ends(sqlite3 *db);

/* ---- argument.c ---- */

/* Room for the digits of a number, with a NUL. */
#define IDEM__DIGITS_MAX 24

/* Returns the bytes of @value: a blob or a text as it is, the digits of a number, and
 * no bytes for NULL. A number without a fraction counts as an integer, however its
 * language passes numbers. The bytes are in @digits or in @value, and valid until
 * @value is read as another type. */
struct idem_slice idem__argument_bytes(sqlite3_value *value,
                                       char digits[IDEM__DIGITS_MAX]);

/* Reads a number that is not negative, or with @may_be_never the text 'never'. @name is
 * the name of the argument, for the error.
 *
 * IDEM_EINVALID  @value is neither.
 */
int idem__argument_ms(const char *name, sqlite3_value *value, bool may_be_never,
                      int64_t *ret_ms, struct idem_error *error);

/* Returns the SQLite result code for @code, by which drivers tell their callers to try
 * again, or that there is no room. */
int idem__argument_result_of(int code);

#endif
