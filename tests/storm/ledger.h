/* What has happened, noted outside of every store. */
#ifndef STORM_LEDGER_H
#define STORM_LEDGER_H

#include <stdbool.h>

/* One line for each event, by its first letter; the judge (judge.py) reads them:
 *
 *     S key fence attempts pid   an attempt was STARTED
 *     E key fence pid            its effect
 *     A key fence pid id         its completion was acknowledged
 *     L key fence pid            its release was
 *     T key fence pid            it was told that it is LOST
 *     R key fence pid id         somebody was given this outcome
 *     X key fence pid            ... an outcome that nobody ever made
 *     U key fence pid            it may have happened
 */

/* Opens the ledger @path for this process; aborts if it cannot. */
void ledger_open(const char *path);

/* Appends a line that is there whole or not at all, and flushes it to the disk where @durable. */
void ledger_note(bool durable, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
