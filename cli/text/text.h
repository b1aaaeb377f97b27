/* text.h: how bytes, times and durations read. */
#ifndef IDEM_CLI_TEXT_TEXT_H
#define IDEM_CLI_TEXT_TEXT_H

#include <idem.h>
#include <stdio.h>

/* Prints bytes to @f: UTF-8 as it is; the backslash, invisible characters (control
 * characters, direction marks, zero-width spaces) and bytes that are not UTF-8 as \xHH
 * for each byte. */
void cli_print_escaped(FILE *f, struct idem_slice s);

/* The same into @buf, always with a NUL; a text that does not fit ends in "...".
 * Returns @buf. */
const char *cli_escape(struct idem_slice s, char *buf, size_t size);

#define CLI_ESCAPED_LEN 4 /* "\x0a", or one character of UTF-8. */

/* The character at @p, of which @left bytes are there, as text in @buf, with a NUL.
 * The backslash is escaped too, so that no two keys look the same. *@ret_taken:
 * bytes of it. Returns the length of the text. */
size_t cli_escape_one(const unsigned char *p, size_t left,
                      char buf[CLI_ESCAPED_LEN + 1], size_t *ret_taken);

/* True if every character is UTF-8 that can be seen. */
bool cli_is_seen(struct idem_slice s);

/* The number of characters of @text, which is UTF-8. It is as many columns wide, unless
 * some characters are wide. */
size_t cli_columns(const char *text);

/* The prefix of a key that is shown escaped, which marks it where it is typed
 * again. */
#define CLI_ESCAPED "escaped:"

/* True if @key is shown with CLI_ESCAPED before it. */
bool cli_key_is_escaped(struct idem_slice key);

/* Prints @key in the form that commands which look a key up take back. */
void cli_print_key(FILE *f, struct idem_slice key);

/* The bytes of an escaped text in @buf, up to @size of them. False if a backslash
 * is not followed by x and two hex digits, or if there are more bytes. */
bool cli_unescape(const char *text, char *buf, size_t size, size_t *ret_len);

/* Two hex digits for each byte, and a NUL. @buf has room for 2 * s.len + 1. */
void cli_hex(struct idem_slice s, char *buf);

/* The bytes of such a @text in @buf, up to @max of them. False if it is not hex, or too
 * long. */
bool cli_unhex(struct idem_slice text, uint8_t *buf, size_t max,
               size_t *ret_len);

/* True if JSON may hold the bytes as they are. */
bool cli_is_utf8(struct idem_slice s);

/* "2026-11-21T08:24:00.123Z" in @buf; "never" for IDEM_NEVER, "-" for 0. */
void cli_time_text(int64_t ms, char buf[32]);

/* Local time for a terminal, else UTC. */
void cli_time_for(bool is_tty, int64_t ms, char buf[48]);

/* How long ago or ahead, as people say it: "420ms", "2.1s", "43s", "3h20m",
 * "12d", "56y". It is rounded down; idem_setting_time() is exact. */
void cli_span_text(int64_t ms, char buf[32]);

/* The same in words: "less than a second", "43 seconds", "3 hours 20 minutes",
 * "12 days". It is rounded down. */
#define CLI_WORDS_MAX 64
void cli_span_words(int64_t ms, char buf[CLI_WORDS_MAX]);

#endif
