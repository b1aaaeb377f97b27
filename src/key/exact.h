/* Numbers on their way through jq, which holds them as doubles.
 *
 * A text with numbers that would not come out of it as they went in runs through
 * the program a second time, with marks in their place. Where the first run gave
 * the value of a number and the second its mark, it was only moved: its own digits
 * take the place of both.
 */
#ifndef IDEM_KEY_EXACT_H
#define IDEM_KEY_EXACT_H

#include "key/tree.h"

/* True: @ret_marked holds the text with marks, since it has such numbers. */
bool idem__exact_mark(const struct idem__tree *input,
                      struct idem__buffer *ret_marked);

/* Puts the digits of @input into @plain, what came of the text as it was; @marked
 * is what came of the one with marks, NULL if nothing did.
 *
 * IDEM_EINVALID  The program computes with a number that no double holds.
 * IDEM_ENOMEM
 */
int idem__exact_merge(const struct idem__tree *input,
                      const struct idem__tree *plain,
                      const struct idem__tree *marked,
                      struct idem__buffer *ret_merged,
                      struct idem_error *ret_error);

#endif
