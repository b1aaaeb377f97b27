/* record.h: a record for people and as JSON. */
#ifndef IDEM_CLI_RECORD_RECORD_H
#define IDEM_CLI_RECORD_RECORD_H

#include "options/command.h"
#include "text/json.h"

#include <idem.h>
#include <idem/form.h>
#include <idem/operator.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

/* Reads one record. 0 or an exit status, after an error message. */
int cli_get(struct idem_store *store, const char *store_url,
            struct idem_slice scope, struct idem_slice key,
            struct idem_answer **ret_answer);

/* True if the record is as a person decided it. The decision may still be corrected,
 * because no attempt has started since. */
bool cli_is_decided(const struct idem_record *record);

/* True if a person has reopened the record (idem reopen): any request may run it again. */
bool cli_is_reopened(const struct idem_record *record);

/* "renewed 3s ago, 57s left, owner ann@host" of a record that was live
 * when it was read. */
#define CLI_LIVE_MAX (96 + 4 * IDEM_OWNER_MAX)
void cli_live_text(const struct idem_record *record, int64_t now_ms,
                   char buf[CLI_LIVE_MAX]);

/* The status in @width columns; in colour where cli_may_paint(). */
void cli_print_status(FILE *f, const struct idem_record *record, int width);

/* "released", "taken_over", "resolved", "retried" or "reopened". */
const char *cli_past_end_name(enum idem_past_end end);

/* True if @form is what a command wrote to its streams. */
bool cli_is_output(const struct idem_form *form);

/* The exit status that `idem run` replays @record with, whose result is @form. */
int cli_replay_status(const struct idem_record *record,
                      const struct idem_form *form);

/* "it was done", or how it failed, by the status and the result of @record. */
void cli_outcome_text(const struct idem_record *record, char buf[64]);

/* Writes a result as it was given: frames go to stdout and stderr, all else to
 * stdout. 0, or CLI_CORRUPT after an error message; cli_finish_output() reports a write
 * that failed. */
int cli_write_result(const struct idem_record *record);

/* The exit status for @meta ("exit 3\n" or "signal 9\n"), as a shell would give
 * it; -1 if it has none. */
int cli_meta_status(struct idem_slice meta);

/* The scope of the records that say which alerts were raised. */
#define CLI_ALERT_SCOPE "idem.watch"

/* When the lease of an attempt in progress ends or ended. A lease that was ended early
 * may be on record as over before the attempt began; this returns its beginning then. */
int64_t cli_lease_end_ms(const struct idem_record *record);

/* True if @record is in CLI_ALERT_SCOPE, and so is not about work. */
bool cli_is_alert(const struct idem_record *record);

/* ---- The fields of a record that can be chosen: --fields ---- */

struct cli_field {
    const char *name;    /* As it is typed: "started". */
    const char *heading; /* "STARTED" */
    const char *member;  /* In JSON: "started_ms". */
    int width;           /* Negative: on the right. */
    void (*print)(FILE *f, const struct idem_record *record, bool is_tty);
};

enum {
    CLI_FIELDS_MAX = 24
};

struct cli_fields {
    const struct cli_field *list[CLI_FIELDS_MAX];
    size_t len;
};

/* The fields of "key,status,exit". 0 or a usage error that names them all. */
int cli_fields_parse(const struct cli_command *command, const char *option,
                     const char *text, struct cli_fields *ret_fields);

/* Every field, for messages and completion: "status, exit, ...". */
void cli_fields_print_names(FILE *f, const char *between);

/* Removes every member from the record in @json that does not belong to @fields. */
void cli_fields_keep(const struct cli_fields *fields, struct cli_json *json);

/* The exit status, or the HTTP status, on record; -1: there is none. */
int cli_outcome_exit(const struct idem_record *record);
int cli_outcome_http(const struct idem_record *record);

/* True if the work ended badly: failed, or completed with an exit status other
 * than 0 or an HTTP status from 500 on. */
bool cli_outcome_failed(const struct idem_record *record);

/* ---- A record as an answer in JSON ---- */

/* Everything that may be shown of @record; with its bytes if @with_bytes. The
 * nonce may not: it is a credential. */
void cli_json_record(struct cli_json *json, const struct idem_record *record,
                     bool with_bytes);

/* Only what is on record: not "overdue", which depends on who asks, and when. */
void cli_json_stored(struct cli_json *json, const struct idem_record *record);

/* How often things happened. */
void cli_json_counters(struct cli_json *json, const struct idem_counters *c);

/* The records of a list, noted in a file without a name.
 *
 * A list has no results, and its callback must not call the store. So a command notes the
 * records first, and works on each of them after the list. They are in a file because a
 * store may have too many for memory. */

struct cli_names {
    FILE *f;
    uint64_t len; /* How many were noted. */
};

struct cli_name {
    struct idem_slice scope; /* The slices are valid until the next call. */
    struct idem_slice key;
    struct idem_slice owner; /* This and the rest are as they were listed. */
    uint64_t bytes;          /* Of its result and input. */
    uint64_t fence;
    enum idem_status status;
    bool retry;
    char text[2 * UINT8_MAX + IDEM_OWNER_MAX];
};

/* 0 or an exit status, after an error message. */
int cli_names_open(struct cli_names *names);
void cli_names_close(struct cli_names *names);

/* False: it could not be written; cli_names_rewind() says why. */
bool cli_names_add(struct cli_names *names, const struct idem_record *record);

/* Goes back to the first. 0 or an exit status, after an error message. */
int cli_names_rewind(struct cli_names *names);

/* The next one; false: that was all. */
bool cli_names_next(struct cli_names *names, struct cli_name *ret_name);

/* Adds "text", "values" and "rows" of the statement of SQL that completes @attempt, for
 * the caller to run: as idem_postgres_completion(). */
int cli_statement_json(struct cli_json *json, const struct idem_store *store,
                       struct idem_attempt *attempt,
                       const struct idem_result *result,
                       struct idem_error *error);

#endif
