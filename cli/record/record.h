/* record.h: what a record says to somebody who looks at it now. */
#ifndef IDEM_CLI_RECORD_RECORD_H
#define IDEM_CLI_RECORD_RECORD_H

#include <idem.h>
#include <idem/form.h>
#include <stdio.h>

/* Reads one record. 0 or an exit status, after saying why. */
int cli_get(struct idem_store *store, const char *store_url,
            struct idem_slice scope, struct idem_slice key,
            struct idem_answer **ret_answer);

/* True if it is as a person decided, who may still be corrected: nobody has started
 * since. */
bool cli_is_decided(const struct idem_record *record);

/* To be run again because a person said so, by any request: idem reopen. */
bool cli_is_reopened(const struct idem_record *record);

/* "renewed 3s ago, 57s left, owner ann@host" of a record that was live
 * when it was read. */
#define CLI_LIVE_MAX (96 + 4 * IDEM_OWNER_MAX)
void cli_live_text(const struct idem_record *record, int64_t now_ms,
                   char buf[CLI_LIVE_MAX]);

/* The escape sequence that paints the status of @record, or NULL. */
const char *cli_status_paint(const struct idem_record *record, bool overdue);

/* The status in @width columns; in colour where cli_may_paint(). */
void cli_print_status(FILE *f, const struct idem_record *record, int width);

/* "released", "taken_over" or "resolved". */
const char *cli_past_end_name(enum idem_past_end end);

/* True if @form is what a command wrote to its streams. */
bool cli_is_output(const struct idem_form *form);

/* The exit status that `idem run` replays @record with, whose result is @form. */
int cli_replay_status(const struct idem_record *record,
                      const struct idem_form *form);

/* "it was done", or how it failed, by the status and the result of @record. */
void cli_outcome_text(const struct idem_record *record, char buf[64]);

/* Writes a result as it was given: frames go to stdout and stderr, all else to
 * stdout. 0, or CLI_CORRUPT after saying why; cli_finish_output() sees what
 * could not be written. */
int cli_write_result(const struct idem_record *record);

/* The exit status for @meta ("exit 3\n" or "signal 9\n"), as a shell would give
 * it; -1 if it says none. */
int cli_meta_status(struct idem_slice meta);

/* The scope of the records that say which alerts were raised. */
#define CLI_ALERT_SCOPE "idem.watch"

/* When the lease of an attempt in progress ends or ended. One that was ended before its
 * time is on record as over since before its start, for other clocks to see it so. */
int64_t cli_lease_end_ms(const struct idem_record *record);

/* True of such a record, which is about no work. */
bool cli_is_alert(const struct idem_record *record);

#endif
