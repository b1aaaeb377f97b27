/* fields.h: what of a record can be shown and chosen: --fields. */
#ifndef IDEM_CLI_RECORD_FIELDS_H
#define IDEM_CLI_RECORD_FIELDS_H

#include "options/command.h"

#include <json-c/json.h>
#include <stdio.h>

struct cli_field {
    const char *name;    /* As it is typed: "started". */
    const char *heading; /* "STARTED" */
    const char *member;  /* In JSON: "started_ms". */
    int width;           /* Negative: on the right. */
    void (*print)(FILE *f, const struct idem_record *record, bool is_tty);
};

/* The field of this name, or NULL. */
const struct cli_field *cli_field_find(const char *name, size_t len);

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

/* The member names of @fields, taken out of a record in JSON: all others go. */
void cli_fields_keep(const struct cli_fields *fields,
                     struct json_object *object);

/* The exit status, or the HTTP status, on record; -1: there is none. */
int cli_outcome_exit(const struct idem_record *record);
int cli_outcome_http(const struct idem_record *record);

/* True if the work ended badly: failed, or completed with an exit status other
 * than 0 or an HTTP status from 500 on. */
bool cli_outcome_failed(const struct idem_record *record);

#endif
