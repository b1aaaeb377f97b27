/* text.h: how bytes, times and durations read. */
#ifndef IDEM_CLI_TEXT_H
#define IDEM_CLI_TEXT_H

#include <idem.h>
#include <stdio.h>

/* Prints bytes to @f with everything outside printable ASCII as \xHH. */
void cli_print_escaped(FILE *f, struct idem_slice s);

/* The same into @buf, always with a NUL; what does not fit ends in "...".
 * Returns @buf. */
const char *cli_escape(struct idem_slice s, char *buf, size_t size);

/* Two hex digits for each byte, and a NUL. @buf has room for 2 * s.len + 1. */
void cli_hex(struct idem_slice s, char *buf);

/* Whether JSON may hold the bytes as they are. */
bool cli_is_utf8(struct idem_slice s);

/* "2026-11-21T08:24:00.123Z" in @buf; "never" for IDEM_NEVER, "-" for 0. */
void cli_time_text(int64_t ms, char buf[32]);

/* "90s", "2h", "1d"; "never". The largest unit that is exact enough to read. */
void cli_duration_text(int64_t ms, char buf[32]);

#endif
