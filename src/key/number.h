/* Numbers in canonical form, ours and those of other libraries. Independent of
 * the locale. */
#ifndef IDEM_KEY_NUMBER_H
#define IDEM_KEY_NUMBER_H

#include "base/bytes.h"

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
