/* mod_idem, the loadable extension of SQLite: the parts that its files share.
 *
 *     entry.c       the function that SQLite calls when it loads the extension
 *     begin.c       idem_begin(), a function that gives a row
 *     end.c         idem_complete() and the other endings, functions that give a value
 *     argument.c    values of SQL as those of <idem.h>
 *
 * Each call works in the transaction that the caller has opened on its own
 * connection, by the functions of src/store/sqlite/in.c, and keeps nothing.
 */
#ifndef IDEM_EXTENSION_EXTENSION_H
#define IDEM_EXTENSION_EXTENSION_H

#include "store/sqlite/api.h"

#include <idem.h>

/* ---- begin.c, end.c ---- */

/* Adds the functions to a connection. An SQLite result. */
int idem__extension_add_begin(sqlite3 *db);
int idem__extension_add_ends(sqlite3 *db);

/* ---- argument.c ---- */

/* Room for the digits of a number. */
#define IDEM__DIGITS_MAX 24

/* The bytes of @value: of a blob or a text as they are, of a number its digits; none
 * of NULL. A number without a fraction is an integer, in whatever form its language
 * passes numbers. They are in @digits or in @value, until that is asked for another
 * type. */
struct idem_slice idem__argument_bytes(sqlite3_value *value,
                                       char digits[IDEM__DIGITS_MAX]);

/* A number that is not negative; the text 'never' where @may_be_never. @name is that
 * of the argument.
 *
 * IDEM_EINVALID
 */
int idem__argument_ms(const char *name, sqlite3_value *value, bool may_be_never,
                      int64_t *ret_ms, struct idem_error *error);

/* The SQLite result by which @code is reported: drivers tell their callers to try
 * again, or that there is no room, by this number. */
int idem__argument_result_of(int code);

#endif
