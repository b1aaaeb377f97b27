/* The canonical text of a value: ours, or that of another library; the order of members
 * and the numbers in it. */
#ifndef IDEM_KEY_CANONICAL_H
#define IDEM_KEY_CANONICAL_H

#include "base/bytes.h"
#include "key/tree.h"

#include <idem/key.h>

/* Appends the canonical text of the node @number, 0 for the whole @tree: what a flavour makes its digest
 * of, or for IDEM_FLAVOUR_NONE the one text of all that means the same. That has
 * the members of objects in the order of their code points, no blanks, the escapes
 * that JSON needs, and numbers as idem__number_decimal() writes them.
 *
 * IDEM_EINVALID  The flavour has no text for it, or none that is always the same;
 *                there is half a surrogate pair in it, or a number whose exponent
 *                is too long, for IDEM_FLAVOUR_NONE.
 * IDEM_ENOMEM
 */
int idem__canonical(const struct idem__tree *tree, uint32_t number,
                    enum idem_flavour flavour, struct idem__buffer *out,
                    struct idem_error *ret_error);

/* Appends @text, which is UTF-8, as ours has a string. */
void idem__canonical_string(struct idem__buffer *out, struct idem_slice text);

/* ---- The order of members: order.c ---- */

/* The order of an object's members, which each language has its own of. */

/* Sorts @members, the numbers of an object's nodes, as the flavour does.
 *
 * IDEM_EINVALID  It depends on more than the names.
 */
int idem__order(const struct idem__tree *tree, enum idem_flavour flavour,
                uint32_t *members, size_t len, struct idem_error *ret_error);

/* ---- Numbers: number.c ---- */

/* Numbers in canonical form, ours and those of other libraries. Independent of
 * the locale. */

/* The double next to a number of JSON. */
double idem__number_read(struct idem_slice number);

/* True: it has neither point nor exponent. */
bool idem__number_is_integer(struct idem_slice number);

/* Appends the decimal value of a number of JSON as digits and an exponent, without
 * zeros at either end of the digits: 12e2 for 1200, 15e-1 for 1.5, 0 for -0.0. No
 * digit is lost, and none is added: 1e999999999 is 1e999999999.
 *
 * False: its exponent has more than 17 digits, and nothing was appended. */
bool idem__number_decimal(struct idem__buffer *out, struct idem_slice number);

/* Appends the same value as people write it: 1200, 1.5, 0.00012; with an exponent
 * where more than 21 zeros would be put in, 15e40. False: likewise. */
bool idem__number_text(struct idem__buffer *out, struct idem_slice number);

/* Appends repr() of a float: 1e+21, 1.0, 1e-05, -0.0, inf as Infinity. */
void idem__number_python(struct idem__buffer *out, double value);

/* Appends String() of a number: 1e+21, 1, 0.00001, 0; null where it is none. */
void idem__number_javascript(struct idem__buffer *out, double value);

#endif
