/* The columns and rows of idem list. */
#include "inspect/list.h"
#include "options/command.h"
#include "record/record.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/screen.h"
#include "text/text.h"

#include <stdlib.h>

/* ---- Which columns ------------------------------------------------------- */

/* In a pipe, and where the terminal is wide enough. */
static const char all_columns[] =
    "status,exit,started,lease,attempts,owner,scope,key";

/* On a terminal: the first that leaves KEY_ROOM columns for the key. */
static const char *const terminal_columns[] = {
    "status,exit,started,age,took,lease,attempts,owner,scope,key",
    "status,exit,started,took,lease,attempts,owner,scope,key",
    "status,exit,age,took,lease,attempts,owner,scope,key",
    "status,exit,age,lease,attempts,scope,key",
    "status,exit,age,lease,scope,key",
    "status,exit,age,key",
    NULL,
};

#define KEY_ROOM 24
#define GAP 2 /* Between two columns. */

static int width_of(const struct cli_fields *fields)
{
    int width = 0;
    size_t i;

    for (i = 0; i < fields->len; i++) {
        width += abs(fields->list[i]->width) + GAP;
    }
    return width;
}

static int choose_for_terminal(const struct cli_command *command,
                               struct cli_fields *fields)
{
    size_t i;

    for (i = 0; terminal_columns[i] != NULL; i++) {
        int status =
            cli_fields_parse(command, "fields", terminal_columns[i], fields);

        if (status != 0 || width_of(fields) + KEY_ROOM <= cli_width()) {
            return status;
        }
    }
    return 0;
}

int listing_choose_fields(const struct cli_command *command,
                          struct listing *listing)
{
    if (listing->args->fields != NULL) {
        listing->tabs = !listing->is_tty;
        return cli_fields_parse(command, "fields", listing->args->fields,
                                &listing->fields);
    }
    return listing->is_tty ? choose_for_terminal(command, &listing->fields)
                           : cli_fields_parse(command, "fields", all_columns,
                                              &listing->fields);
}

/* ---- One row ------------------------------------------------------------- */

/* The text of one field, to be freed; NULL: no memory. */
static char *field_text(const struct cli_field *field,
                        const struct idem_record *r, bool is_tty)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (f == NULL) {
        return NULL;
    }
    field->print(f, r, is_tty);
    (void)fclose(f);
    return text;
}

static void pad(FILE *f, int columns)
{
    (void)fprintf(f, "%*s", columns > 0 ? columns : 0, "");
}

/* The last column is not padded: a long key is not followed by blanks. */
static void print_cell(FILE *f, const struct listing *listing, size_t i,
                       const char *text)
{
    const struct cli_field *field = listing->fields.list[i];
    int width = field->width == 0 ? KEY_ROOM : abs(field->width);
    int room = width - (int)cli_columns(text);
    bool last = i + 1 == listing->fields.len;

    if (listing->tabs) {
        (void)fprintf(f, "%s%s", text, last ? "" : "\t");
        return;
    }
    pad(f, field->width < 0 ? room : 0);
    (void)fputs(text, f);
    pad(f, field->width < 0 || last ? 0 : room);
    pad(f, last ? 0 : GAP);
}

static void print_field(FILE *f, const struct listing *listing, size_t i,
                        int code, const struct idem_record *r)
{
    const struct cli_field *field = listing->fields.list[i];
    bool is_status = strcmp(field->name, "status") == 0;
    bool is_identity =
        strcmp(field->name, "key") == 0 || strcmp(field->name, "scope") == 0;
    char *text;

    if (code != 0 && !is_identity) {
        print_cell(f, listing, i, is_status ? "CORRUPT" : "-");
        return;
    }
    if (is_status && !listing->tabs) {
        cli_print_status(f, r, field->width);
        pad(f, i + 1 == listing->fields.len ? 0 : GAP);
        return;
    }
    text = field_text(field, r, listing->is_tty);
    print_cell(f, listing, i, text != NULL ? text : "?");
    free(text);
}

static void print_row(FILE *f, const struct listing *listing, int code,
                      const struct idem_record *r)
{
    size_t i;

    for (i = 0; i < listing->fields.len; i++) {
        print_field(f, listing, i, code, r);
    }
    (void)fputc('\n', f);
}

static int print_json_row(FILE *f, const struct listing *listing, int code,
                          const struct idem_record *r)
{
    struct cli_json json;

    cli_json_init(&json);
    if (code == 0) {
        cli_json_record(&json, r, /* with_bytes= */ false);
    } else {
        cli_json_bytes(&json, "scope", r->scope);
        cli_json_bytes(&json, "key", r->key);
        cli_json_hex(&json, "id", idem_bytes(r->id, sizeof(r->id)));
        cli_json_text(&json, "problem", idem_error_name(code));
    }
    if (listing->args->fields != NULL && code == 0) {
        cli_fields_keep(&listing->fields, &json);
    }
    return cli_json_end(&json, f);
}

int listing_print(FILE *f, const struct listing *listing, int code,
                  const struct idem_record *r)
{
    if (listing->args->json) {
        return print_json_row(f, listing, code, r);
    }
    print_row(f, listing, code, r);
    return 0;
}

int listing_keep(struct listing *listing, int code, const struct idem_record *r)
{
    struct cli_list_order *order = &listing->order;
    struct cli_row row;
    char *line = NULL;
    size_t len;
    int status;
    FILE *f;

    if (!cli_list_wants(order, code, r, &row)) {
        return 0;
    }
    f = open_memstream(&line, &len);
    status = f != NULL ? listing_print(f, listing, code, r) : CLI_INTERNAL;
    if (f == NULL || fclose(f) != 0 || line == NULL) {
        cli_say("out of memory");
        status = CLI_INTERNAL;
    }
    if (status != 0) {
        free(line);
        return status;
    }
    return cli_rows_add(&order->rows, line, row.number, row.tie);
}

void listing_begin_output(struct listing *listing)
{
    size_t i;

    if (listing->begun) {
        return;
    }
    listing->begun = true;
    cli_progress_end();
    if (listing->args->json || !listing->is_tty) {
        return;
    }
    for (i = 0; i < listing->fields.len; i++) {
        print_cell(stdout, listing, i, listing->fields.list[i]->heading);
    }
    (void)putchar('\n');
}
