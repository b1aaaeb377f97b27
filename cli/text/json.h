/* json.h: answers in JSON, one object on one line.
 *
 * Names are those of the library. Times and durations are numbers in ms, and null is
 * "never". A member that does not apply is left out. Bytes are a string if they are
 * valid UTF-8. If they are not, the member is null, and NAME_hex beside it holds two hex
 * digits for each byte.
 */
#ifndef IDEM_CLI_TEXT_JSON_H
#define IDEM_CLI_TEXT_JSON_H

#include "base/bytes.h"

#include <idem.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    CLI_JSON_DEPTH = 8 /* Objects inside one another. */
};

/* An object that is written member by member. text.failed is set once memory runs
 * out. */
struct cli_json {
    struct idem__buffer text;
    unsigned depth;
    const char *arrays[CLI_JSON_DEPTH]; /* Open in each object; NULL: none. */
};

void cli_json_init(struct cli_json *json);
void cli_json_finish(struct cli_json *json);

/* Begins it anew, in the memory that it has. */
void cli_json_reset(struct cli_json *json);

/* A message may hold a file name that is not UTF-8, or be cut inside a character: the
 * line shows such bytes as \xNN. */
void cli_json_text(struct cli_json *json, const char *name, const char *text);

void cli_json_bool(struct cli_json *json, const char *name, bool value);
void cli_json_count(struct cli_json *json, const char *name, uint64_t value);
void cli_json_null(struct cli_json *json, const char *name);

/* IDEM_NEVER is null. */
void cli_json_ms(struct cli_json *json, const char *name, int64_t ms);
void cli_json_bytes(struct cli_json *json, const char *name,
                    struct idem_slice s);

/* Adds @s and returns true if it is UTF-8; else adds nothing and returns false. */
bool cli_json_utf8(struct cli_json *json, const char *name,
                   struct idem_slice s);

void cli_json_hex(struct cli_json *json, const char *name, struct idem_slice s);
void cli_json_base64(struct cli_json *json, const char *name,
                     struct idem_slice s);

/* Adds @value, JSON on one line, as it is. */
void cli_json_raw(struct cli_json *json, const char *name,
                  struct idem_slice value);

/* Opens an object as the member @name; members go into it until cli_json_close(). */
void cli_json_open(struct cli_json *json, const char *name);
void cli_json_close(struct cli_json *json);

/* Opens an array as the member @name; empty unless something is appended. */
void cli_json_array(struct cli_json *json, const char *name);

/* These append a value to the array @name, and open the array first unless it is open:
 * an object, which stays open until cli_json_close(); a number; a text, or null for
 * NULL; a pair of texts. The next member closes the array. */
void cli_json_append(struct cli_json *json, const char *name);
void cli_json_append_count(struct cli_json *json, const char *name,
                           uint64_t value);
void cli_json_append_text(struct cli_json *json, const char *name,
                          const char *text);
void cli_json_append_pair(struct cli_json *json, const char *name,
                          struct idem_slice first, struct idem_slice second);

/* Returns the line with its newline, which the caller frees; NULL: no memory. */
char *cli_json_line(const struct cli_json *json);

/* Returns the object for a caller that reads it, and that puts it; NULL: no memory. */
struct json_object *cli_json_parse(const struct cli_json *json);

/* Writes the line to @f. 0 or an exit status, after an error message. */
int cli_json_write(const struct cli_json *json, FILE *f);

/* The same, and finishes it; cli_json_print() to stdout. */
int cli_json_end(struct cli_json *json, FILE *f);
int cli_json_print(struct cli_json *json);

/* ---- Log lines ---- */

/* Lines for programs that collect logs: one JSON object on each.
 *
 *     {"time":"2026-11-21T08:24:00.123Z","level":"critical","event":"overdue",...}
 *
 * The other members have the names of json.h. No line holds a result, input, error text,
 * note or token, except that the audit log keeps the record that a decision replaces.
 * With IDEM_LOG_KEYS=hashed scope and key are left out. The line then names the record
 * by id, a hash of both, which `idem list --json` shows beside the key. */

/* Reads IDEM_LOG_KEYS. 0, or CLI_USAGE after an error message. */
int cli_log_init(void);

/* False with IDEM_LOG_KEYS=hashed. */
bool cli_log_shows_keys(void);

/* Begins a line; the caller adds to it, and finishes it. */
void cli_log_begin(struct cli_json *line, const char *level, const char *event);

/* The first adds scope, key and id of @record. The second adds those, and what a person
 * needs to find the attempt: status, owner, counters and times. */
void cli_log_identity(struct cli_json *line, const struct idem_record *record);
void cli_log_record(struct cli_json *line, const struct idem_record *record);

/* Writes the line to @f at once, and finishes it. 0 or an exit status. */
int cli_log_end(struct cli_json *line, FILE *f);

#endif
