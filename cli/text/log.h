/* log.h: lines for programs that collect logs: one JSON object on each.
 *
 *     {"time":"2026-11-21T08:24:00.123Z","level":"critical","event":"overdue",...}
 *
 * The other members have the names of json.h. No result, input, error text, note
 * or token is ever among them, but for a record that is reopened in the audit log.
 * With IDEM_LOG_KEYS=hashed scope and key are left
 * out: id, which is a hash of both, is shown for them, and `idem list --json`
 * shows it beside the key.
 */
#ifndef IDEM_CLI_TEXT_LOG_H
#define IDEM_CLI_TEXT_LOG_H

#include "text/json.h"

#include <idem.h>

/* Reads IDEM_LOG_KEYS. 0, or CLI_USAGE after saying why. */
int cli_log_init(void);

/* False with IDEM_LOG_KEYS=hashed. */
bool cli_log_shows_keys(void);

/* Begins a line; the caller adds to it, and finishes it. */
void cli_log_begin(struct cli_json *line, const char *level, const char *event);

/* Adds which record it is about, and what a person needs to look for it. */
void cli_log_identity(struct cli_json *line, const struct idem_record *record);
void cli_log_record(struct cli_json *line, const struct idem_record *record);

/* Writes the line to @f at once, and finishes it. 0 or an exit status. */
int cli_log_end(struct cli_json *line, FILE *f);

#endif
