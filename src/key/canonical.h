/* Writes the canonical text of a value, ours or another library's, with the order of
 * members and the numbers in it. */
#ifndef IDEM_KEY_CANONICAL_H
#define IDEM_KEY_CANONICAL_H

#include "base/bytes.h"
#include "key/tree.h"

#include <idem/key.h>

/* Appends the canonical text of node @number (0: the whole @tree). For a flavour,
 * this is the text that its library hashes. For IDEM_FLAVOUR_NONE it is one text for
 * all values with the same meaning: members in the order of their code points, no
 * blanks, only the escapes that JSON needs, and numbers as idem__number_decimal()
 * writes them.
 *
 * IDEM_EINVALID  The flavour has no text for the value, or not always the same one; or,
 *                for IDEM_FLAVOUR_NONE, the value has half a surrogate pair or a number
 *                whose exponent is too long.
 * IDEM_ENOMEM
 */
int idem__canonical(const struct idem__tree *tree, uint32_t number,
                    enum idem_flavour flavour, struct idem__buffer *out,
                    struct idem_error *ret_error);

/* Appends @text, which is UTF-8, as a string in our canonical form. */
void idem__canonical_string(struct idem__buffer *out, struct idem_slice text);

/* ---- The order of members: order.c ---- */

/* Each language orders the members of an object in its own way. */

/* Sorts @members, the numbers of the nodes in an object, in the order of the flavour.
 *
 * IDEM_EINVALID  The order depends on more than the names, or the locale C.UTF-8 is not
 *                installed (TypeScript).
 */
int idem__order(const struct idem__tree *tree, enum idem_flavour flavour,
                uint32_t *members, size_t len, struct idem_error *ret_error);

/* ---- Numbers: number.c ---- */

/* Numbers in our canonical form and in those of other libraries, whatever the locale
 * is. */

/* Returns the double that is nearest to a number of JSON. */
double idem__number_read(struct idem_slice number);

/* True if @number has neither a point nor an exponent. */
bool idem__number_is_integer(struct idem_slice number);

/* Appends the decimal value of a number of JSON as digits and an exponent, without
 * zeros at either end of the digits: 12e2 for 1200, 15e-1 for 1.5, 0 for -0.0. It loses
 * no digit and adds none: 1e999999999 stays 1e999999999. Returns false, and appends
 * nothing, if the exponent has more than 17 digits. */
bool idem__number_decimal(struct idem__buffer *out, struct idem_slice number);

/* Appends the same value as people write it: 1200, 1.5, 0.00012; with an exponent if it
 * would need more than 21 zeros, 15e40. Returns false in the same case. */
bool idem__number_text(struct idem__buffer *out, struct idem_slice number);

/* Appends the repr() of a float: 1e+21, 1.0, 1e-05, -0.0; an infinity as Infinity, as
 * json.dumps() writes it. */
void idem__number_python(struct idem__buffer *out, double value);

/* Appends the String() of a number: 1e+21, 1, 0.00001, 0; an infinity as null, as
 * JSON.stringify() writes it. */
void idem__number_javascript(struct idem__buffer *out, double value);

#endif
